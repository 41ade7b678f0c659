package pgtest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	pgdriver "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/pgxcodec"
)

// An Option changes how a pgx client connects.
type Option func(*settings)

type settings struct {
	config       *pgx.ConnConfig
	afterConnect func(context.Context, *pgx.Conn) error
	fromPool     bool
}

// AfterConnect makes the client call f for each new connection.
func AfterConnect(f func(context.Context, *pgx.Conn) error) Option {
	return func(s *settings) { s.afterConnect = f }
}

// Codec installs package pgxcodec.
var Codec = AfterConnect(pgxcodec.AfterConnect)

// Mode sets the default query exec mode.
func Mode(m pgx.QueryExecMode) Option {
	return func(s *settings) { s.config.DefaultQueryExecMode = m }
}

// Config changes any other setting.
func Config(f func(*pgx.ConnConfig)) Option {
	return func(s *settings) { f(s.config) }
}

// Login connects as a role, which needs LOGIN and the password of [LoginPassword]. A role that
// a session sets isn't a boundary: its code can run RESET ROLE.
func Login(role string) Option {
	return Config(func(c *pgx.ConnConfig) { c.User, c.Password = role, "secret" })
}

// LoginPassword makes a role of CREATE ROLE one for [Login].
const LoginPassword = "LOGIN PASSWORD 'secret'"

// FromPool makes database/sql use the connections of a pgx pool.
func FromPool(s *settings) { s.fromPool = true }

// Modes lists all query exec modes of pgx.
var Modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement,
	pgx.QueryExecModeCacheDescribe,
	pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec,
	pgx.QueryExecModeSimpleProtocol,
}

// EachMode runs f once per query exec mode, as a subtest. With -short, it runs f only in the two
// modes that differ most: with the types of parameters, and without.
func EachMode(t *testing.T, f func(t *testing.T, mode pgx.QueryExecMode)) {
	t.Helper()
	modes := Scaled([]pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol}, Modes)
	for _, m := range modes {
		t.Run(m.String(), func(t *testing.T) { f(t, m) })
	}
}

func (db *DB) settings(t testing.TB, opts []Option) *settings {
	t.Helper()
	config, err := pgx.ParseConfig(db.URL)
	Must(t, err)
	config.ConnectTimeout = adminTimeout
	s := &settings{config: config, afterConnect: func(context.Context, *pgx.Conn) error { return nil }}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Conn opens a pgx connection.
func (db *DB) Conn(t testing.TB, opts ...Option) *pgx.Conn {
	t.Helper()
	s := db.settings(t, opts)
	conn, err := pgx.ConnectConfig(t.Context(), s.config)
	Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn.Close(ctx)
	})
	Must(t, s.afterConnect(t.Context(), conn))
	return conn
}

// Pool opens a pgx pool.
func (db *DB) Pool(t testing.TB, opts ...Option) *pgxpool.Pool {
	t.Helper()
	s := db.settings(t, opts)
	config, err := pgxpool.ParseConfig(db.URL)
	Must(t, err)
	config.ConnConfig = s.config
	config.AfterConnect = s.afterConnect
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	Must(t, err)
	t.Cleanup(func() {
		closed := make(chan struct{})
		go func() { pool.Close(); close(closed) }()
		select {
		case <-closed:
		case <-time.After(2 * time.Minute):
			t.Error("the pool doesn't close: the test didn't release a connection")
		}
	})
	return pool
}

// SQL opens a database/sql pool with the pgx driver.
func (db *DB) SQL(t testing.TB, opts ...Option) *sql.DB {
	t.Helper()
	s := db.settings(t, opts)
	var pool *sql.DB
	if s.fromPool {
		pool = stdlib.OpenDBFromPool(db.Pool(t, opts...))
	} else {
		pool = stdlib.OpenDB(*s.config, stdlib.OptionAfterConnect(s.afterConnect))
	}
	t.Cleanup(func() { pool.Close() })
	return pool
}

// GORM opens the database with GORM, through [DB.SQL]. GORM logs to the test's output.
// A nil config is GORM's default.
func (db *DB) GORM(t testing.TB, config *gorm.Config, opts ...Option) *gorm.DB {
	t.Helper()
	if config == nil {
		config = &gorm.Config{}
	}
	if config.Logger == nil {
		config.Logger = logger.New(testLog{t}, logger.Config{LogLevel: logger.Info})
	}
	g, err := gorm.Open(pgdriver.New(pgdriver.Config{Conn: db.SQL(t, opts...)}), config)
	Must(t, err)
	return g
}

type testLog struct{ testing.TB }

func (l testLog) Printf(format string, args ...any) { l.Logf(format, args...) }

// Value returns the only value of a query's result.
func Value[T any](t testing.TB, conn *pgx.Conn, query string, args ...any) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%v\nin: %s", err, query)
	}
	return v
}

// CheckColumns checks the types of columns, such as orders.id. None may have a default or
// an identity.
func CheckColumns(t testing.TB, db *DB, want map[string]string) {
	t.Helper()
	conn := db.Conn(t)
	for column, typ := range want {
		got := Value[string](t, conn, `
			SELECT data_type || coalesce(column_default, '') || coalesce(identity_generation, '')
			FROM information_schema.columns WHERE table_name || '.' || column_name = $1`, column)
		if got != typ {
			t.Errorf("column %s: expected %s, got %s", column, typ, got)
		}
	}
}
