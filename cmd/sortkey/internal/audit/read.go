package audit

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
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

// An idKey is the value of a bigint or uuid column. Its two halves compare as the
// column does.
type idKey struct{ high, low uint64 }

const signBit = 1 << 63

func bigintKey(n int64) idKey { return idKey{low: uint64(n) ^ signBit} }

func uuidKey(b []byte) idKey {
	return idKey{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

func (k idKey) bigint() int64 { return int64(k.low ^ signBit) }

func (k idKey) uuid() (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[:8], k.high)
	binary.BigEndian.PutUint64(u[8:], k.low)
	return u
}

func (k idKey) compare(other idKey) int {
	if c := cmp.Compare(k.high, other.high); c != 0 {
		return c
	}
	return cmp.Compare(k.low, other.low)
}

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
		zero := idtype.Sno{}.UUID()
		f.zero = uuidKey(zero[:])
	}
	return f, nil
}

// decode returns the time, in Unix milliseconds, and the node number of an ID. ok is false
// if the key is no ID.
func (f *format) decode(k idKey) (ms int64, node int, ok bool) {
	var id ids.ID
	var err error
	if f.FromInt64 != nil {
		id = f.FromInt64(k.bigint())
	} else if id, err = f.FromUUID(k.uuid()); err != nil {
		return 0, 0, false
	}
	p, err := f.Parts(id)
	if p.Time.IsZero() {
		return undated, p.Node, err == nil
	}
	return p.Time.UnixMilli(), p.Node, err == nil
}

// undated is the time of a UUID of a version without one.
const undated = math.MinInt64

// keyText returns a key as its column shows it.
func (f *format) keyText(k idKey) string {
	if f.Column == "uuid" {
		return k.uuid().String()
	}
	return strconv.FormatInt(k.bigint(), 10)
}

// parseKey is the inverse of keyText.
func (f *format) parseKey(s string) (idKey, error) {
	if f.Column == "uuid" {
		u, err := uuid.Parse(s)
		return uuidKey(u[:]), err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return bigintKey(n), err
}

// floor returns the key of the lowest ID of a time.
func (f *format) floor(t time.Time) (idKey, error) {
	if f.Window == nil {
		return idKey{}, cli.Usagef("type %s: the IDs don't sort by time; omit --since and --until", f.Name)
	}
	low, _, err := f.Window(t, t)
	if err != nil {
		return idKey{}, cli.Usage(err)
	}
	return f.parseKey(ids.ColumnText(low))
}

// An entry is an ID of a column, with the rows that have it.
type entry struct {
	key   idKey
	ms    int64 // the time in Unix milliseconds
	node  int
	rows  uint32
	apart uint32 // the number of rows whose timestamp is apart
	kind  verdict
	// createdAt is the first of these timestamps, in Unix microseconds.
	createdAt int64
}

// dated reports whether the ID has a time.
func (e *entry) dated() bool {
	return (e.kind == ordinary || e.kind == future) && e.ms != undated
}

// A verdict tells malformed, zero and future IDs from others.
type verdict uint8

const (
	ordinary verdict = iota
	malformed
	zero
	future
)

// A stream reads the IDs of a column in the order of keys.
type stream struct {
	*column
	*Options
	format *format
	whole  bool     // no window, so that NULLs count
	first  []string // the conditions of the first batch
	bound  []string // the conditions of all batches

	batches chan []entry // closed at the end, or after an error canceled the context
	used    chan []entry // for reuse
	entries []entry      // the current batch
	next    int          // the index of the next entry
	total   columnTotal
}

// A columnTotal holds the counts of a column.
type columnTotal struct {
	rows, nulls int64
	ids         int64 // well-formed and not zero
	first, last int64 // the times of these, in Unix milliseconds
}

func (t *columnTotal) add(ms int64) {
	if t.ids == 0 {
		t.first, t.last = ms, ms
	}
	t.ids++
	t.first, t.last = min(t.first, ms), max(t.last, ms)
}

// where returns the WHERE clause of conditions.
func where(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

// condition returns a comparison of the column with a key.
func (s *stream) condition(operator string, k idKey) string {
	return fmt.Sprintf("%s %s '%s'::%s", pgx.Identifier{s.name}.Sanitize(), operator, s.format.keyText(k), s.base)
}

// read sends all entries to s.batches. It waits for its turn before each statement.
func (s *stream) read(ctx context.Context, turn *limiter) error {
	conditions := s.first
	for {
		entries, err := s.readBatch(ctx, conditions, turn)
		if err != nil {
			return fmt.Errorf("read %s: %w", s, err)
		}
		if len(entries) == 0 {
			break
		}
		select {
		case s.batches <- entries:
		case <-ctx.Done():
			return ctx.Err()
		}
		conditions = append(s.bound[:len(s.bound):len(s.bound)], s.condition(">", entries[len(entries)-1].key))
	}
	if s.nullable && s.whole {
		if err := s.use(ctx, func(conn *pgx.Conn) error {
			return conn.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NULL",
				pgx.Identifier{s.schema, s.table}.Sanitize(), pgx.Identifier{s.name}.Sanitize())).Scan(&s.total.nulls)
		}); err != nil {
			return fmt.Errorf("count the NULLs of %s: %w", s, err)
		}
	}
	return nil
}

