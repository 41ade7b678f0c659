package rekey

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

func TestMain(m *testing.M) {
	if until := os.Getenv(stepperVar); until != "" {
		if err := runStepper(context.Background(), os.Args[1], rekey.Step(until)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	pgtest.MainParallel(m, 6, TestReferences, TestReferencesByValue, TestConditions, TestOddNamesAndSettings, TestRefusals, TestSources, TestStepErrors, TestUserTriggers, TestLateObjects, TestLostTriggers)
}

// stepperVar is the last step of a stepper, which is another run of the test binary.
const stepperVar = "REKEY_STEPPER"

// runStepper runs the steps of a shop, in a process that tests can kill. It prints a line for
// each report of progress, and returns when a step is complete.
func runStepper(ctx context.Context, database string, until rekey.Step) error {
	db, err := sql.Open("pgx", database)
	if err != nil {
		return err
	}
	defer db.Close()
	j := &job{pool: db, spec: shopSpec()}
	o := rekey.Options{Config: config, Progress: func(p rekey.Progress) {
		fmt.Printf("%s: %s: %d rows, done: %t\n", p.Step, p.Action, p.Rows, p.Done)
	}}
	for begun := time.Now(); ; {
		status, err := rekey.ReadStatus(ctx, db)
		if err != nil {
			return err
		}
		cleaned := until == rekey.StepCleanup && status.Next == rekey.StepExpand
		if until == rekey.StepUndo {
			if status.Next == rekey.StepContract && status.Step == rekey.StepValidate {
				return nil
			}
			status.Next = rekey.StepUndo
		} else if cleaned || slices.Index(steps, status.Next) > slices.Index(steps, until) {
			return nil
		}
		err = j.try(ctx, status.Next, o)
		if errors.Is(err, rekey.ErrBusy) && time.Since(begun) < 2*time.Minute {
			time.Sleep(20 * time.Millisecond) // until the server has noticed that an earlier process was killed
		} else if err != nil {
			return fmt.Errorf("%s: %w", status.Next, err)
		}
	}
}

// must is pgtest.Must.
var must = pgtest.Must

// must1 returns a value. It panics on an error.
func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// config is the default Config.
var config migrations.Config

// installed is a database with the SQL functions.
var installed = pgtest.NewTemplate(func(t *testing.T, db *pgtest.DB) {
	must(t, migrations.Up(t.Context(), db.SQL(t), config))
})

// soak reports whether tests check times and use full counts.
var soak = os.Getenv("SORTKEY_SOAK") != ""

// The search_paths of programs of both versions.
const (
	oldVersion = "public"
	newVersion = "rekeyed, public"
)

// SQLSTATEs.
const (
	notNullViolation     = "23502"
	foreignKeyViolation  = "23503"
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	wrongObjectType      = "42809"
	invalidText          = "22P02"
)

// want fails the test unless two values are equal.
func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: expected %v, got %v", what, want, got)
	}
}

// wantError fails the test unless an error wraps another one, and its text has all parts.
func wantError(t testing.TB, what string, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: expected the error %q with %q, got %v", what, want, parts, err)
	}
	wantText(t, what, err.Error(), parts...)
}

// wantText fails the test unless a text has all parts.
func wantText(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: expected a text with %q, got %q", what, part, text)
		}
	}
}

// steps are the steps in order.
var steps = []rekey.Step{rekey.StepExpand, rekey.StepBackfill, rekey.StepValidate, rekey.StepContract, rekey.StepCleanup}

// A job is a rekey of the tables of a database.
type job struct {
	testing.TB
	db       *pgtest.DB
	pool     *sql.DB // runs the steps
	spec     rekey.Spec
	*session // of a superuser
}

// newJob creates tables.
func newJob(t testing.TB, db *pgtest.DB, tables string, spec rekey.Spec) *job {
	t.Helper()
	j := &job{TB: t, db: db, pool: db.SQL(t), spec: spec}
	j.session = j.connect(oldVersion)
	j.do(tables)
	return j
}

// oneJob runs f with a job in a database of its own, in parallel with other tests.
func oneJob(t *testing.T, tables string, spec rekey.Spec, f func(t *testing.T, j *job)) {
	t.Helper()
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) { f(t, newJob(t, db, tables, spec)) })
}

// inspect returns the plan.
func (j *job) inspect() *rekey.Plan {
	j.Helper()
	plan, err := rekey.Inspect(j.Context(), j.pool, j.spec, rekey.Options{Config: config})
	must(j.TB, err)
	return plan
}

// lines returns problems or notes, one per line.
func lines(list []rekey.Problem) (text string) {
	for _, p := range list {
		text += p.String() + "\n"
	}
	return text
}

// try runs a step.
func (j *job) try(ctx context.Context, step rekey.Step, o rekey.Options) error {
	o.Config = cmp.Or(o.Config, config)
	switch step {
	case rekey.StepExpand:
		return rekey.Expand(ctx, j.pool, j.spec, o)
	case rekey.StepBackfill:
		return rekey.Backfill(ctx, j.pool, o)
	case rekey.StepValidate:
		return rekey.Validate(ctx, j.pool, o)
	case rekey.StepContract:
		return rekey.Contract(ctx, j.pool, o)
	case rekey.StepCleanup:
		return rekey.Cleanup(ctx, j.pool, o)
	case rekey.StepUndo:
		return rekey.Undo(ctx, j.pool, o)
	case rekey.StepAbort:
		return rekey.Abort(ctx, j.pool, o)
	}
	return fmt.Errorf("unknown step %q", step)
}

