package dbhealth

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// A Level is the severity of a finding.
type Level string

// The levels of findings.
const (
	OK      Level = "ok"      // the rule found no fault; the detail has what it saw
	Info    Level = "info"    // worth knowing, without a need to act
	Warning Level = "warning" // becomes a problem, or can be one
	Problem Level = "problem" // inserts, claims or reads fail or are wrong, or soon will be
	Unknown Level = "unknown" // the role lacks a privilege to read it
	Skipped Level = "skipped" // not examined: it belongs to a role that the session doesn't trust
)

// A Finding is a result of a rule.
type Finding struct {
	ID      string `json:"id"` // of the rule
	Area    string `json:"area"`
	Level   Level  `json:"status"`
	Subject string `json:"subject"`
	Detail  string `json:"detail"`
	Remedy  string `json:"remedy,omitempty"`
	// Suppressed is the reason why the finding doesn't count: the option Ignore, or the comment
	// on a table. Otherwise it is empty.
	Suppressed string `json:"suppressed,omitempty"`

	// Of is the pool or the table of the finding, or "". A table is named as in SQL.
	Of string `json:"-"`
}

// Counts reports whether the finding is a fault that nobody suppressed.
func (f Finding) Counts() bool { return f.Level != OK && f.Suppressed == "" }

// Options are the options of [New]. The zero value runs all rules.
type Options struct {
	// Config has the schema of the installation, and the layouts that it must have. A zero
	// layout means any.
	Config migrations.Config
	// Now is the clock of this machine. Nil means time.Now.
	Now func() time.Time
	// Areas are the areas to examine. Empty means all.
	Areas []string
	// Ignore are the IDs of rules whose findings don't count.
	Ignore []string
}

// A Report is the result of an examination.
type Report struct {
	Server   Server    `json:"server"`
	Findings []Finding `json:"checks"`

	// Blind is set if the role can't read the installation.
	Blind bool `json:"-"`
}

// Distinct returns the findings without the ones that repeat a finding of another rule, because both
// rules lack the same privilege or object.
func (r *Report) Distinct() (list []Finding) {
	seen := map[Finding]bool{}
	for _, f := range r.Findings {
		same := f
		same.ID = ""
		if !seen[same] {
			list = append(list, f)
		}
		seen[same] = true
	}
	return list
}

// Count returns the number of distinct findings of a level that count.
func (r *Report) Count(l Level) (n int) {
	for _, f := range r.Distinct() {
		if f.Level == l && f.Counts() {
			n++
		}
	}
	return n
}

// A Server describes the server and the session.
type Server struct {
	Version    string  `json:"version"`
	Citus      *string `json:"citus"` // the version of the extension; nil without it
	InRecovery bool    `json:"in_recovery"`
	Database   string  `json:"database"`
	Role       string  `json:"role"`

	number         int
	readOnly       bool // by default_transaction_read_only
	readOnlyForAll bool // by a setting of the database or the server
}

// An Examination reads a database once. Its methods are not safe for concurrent use.
type Examination struct {
	// Config is the configuration of the installation. Run sets its layouts.
	Config migrations.Config

	db     *sql.DB
	o      Options
	report Report
	rule   Rule
	memory map[string]any // see recall

	ahead    time.Duration // of the server's clock
	absent   bool          // there is no installation that the other rules could read
	outdated string        // the remedy for missing migrations; "" if there are none
}

// New returns an examination of a database. The caller has checked that the session trusts
// the owner of the installation, with [migrations.CheckOwner].
func New(db *sql.DB, o Options) *Examination {
	o.Config.Schema = cmp.Or(o.Config.Schema, migrations.DefaultSchema)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Examination{Config: migrations.Config{Schema: o.Config.Schema}, db: db, o: o, memory: map[string]any{}}
}

