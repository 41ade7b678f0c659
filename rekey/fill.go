package rekey

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A fill describes a backfill action. Its first statement fills one batch and returns the
// number of rows that it has filled, and its second reports whether rows are left.
//
// Without Pages, batches follow the order of (time, old key). The parameters are the key of
// the last row, the last slot, the size of the batch and, with Moment, the time of the last
// row; see fillKeys. With Pages, the parameters are the first page and the one after the
// last.
type fill struct {
	Table  string `json:"table"`
	Rows   int64  `json:"rows"` // estimated
	Pages  bool   `json:"pages,omitempty"`
	Moment bool   `json:"moment,omitempty"`
}

// milliseconds renders the time of a row in Unix milliseconds.
func (k *key) milliseconds(alias string) string {
	column := alias + "." + k.root.Quoted
	if form, ok := keyForms[k.Times.Key]; ok {
		return form.milliseconds(k, column)
	}
	if k.times == nil {
		return fmt.Sprintf("%d::bigint", k.start().UnixMilli())
	}
	if k.times.numeric() {
		return fmt.Sprintf("floor(%s::numeric * %d / 1000)::bigint", k.timeOf(alias), k.Times.unit())
	}
	return "floor(extract(epoch FROM " + k.timeOf(alias) + ") * 1000)::bigint"
}

// start returns the time of rows without a time.
func (k *key) start() time.Time {
	if k.Times.Start.IsZero() {
		return time.UnixMilli(k.format.epochMS)
	}
	return k.Times.Start
}

// timeOf renders the column with the time of a row. It can become infinite after expand.
func (k *key) timeOf(alias string) string {
	column := k.times.Quoted
	if alias != "" {
		column = alias + "." + column
	}
	if k.times.numeric() {
		return fmt.Sprintf("coalesce(%s, %d)", column, k.start().UnixMicro()/k.Times.unit())
	}
	layout := "2006-01-02 15:04:05.999999+00"
	if k.times.Type == "timestamp" {
		layout = strings.TrimSuffix(layout, "+00")
	}
	return "(CASE WHEN isfinite(" + column + ") THEN " + column + " ELSE '" + k.start().UTC().Format(layout) + "'::" + k.times.Type + " END)"
}

// checkTimeColumn looks for rows without a time.
func (m *model) checkTimeColumn(ctx context.Context, db querier, k *key) error {
	if k.times == nil || !k.Times.Start.IsZero() {
		return nil
	}
	table := k.root.rel.Name
	for _, c := range []struct {
		condition, reason, remedy string
		report                    func(object, reason, remedy string, args ...any)
	}{
		{" IS NULL", "is NULL in %d rows, such as the one with key %s", "they get IDs of " + stamp(k.format.epochMS) + ", the first instant of the format, in order; set Times.Start for another time", m.note},
		{" IN ('infinity', '-infinity')", "is infinite in %d rows, such as the one with key %s", "correct these times, or set Times.Start to the time of such rows", m.problem},
	} {
		if k.times.numeric() && c.condition != " IS NULL" {
			continue
		}
		var count int64
		var first sql.NullString
		err := db.QueryRowContext(ctx, "SELECT count(*), min("+k.root.Quoted+"::text) FROM ONLY "+table+" WHERE "+k.times.Quoted+c.condition).Scan(&count, &first)
		if err != nil {
			return err
		}
		if count > 0 {
			c.report("column "+table+"."+k.times.Quoted, c.reason, c.remedy, count, first.String)
		}
	}
	return nil
}

// order renders the expressions that determine the order of IDs. The last one is the key.
func (k *key) order(alias string) []string {
	column := k.root.Quoted
	if alias != "" {
		column = alias + "." + column
	}
	switch form := keyForms[k.Times.Key]; {
	case k.byBytes():
		return []string{column + ` COLLATE "C"`}
	case k.times != nil:
		return []string{k.timeOf(alias), column}
	case form.sorts != nil:
		return []string{form.sorts(column), column}
	}
	return []string{column}
}

