package cli

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
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

// serverErrors returns the errors of all attempts.
func TestServerErrors(t *testing.T) {
	tls, plain := &pgconn.PgError{Message: "with TLS"}, &pgconn.PgError{Message: "without TLS"}
	got := serverErrors(fmt.Errorf("connect: %w", errors.Join(tls, fmt.Errorf("10.0.0.1: %w", plain), errors.New("refused"))))
	if !slices.Equal(got, []*pgconn.PgError{tls, plain}) {
		t.Errorf("got %v", got)
	}
}

// Sessions prepare no statements, unless the connection string says so.
func TestExecMode(t *testing.T) {
	for url, want := range map[string]pgx.QueryExecMode{
		"postgres://app@db/shop": pgx.QueryExecModeExec,
		"postgres://app@db/shop?default_query_exec_mode=simple_protocol": pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := Config(url)
		if err != nil || config.ConnConfig.DefaultQueryExecMode != want {
			t.Errorf("%s: got %v, %v; want %v", url, config.ConnConfig.DefaultQueryExecMode, err, want)
		}
	}
}
