package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// A badRequest is an error of the client, which gets its text.
type badRequest struct{ error }

// Other errors of the client.
var (
	errNoRoute   = errors.New("no such path")
	errNoMethod  = errors.New("the path has other methods; see the header Allow")
	errTooLarge  = fmt.Errorf("body: want at most %d bytes", maxBody)
	errTooSlow   = errors.New("body: not received in time")
	errKeyReused = errors.New("Idempotency-Key: another order of the customer has this key; want a new key for a new order")
)

// fail replies to an error, in the form of RFC 9457.
func fail(w http.ResponseWriter, err error) {
	status, detail := statusOf(err)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	_ = reply(w, status, "application/problem+json", struct { // no field that Marshal rejects
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
}

// statusOf returns the status for an error, and its text for the client.
func statusOf(err error) (status int, detail string) {
	var invalid badRequest
	var server *pgconn.PgError
	switch {
	case errors.As(err, &invalid):
		return http.StatusBadRequest, invalid.Error()
	case errors.Is(err, errNoRoute):
		return http.StatusNotFound, err.Error()
	case errors.Is(err, errNoMethod):
		return http.StatusMethodNotAllowed, err.Error()
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge, err.Error()
	case errors.Is(err, errTooSlow):
		return http.StatusRequestTimeout, err.Error()
	case errors.Is(err, errKeyReused):
		return http.StatusUnprocessableEntity, err.Error()
	case errors.Is(err, gorm.ErrRecordNotFound):
		return http.StatusNotFound, "not found"
	case errors.As(err, &server) && server.Code == "23503": // foreign_key_violation
		return http.StatusBadRequest, "no customer has this customer_id"
	case errors.Is(err, idtype.ErrLeaseLost), // until another node number is claimed
		errors.Is(err, idtype.ErrLeaseNotRenewed),   // until the next renewal
		errors.Is(err, idtype.ErrClockBackwards),    // until the clock catches up
		errors.Is(err, idtype.ErrSequenceExhausted): // too many IDs at once
		return http.StatusServiceUnavailable, "no new IDs at the moment; retry"
	case isTemporary(err):
		return http.StatusServiceUnavailable, "no result from the database; retry with the same Idempotency-Key"
	}
	return http.StatusInternalServerError, "internal error"
}

// temporary has the SQLSTATEs, and the classes of SQLSTATEs, of errors that a retry can
// resolve: connection exception, read-only transaction (during a failover), transaction rollback
// (serialization failure, deadlock), insufficient resources, and operator intervention.
var temporary = []string{"08", "25006", "40", "53", "57"}

// isTemporary reports whether the database is down, overloaded, unreachable or in a failover,
// or had a conflict between transactions.
func isTemporary(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return slices.ContainsFunc(temporary, func(class string) bool { return strings.HasPrefix(server.Code, class) })
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded)
}