// momentType returns the type of the first expression of the order, or "" if that is the key.
func (k *key) momentType() string {
	switch {
	case k.times != nil:
		return k.times.Type
	case keyForms[k.Times.Key].sorts != nil:
		return "bigint"
	}
	return ""
}

// needsIndex reports whether no index has the order.
func (k *key) needsIndex() bool { return k.momentType() != "" || k.byBytes() }

// fillKeys renders a batch of the backfill of a key. Each row gets a slot, which is a time
// unit and a sequence number in it: the first slot of the row's time unit, or the slot
// after the previous row's if that is later. So IDs have the order of the rows.
//
// The update sets references, too, if their keys are done.
func (m *model) fillKeys(k *key, done []*key, schema string) string {
	r, f := k.root.rel, k.format
	order := k.order("t")
	after := []string{"$1::text::" + k.root.Type}
	moment := "NULL::text"
	if k.byBytes() {
		after[0] += ` COLLATE "C"`
	}
	if kind := k.momentType(); kind != "" {
		after = []string{"$4::text::" + kind, after[0]}
		moment = order[0] + "::text"
	}
	id := k.idAt(fmt.Sprintf("to_timestamp((%d + slot / %d * %d) / 1000.0)", f.epochMS, f.perUnit, f.unitMS), fmt.Sprintf("(slot %% %d)::integer", f.perUnit))
	if f.pool == "" && !f.random {
		// Without node numbers, an ID of a time since expand could equal a new ID.
		id = fmt.Sprintf("CASE WHEN slot / %d * %d + %d < (SELECT floor(extract(epoch FROM started_at) * 1000) FROM %s) THEN %s ELSE %s END",
			f.perUnit, f.unitMS, f.epochMS, stateTable(schema), id, k.nextID(""))
	}
	sets := []string{k.root.fresh + " = s.id"}
	for _, c := range r.columns {
		for _, other := range done {
			if c.key == other && !c.root && c.plain() {
				// If a program has changed the reference since the batch began, its trigger has set
				// the new key, and the lookup might not see the row that it refers to.
				sets = append(sets, c.fresh+" = coalesce(t."+c.fresh+", "+m.lookup(c, "t", schema)+")")
			}
		}
	}
	return fmt.Sprintf(`WITH batch AS MATERIALIZED (
    SELECT t.%[1]s AS k, %[2]s AS moment, greatest((%[3]s - %[4]d) / %[5]d, 0) * %[6]d AS first, row_number() OVER (ORDER BY %[7]s) AS n
    FROM ONLY %[8]s t
    WHERE t.%[9]s IS NULL AND ($1::text IS NULL OR (%[7]s) > (%[10]s))
    ORDER BY %[7]s LIMIT $3::text::bigint
), slots AS MATERIALIZED (
    SELECT *, %[12]s AS id FROM (SELECT k, moment, n, n + greatest($2::text::bigint, max(first - n) OVER (ORDER BY n)) AS slot FROM batch ORDER BY n) x
), filled AS (
    UPDATE ONLY %[8]s t SET %[11]s FROM slots s WHERE t.%[1]s = s.k AND t.%[9]s IS NULL RETURNING 1
)
SELECT (SELECT count(*) FROM filled), moment, k::text, slot::text FROM slots ORDER BY n DESC LIMIT 1`,
		k.root.Quoted, moment, k.milliseconds("t"), f.epochMS, f.unitMS, f.perUnit, strings.Join(order, ", "), r.Name, k.root.fresh,
		strings.Join(after, ", "), strings.Join(sets, ", "), id)
}

// equals renders the condition for the row of a key that a reference refers to, for aliases
// of both tables.
func (c *column) equals(k *key, root, reference string) string {
	return root + "." + k.root.Quoted + " = " + reference + "." + c.Quoted + k.root.collate()
}

// lookup renders the new value of a reference. A reference without a foreign key can refer to
// a row that was deleted.
func (m *model) lookup(c *column, alias, schema string) string {
	return c.newValue(alias, func(t target) string {
		root := t.key.root
		found := "(SELECT p." + root.fresh + " FROM ONLY " + root.rel.Name + " p WHERE " + c.equals(t.key, "p", alias) + ")"
		if !m.loose(c) {
			return found
		}
		return "coalesce(" + found + ", (SELECT d.new_key::" + t.key.format.sqlType + " FROM " + pendingTable(schema) + " d WHERE " + c.pair(t.key, "d", alias) + "))"
	})
}

