package guide

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
)

func TestStatusOf(t *testing.T) {
	_, malformed := idtype.ParseSno("abc")
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 200},
		{malformed, 400},
		{fmt.Errorf("create order: %w", malformed), 400},
		{idtype.ErrSequenceExhausted, 503},
		{idtype.ErrLeaseNotRenewed, 503},
		{fmt.Errorf("create order: %w", idtype.ErrLeaseLost), 503},
		{idtype.ErrClockBackwards, 503},
		{&pgconn.PgError{Code: "53400"}, 503},
		{&pgconn.PgError{Code: "22P02"}, 500},
		{errors.New("other"), 500},
	} {
		if got := StatusOf(test.err); got != test.want {
			t.Errorf("StatusOf(%v): want %d, got %d", test.err, test.want, got)
		}
	}
}
