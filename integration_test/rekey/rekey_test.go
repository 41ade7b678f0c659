package rekey

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
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
	pgtest.MainParallel(m, 4)
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

// config is a Config with the functions of all formats. There are 256 node numbers for
// SnowflakeSIs.
var config = migrations.Config{
	SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), MachineBits: 8, IndexBits: 5},
}

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
	notNullViolation      = "23502"
	foreignKeyViolation   = "23503"
	uniqueViolation       = "23505"
	serializationFailure  = "40001"
	insufficientPrivilege = "42501"
	wrongObjectType       = "42809"
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
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Fatalf("%s: expected the error %q with %q, got %v", what, want, part, err)
		}
	}
}

// steps are the steps in order.
var steps = []rekey.Step{rekey.StepExpand, rekey.StepBackfill, rekey.StepValidate, rekey.StepContract}

// A job is a rekey of the tables of a database.
type job struct {
	testing.TB
	db   *pgtest.DB
	pool *sql.DB // runs the steps
	spec rekey.Spec
	own  *session // of admin
}

// newJob creates tables.
func newJob(t testing.TB, db *pgtest.DB, tables string, spec rekey.Spec) *job {
	t.Helper()
	j := &job{TB: t, db: db, pool: db.SQL(t), spec: spec}
	j.exec(tables)
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
func lines(list []rekey.Problem) string {
	var b strings.Builder
	for _, p := range list {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}

// problems returns the problems of the plan, one per line.
func (j *job) problems() string {
	j.Helper()
	return lines(j.inspect().Problems)
}

// wantProblem fails the test unless the plan has one problem, with these parts.
func (j *job) wantProblem(parts ...string) {
	j.Helper()
	got := j.problems()
	want(j.TB, "the count of problems in "+got, strings.Count(got, "\n"), 1)
	for _, part := range parts {
		if !strings.Contains(got, part) {
			j.Errorf("expected one problem with %q, got %q", part, got)
		}
	}
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
	s, err := rekey.ReadStatus(j.Context(), j.pool, rekey.Options{Config: config})
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

// session connects a program with a search_path.
func (j *job) session(path string, opts ...pgtest.Option) *session {
	j.Helper()
	opts = append(opts, pgtest.Mode(pgx.QueryExecModeSimpleProtocol), pgtest.SearchPath(path), setting("lock_timeout", "20s"))
	return &session{t: j.TB, conn: j.db.Conn(j.TB, opts...)}
}

// setting sets a parameter of a session.
func setting(name, value string) pgtest.Option {
	return pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams[name] = value })
}

// both connects a program of each version.
func (j *job) both() (old, fresh *session) {
	j.Helper()
	return j.session(oldVersion), j.session(newVersion)
}

// admin returns a session of a superuser, which the job keeps.
func (j *job) admin() *session {
	j.Helper()
	if j.own == nil {
		j.own = j.session(oldVersion)
	}
	return j.own
}

// exec runs statements as superuser.
func (j *job) exec(sql string) {
	j.Helper()
	if _, err := j.admin().conn.Exec(context.WithoutCancel(j.Context()), sql); err != nil {
		j.Fatalf("%v\nin: %s", err, sql)
	}
}

// one returns the only row of the result of a statement of a superuser.
func (j *job) one(sql string, args ...any) string {
	j.Helper()
	return j.admin().one(sql, args...)
}

// named returns a statement with the names of keys.
func (s *session) named(sql string) string {
	return strings.ReplaceAll(strings.ReplaceAll(sql, "{", s.prefix), "}", "")
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

// repeat runs f again and again until stop is called, which waits for its end. It ends with the
// first error, which fails the test. It rests for pause, or for as long as f took: otherwise,
// the programs of a test would take a loaded machine from the steps that they test.
func repeat(t testing.TB, pause time.Duration, f func(n int) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
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
