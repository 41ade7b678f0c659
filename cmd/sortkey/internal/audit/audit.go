// Package audit reads columns of IDs and finds the IDs that are wrong.
package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/pgerror"
)

// Options are the options of an audit.
type Options struct {
	Databases []string     // connection strings
	Schema    string       // with the SQL of sortkey
	Type      string       // the type of the IDs, or "" to find it in the catalog
	Layouts   *ids.Layouts // nil: of the installation
	CreatedAt string       // a column with the time at which each row was created
	Since     time.Time    // the time of the first IDs to read; zero: all
	Known     map[int]bool // node numbers of programs without a claim
	Batch     int          // rows per statement
	Rate      int          // the largest number of rows per second; 0: no limit
	Examples  int          // examples per finding
}

const (
	// tolerance is the largest difference between an ID's time and CreatedAt.
	tolerance = time.Minute
	// maxAhead is the largest distance of an ID's time after the server's clock.
	maxAhead = time.Second
)

// The findings, in the order of the output. The first ones are the verdicts.
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
	// Complete is false if --since or row-level security left out rows.
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
		d, err := open(ctx, url, o)
		if err != nil {
			return nil, err
		}
		defer d.close()
		a.databases = append(a.databases, d)
	}
	if err := labelDatabases(a.databases); err != nil {
		return nil, err
	}
	groups, err := a.columns(ctx, tables)
	if err != nil {
		return nil, err
	}

	var estimate int64
	for _, col := range slices.Concat(groups...) {
		rows, err := col.estimate(ctx)
		if err != nil {
			return nil, err
		}
		estimate += rows
	}
	progress := t.NewProgress(estimate)
	for _, columns := range groups {
		if err := a.auditGroup(ctx, columns, progress.Add); err != nil {
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

// columns returns all columns, by format.
func (a *auditor) columns(ctx context.Context, names []string) (groups [][]*column, err error) {
	byFormat := map[string][]*column{}
	for _, d := range a.databases {
		for _, name := range names {
			col, err := d.findColumn(ctx, name)
			if err != nil {
				return nil, err
			}
			if err := col.describe(ctx, a.Options); err != nil {
				return nil, err
			}
			for _, other := range byFormat[col.Type] {
				switch {
				case other.db == d && other.oid == col.oid && other.name == col.name:
					return nil, cli.Usagef("column %s is named twice", col)
				case other.db == d:
					if err := d.separate(ctx, col, other); err != nil {
						return nil, err
					}
				case other.format.Layout != col.format.Layout:
					return nil, fmt.Errorf("databases %s and %s have different layouts of %s; audit them one by one", other.db.label, d.label, col.Type)
				}
			}
			byFormat[col.Type] = append(byFormat[col.Type], col)
		}
	}
	for _, name := range ids.Names() {
		if columns := byFormat[name]; columns != nil {
			groups = append(groups, columns)
		}
	}
	return groups, nil
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
		if d.notInstalled != nil && !d.forbidden {
			reason = d.notInstalled.Error()
			continue
		}
		of, err := d.addNodes(ctx, f, known)
		if d.forbidden || pgerror.State(err) == pgerror.InsufficientPrivilege {
			// The numbers of a pool that is not readable would seem unknown.
			found, reason = false, fmt.Sprintf("the role lacks SELECT on %s.node_status and %[1]s.node_pool", d.config.Schema)
			if d.forbidden {
				reason = d.notInstalled.Error()
			}
			break
		}
		if err != nil {
			return nil, cli.ExplainLost(err, d.conn.Config())
		}
		found = found || of
	}
	if !found {
		a.skip("unknown_node", reason)
		return nil, nil
	}
	a.findings["unknown_node"].Checked = true
	return known, nil
}

// auditGroup audits the columns of one format.
func (a *auditor) auditGroup(ctx context.Context, columns []*column, received func(int64)) error {
	f := columns[0].format
	known, err := a.knownNodes(ctx, f)
	if err != nil {
		return err
	}
	nodes := map[int]*int64{}
	var same []place // with the previous key
	flush := func() {
		var rows int64
		for _, p := range same {
			rows += p.entry.rows
		}
		if rows > 1 {
			a.findings["duplicate"].Count++
			a.addExample("duplicate", rows, same...)
		}
		same = same[:0]
	}
	err = merge(ctx, columns, a.Options, received, func(col *column, e *entry) {
		col.Rows += e.rows
		if len(same) > 0 && same[0].entry.key != e.key {
			flush()
		}
		same = append(same, place{col, *e})
		if f.Name == "uuid7" {
			a.versions[uuidVersion(idtype.UUID(e.key))] += e.rows
		}
		if e.kind != ordinary {
			a.find(findings[e.kind-1], col, e, e.rows)
		}
		a.find("apart", col, e, e.apart)
		if !e.dated() {
			return
		}
		col.firstTime, col.lastTime = min(col.firstTime, e.ms), max(col.lastTime, e.ms)
		if !count(a.days, floorDay(e.ms), e.rows, maxDays) {
			a.otherDays += e.rows
		}
		if len(f.Nodes) == 0 {
			return
		}
		count(nodes, e.node, e.rows, maxNodes)
		if known != nil && !known[e.node] {
			a.find("unknown_node", col, e, e.rows)
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

// count adds rows to the count of a key, unless there are limit other keys.
func count[K comparable](counts map[K]*int64, key K, rows int64, limit int) bool {
	n := counts[key]
	if n == nil {
		if len(counts) == limit {
			return false
		}
		n = new(int64)
		counts[key] = n
	}
	*n += rows
	return true
}

// floorDay returns the day, in UTC, as a number since 1970.
func floorDay(ms int64) int64 {
	const msPerDay = int64(24 * time.Hour / time.Millisecond)
	return (ms - (ms%msPerDay+msPerDay)%msPerDay) / msPerDay
}

// A place is an entry of a column.
type place struct {
	column *column
	entry  entry
}

// find counts the rows of a finding, if there are any.
func (a *auditor) find(finding string, col *column, e *entry, rows int64) {
	if rows > 0 {
		a.findings[finding].Count += rows
		a.addExample(finding, rows, place{col, *e})
	}
}

// addExample keeps the first examples.
func (a *auditor) addExample(finding string, rows int64, places ...place) {
	f := a.findings[finding]
	if f.More = len(f.Examples) == a.Examples; f.More {
		return
	}
	format, e := places[0].column.format, places[0].entry
	example := Example{Key: format.keyText(e.key), Rows: rows}
	for _, p := range places {
		example.Places = append(example.Places, p.column.Place)
	}
	if e.dated() {
		example.Time = idTime(e.ms)
		if len(format.Nodes) > 0 {
			example.Node = &e.node
		}
	}
	if finding == "apart" {
		example.CreatedAt = postgresText(e.createdAt)
	}
	f.Examples = append(f.Examples, example)
}

func idTime(ms int64) *ids.Time { return &ids.Time{Time: time.UnixMilli(ms).UTC()} }

// result returns the result of all groups.
func (a *auditor) result(groups [][]*column) *Result {
	r := &Result{Complete: a.Since.IsZero(), Nodes: a.nodes, Days: []Day{}, OtherDays: a.otherDays}
	for _, col := range slices.Concat(groups...) {
		if col.firstTime <= col.lastTime {
			col.First, col.Last = idTime(col.firstTime), idTime(col.lastTime)
		}
		r.Tables = append(r.Tables, col.Table)
		r.Rows += col.Rows
		if col.hidden {
			r.Complete = false
			r.Hidden = append(r.Hidden, col.Place)
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
