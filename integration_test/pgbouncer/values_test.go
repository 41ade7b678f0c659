package pgbouncer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/internal/reflecttest"
)

// workers is the number of concurrent clients, more than there are backends.
const workers = backends + 1

// tables creates, per worker, a table of forms and a table for COPY. Temporary tables
// don't work in transaction mode.
var tables = func() string {
	var sql strings.Builder
	for n := range workers {
		fmt.Fprintf(&sql, "%s;\n", onTablesOf(n, idtest.CreateTable()))
		fmt.Fprintf(&sql, "create table %s (n bigint", copies(n))
		for _, s := range samples {
			fmt.Fprintf(&sql, ", %s %s", s.name, s.column)
		}
		sql.WriteString(");\n")
	}
	return sql.String()
}()

// onTablesOf makes a statement of package idtest use a worker's table.
func onTablesOf(worker int, sql string) string {
	return strings.ReplaceAll(sql, "forms", fmt.Sprintf("forms_%d", worker))
}

func copies(worker int) string { return fmt.Sprintf("copies_%d", worker) }

// A sample holds IDs of a type.
type sample struct {
	name, column string        // the names of the type and of its column type
	ids          reflect.Value // a slice
	pointers     any           // a slice of two pointers and nil
	stored       []string      // ids as text from the server
}

func sampleOf[T idtest.ID[T]](k idtest.Kind[T]) sample {
	r := idtest.Rand(k.Name)
	ids := append([]T{}, k.Edges...)
	for range 20 {
		ids = append(ids, k.Random(r))
	}
	s := sample{
		name: strings.ToLower(k.Name), column: k.Column,
		ids: reflect.ValueOf(ids), pointers: []*T{&ids[1], nil, &ids[2]},
	}
	for _, id := range ids {
		s.stored = append(s.stored, k.Stored(id))
	}
	return s
}

func (s sample) id(n int) any { return s.ids.Index(n % s.ids.Len()).Interface() }

var samples = []sample{
	sampleOf(idtest.Snowflake), sampleOf(idtest.SnowflakeSI), sampleOf(idtest.UID60), sampleOf(idtest.Spread64), sampleOf(idtest.Sno), sampleOf(idtest.UUID),
	sampleOf(idtest.OrderID), sampleOf(idtest.VisitKey), sampleOf(idtest.CustomerID),
}

// A client is a pool, a connection or a transaction of pgx.
type client interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
	Begin(ctx context.Context) (pgx.Tx, error)
}

// A runner runs a function with a client, with or without a transaction.
type runner func(context.Context, func(client) error) error

// alone runs statements without a transaction.
func alone(c client) runner {
	return func(_ context.Context, f func(client) error) error { return f(c) }
}

// inTx runs each statement in its own transaction.
func inTx(c client) runner {
	return func(ctx context.Context, f func(client) error) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return f(tx) })
	}
}

// A row is the result of a statement that runs when Scan is called.
type row func(dest ...any) error

func (r row) Scan(dest ...any) error { return r(dest...) }

func (run runner) query(ctx context.Context, sql string, args ...any) idtest.Row {
	return row(func(dest ...any) error {
		return run(ctx, func(c client) error { return c.QueryRow(ctx, sql, args...).Scan(dest...) })
	})
}

// A query runs a statement that returns one row.
type query func(ctx context.Context, sql string, args ...any) idtest.Row

// aloneSQL is alone, and inTxSQL is inTx, for database/sql.
func aloneSQL(db *sql.DB) query {
	return func(ctx context.Context, sql string, args ...any) idtest.Row {
		return db.QueryRowContext(ctx, sql, args...)
	}
}

func inTxSQL(db *sql.DB) query {
	return func(ctx context.Context, sql string, args ...any) idtest.Row {
		return row(func(dest ...any) error {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			err = tx.QueryRowContext(ctx, sql, args...).Scan(dest...)
			return errors.Join(err, tx.Commit())
		})
	}
}

