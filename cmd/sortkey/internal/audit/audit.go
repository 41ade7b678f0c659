// Package audit reads columns of IDs and finds the IDs that are wrong.
package audit

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// Options are the options of an audit.
type Options struct {
	Databases []string // connection strings
	Schema    string   // with the SQL of sortkey
	Type      string   // the type of the IDs, or "" to find it in the catalog
	// Layout sets the layout of the IDs. It is nil for the layout of the installation.
	Layout       func(*migrations.Config) error
	CreatedAt    string        // a column with the time at which each row was created
	Tolerance    time.Duration // the largest difference between an ID's time and CreatedAt
	Future       time.Duration // the largest distance of an ID's time after the server's clock
	Since, Until time.Time     // the window of the IDs to read; zero leaves that side open
	After        string        // the key after which to begin
	Known        map[int]bool  // node numbers of programs without a claim
	Batch        int           // rows per statement
	Rate         int           // the largest number of rows per second; 0: no limit
	Examples     int           // examples per finding
}

// The findings, in the order of the output.
var findings = []string{"malformed", "zero", "future", "apart", "unknown_node", "duplicate"}

// A Result is the result of the command.
type Result struct {
	Tables   []Table   `json:"tables"`
	Findings []Finding `json:"findings"`
	Nodes    []Node    `json:"nodes"`
	Versions []Version `json:"versions,omitempty"` // of UUIDs
	Days     []Day     `json:"days"`
	// OtherDays is the number of rows on days that are not in Days.
	OtherDays int64   `json:"rows_on_other_days"`
	Rows      int64   `json:"rows"`
	Seconds   float64 `json:"duration_seconds"`
	// Complete is false if --since, --until, --after or row-level security left out
	// rows.
	Complete bool `json:"complete"`
	// Hidden are the columns with such security.
	Hidden []Place `json:"row_level_security,omitempty"`
}

// A Table is a column with its counts.
type Table struct {
	Place
	Type  string    `json:"type"`
	Rows  int64     `json:"rows"`
	Nulls int64     `json:"nulls"`
	First *ids.Time `json:"first"` // null without an ID
	Last  *ids.Time `json:"last"`
}

// A Place names a column.
type Place struct {
	Database string `json:"database"`
	Table    string `json:"table"`
	Column   string `json:"column"`
}

// A Finding is a result of a check: the IDs, or for duplicate the keys, that it found.
type Finding struct {
	Finding  string    `json:"finding"`
	Checked  bool      `json:"checked"`
	Reasons  []string  `json:"not_checked,omitempty"` // why columns were not checked
	Count    int64     `json:"count"`
	Examples []Example `json:"examples"`
	// More is set if there are more IDs than examples.
	More bool `json:"-"`
}

// An Example is an ID of a finding.
type Example struct {
	Key       string    `json:"key"`
	Rows      int64     `json:"rows"`
	Time      *ids.Time `json:"time,omitempty"`
	Node      *int      `json:"node,omitempty"`
	CreatedAt string    `json:"created_at,omitempty"`
	Places    []Place   `json:"places"`
}

// A Node is a node number with its rows.
type Node struct {
	Type  string `json:"type"`
	Node  int    `json:"node"`
	Known *bool  `json:"known,omitempty"` // absent if not checked
	Rows  int64  `json:"rows"`
}

// A Version is a version of UUIDs with its rows.
type Version struct {
	Version string `json:"version"` // a number, nil, or other for a variant other than RFC 9562's
	Rows    int64  `json:"rows"`
}

// A Day is a day in UTC with its rows.
type Day struct {
	Day  string `json:"day"`
	Rows int64  `json:"rows"`
}

// An auditor collects the result.
type auditor struct {
	*Options
	databases []*database
	findings  map[string]*Finding
	days      map[int64]*int64 // since 1970
	otherDays int64
	nodes     []Node
	versions  map[string]int64
	last      idKey // the last key of the current format
}

// maxDays and maxNodes bound the memory for IDs with random times and nodes.
const (
	maxDays  = 20_000
	maxNodes = 1 << 16
)

