package dbhealth

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// A Rule finds one kind of fault.
type Rule struct {
	ID   string
	Area string // the section in the report
	// Means and Remedy are the rule's line in the documentation.
	Means, Remedy string

	check func(context.Context, *Examination) error
	needs []string // privileges, with $s for the schema
}

// The privileges of rules.
const (
	usage   = "USAGE ON SCHEMA $s"
	mayList = "SELECT ON $s.node_pool, $s.node_status"
)

// Rules are all rules, in the order of the report. The first ones read what the others use.
func Rules() []*Rule {
	return []*Rule{
		&serverVersion, &serverReadOnly, &clockSkew,
		&notInstalled, &migrationMissing, &layoutDiffers, &objectMissing, &databaseCopied,
		&generatorAhead, &generatorSubscribed, &generatorBehind, &keyAhead,
		&formatEnds,
		&nodeSetting, &settingUnreserved,
		&nodeMissing, &nodeUnreserved, &nodeOpaque, &defaultDenied,
		&poolExhausted, &poolFenced, &poolLayout, &reservationRange, &markAhead,
		&partitionSkipped, &partitionMissing, &partitionHorizon, &partitionPremake, &partitionDefault, &partitionMaintenance,
		&keySkipped, &intReference, &keyDuplicate, &uuidVersion,
		&rekeyStalled, &citusDomain, &citusWorker,
	}
}

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
	rule   *Rule
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
		if len(e.o.Areas) > 0 && !slices.Contains(e.o.Areas, rule.Area) && rule != &notInstalled {
			continue
		}
		e.rule = rule
		switch err := rule.check(ctx, e); {
		case err == nil:
		case unreadable(err):
			e.report.Blind = e.report.Blind || rule.Area == notInstalled.Area
			e.fail(ctx, rule.Area, err, rule.needs...)
		default:
			return nil, fmt.Errorf("rule %s: %w", rule.ID, err)
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

// fail adds a finding for a rule that failed with a server's error. It is unknown if the role
// lacks privileges, and a problem otherwise.
func (e *Examination) fail(ctx context.Context, subject string, err error, privileges ...string) {
	remedy := pgerror.Hint(err)
	switch {
	case pgerror.State(err) == pgerror.InsufficientPrivilege:
		e.add(Unknown, "", subject, pgerror.Message(err), Privileges(ctx, e.db, err, e.Config.Schema, privileges...))
		return
	case pgerror.State(err) == pgerror.LockNotAvailable:
		e.add(Unknown, "", subject, pgerror.Message(err), "another session keeps a table locked; try again")
		return
	case Missing(err):
		remedy = cmp.Or(e.outdated, remedyMissing)
	}
	e.add(Problem, "", subject, pgerror.Message(err), remedy)
}

// failTable is fail for a table of a user.
func (e *Examination) failTable(ctx context.Context, table, subject string, err error) error {
	switch {
	case pgerror.State(err) == pgerror.InsufficientPrivilege:
		e.add(Unknown, table, subject, pgerror.Message(err), cmp.Or(pgerror.Hint(err), "connect as the owner of the table and of schema "+e.Config.Schema))
	case unreadable(err): // such as bounds that are no IDs
		e.fail(ctx, subject, err)
	default:
		return err
	}
	return nil
}

// ignoreComment matches the part of a table's comment that suppresses rules.
var ignoreComment = regexp.MustCompile(`sortkey: ignore ([a-z0-9-]+(?:, ?[a-z0-9-]+)*)`)

// suppress marks the findings of rules that the options or the comment on their table ignore.
func (e *Examination) suppress(ctx context.Context) error {
	type comment struct{ table, text string }
	comments, err := collect(ctx, e, func(c *comment) []any { return []any{&c.table, &c.text} }, `
		SELECT format('%I.%I', n.nspname, c.relname), d.description FROM pg_description d
			JOIN pg_class c ON c.oid = d.objoid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0 AND d.description LIKE '%sortkey: ignore %'`)
	if err != nil {
		return err
	}
	ignored := map[[2]string]bool{} // by table and ID
	for _, c := range comments {
		for _, m := range ignoreComment.FindAllStringSubmatch(c.text, -1) {
			for id := range strings.SplitSeq(m[1], ",") {
				ignored[[2]string{visible(c.table), strings.TrimSpace(id)}] = true
			}
		}
	}
	for i := range e.report.Findings {
		switch f := &e.report.Findings[i]; {
		case f.Level == OK:
		case slices.Contains(e.o.Ignore, f.ID):
			f.Suppressed = "by --ignore"
		case ignored[[2]string{f.Of, f.ID}]:
			f.Suppressed = "by the comment on the table"
		}
	}
	return nil
}
