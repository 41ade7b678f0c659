package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// A badRequest is an error of the client, which gets its text.
type badRequest struct{ error }

// The errors of body.
var (
	errTooLarge = fmt.Errorf("body: want at most %d bytes", maxBody)
	errTooSlow  = errors.New("body: not received in time")
)

// fail replies to an error.
func (s *shop) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := problem(err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	// If the context has ended, the client is gone, or sent its body too slowly. It still gets
	// a status: without one, the server would send 200.
	if status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	http.Error(w, text, status)
}

// problem returns the status and the text for an error.
func problem(err error) (status int, text string) {
	var invalid badRequest
	var server *pgconn.PgError
	switch {
	case errors.As(err, &invalid):
		return http.StatusBadRequest, invalid.Error()
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge, err.Error()
	case errors.Is(err, errTooSlow):
		return http.StatusRequestTimeout, err.Error()
	case errors.Is(err, gorm.ErrRecordNotFound):
		return http.StatusNotFound, "not found"
	case errors.As(err, &server) && server.Code == "23503": // foreign_key_violation
		return http.StatusBadRequest, "no customer has this customer_id"
	case errors.Is(err, idtype.ErrLeaseLost), // until another node number is claimed
		errors.Is(err, idtype.ErrLeaseNotRenewed),   // until the next renewal
		errors.Is(err, idtype.ErrClockBackwards),    // until the clock catches up
		errors.Is(err, idtype.ErrSequenceExhausted): // too many IDs at once
		return http.StatusServiceUnavailable, "no new IDs at the moment; retry"
	case isUnavailable(err):
		return http.StatusServiceUnavailable, "no answer from the database; retry with the same Idempotency-Key"
	}
	return http.StatusInternalServerError, "internal error"
}

// isUnavailable reports whether the database is down, overloaded or unreachable.
func isUnavailable(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		class := server.Code[:2] // operator intervention, insufficient resources, connection exception
		return class == "57" || class == "53" || class == "08"
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}