// pair renders the condition for the pair of a reference's key.
func (c *column) pair(k *key, pending, reference string) string {
	return fmt.Sprintf(`%s.key = %d AND %[1]s.old_key = %[3]s.%[4]s::text COLLATE "C"`, pending, k.n, reference, c.Quoted)
}

// loose reports whether a reference has no foreign key.
func (m *model) loose(c *column) bool {
	return !c.root && !slices.ContainsFunc(m.foreignKeys, func(f *foreignKey) bool { return f.Table == c.rel.OID && f.Columns[0] == c.Num })
}

// left renders a query for whether rows have no new key.
func (k *key) left() string {
	return "SELECT EXISTS (SELECT FROM ONLY " + k.root.rel.Name + " t WHERE t." + k.root.fresh + " IS NULL)"
}

const pageRange = "t.ctid >= ('(' || $1::text || ',0)')::tid AND t.ctid < ('(' || $2::text || ',0)')::tid"

// fillInPlace renders a batch of the backfill of a key that keeps its values.
func (k *key) fillInPlace() string {
	c := k.root
	return fmt.Sprintf(`WITH filled AS (
    UPDATE ONLY %s t SET %s = t.%s::bigint WHERE %s AND t.%s IS NULL RETURNING 1
)
SELECT count(*) FROM filled`, c.rel.Name, c.fresh, c.Quoted, pageRange, c.fresh)
}

// fillReferences renders a batch of the backfill of a table's references, and a query for
// whether rows are left. A batch corrects new keys, too: a transaction with a snapshot from
// before expand may have referred to a row that it didn't see.
func (m *model) fillReferences(r *relation, schema string) (batch, left string) {
	var sets, conditions, missing, complete []string
	for _, c := range r.columns {
		if c.root {
			continue
		}
		lookup := m.lookup(c, "t", schema)
		sets = append(sets, c.fresh+" = coalesce("+lookup+", t."+c.fresh+")")
		conditions = append(conditions, "t."+c.Quoted+" IS NOT NULL AND (t."+c.fresh+" IS NULL OR t."+c.fresh+" <> "+lookup+")")
		missing = append(missing, "t."+c.Quoted+" IS NOT NULL AND t."+c.fresh+" IS NULL")
		complete = append(complete, "(t."+c.Quoted+" IS NULL OR t."+c.fresh+" IS NOT NULL)")
	}
	if len(sets) == 0 {
		return "", ""
	}
	batch = fmt.Sprintf(`WITH filled AS (
    UPDATE ONLY %s t SET %s WHERE %s AND (%s) RETURNING %s AS complete
)
SELECT count(*) FILTER (WHERE complete) FROM filled`, r.Name, strings.Join(sets, ", "), pageRange, strings.Join(conditions, " OR "), strings.Join(complete, " AND "))
	return batch, "SELECT EXISTS (SELECT FROM ONLY " + r.Name + " t WHERE " + strings.Join(missing, " OR ") + ")"
}

// A cursor is the position of a backfill action.
type cursor struct {
	Moment sql.NullString
	Key    sql.NullString
	Slot   string
	Page   int64
	Pages  int64 // of the table, when the pass began
	Rows   int64 // of the action, so far
	Filled int64 // of the pass, so far
}

// The limits of a batch, in rows or pages.
const (
	firstBatch = 200
	maxBatch   = 20000
)