// values tests all forms of all types.
func (q query) values(t *testing.T, worker int) {
	idtest.Check(t, func(sql string, args ...any) idtest.Row {
		return q(t.Context(), onTablesOf(worker, sql), args...)
	}, idtest.Postgres)
}

// everything tests values, arrays, batches and COPY.
func (run runner) everything(t *testing.T, worker int) {
	t.Run("values", func(t *testing.T) { query(run.query).values(t, worker) })
	t.Run("arrays", run.arrays)
	t.Run("batch", run.batch)
	t.Run("copy", func(t *testing.T) { run.copy(t, copies(worker)) })
}

func (run runner) arrays(t *testing.T) {
	for _, s := range samples {
		ids, some, array := s.ids.Interface(), s.ids.Slice(2, 5).Interface(), "$1::"+s.column+"[]"
		run.returns(t, ids, "select "+array, ids)
		run.returns(t, s.stored, "select "+array+"::text[]", ids)
		run.returns(t, s.pointers, "select "+array, s.pointers)
		run.returns(t, some, "select array_agg(id order by n) from unnest("+array+") with ordinality as u (id, n) where id = any($2)", ids, some)
	}
}

// returns checks the value of a query with one column.
func (run runner) returns(t *testing.T, want any, sql string, args ...any) {
	t.Helper()
	got := reflecttest.NewOf(want)
	err := run.query(t.Context(), sql, args...).Scan(got)
	same(t, fmt.Sprintf("%s with %T", sql, args[0]), err, reflecttest.Elem(got), want)
}

// batch tests all types in one batch.
func (run runner) batch(t *testing.T) {
	var batch pgx.Batch
	for n := range 10 {
		for _, s := range samples {
			batch.Queue(fmt.Sprintf("select $1::%s, $1::%[1]s::text", s.column), s.id(n)).QueryRow(func(row pgx.Row) error {
				got, stored := reflect.New(s.ids.Type().Elem()), ""
				err := row.Scan(got.Interface(), &stored)
				same(t, s.name, err, got.Elem().Interface(), s.id(n))
				same(t, s.name+" as text", err, stored, s.stored[n%len(s.stored)])
				return nil
			})
		}
	}
	if err := run(t.Context(), func(c client) error { return c.SendBatch(t.Context(), &batch).Close() }); err != nil {
		t.Error(err)
	}
}

func (run runner) copy(t *testing.T, table string) {
	columns, rows := []string{"n"}, [][]any{}
	for _, s := range samples {
		columns = append(columns, s.name)
	}
	for n := range 40 {
		row := []any{int64(n)}
		for _, s := range samples {
			row = append(row, s.id(n))
		}
		rows = append(rows, row)
	}
	back, err := run.copied(t.Context(), table, columns, rows)
	same(t, "rows", err, back, rows)
}

// copied copies rows into a table and returns the table's rows, sorted by the first
// column. It leaves the table empty.
func (run runner) copied(ctx context.Context, table string, columns []string, rows [][]any) (back [][]any, err error) {
	err = run(ctx, func(c client) error {
		_, err := c.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromRows(rows))
		return err
	})
	if err != nil {
		return nil, err
	}
	err = run(ctx, func(c client) (err error) {
		got, _ := c.Query(ctx, "with gone as (delete from "+table+" returning *) select * from gone order by 1")
		back, err = pgx.CollectRows(got, rowLike(rows[0]))
		return err
	})
	return back, err
}

// rowLike scans a row into new values with the types of row's values.
func rowLike(row []any) pgx.RowToFunc[[]any] {
	return func(r pgx.CollectableRow) ([]any, error) {
		var into, values []any
		for _, v := range row {
			into = append(into, reflecttest.NewOf(v))
		}
		err := r.Scan(into...)
		for _, v := range into {
			values = append(values, reflecttest.Elem(v))
		}
		return values, err
	}
}

func same(t *testing.T, what string, err error, got, want any) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: expected %v, got %v, %v", what, want, got, err)
	}
}