// Run runs the rules. It returns an error if the connection or the server fails, not if a
// rule lacks a privilege.
func (e *Examination) Run(ctx context.Context) (*Report, error) {
	if err := e.readServer(ctx); err != nil {
		return nil, err
	}
	for _, rule := range Rules() {
		if e.absent {
			break
		}
		if len(e.o.Areas) > 0 && !slices.Contains(e.o.Areas, rule.Area) && rule.ID != notInstalled {
			continue
		}
		e.rule = rule
		if err := rule.check(ctx, e); err != nil {
			e.report.Blind = e.report.Blind || rule.Area == "installation"
			if err := e.fail(ctx, "", rule.Area, err); err != nil {
				return nil, fmt.Errorf("rule %s: %w", rule.ID, err)
			}
		}
	}
	if err := e.suppress(ctx); err != nil {
		return nil, err
	}
	return &e.report, nil
}

// serverNow returns the time of the server's clock.
func (e *Examination) serverNow() time.Time { return e.o.Now().Add(e.ahead) }

// add adds a finding about a pool or a table, or about neither if of is "". Its texts are valid
// UTF-8, whatever names the database has.
func (e *Examination) add(l Level, of, subject, detail, remedy string) {
	e.report.Findings = append(e.report.Findings, Finding{ID: e.rule.ID, Area: e.rule.Area, Level: l,
		Subject: visible(subject), Detail: visible(detail), Remedy: visible(remedy), Of: visible(of)})
}

// addRows adds a finding for each row of a query, in which $s is the schema. The columns are the
// pool or table, the subject, the detail and the remedy. It returns the row count.
func (e *Examination) addRows(ctx context.Context, l Level, query string) (int, error) {
	list, err := collect(ctx, e, func(f *Finding) []any { return []any{&f.Of, &f.Subject, &f.Detail, &f.Remedy} }, query)
	for _, f := range list {
		e.add(l, f.Of, f.Subject, f.Detail, f.Remedy)
	}
	return len(list), err
}

// fail adds a finding for an error of the server, such as bounds that are no IDs, in a rule or for a
// table of a user. It is unknown if the role lacks privileges, and a problem otherwise. It returns
// any other error.
func (e *Examination) fail(ctx context.Context, table, subject string, err error) error {
	level, remedy := Problem, pgerror.Hint(err)
	switch state := pgerror.State(err); {
	case !unreadable(err):
		return err
	case state == pgerror.InsufficientPrivilege && table != "":
		level, remedy = Unknown, cmp.Or(remedy, "connect as the owner of the table and of schema "+e.Config.Schema)
	case state == pgerror.InsufficientPrivilege:
		level, remedy = Unknown, Privileges(ctx, e.db, err, e.Config.Schema, e.rule.needs)
	case state == pgerror.LockNotAvailable:
		level, remedy = Unknown, "another session keeps a table locked; try again"
	case Missing(err):
		remedy = cmp.Or(e.outdated, e.remedyMissing())
	}
	e.add(level, table, subject, pgerror.Message(err), remedy)
	return nil
}

// suppress marks the findings of rules that the options or the comment on their table ignore.
func (e *Examination) suppress(ctx context.Context) error {
	type tableRule struct{ table, id string }
	ignored, err := collect(ctx, e, func(t *tableRule) []any { return []any{&t.table, &t.id} }, `
		SELECT format('%I.%I', n.nspname, c.relname), id FROM pg_description d
			JOIN pg_class c ON c.oid = d.objoid JOIN pg_namespace n ON n.oid = c.relnamespace,
			regexp_matches(d.description, 'sortkey: ignore ([a-z0-9-]+(, ?[a-z0-9-]+)*)', 'g') m, regexp_split_to_table(m[1], ', ?') id
		WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0`)
	if err != nil {
		return err
	}
	for i := range e.report.Findings {
		switch f := &e.report.Findings[i]; {
		case f.Level == OK:
		case slices.Contains(e.o.Ignore, f.ID):
			f.Suppressed = "by --ignore"
		case slices.ContainsFunc(ignored, func(t tableRule) bool { return visible(t.table) == f.Of && t.id == f.ID }):
			f.Suppressed = "by the comment on the table"
		}
	}
	return nil
}