// backfill fills the rows of one action.
func (j *job) backfill(ctx context.Context, a action) error {
	c := cursor{Slot: "0"}
	if j.state.cursor != "" {
		if err := json.Unmarshal([]byte(j.state.cursor), &c); err != nil {
			return fmt.Errorf("read the position of the backfill: %w", err)
		}
	}
	size := float64(firstBatch)
	if a.Fill.Pages {
		size = 4
	}
	began, before := time.Now(), c.Rows
	for {
		if err := j.waitForReplicas(ctx, a, c.Rows); err != nil {
			return err
		}
		start := time.Now()
		end, err := j.batch(ctx, a, &c, int64(size))
		if err != nil {
			return err
		}
		took := time.Since(start)
		p := Progress{Step: a.Step, Action: a.Title, Rows: c.Rows, Total: max(a.Fill.Rows, c.Rows)}
		if p.Rate = float64(c.Rows-before) / time.Since(began).Seconds(); p.Rate > 0 {
			p.Left = time.Duration(float64(p.Total-c.Rows) / p.Rate * float64(time.Second))
		}
		j.o.Progress(p)
		if end {
			done, err := j.endPass(ctx, a, &c)
			if done || err != nil {
				return err
			}
			continue
		}
		// At most double, because the next rows may cost more.
		size = min(max(size*min(max(j.o.BatchTime.Seconds()/took.Seconds(), 0.25), 2), 1), maxBatch)
		if j.o.Pause > 0 {
			if err := sleep(ctx, time.Duration(float64(took)*j.o.Pause/(1-j.o.Pause))); err != nil {
				return err
			}
		}
	}
}

// batchSettings makes a batch read its rows, and the rows that they refer to, by indexes or
// by pages. The new column has no statistics yet, so the server would expect few rows without
// a new key, and read and sort the whole table for each batch. With the role replica, an
// UPDATE fires no triggers. Otherwise, the triggers of rekey leave the row as the batch sets it.
const batchSettings = `SELECT set_config(name, setting, true) FROM (VALUES
	('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_sort', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('jit', 'off'),
	('plan_cache_mode', 'force_custom_plan'), ('timezone', 'UTC'), ('datestyle', 'ISO'), ('` + backfillSetting + `', 'on'), ('session_replication_role', 'replica')) s (name, setting)
	WHERE name <> 'session_replication_role' OR $1::boolean`

// batch fills up to size rows or pages, and reports whether this was the end of the pass.
func (j *job) batch(ctx context.Context, a action, c *cursor, size int64) (end bool, err error) {
	next := *c
	err = j.retry(ctx, a, func(attempt int) error {
		limit := max(size>>attempt, 1) // fewer rows meet fewer locks
		next = *c
		return j.tx(ctx, 50*time.Millisecond, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, batchSettings, j.state.job.ReplicaRole); err != nil {
				return err
			}
			if a.Fill.Pages {
				if c.Pages == 0 {
					err := tx.QueryRowContext(ctx, "SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::bigint", a.Fill.Table).Scan(&next.Pages)
					if err != nil {
						return err
					}
				}
				next.Page = min(c.Page+limit, next.Pages)
				var filled int64
				if err := tx.QueryRowContext(ctx, a.SQL[0], fmt.Sprint(c.Page), fmt.Sprint(next.Page)).Scan(&filled); err != nil {
					return err
				}
				next.Rows, next.Filled = c.Rows+filled, c.Filled+filled
				end = next.Page == next.Pages
			} else {
				var n int64
				args := []any{c.Key, c.Slot, fmt.Sprint(limit)}
				if a.Fill.Moment {
					args = append(args, c.Moment)
				}
				err := tx.QueryRowContext(ctx, a.SQL[0], args...).Scan(&n, &next.Moment, &next.Key, &next.Slot)
				end = errors.Is(err, sql.ErrNoRows)
				if err != nil && !end {
					return err
				}
				next.Rows, next.Filled = c.Rows+n, c.Filled+n
			}
			return j.saveCursor(ctx, tx, next)
		})
	})
	if err == nil {
		*c = next
	}
	return end, err
}

func (j *job) saveCursor(ctx context.Context, db querier, c cursor) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE "+stateTable(j.o.Schema)+" SET cursor = $1::text, updated_at = clock_timestamp()", string(text))
	return err
}

