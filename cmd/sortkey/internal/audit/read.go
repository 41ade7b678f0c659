package audit

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// An idKey is the value of a bigint or uuid column, in bytes that compare as the column does.
type idKey [16]byte

const signBit = 1 << 63

func bigintKey(n int64) (k idKey) {
	binary.BigEndian.PutUint64(k[8:], uint64(n)^signBit)
	return k
}

func (k idKey) bigint() int64 { return int64(binary.BigEndian.Uint64(k[8:]) ^ signBit) }

// A format is an ID type with the layout of the databases.
type format struct {
	*ids.Format
	zero idKey
}

// newFormat returns the format with a name, in the layouts of c.
func newFormat(name string, c migrations.Config) (*format, error) {
	f := &format{Format: ids.ByName(name, ids.Layouts{Snowflake: c.Snowflake, SnowflakeSI: c.SnowflakeSI})}
	switch {
	case f.Undated:
		return nil, cli.Usagef("type snowflake-si: the installation has no base clock; pass --epoch")
	case f.FromInt64 != nil:
		f.zero = bigintKey(0)
	case name == "sno":
		f.zero = idKey(idtype.Sno{}.UUID())
	}
	return f, nil
}

// undated is the time of a UUID of a version without one.
const undated = math.MinInt64

// decode returns the time, in Unix milliseconds, and the node number of an ID. ok is false
// if the key is no ID.
func (f *format) decode(k idKey) (ms int64, node int, ok bool) {
	var id ids.ID
	var err error
	if f.FromInt64 != nil {
		id = f.FromInt64(k.bigint())
	} else if id, err = f.FromUUID(uuid.UUID(k)); err != nil {
		return 0, 0, false
	}
	p, err := f.Parts(id)
	if p.Time.IsZero() {
		return undated, p.Node, err == nil
	}
	return p.Time.UnixMilli(), p.Node, err == nil
}

// keyText returns a key as its column shows it.
func (f *format) keyText(k idKey) string {
	if f.Column == "uuid" {
		return uuid.UUID(k).String()
	}
	return strconv.FormatInt(k.bigint(), 10)
}

// An entry is an ID of a column, with the rows that have it.
type entry struct {
	key   idKey
	ms    int64 // the time in Unix milliseconds
	node  int
	rows  int64
	apart int64 // the number of rows whose timestamp is apart
	kind  verdict
	// createdAt is the first of these timestamps, in Unix microseconds.
	createdAt int64
}

// dated reports whether the ID has a time.
func (e *entry) dated() bool {
	return (e.kind == ordinary || e.kind == future) && e.ms != undated
}

// A verdict tells malformed, zero and future IDs from others. The order is that of findings.
type verdict uint8

const (
	ordinary verdict = iota
	malformed
	zero
	future
)

