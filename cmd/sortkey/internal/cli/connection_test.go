package cli

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestConnStrings checks that correct connection strings are accepted.
func TestConnStrings(t *testing.T) {
	for _, s := range []string{
		"",
		"host=db.example port=5432 user=app@azure dbname=shop password=a;b=c&d:/?",
		`host=/run/my\ db user='a b' password='a;b:c/d' dbname='a#b' options='-c search_path=x' sslpassword=ab==`,
		"host=db_1,größe.example,10.0.0.1,::1,fe80::1%eth0 sslmode=require search_path=a,b timezone=UTC+01:00",
		`password=a\ user=b;c host=db`,
		"postgres://app%40x:a;b=c%40d@db.example:5432,[::1]:5433/a%23b?sslmode=require&search_path=a,b&pool_max_conns=3",
		"postgres:///shop?host=/run/postgresql&user=app@azure&options=-c%20a.b_2%3D1",
		"postgres:///shop?host=::1",
	} {
		if _, err := parseConfig(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// The error of a connection is the last one of a server. Without one, it is the last one, without
// the address.
func TestLastCause(t *testing.T) {
	tls, plain := &pgconn.PgError{Message: "with TLS"}, &pgconn.PgError{Message: "without TLS"}
	first, last := &net.OpError{Op: "dial", Err: errors.New("first")}, &net.OpError{Op: "dial", Err: errors.New("last")}
	unknown := errors.New("unknown")
	for _, c := range []struct{ err, want error }{
		{errors.Join(tls, plain, last), plain},
		{errors.Join(first, last), last},
		{errors.Join(last, first, fmt.Errorf("10.0.0.1: %w", unknown)), unknown},
		{last, last},
	} {
		if got := lastCause(c.err, &pgconn.Config{}); got != c.want {
			t.Errorf("%v: expected %v, got %v", c.err, c.want, got)
		}
	}
}