// fails fails the test unless a step returns an error that wraps another one and has all
// parts. It returns the text.
func (j *job) fails(step rekey.Step, want error, parts ...string) string {
	j.Helper()
	err := j.try(j.Context(), step, rekey.Options{})
	wantError(j.TB, string(step), err, want, parts...)
	return err.Error()
}

// run runs steps, and fails the test on an error.
func (j *job) run(list ...rekey.Step) {
	j.Helper()
	j.runWith(rekey.Options{}, list...)
}

// runWith is run with other Options than the defaults.
func (j *job) runWith(o rekey.Options, list ...rekey.Step) {
	j.Helper()
	for _, step := range list {
		if err := j.try(j.Context(), step, o); err != nil {
			j.Fatalf("%s: %v", step, err)
		}
	}
}

// status returns the state of the rekey.
func (j *job) status() rekey.Status {
	j.Helper()
	s, err := rekey.ReadStatus(j.Context(), j.pool)
	must(j.TB, err)
	return s
}

// wantStatus fails the test unless the state of the rekey has these steps.
func (j *job) wantStatus(step, next rekey.Step) rekey.Status {
	j.Helper()
	s := j.status()
	if s.Step != step || s.Next != next {
		j.Errorf("expected the status %q, next %q, got %q, next %q (%s)", step, next, s.Step, s.Next, s.Action)
	}
	return s
}

// A session is a connection of a program. Its statements can name keys in braces, such as
// {id}, for the columns of the old or of the new version.
type session struct {
	t      testing.TB
	conn   *pgx.Conn
	prefix string // of the names of keys
}

// connect connects a program with a search_path.
func (j *job) connect(path string, opts ...pgtest.Option) *session {
	j.Helper()
	opts = append(opts, pgtest.Mode(pgx.QueryExecModeSimpleProtocol), pgtest.SearchPath(path), setting("lock_timeout", "20s"),
		setting("max_parallel_workers_per_gather", "0")) // a container has little shared memory
	return &session{t: j.TB, conn: j.db.Conn(j.TB, opts...)}
}

// setting sets a parameter of a session.
func setting(name, value string) pgtest.Option {
	return pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams[name] = value })
}

// both connects a program of each version.
func (j *job) both() (old, fresh *session) {
	j.Helper()
	return j.connect(oldVersion), j.connect(newVersion)
}

var keyNames = regexp.MustCompile(`\{(\w*id)\}`)

// named returns a statement with the names of keys.
func (s *session) named(sql string) string {
	return keyNames.ReplaceAllString(sql, s.prefix+"${1}")
}

// rows returns the result of a statement, with the columns of a row separated by |.
func (s *session) rows(sql string, args ...any) ([]string, error) {
	sql = s.named(sql)
	// Programs end their statements after the test has ended, too.
	rows, err := s.conn.Query(context.WithoutCancel(s.t.Context()), sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%w\nin: %s %v", err, sql, args)
	}
	var list []string
	for rows.Next() {
		var row []string
		for _, v := range rows.RawValues() {
			row = append(row, string(v))
		}
		list = append(list, strings.Join(row, "|"))
	}
	if err := rows.Err(); err != nil {
		return list, fmt.Errorf("%w\nin: %s %v", err, sql, args)
	}
	return list, nil
}

// list returns the result of a statement that must succeed.
func (s *session) list(sql string, args ...any) []string {
	s.t.Helper()
	rows, err := s.rows(sql, args...)
	must(s.t, err)
	return rows
}

// all returns the result of a statement that must succeed, with commas between the rows.
func (s *session) all(sql string, args ...any) string {
	s.t.Helper()
	return strings.Join(s.list(sql, args...), ",")
}

// one returns the only row of the result of a statement.
func (s *session) one(sql string, args ...any) string {
	s.t.Helper()
	rows := s.list(sql, args...)
	if len(rows) != 1 {
		s.t.Fatalf("expected one row, got %q\nfrom: %s %v", rows, sql, args)
	}
	return rows[0]
}

// do runs a statement that must succeed.
func (s *session) do(sql string, args ...any) {
	s.t.Helper()
	s.list(sql, args...)
}

// fails fails the test unless a statement returns an error with a SQLSTATE. It ends the
// transaction, if there is one.
func (s *session) fails(code, sql string, args ...any) {
	s.t.Helper()
	_, err := s.rows(sql, args...)
	if s.conn.PgConn().TxStatus() != 'I' {
		s.do("ROLLBACK")
	}
	if got := pgerror.State(err); got != code {
		s.t.Errorf("expected an error of SQLSTATE %s, got %v\nfrom: %s %v", code, err, sql, args)
	}
}

// repeat runs f once, and then again until stop is called, which waits for its end. It ends with the
// first error, which fails the test. It rests for pause, or for as long as f took: otherwise,
// the programs of a test would take a loaded machine from the steps that they test.
func repeat(t testing.TB, pause time.Duration, f func(n int) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; n == 0 || ctx.Err() == nil; n++ {
			begun := time.Now()
			if err := f(n); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(max(pause, time.Since(begun))):
			}
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// grow waits until each count has grown by a number.
func grow(t testing.TB, what string, counts []*atomic.Int32, by int32) {
	t.Helper()
	before := make([]int32, len(counts))
	for i, c := range counts {
		before[i] = c.Load()
	}
	pgtest.Eventually(t, what, func() error {
		for i, c := range counts {
			if n := c.Load() - before[i]; n < by {
				return fmt.Errorf("%d by program %d", n, i)
			}
		}
		return nil
	})
}

// repeat runs statements again and again.
func (s *session) repeat(pause time.Duration, statements func(n int) []string) (stop func()) {
	return repeat(s.t, pause, func(n int) error {
		for _, sql := range statements(n) {
			if _, err := s.rows(sql); err != nil {
				return err
			}
		}
		return nil
	})
}