// Run audits tables, each as TABLE or TABLE.COLUMN.
func Run(ctx context.Context, t *cli.Terminal, tables []string, o *Options) (*Result, error) {
	begun := t.Now()
	a := &auditor{Options: o, findings: map[string]*Finding{}, days: map[int64]*int64{}, nodes: []Node{}, versions: map[string]int64{}}
	for _, name := range findings {
		a.findings[name] = &Finding{Finding: name, Checked: name != "unknown_node", Examples: []Example{}}
	}
	if o.CreatedAt == "" {
		a.findings["apart"].Checked = false
		a.skip("apart", "no --created-at")
	}
	for _, url := range o.Databases {
		d, err := open(ctx, url, o.Schema)
		if err != nil {
			return nil, err
		}
		defer d.close()
		a.databases = append(a.databases, d)
	}
	if err := labelDatabases(a.databases); err != nil {
		return nil, err
	}
	groups, err := a.streams(ctx, tables)
	if err != nil {
		return nil, err
	}

	var estimate int64
	for _, s := range slices.Concat(groups...) {
		if err := s.estimate(ctx, where(s.first)); err != nil {
			return nil, err
		}
		estimate += s.rows
	}
	progress, limit := t.NewProgress(estimate), &limiter{rate: o.Rate}
	for _, streams := range groups {
		if err := a.auditGroup(ctx, streams, limit, progress.Add); err != nil {
			if a.last != (idKey{}) && len(groups) == 1 {
				fmt.Fprintf(t.Errs, "The audit stopped without a result. To audit only the rows after those it read, add --after=%s.\n", streams[0].format.keyText(a.last))
			}
			return nil, err
		}
	}
	r := a.result(groups)
	r.Seconds = float64(t.Now().Sub(begun).Milliseconds()) / 1000
	return r, nil
}

// skip records the reason why a check leaves out columns.
func (a *auditor) skip(finding, reason string) {
	f := a.findings[finding]
	if !slices.Contains(f.Reasons, reason) {
		f.Reasons = append(f.Reasons, reason)
	}
}

// streams returns the streams of all columns, by format.
func (a *auditor) streams(ctx context.Context, names []string) ([][]*stream, error) {
	byFormat := map[string][]*stream{}
	for _, d := range a.databases {
		if a.Layout != nil {
			if err := a.Layout(&d.config); err != nil {
				return nil, err
			}
		}
		for _, name := range names {
			col, err := d.findColumn(ctx, name)
			if err != nil {
				return nil, err
			}
			if err := col.describe(ctx, a.Options); err != nil {
				return nil, err
			}
			if d.forbidden && a.Layout == nil && (col.format == "snowflake" || col.format == "snowflake-si") {
				return nil, fmt.Errorf("column %s: %w, so the layout of its IDs is unknown; grant the privilege, or pass --type, --epoch and --bits", col, d.notInstalled)
			}
			format, err := newFormat(col.format, d.config)
			if err != nil {
				return nil, err
			}
			others := byFormat[col.format]
			for _, other := range others {
				if other.db == d && other.oid == col.oid && other.name == col.name {
					return nil, cli.Usagef("column %s is named twice", col)
				}
				if other.db == d {
					if err := d.separate(ctx, col, other.column); err != nil {
						return nil, err
					}
				}
				if other.format.Layout != format.Layout {
					return nil, fmt.Errorf("databases %s and %s have different layouts of %s; audit them one by one", other.db.label, d.label, col.format)
				}
			}
			s := &stream{column: col, format: format, Options: a.Options, whole: a.Since.IsZero() && a.Until.IsZero() && a.After == ""}
			if err := s.bounds(); err != nil {
				return nil, err
			}
			byFormat[col.format] = append(others, s)
		}
	}
	if a.After != "" && len(byFormat) > 1 {
		return nil, cli.Usagef("--after: the columns have IDs of several types; audit them one by one")
	}
	var groups [][]*stream
	for _, name := range ids.Names() {
		if streams := byFormat[name]; streams != nil {
			groups = append(groups, streams)
		}
	}
	return groups, nil
}