// endPass starts another pass if rows are left, which programs changed meanwhile, and
// reports whether none are.
func (j *job) endPass(ctx context.Context, a action, c *cursor) (done bool, err error) {
	var left bool
	if err := j.conn.QueryRowContext(ctx, a.SQL[1]).Scan(&left); err != nil {
		return false, err
	}
	if !left {
		return true, nil
	}
	filled := c.Filled
	// The slots of the next pass come after all others, so that IDs differ.
	*c = cursor{Slot: c.Slot, Rows: c.Rows}
	if filled == 0 {
		if err := j.saveCursor(ctx, j.conn, *c); err != nil { // a repeated step begins with the first row
			return false, err
		}
		return false, j.noProgress(ctx, a)
	}
	return false, nil
}

// noProgress returns the error for rows that a pass couldn't update.
func (j *job) noProgress(ctx context.Context, a action) error {
	triggers, err := texts(ctx, j.conn, `SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = $1::text::regclass AND NOT tgisinternal AND tgtype & 19 = 19 AND tgname !~ '`+ownTriggers+`'
		AND (tgenabled IN ('A', 'R') OR tgenabled = 'O' AND NOT $2::boolean) ORDER BY 1`, a.Fill.Table, j.state.job.ReplicaRole)
	if err != nil {
		return err
	}
	if len(triggers) > 0 {
		return fmt.Errorf("%w: rows of %s don't change: trigger %s returns NULL or the old row; let it return NEW, or disable it until the backfill is complete, and repeat the step", ErrInconsistent, a.Fill.Table, strings.Join(triggers, " or "))
	}
	if !a.Fill.Pages {
		return fmt.Errorf("%w: rows of %s have no new key: a program has inserted them just now; repeat the step", ErrInconsistent, a.Fill.Table)
	}
	return fmt.Errorf("%w: rows of %s refer to rows that don't exist; delete these rows, or set the reference to NULL, and repeat the step", ErrInconsistent, a.Fill.Table)
}

// A lagCheck measures how far replicas are behind, by the position in the WAL that each
// has replayed. The server measures a lag only when a replica answers, so a replica that
// hangs would keep its last one.
type lagCheck struct {
	checked time.Time
	samples []walPosition
}

// A walPosition is a position in the WAL that the server had reached at a time.
type walPosition struct {
	at       time.Time
	position int64
}

// lag adds a sample, and returns the age of the oldest one that a replica at replayed hasn't
// reached. Older samples are no longer needed.
func (l *lagCheck) lag(current walPosition, replayed int64) time.Duration {
	l.samples = append(l.samples, current)
	l.samples = slices.DeleteFunc(l.samples, func(s walPosition) bool { return s.position <= replayed })
	if len(l.samples) == 0 {
		return 0
	}
	return current.at.Sub(l.samples[0].at)
}

// waitForReplicas pauses while a replica is further behind than MaxLag.
func (j *job) waitForReplicas(ctx context.Context, a action, rows int64) error {
	l := &j.lag
	if j.o.MaxLag < 0 || time.Since(l.checked) < time.Second {
		return nil
	}
	for {
		var name string
		var position, replayed int64
		err := j.conn.QueryRowContext(ctx, `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, coalesce(r.application_name, ''), coalesce(pg_wal_lsn_diff(r.replay_lsn, '0/0')::bigint, $1::text::bigint)
			FROM (VALUES (1)) _ LEFT JOIN (SELECT * FROM pg_stat_replication WHERE replay_lsn IS NOT NULL ORDER BY replay_lsn LIMIT 1) r ON true`, strconv.FormatInt(math.MaxInt64, 10)).
			Scan(&position, &name, &replayed)
		if err != nil {
			return err
		}
		l.checked = time.Now()
		lag := l.lag(walPosition{l.checked, position}, replayed)
		if lag <= j.o.MaxLag {
			return nil
		}
		j.o.Progress(Progress{Step: a.Step, Action: a.Title, Rows: rows, Total: max(a.Fill.Rows, rows),
			Waiting: fmt.Sprintf("replica %s is %v behind", name, lag.Round(time.Second))})
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// jitter returns a random pause before another attempt, which is longer after each attempt.
func jitter(first time.Duration, attempt int) time.Duration {
	limit := min(first<<min(attempt, 10), 2*time.Second)
	return limit/2 + rand.N(limit)
}