// use calls f with the connection of the database.
func (s *stream) use(ctx context.Context, f func(*pgx.Conn) error) error {
	select {
	case s.db.busy <- struct{}{}:
		defer func() { <-s.db.busy }()
		return f(s.db.conn)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settings are for the transaction of a statement: the planner must use the index, whatever
// the statistics say. The statement returns the server's clock.
// Its operators have arguments of their own types, so that search_path makes no difference.
const settings = `SELECT (extract(epoch FROM clock_timestamp()) * 1000::numeric)::bigint, set_config('transaction_read_only', 'on', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true), set_config('search_path', 'pg_catalog, pg_temp', true)`

// readBatch reads the next entries. Unless an index makes the column unique, the
// batch ends with the last row of an ID.
func (s *stream) readBatch(ctx context.Context, conditions []string, turn *limiter) (entries []entry, err error) {
	columns := pgx.Identifier{s.name}.Sanitize()
	if s.CreatedAt != "" {
		columns += ", " + pgx.Identifier{s.CreatedAt}.Sanitize()
	}
	limit := fmt.Sprintf("LIMIT %d", s.Batch)
	if !s.unique {
		limit = fmt.Sprintf("FETCH FIRST %d ROWS WITH TIES", s.Batch)
	}
	statement := fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s %s", columns, pgx.Identifier{s.schema, s.table}.Sanitize(),
		where(conditions), pgx.Identifier{s.name}.Sanitize(), limit)
	select {
	case entries = <-s.used:
		entries = entries[:0]
	default:
		entries = make([]entry, 0, s.Batch)
	}
	if err := turn.wait(ctx); err != nil {
		return nil, err
	}
	begun := time.Now()
	err = s.use(ctx, func(conn *pgx.Conn) error {
		// Without a Sync between them, both statements are one transaction, which ends
		// with the second one.
		p := conn.PgConn().StartPipeline(ctx)
		p.SendQueryParams(settings, nil, nil, nil, []int16{pgx.BinaryFormatCode})
		p.SendQueryParams(statement, nil, nil, nil, []int16{pgx.BinaryFormatCode})
		err := p.Sync()
		if err == nil {
			entries, err = s.scan(p, entries)
		}
		if closed := p.Close(); err == nil {
			err = closed
		}
		return err
	})
	turn.took(rowsOf(entries), begun)
	return entries, err
}

// rowsOf returns the number of rows of entries.
func rowsOf(entries []entry) (rows int64) {
	for i := range entries {
		rows += int64(entries[i].rows)
	}
	return rows
}

// scan reads the results of both statements.
func (s *stream) scan(p *pgconn.Pipeline, entries []entry) ([]entry, error) {
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
				latest = int64(binary.BigEndian.Uint64(values[0])) + s.Future.Milliseconds()
				continue
			}
			entries = s.append(entries, values, latest)
		}
		if _, err := rows.Close(); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// append adds a row.
func (s *stream) append(entries []entry, values [][]byte, latest int64) []entry {
	var key idKey
	if len(values[0]) == 16 {
		key = uuidKey(values[0])
	} else {
		key = bigintKey(int64(binary.BigEndian.Uint64(values[0])))
	}
	if n := len(entries); n == 0 || entries[n-1].key != key {
		e := entry{key: key}
		ms, node, ok := s.format.decode(key)
		switch {
		case key == s.format.zero:
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
		if at == math.MinInt64 || at == math.MaxInt64 || max(e.ms*1000-at, at-e.ms*1000) > s.Tolerance.Microseconds() {
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

// A limiter limits the rows per second of all streams.
type limiter struct {
	rate int // 0: no limit
	mu   sync.Mutex
	next time.Time
}

// wait waits until further rows are within the rate.
func (t *limiter) wait(ctx context.Context) error {
	t.mu.Lock()
	timer := time.NewTimer(time.Until(t.next))
	t.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// took records rows that were read since begun.
func (t *limiter) took(rows int64, begun time.Time) {
	if t.rate == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next.Before(begun) {
		t.next = begun
	}
	t.next = t.next.Add(time.Duration(float64(rows) / float64(t.rate) * float64(time.Second)))
}

// head returns the next entry of the stream, or nil at its end.
func (s *stream) head(ctx context.Context, received func(rows int64)) (*entry, error) {
	for s.next == len(s.entries) {
		select {
		case entries, ok := <-s.batches:
			if !ok {
				return nil, ctx.Err()
			}
			received(rowsOf(entries))
			s.entries, s.next = entries, 0
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &s.entries[s.next], nil
}

// pop removes the entry that head returned.
func (s *stream) pop() {
	if s.next++; s.next == len(s.entries) {
		select {
		case s.used <- s.entries:
		default:
		}
	}
}

// merge calls each with the entries of all streams, in the order of keys.
func merge(ctx context.Context, streams []*stream, turn *limiter, received func(rows int64), each func(*stream, *entry)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait() // then no goroutine uses a connection
	defer cancel(nil)
	for _, s := range streams {
		s.batches, s.used = make(chan []entry, 1), make(chan []entry, 2)
		wg.Go(func() {
			defer close(s.batches)
			if err := s.read(ctx, turn); err != nil {
				cancel(err)
			}
		})
	}
	heads := make([]*entry, len(streams))
	for i, s := range streams {
		var err error
		if heads[i], err = s.head(ctx, received); err != nil {
			return context.Cause(ctx)
		}
	}
	for {
		first := -1
		for i, e := range heads {
			if e != nil && (first < 0 || e.key.compare(heads[first].key) < 0) {
				first = i
			}
		}
		if first < 0 {
			return context.Cause(ctx)
		}
		s := streams[first]
		each(s, heads[first])
		s.pop()
		var err error
		if heads[first], err = s.head(ctx, received); err != nil {
			return context.Cause(ctx)
		}
	}
}