// read sends the entries of the column in the order of keys to col.batches.
func (col *column) read(ctx context.Context, o *Options) error {
	name, table := col.Column, col.Table.Table
	condition := col.first
	for {
		columns, limit := name, fmt.Sprintf("LIMIT %d", o.Batch)
		if o.CreatedAt != "" {
			columns += ", " + pgx.Identifier{o.CreatedAt}.Sanitize()
		}
		if !col.unique { // a batch ends with the last row of an ID
			limit = fmt.Sprintf("FETCH FIRST %d ROWS WITH TIES", o.Batch)
		}
		entries, err := col.readBatch(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s %s", columns, table, condition, name, limit), o)
		if err != nil {
			return fmt.Errorf("read %s: %w", col, cli.ExplainLost(err, col.db.conn.Config()))
		}
		if len(entries) == 0 {
			break
		}
		select {
		case col.batches <- entries:
		case <-ctx.Done():
			return ctx.Err()
		}
		condition = fmt.Sprintf("%s > '%s'::%s", name, col.format.keyText(entries[len(entries)-1].key), col.base)
	}
	if !col.nullable || !o.Since.IsZero() {
		return nil
	}
	col.db.mu.Lock()
	defer col.db.mu.Unlock()
	if err := col.db.row(ctx, []any{&col.Nulls}, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NULL", table, name)); err != nil {
		return fmt.Errorf("count the NULLs of %s: %w", col, err)
	}
	return nil
}

// settings are for the transaction of a statement: the planner must use the index, whatever
// the statistics say. The statement returns the server's clock. Its names have their schemas,
// because it also sets the search_path.
const settings = `SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 1000::pg_catalog.numeric)::pg_catalog.int8, pg_catalog.set_config('transaction_read_only', 'on', true),
	pg_catalog.set_config('enable_seqscan', 'off', true), pg_catalog.set_config('enable_bitmapscan', 'off', true), pg_catalog.set_config('jit', 'off', true), pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)`

// readBatch returns the entries of a statement.
func (col *column) readBatch(ctx context.Context, statement string, o *Options) (entries []entry, err error) {
	col.db.mu.Lock()
	defer col.db.mu.Unlock()
	// Without a Sync between them, both statements are one transaction, which ends with the
	// second one.
	p := col.db.conn.PgConn().StartPipeline(ctx)
	p.SendQueryParams(settings, nil, nil, nil, []int16{pgx.BinaryFormatCode})
	p.SendQueryParams(statement, nil, nil, nil, []int16{pgx.BinaryFormatCode})
	if err = p.Sync(); err == nil {
		entries, err = col.scan(p, make([]entry, 0, o.Batch))
	}
	if closed := p.Close(); err == nil {
		err = closed
	}
	return entries, err
}

// scan reads the results of both statements.
func (col *column) scan(p *pgconn.Pipeline, entries []entry) ([]entry, error) {
	var latest int64 // the time from which IDs are of the future
	for i := range 2 {
		results, err := p.GetResults()
		if err != nil {
			return nil, err
		}
		rows := results.(*pgconn.ResultReader)
		for rows.NextRow() {
			values := rows.Values()
			if i == 0 {
				latest = int64(binary.BigEndian.Uint64(values[0])) + maxAhead.Milliseconds()
				continue
			}
			entries = col.append(entries, values, latest)
		}
		if _, err := rows.Close(); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// append adds a row.
func (col *column) append(entries []entry, values [][]byte, latest int64) []entry {
	var key idKey
	if len(values[0]) == len(key) {
		key = idKey(values[0])
	} else {
		key = bigintKey(int64(binary.BigEndian.Uint64(values[0])))
	}
	if n := len(entries); n == 0 || entries[n-1].key != key {
		e := entry{key: key}
		ms, node, ok := col.format.decode(key)
		switch {
		case key == col.format.zero:
			e.kind = zero
		case !ok:
			e.kind = malformed
		case ms > latest:
			e.kind = future
		}
		e.ms, e.node = ms, node
		entries = append(entries, e)
	}
	e := &entries[len(entries)-1]
	e.rows++
	if len(values) > 1 && values[1] != nil && e.dated() {
		at := postgresTime(int64(binary.BigEndian.Uint64(values[1])))
		// The difference of times that Postgres and IDs can hold fits an int64, except of
		// infinite ones.
		if at == math.MinInt64 || at == math.MaxInt64 || max(e.ms*1000-at, at-e.ms*1000) > tolerance.Microseconds() {
			if e.apart == 0 {
				e.createdAt = at
			}
			e.apart++
		}
	}
	return entries
}

// postgresTime converts a timestamp of Postgres, in microseconds since 2000, to Unix
// microseconds. The extreme values are -infinity and infinity.
func postgresTime(n int64) int64 {
	if n == math.MinInt64 || n == math.MaxInt64 {
		return n
	}
	return n + time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
}

// postgresText is the text of such a time.
func postgresText(us int64) string {
	switch us {
	case math.MaxInt64:
		return "infinity"
	case math.MinInt64:
		return "-infinity"
	}
	return time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
}

// pause waits for the time that rows take at a rate per second. Rate 0 means no limit.
func pause(ctx context.Context, rows int64, rate int) error {
	if rate == 0 {
		return nil
	}
	select {
	case <-time.After(time.Duration(float64(rows) / float64(rate) * float64(time.Second))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// merge calls each with the entries of all columns, in the order of keys. It calls received
// with the number of rows of each batch.
func merge(ctx context.Context, columns []*column, o *Options, received func(rows int64), each func(*column, *entry)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait() // then no goroutine uses a connection
	defer cancel(nil)
	for _, col := range columns {
		col.batches = make(chan []entry, 1)
		wg.Go(func() {
			defer close(col.batches) // at the end, or after an error canceled the context
			if err := col.read(ctx, o); err != nil {
				cancel(err)
			}
		})
	}
	batches := make([][]entry, len(columns)) // empty at the end of a column
	next := func(i int) error {
		if len(batches[i]) > 1 {
			batches[i] = batches[i][1:]
			return nil
		}
		batches[i] = <-columns[i].batches
		var rows int64
		for _, e := range batches[i] {
			rows += e.rows
		}
		received(rows)
		if err := pause(ctx, rows, o.Rate); err != nil {
			return err
		}
		return ctx.Err()
	}
	for i := range columns {
		if next(i) != nil {
			return context.Cause(ctx)
		}
	}
	for {
		first := -1
		for i, batch := range batches {
			if len(batch) > 0 && (first < 0 || bytes.Compare(batch[0].key[:], batches[first][0].key[:]) < 0) {
				first = i
			}
		}
		if first < 0 {
			return context.Cause(ctx)
		}
		each(columns[first], &batches[first][0])
		if next(first) != nil {
			return context.Cause(ctx)
		}
	}
}