// bounds sets the conditions of the statements.
func (s *stream) bounds() error {
	if until := s.Until; !until.IsZero() {
		k, err := s.format.floor(until)
		if err != nil {
			return err
		}
		s.bound = append(s.bound, s.condition("<", k))
	}
	s.first = slices.Clone(s.bound)
	if since := s.Since; !since.IsZero() {
		k, err := s.format.floor(since)
		if err != nil {
			return err
		}
		s.first = append(s.first, s.condition(">=", k))
	}
	if after := s.After; after != "" {
		k, err := s.format.parseKey(after)
		if err != nil {
			return cli.Usagef("--after %q: want a key of type %s", after, s.base)
		}
		s.first = append(s.first, s.condition(">", k))
	}
	if len(s.first) == 0 {
		s.first = []string{pgx.Identifier{s.name}.Sanitize() + " IS NOT NULL"}
	}
	return nil
}

// knownNodes returns the node numbers of --nodes and the ones in databases, or nil if
// there is neither --nodes nor a pool of the format.
func (a *auditor) knownNodes(ctx context.Context, f *format) (map[int]bool, error) {
	if len(f.Nodes) == 0 {
		a.skip("unknown_node", f.Name+" has no node numbers")
		return nil, nil
	}
	known, found := map[int]bool{}, len(a.Known) > 0
	maps.Copy(known, a.Known)
	reason := "no database has a pool of node numbers for the layout of " + f.Name
	for _, d := range a.databases {
		pools, missing, err := d.nodePools(ctx)
		if err != nil {
			return nil, err
		}
		if missing != nil {
			reason = missing.Error()
		}
		if missing != nil && (d.notInstalled == nil || d.forbidden) {
			found = false // the numbers of a pool that is not readable would seem unknown
			break
		}
		for _, p := range pools {
			found = f.addNodes(d.config, p, known) || found
		}
	}
	if !found {
		a.skip("unknown_node", reason)
		return nil, nil
	}
	a.findings["unknown_node"].Checked = true
	return known, nil
}

// auditGroup audits the columns of one format.
func (a *auditor) auditGroup(ctx context.Context, streams []*stream, turn *limiter, received func(int64)) error {
	f := streams[0].format
	known, err := a.knownNodes(ctx, f)
	if err != nil {
		return err
	}
	nodes := map[int]*int64{}
	var day int64     // of the previous ID
	var onDay *int64  // its count
	var group []place // of the previous key
	var groupRows int64
	flush := func() {
		if groupRows > 1 {
			a.findings["duplicate"].Count++
			a.addExample("duplicate", &group[0].entry, groupRows, group...)
		}
		group, groupRows = group[:0], 0
	}
	err = merge(ctx, streams, turn, received, func(s *stream, e *entry) {
		rows := int64(e.rows)
		s.total.rows += rows
		if groupRows > 0 && group[0].entry.key != e.key {
			flush()
		}
		group, groupRows = append(group, place{s, *e}), groupRows+rows
		a.last = e.key
		if f.Name == "uuid7" {
			a.versions[uuidVersion(idtype.UUID(e.key.uuid()))] += rows
		}
		switch e.kind {
		case malformed:
			a.find("malformed", s, e, e.rows)
			return
		case zero:
			a.find("zero", s, e, e.rows)
			return
		case future:
			a.find("future", s, e, e.rows)
		}
		if e.apart > 0 {
			a.find("apart", s, e, e.apart)
		}
		if !e.dated() {
			return
		}
		s.total.add(e.ms)
		if d := floorDay(e.ms); onDay == nil || d != day {
			day, onDay = d, a.day(d)
		}
		*onDay += rows
		if len(f.Nodes) == 0 {
			return
		}
		count := nodes[e.node]
		if count == nil && len(nodes) < maxNodes {
			count = new(int64)
			nodes[e.node] = count
		}
		if count != nil {
			*count += rows
		}
		if known != nil && !known[e.node] {
			a.find("unknown_node", s, e, e.rows)
		}
	})
	if err != nil {
		return err
	}
	flush()
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		n := Node{Type: f.Name, Node: node, Rows: *nodes[node]}
		if known != nil {
			is := known[node]
			n.Known = &is
		}
		a.nodes = append(a.nodes, n)
	}
	return nil
}

