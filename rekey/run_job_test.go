package rekey

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A refusal is an error of the server.
type refusal string

func (r refusal) Error() string { return "refused with " + string(r) }

func (r refusal) SQLState() string { return string(r) }

// A noServer is a driver whose connections can only be closed.
type noServer struct{ driver.Conn }

func (noServer) Close() error                                   { return nil }
func (s noServer) Connect(context.Context) (driver.Conn, error) { return s, nil }
func (noServer) Driver() driver.Driver                          { return nil }

// A step repeats what doesn't get its locks until LockWait is over, and nothing else.
func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		states []string // of each attempt; the last one repeats
		after  time.Duration
		want   error
		text   string
	}{
		"success":              {states: []string{""}},
		"lock_timeout":         {states: []string{"55P03", "55P03", ""}},
		"deadlock":             {states: []string{"40P01", ""}},
		"serialization":        {states: []string{"40001", ""}},
		"another error":        {states: []string{"42501"}, want: refusal("42501")},
		"a constraint":         {states: []string{"55P03", "23514"}, want: ErrInconsistent, text: "correct the rows, and repeat the step"},
		"a unique index":       {states: []string{"23505"}, want: ErrInconsistent},
		"a foreign key":        {states: []string{"23503"}, want: ErrInconsistent},
		"node numbers":         {states: []string{"55006", "55006", ""}},
		"node numbers, always": {states: []string{"55006"}, after: 5 * time.Second, want: refusal("55006")},
		"locked permanently":   {states: []string{"55P03"}, after: time.Minute - 3*time.Second, want: ErrLocked, text: "for 1m0s: another transaction holds a lock"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := sql.OpenDB(noServer{})
				defer db.Close()
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.Close() // so that the holder of the lock is unknown
				waits := 0
				j := &job{conn: conn, o: Options{LockTimeout: 50 * time.Millisecond, LockWait: time.Minute, Progress: func(p Progress) {
					if p.Waiting != "" {
						waits++
					}
				}}}
				attempts, begun := 0, time.Now()
				err = j.retry(t.Context(), action{}, func(attempt int) error {
					if attempt != attempts {
						t.Errorf("expected attempt %d, got %d", attempts, attempt)
					}
					state := c.states[min(attempts, len(c.states)-1)]
					attempts++
					if state == "" {
						return nil
					}
					return refusal(state)
				})
				took := time.Since(begun)
				switch {
				case !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text):
					t.Errorf("expected %v with %q, got %v", c.want, c.text, err)
				case c.after == 0 && attempts != len(c.states):
					t.Errorf("expected %d attempts, got %d", len(c.states), attempts)
				case took < c.after || took > c.after+5*time.Second:
					t.Errorf("expected the end after %v, got %v", c.after, took)
				case c.want == ErrLocked && waits < 10:
					t.Errorf("expected a report every three seconds, got %d", waits)
				}
			})
		})
	}
}

// The end of the context ends the attempts.
func TestRetryCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		j := &job{o: Options{LockTimeout: 50 * time.Millisecond, LockWait: time.Minute}}
		if err := j.retry(ctx, action{}, func(int) error { return refusal("55P03") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("expected the error of the context, got %v", err)
		}
	})
}
