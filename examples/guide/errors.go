package guide

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
)

// StatusOf returns the HTTP status for an error of a handler that parses,
// generates and stores IDs.
func StatusOf(err error) int {
	var invalid *idtype.ParseError
	var server *pgconn.PgError
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &invalid):
		return http.StatusBadRequest
	case errors.Is(err, idtype.ErrSequenceExhausted), // temporary: too many IDs at once
		errors.Is(err, idtype.ErrClockBackwards),  // until the system clock is correct
		errors.Is(err, idtype.ErrLeaseNotRenewed), // until the next renewal
		errors.Is(err, idtype.ErrLeaseLost):       // until another number is claimed
		return http.StatusServiceUnavailable
	case errors.As(err, &server) && server.Code == "53400": // a default was called too often
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
