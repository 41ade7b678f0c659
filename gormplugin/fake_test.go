package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/utils/tests"

	"github.com/sortkey/sortkey/idtype"
)

// A counter generates IDs from the numbers 1, 2, 3, up to a limit.
type counter[T any] struct {
	mu    sync.Mutex
	make  func(int64) T
	n     int64
	limit int64 // 0 if there is no limit
	ctx   context.Context
}

var errUsedUp = errors.New("used up")

func (c *counter[T]) Next() (id T, err error) {
	var ids [1]T
	_, err = c.Fill(context.Background(), ids[:])
	return ids[0], err
}

func (c *counter[T]) Fill(ctx context.Context, dst []T) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = ctx
	for i := range dst {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if c.limit > 0 && c.n == c.limit {
			return i, errUsedUp
		}
		c.n++
		dst[i] = c.make(c.n)
	}
	return len(dst), nil
}

func snowflakes() *counter[idtype.Snowflake] {
	return &counter[idtype.Snowflake]{make: func(n int64) idtype.Snowflake { return idtype.Snowflake(n) }}
}

// from returns a counter that begins after n.
func from(n int64) *counter[idtype.Snowflake] {
	c := snowflakes()
	c.n = n
	return c
}

func snos() *counter[idtype.Sno] {
	return &counter[idtype.Sno]{make: func(n int64) idtype.Sno { return idtype.Sno{9: byte(n)} }}
}

// open returns a database that builds SQL without running it.
func open(t testing.TB, bindings ...Binding) *gorm.DB {
	t.Helper()
	return openWith(t, &gorm.Config{DryRun: true}, bindings...)
}

func openWith(t testing.TB, config *gorm.Config, bindings ...Binding) *gorm.DB {
	t.Helper()
	config.Logger = logger.Discard
	db, err := gorm.Open(tests.DummyDialector{}, config)
	if err != nil {
		t.Fatal(err)
	}
	if len(bindings) > 0 {
		if err := db.Use(New(bindings...)); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// sqlOf returns a statement's SQL with its values.
func sqlOf(tx *gorm.DB) string {
	return tx.Dialector.Explain(tx.Statement.SQL.String(), tx.Statement.Vars...)
}

// A server is a database/sql driver that records statements and returns the same rows
// for each query.
type server struct {
	mu       sync.Mutex
	ran      []string
	args     [][]driver.NamedValue
	columns  []string
	rows     [][]driver.Value
	affected int64 // by each statement; if negative, every row of an INSERT
	refuse   func(query string) error
	commit   error
}

// openServer returns a database that sends its statements to s.
func openServer(t testing.TB, s *server, bindings ...Binding) *gorm.DB {
	t.Helper()
	pool := sql.OpenDB(s)
	t.Cleanup(func() { _ = pool.Close() })
	return openWith(t, &gorm.Config{ConnPool: pool}, bindings...)
}

// inserts returns the INSERT statements that ran.
func (s *server) inserts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.ran), func(q string) bool { return !strings.HasPrefix(q, "INSERT") })
}

func (s *server) record(query string, args []driver.NamedValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran, s.args = append(s.ran, query), append(s.args, args)
}

func (s *server) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (s *server) Driver() driver.Driver                        { return nil }
func (s *server) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (s *server) Close() error                                 { return nil }
func (s *server) Begin() (driver.Tx, error)                    { s.record("BEGIN", nil); return s, nil }
func (s *server) Commit() error                                { s.record("COMMIT", nil); return s.commit }
func (s *server) Rollback() error                              { s.record("ROLLBACK", nil); return nil }

func (s *server) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s.record(query, args)
	if s.refuse != nil {
		if err := s.refuse(query); err != nil {
			return nil, err
		}
	}
	if s.affected < 0 {
		return driver.RowsAffected(strings.Count(query, "(?")), nil
	}
	return driver.RowsAffected(s.affected), nil
}

func (s *server) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s.record(query, args)
	return &answer{s.columns, s.rows}, nil
}

type answer struct {
	columns []string
	rows    [][]driver.Value
}

func (a *answer) Columns() []string { return a.columns }
func (a *answer) Close() error      { return nil }
func (a *answer) Next(dst []driver.Value) error {
	if len(a.rows) == 0 {
		return io.EOF
	}
	copy(dst, a.rows[0])
	a.rows = a.rows[1:]
	return nil
}
