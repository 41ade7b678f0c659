package rekey

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A cursor is the position of a backfill action.
type cursor struct {
	Moment sql.NullString
	Key    sql.NullString
	// Slot is the last one. Each pass, also of another backfill, begins after it, so that IDs differ.
	Slot   string `json:"-"`
	Page   int64
	Pages  int64 // of the table, when the pass began
	Rows   int64 // of the action, so far
	Filled int64 // of the pass, so far
	Idle   bool  // the pass before has filled nothing
}

// The limits of a batch, in rows or pages.
const (
	firstBatch = 200
	maxBatch   = 20000
)

// backfill fills the rows of one action.
func (j *job) backfill(ctx context.Context, a action) error {
	c := cursor{Slot: cmp.Or(j.state.slots[a.Title], "0")}
	if j.state.cursor != "" {
		if err := json.Unmarshal([]byte(j.state.cursor), &c); err != nil {
			return fmt.Errorf("read the position of the backfill: %w", err)
		}
	}
	size := float64(firstBatch)
	if a.Fill.Pages {
		size = 4
	}
	if left, err := j.left(ctx, a); err != nil || !left {
		return err
	}
	began, before := time.Now(), c.Rows
	for {
		if err := j.watch(ctx, a, c.Rows); err != nil {
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
		if pause := j.o.Pause; pause > 0 {
			if err := sleep(ctx, time.Duration(float64(took)*pause/(1-pause))); err != nil {
				return err
			}
		}
	}
}

// batch fills up to size rows or pages, and reports whether this was the end of the pass.
func (j *job) batch(ctx context.Context, a action, c *cursor, size int64) (end bool, err error) {
	next := *c
	err = j.retry(ctx, a, func(attempt int) error {
		limit := max(size>>attempt, 1) // fewer rows meet fewer locks
		next = *c
		return j.tx(ctx, 50*time.Millisecond, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, query("batch settings", backfillSetting), j.state.job.ReplicaRole); err != nil {
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
			return j.saveCursor(ctx, tx, a, next)
		})
	})
	if err == nil {
		*c = next
	}
	return end, err
}

func (j *job) saveCursor(ctx context.Context, db querier, a action, c cursor) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE "+stateTable()+" SET cursor = $1::text, slots = slots || jsonb_build_object($2::text, $3::text), updated_at = clock_timestamp()", string(text), a.Title, c.Slot)
	return err
}

// left reports whether rows of a backfill have no new key.
func (j *job) left(ctx context.Context, a action) (left bool, err error) {
	err = j.conn.QueryRowContext(ctx, a.SQL[1]).Scan(&left)
	return left, err
}

// endPass starts another pass if rows are left, which programs changed meanwhile, and
// reports whether none are.
func (j *job) endPass(ctx context.Context, a action, c *cursor) (done bool, err error) {
	left, err := j.left(ctx, a)
	if err != nil || !left {
		return err == nil, err
	}
	if c.Filled > 0 || !c.Idle { // The rows that are left can be newer than a pass that has filled none.
		*c = cursor{Slot: c.Slot, Rows: c.Rows, Idle: c.Filled == 0}
		return false, nil
	}
	*c = cursor{Slot: c.Slot, Rows: c.Rows}
	if err := j.saveCursor(ctx, j.conn, a, *c); err != nil { // a repeated step begins with the first row
		return false, err
	}
	return false, j.noProgress(ctx, a)
}

// noProgress returns the error for rows that a pass couldn't update.
func (j *job) noProgress(ctx context.Context, a action) error {
	if len(a.SQL) > 2 {
		var lost bool
		if err := j.conn.QueryRowContext(ctx, a.SQL[2]).Scan(&lost); err != nil {
			return err
		}
		if lost {
			return fmt.Errorf("%w: rows of %s refer to rows that don't exist; delete these rows, or set the reference to NULL, and repeat the step", ErrInconsistent, a.Fill.Table)
		}
	}
	triggers, err := texts(ctx, j.conn, query("stopping triggers", nil), a.Fill.Table, j.state.job.ReplicaRole)
	if err != nil {
		return err
	}
	if len(triggers) > 0 {
		return fmt.Errorf("%w: rows of %s don't change: trigger %s returns NULL or the old row; let it return NEW, or disable it until the backfill is complete, and repeat the step", ErrInconsistent, a.Fill.Table, strings.Join(triggers, " or "))
	}
	return fmt.Errorf("%w: rows of %s have no new key: a program has written them just now; repeat the step", ErrInconsistent, a.Fill.Table)
}

// A guard measures how far replicas are behind. The server measures a lag only when a
// replica answers, so a replica that hangs would keep its last one. So the guard compares the
// positions in the WAL that each has replayed.
type guard struct {
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
func (l *guard) lag(current walPosition, replayed int64) time.Duration {
	l.samples = append(l.samples, current)
	l.samples = slices.DeleteFunc(l.samples, func(s walPosition) bool { return s.position <= replayed })
	if len(l.samples) == 0 {
		return 0
	}
	return current.at.Sub(l.samples[0].at)
}

// watch pauses while a replica is further behind than the options allow.
func (j *job) watch(ctx context.Context, a action, rows int64) error {
	g := &j.guard
	if j.o.MaxLag < 0 || time.Since(g.checked) < time.Second {
		return nil
	}
	for {
		var found struct {
			Position, Replayed int64
			Replica            string
		}
		if err := readJSON(ctx, j.conn, &found, query("pressure", nil)); err != nil {
			return err
		}
		g.checked = time.Now()
		lag := g.lag(walPosition{g.checked, found.Position}, found.Replayed)
		if lag <= j.o.MaxLag {
			return nil
		}
		j.o.Progress(Progress{Step: a.Step, Action: a.Title, Rows: rows, Total: max(a.Fill.Rows, rows), Waiting: fmt.Sprintf("replica %s is %v behind", found.Replica, lag.Round(time.Second))})
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