// uuidVersion returns the version of a UUID for Version.
func uuidVersion(id idtype.UUID) string {
	switch version := id.Version(); {
	case version > 0:
		return strconv.Itoa(version)
	case id.IsZero():
		return "nil"
	}
	return "other"
}

// floorDay returns the day, in UTC, as a number since 1970.
func floorDay(ms int64) int64 {
	const msPerDay = int64(24 * time.Hour / time.Millisecond)
	day := ms / msPerDay
	if ms%msPerDay < 0 {
		day--
	}
	return day
}

// day returns the count of a day.
func (a *auditor) day(day int64) *int64 {
	if count := a.days[day]; count != nil {
		return count
	}
	if len(a.days) == maxDays {
		return &a.otherDays
	}
	a.days[day] = new(int64)
	return a.days[day]
}

// A place is an entry of a column.
type place struct {
	stream *stream
	entry  entry
}

// find counts the rows of a finding.
func (a *auditor) find(finding string, s *stream, e *entry, rows uint32) {
	a.findings[finding].Count += int64(rows)
	a.addExample(finding, e, int64(rows), place{s, *e})
}

// addExample keeps the first examples.
func (a *auditor) addExample(finding string, e *entry, rows int64, places ...place) {
	f := a.findings[finding]
	if f.More = len(f.Examples) == a.Examples; f.More {
		return
	}
	format := places[0].stream.format
	example := Example{Key: format.keyText(e.key), Rows: rows}
	for _, p := range places {
		example.Places = append(example.Places, p.stream.place())
	}
	if e.dated() {
		example.Time = &ids.Time{Time: time.UnixMilli(e.ms).UTC()}
		if len(format.Nodes) > 0 {
			node := e.node
			example.Node = &node
		}
	}
	if finding == "apart" {
		example.CreatedAt = postgresText(e.createdAt)
	}
	f.Examples = append(f.Examples, example)
}

// postgresText returns a timestamp of entry.
func postgresText(us int64) string {
	switch us {
	case math.MaxInt64:
		return "infinity"
	case math.MinInt64:
		return "-infinity"
	}
	return time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
}

func (col *column) place() Place {
	return Place{Database: col.db.label, Table: col.quotedTable, Column: col.quotedName}
}

// result returns the result of all groups.
func (a *auditor) result(groups [][]*stream) *Result {
	r := &Result{Complete: true, Nodes: a.nodes, Days: []Day{}, OtherDays: a.otherDays}
	for _, streams := range groups {
		for _, s := range streams {
			t := Table{Place: s.place(), Type: s.format.Name, Rows: s.total.rows, Nulls: s.total.nulls}
			if s.total.ids > 0 {
				t.First, t.Last = &ids.Time{Time: time.UnixMilli(s.total.first).UTC()}, &ids.Time{Time: time.UnixMilli(s.total.last).UTC()}
			}
			r.Tables = append(r.Tables, t)
			r.Rows += t.Rows
			r.Complete = r.Complete && s.whole && !s.hidden
			if s.hidden {
				r.Hidden = append(r.Hidden, t.Place)
			}
		}
	}
	for _, version := range slices.Sorted(maps.Keys(a.versions)) {
		r.Versions = append(r.Versions, Version{version, a.versions[version]})
	}
	for _, name := range findings {
		r.Findings = append(r.Findings, *a.findings[name])
	}
	for _, day := range slices.Sorted(maps.Keys(a.days)) {
		r.Days = append(r.Days, Day{time.UnixMilli(0).UTC().AddDate(0, 0, int(day)).Format(time.DateOnly), *a.days[day]})
	}
	return r
}
