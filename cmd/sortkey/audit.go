package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// auditOptions are the flags of audit.
type auditOptions struct {
	databases    []string
	schema       string
	format       string
	layout       layoutFlags
	createdAt    string
	tolerance    time.Duration
	future       time.Duration
	since, until string
	after        string
	nodes        string
	known        map[int]bool // the numbers in nodes
	batch, rate  int
	examples     int
}

func (c *app) auditCommand() *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "audit TABLE[.COLUMN]...",
		Short: "Check the IDs of tables",
		Long: `Audit reads columns of IDs and reports problems. Without COLUMN, it reads the
primary key. It reads batches in the order of the key's index. Each batch is a
separate read-only statement, so audit keeps no transaction open, needs only
SELECT, and works on a standby. It can miss rows that are inserted or deleted
while it runs. The findings are:

    malformed     not an ID of the type: a negative number (except a spread64),
                  reserved bits set, a uuid that is not a sno, or, for uuid7, a
                  variant other than RFC 9562's
    zero          the zero ID; for uuid7, the nil UUID
    future        the time of the ID is later than the server's clock by more
                  than --future
    apart         the time of the ID and the column --created-at differ by more
                  than --tolerance (a timestamp without time zone is in UTC)
    unknown_node  the node number was never claimed or reserved, and is not in
                  --nodes
    duplicate     the ID stands more than once, in one column or in several
                  (the count is of IDs, not of rows)

To find duplicates across tables and shards, name several tables, or pass
--database several times. Don't name foreign keys, whose IDs also stand in the
referenced table. A row that moves to another table meanwhile can look like a
duplicate. Audit compares only columns of one type with each other.

A node number is known if any of the databases has a reservation or a claim of
it, even a cancelled or released one, in a pool of the layout. Name the numbers
that programs have in their configuration with --nodes. The check needs SELECT
on the view node_status and the table node_pool of the installation.

The type comes from the domain or default of the column, from its comment after
sortkey rekey, or from the partition settings of its table. Another uuid column
has the type sno if one of its first and last 100 keys is a sno, and uuid7
otherwise. In other cases, pass --type. The layouts of the installation apply,
unless --epoch or --bits is set. A role without USAGE on the schema must set one
of them for snowflake and snowflake-si.

Columns of the type uuid7 can have UUIDs of all versions, and audit counts them
by version. The checks of times, and the days, are of versions 1, 6 and 7.
--since and --until also read UUIDs of other versions that are between the
bounds.

The exit code is 1 if there is a finding. Audit prints results only when it has
read all rows.`,
		Example: `  sortkey audit orders
  sortkey audit orders.id events.id --type snowflake --created-at created_at
  sortkey audit orders -d postgres://shard1/app -d postgres://shard2/app
  sortkey audit orders --since -7d --rate 50000 --output json`,
		Args: asUsage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd); err != nil {
				return err
			}
			return c.audit(cmd.Context(), args, &o)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.databases, "database", "d", nil, "`URL` or connection string of a database; repeat it for shards (default: DATABASE_URL, or PGHOST and libpq's other variables)")
	f.StringVar(&o.schema, "schema", migrations.DefaultSchema, "`name` of the schema with the SQL of sortkey")
	f.StringVar(&o.format, "type", "", "`type` of the IDs: "+strings.Join(ids.Names(), ", "))
	o.layout.add(cmd)
	f.StringVar(&o.createdAt, "created-at", "", "`column` with the time at which each row was created")
	f.DurationVar(&o.tolerance, "tolerance", time.Minute, "largest `difference` between an ID's time and --created-at")
	f.DurationVar(&o.future, "future", time.Second, "largest `distance` of an ID's time after the server's clock")
	f.StringVar(&o.since, "since", "", "`time` of the first IDs to read")
	f.StringVar(&o.until, "until", "", "`time` before which the IDs to read end")
	f.StringVar(&o.nodes, "nodes", "", "node `numbers` of programs without a claim, such as 0-31,1023")
	f.StringVar(&o.after, "after", "", "`key` after which to begin, to continue an audit that was stopped")
	f.IntVar(&o.batch, "batch", 10_000, "`number` of rows per statement")
	f.IntVar(&o.rate, "rate", 0, "largest `number` of rows per second (default: no limit)")
	f.IntVar(&o.examples, "examples", 5, "`number` of examples per finding")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(ids.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *auditOptions) validate(cmd *cobra.Command) error {
	switch {
	case o.format != "" && !slices.Contains(ids.Names(), o.format):
		return cli.Usagef("--type %q: want %s", o.format, strings.Join(ids.Names(), ", "))
	case o.layout != layoutFlags{} && o.format == "":
		return cli.Usagef("--epoch and --bits need --type snowflake or snowflake-si")
	case cmd.Flags().Changed("tolerance") && o.createdAt == "":
		return cli.Usagef("--tolerance needs --created-at, the column to compare with")
	case o.tolerance < 0 || o.future < 0:
		return cli.Usagef("--tolerance and --future must not be negative")
	case o.batch < 1 || o.batch > 1_000_000:
		return cli.Usagef("--batch %d: want 1 to 1000000", o.batch)
	case o.rate < 0 || o.examples < 0:
		return cli.Usagef("--rate and --examples must not be negative")
	}
	if o.nodes != "" {
		o.known = map[int]bool{}
		for numbers := range strings.SplitSeq(o.nodes, ",") {
			text, last, isRange := strings.Cut(numbers, "-")
			low, err := parseNumber(text)
			high := low
			if isRange && err == nil {
				high, err = parseNumber(last)
			}
			if err != nil || high < low {
				return cli.Usagef("--nodes %q: want numbers and ranges from 0 to 65535, such as 0-31,1023", o.nodes)
			}
			for n := low; n <= high; n++ {
				o.known[n] = true
			}
		}
	}
	if len(o.databases) == 0 {
		o.databases = []string{""} // of the environment
	}
	if o.rate > 0 {
		o.batch = min(o.batch, o.rate)
	}
	return nil
}

// The findings, in the order of the output.
var auditFindings = []string{"malformed", "zero", "future", "apart", "unknown_node", "duplicate"}

// An auditResult is the result of the command.
type auditResult struct {
	Tables   []auditTable   `json:"tables"`
	Findings []auditFinding `json:"findings"`
	Nodes    []auditNode    `json:"nodes"`
	Versions []auditVersion `json:"versions,omitempty"` // of UUIDs
	Days     []auditDay     `json:"days"`
	// OtherDays is the number of rows on days that are not in Days.
	OtherDays int64   `json:"rows_on_other_days"`
	Rows      int64   `json:"rows"`
	Seconds   float64 `json:"duration_seconds"`
	// Complete is false if --since, --until, --after or row-level security left out
	// rows.
	Complete bool `json:"complete"`
	// Hidden are the columns with such security.
	Hidden []auditPlace `json:"row_level_security,omitempty"`
}

type auditTable struct {
	auditPlace
	Type  string  `json:"type"`
	Rows  int64   `json:"rows"`
	Nulls int64   `json:"nulls"`
	First *idTime `json:"first"` // null without an ID
	Last  *idTime `json:"last"`
}

// An auditPlace names a column.
type auditPlace struct {
	Database string `json:"database"`
	Table    string `json:"table"`
	Column   string `json:"column"`
}

type auditFinding struct {
	Finding  string         `json:"finding"`
	Checked  bool           `json:"checked"`
	Reasons  []string       `json:"not_checked,omitempty"` // why columns were not checked
	Count    int64          `json:"count"`
	Examples []auditExample `json:"examples"`
	more     bool           // more IDs than examples
}

type auditExample struct {
	Key       string       `json:"key"`
	Rows      int64        `json:"rows"`
	Time      *idTime      `json:"time,omitempty"`
	Node      *int         `json:"node,omitempty"`
	CreatedAt string       `json:"created_at,omitempty"`
	Places    []auditPlace `json:"places"`
}

type auditNode struct {
	Type  string `json:"type"`
	Node  int    `json:"node"`
	Known *bool  `json:"known,omitempty"` // absent if not checked
	Rows  int64  `json:"rows"`
}

type auditVersion struct {
	Version string `json:"version"` // a number, nil, or other for a variant other than RFC 9562's
	Rows    int64  `json:"rows"`
}

type auditDay struct {
	Day  string `json:"day"`
	Rows int64  `json:"rows"`
}

// An auditor collects the result.
type auditor struct {
	*auditOptions
	databases []*auditDatabase
	findings  map[string]*auditFinding
	days      map[int64]*int64 // since 1970
	otherDays int64
	nodes     []auditNode
	versions  map[string]int64
	last      auditKey // the last key of the current format
}

// maxDays and maxNodes bound the memory for IDs with random times and nodes.
const (
	maxDays  = 20_000
	maxNodes = 1 << 16
)

// audit runs the command.
func (c *app) audit(ctx context.Context, names []string, o *auditOptions) error {
	begun := c.Now()
	a := &auditor{auditOptions: o, findings: map[string]*auditFinding{}, days: map[int64]*int64{}, nodes: []auditNode{}, versions: map[string]int64{}}
	for _, name := range auditFindings {
		a.findings[name] = &auditFinding{Finding: name, Checked: name != "unknown_node", Examples: []auditExample{}}
	}
	if o.createdAt == "" {
		a.findings["apart"].Checked = false
		a.skip("apart", "no --created-at")
	}
	for _, url := range o.databases {
		d, err := openAudit(ctx, databaseFlags{url: url, schema: o.schema})
		if err != nil {
			return err
		}
		defer d.close()
		a.databases = append(a.databases, d)
	}
	if err := labelDatabases(a.databases); err != nil {
		return err
	}
	groups, err := c.auditStreams(ctx, a, names)
	if err != nil {
		return err
	}

	var estimate int64
	for _, s := range slices.Concat(groups...) {
		if err := s.estimate(ctx, where(s.first)); err != nil {
			return err
		}
		estimate += s.rows
	}
	progress := c.NewProgress(estimate)
	turn := &auditTurn{rate: o.rate}
	for _, streams := range groups {
		if err := a.auditGroup(ctx, streams, turn, progress.Add); err != nil {
			if a.last != (auditKey{}) && len(groups) == 1 {
				fmt.Fprintf(c.Errs, "The audit stopped without a result. To audit only the rows after those it read, add --after=%s.\n", streams[0].format.keyText(a.last))
			}
			return err
		}
	}

	r := a.result(groups)
	r.Seconds = float64(c.Now().Sub(begun).Milliseconds()) / 1000
	if c.JSON() {
		err = c.PrintJSON(r)
	} else {
		err = c.printAudit(r, len(a.databases) > 1)
	}
	if err == nil && slices.ContainsFunc(r.Findings, func(f auditFinding) bool { return f.Count > 0 }) {
		return errFound
	}
	return err
}

// skip records the reason why a check leaves out columns.
func (a *auditor) skip(finding, reason string) {
	f := a.findings[finding]
	if !slices.Contains(f.Reasons, reason) {
		f.Reasons = append(f.Reasons, reason)
	}
}

// auditStreams returns the streams of all columns, by format.
func (c *app) auditStreams(ctx context.Context, a *auditor, names []string) ([][]*auditStream, error) {
	bounds := map[string]time.Time{}
	for flag, value := range map[string]string{"since": a.since, "until": a.until} {
		if value == "" {
			continue
		}
		t, err := c.parseTime(value)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		bounds[flag] = t
	}
	if a.since != "" && a.until != "" && !bounds["since"].Before(bounds["until"]) {
		return nil, cli.Usagef("--since %s is not before --until %s", a.since, a.until)
	}
	if a.layout != (layoutFlags{}) { // reject wrong flags
		if _, err := c.format(a.format, a.layout); err != nil {
			return nil, err
		}
	}
	byFormat := map[string][]*auditStream{}
	for _, d := range a.databases {
		if err := c.applyLayout(d, a.auditOptions); err != nil {
			return nil, err
		}
		for _, name := range names {
			col, err := d.findColumn(ctx, name)
			if err != nil {
				return nil, err
			}
			if err := col.describe(ctx, a.auditOptions); err != nil {
				return nil, err
			}
			if d.forbidden && a.layout == (layoutFlags{}) && (col.format == "snowflake" || col.format == "snowflake-si") {
				return nil, fmt.Errorf("column %s: %w, so the layout of its IDs is unknown; grant the privilege, or pass --type, --epoch and --bits", col, d.notInstalled)
			}
			format, err := newAuditFormat(col.format, d.config)
			if err != nil {
				return nil, err
			}
			others := byFormat[col.format]
			for _, other := range others {
				if other.db == d && other.oid == col.oid && other.name == col.name {
					return nil, cli.Usagef("column %s is named twice", col)
				}
				if other.db == d {
					if err := d.separate(ctx, col, other.auditColumn); err != nil {
						return nil, err
					}
				}
				if other.format.Layout != format.Layout {
					return nil, fmt.Errorf("databases %s and %s have different layouts of %s; audit them one by one", other.db.label, d.label, col.format)
				}
			}
			s := &auditStream{auditColumn: col, format: format, whole: len(bounds) == 0 && a.after == "",
				batch: a.batch, future: a.future, tolerance: a.tolerance}
			if err := s.bounds(bounds, a.after); err != nil {
				return nil, err
			}
			byFormat[col.format] = append(others, s)
		}
	}
	if a.after != "" && len(byFormat) > 1 {
		return nil, cli.Usagef("--after: the columns have IDs of several types; audit them one by one")
	}
	var groups [][]*auditStream
	for _, name := range ids.Names() {
		if streams := byFormat[name]; streams != nil {
			groups = append(groups, streams)
		}
	}
	return groups, nil
}

// applyLayout sets the layout of the flags for a database.
func (c *app) applyLayout(d *auditDatabase, o *auditOptions) error {
	widths, err := parseBits(o.layout.bits)
	if err != nil || o.layout == (layoutFlags{}) {
		return err
	}
	epoch, err := c.epochFlag("epoch", o.layout.epoch)
	if err != nil {
		return err
	}
	if o.format == "snowflake" {
		d.config.Snowflake, err = snowflakeLayout(epoch, widths)
	} else {
		if epoch.IsZero() {
			epoch = d.config.SnowflakeSI.BaseClock
		}
		d.config.SnowflakeSI, err = snowflakeSILayout(epoch, widths)
	}
	return err
}

// bounds sets the conditions of the statements.
func (s *auditStream) bounds(times map[string]time.Time, after string) error {
	if until, ok := times["until"]; ok {
		k, err := s.format.floor(until)
		if err != nil {
			return err
		}
		s.bound = append(s.bound, s.condition("<", k))
	}
	s.first = slices.Clone(s.bound)
	if since, ok := times["since"]; ok {
		k, err := s.format.floor(since)
		if err != nil {
			return err
		}
		s.first = append(s.first, s.condition(">=", k))
	}
	if after != "" {
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
func (a *auditor) knownNodes(ctx context.Context, f *auditFormat) (map[int]bool, error) {
	if len(f.Nodes) == 0 {
		a.skip("unknown_node", f.Name+" has no node numbers")
		return nil, nil
	}
	known, found := map[int]bool{}, len(a.known) > 0
	maps.Copy(known, a.known)
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
func (a *auditor) auditGroup(ctx context.Context, streams []*auditStream, turn *auditTurn, received func(int64)) error {
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
	err = merge(ctx, streams, turn, received, func(s *auditStream, e *auditEntry) {
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
		case auditMalformed:
			a.find("malformed", s, e, e.rows)
			return
		case auditZero:
			a.find("zero", s, e, e.rows)
			return
		case auditFuture:
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
		n := auditNode{Type: f.Name, Node: node, Rows: *nodes[node]}
		if known != nil {
			is := known[node]
			n.Known = &is
		}
		a.nodes = append(a.nodes, n)
	}
	return nil
}

// uuidVersion returns the version of a UUID for auditVersion.
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
	stream *auditStream
	entry  auditEntry
}

// find counts the rows of a finding.
func (a *auditor) find(finding string, s *auditStream, e *auditEntry, rows uint32) {
	a.findings[finding].Count += int64(rows)
	a.addExample(finding, e, int64(rows), place{s, *e})
}

// addExample keeps the first examples.
func (a *auditor) addExample(finding string, e *auditEntry, rows int64, places ...place) {
	f := a.findings[finding]
	if f.more = len(f.Examples) == a.examples; f.more {
		return
	}
	format := places[0].stream.format
	example := auditExample{Key: format.keyText(e.key), Rows: rows}
	for _, p := range places {
		example.Places = append(example.Places, p.stream.place())
	}
	if e.dated() {
		example.Time = &idTime{time.UnixMilli(e.ms).UTC()}
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

// postgresText returns a timestamp of auditEntry.
func postgresText(us int64) string {
	switch us {
	case math.MaxInt64:
		return "infinity"
	case math.MinInt64:
		return "-infinity"
	}
	return time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
}

func (col *auditColumn) place() auditPlace {
	return auditPlace{Database: col.db.label, Table: col.quotedTable, Column: col.quotedName}
}

// result returns the result of all groups.
func (a *auditor) result(groups [][]*auditStream) *auditResult {
	r := &auditResult{Complete: true, Nodes: a.nodes, Days: []auditDay{}, OtherDays: a.otherDays}
	for _, streams := range groups {
		for _, s := range streams {
			t := auditTable{auditPlace: s.place(), Type: s.format.Name, Rows: s.total.rows, Nulls: s.total.nulls}
			if s.total.ids > 0 {
				t.First, t.Last = &idTime{time.UnixMilli(s.total.first).UTC()}, &idTime{time.UnixMilli(s.total.last).UTC()}
			}
			r.Tables = append(r.Tables, t)
			r.Rows += t.Rows
			r.Complete = r.Complete && s.whole && !s.hidden
			if s.hidden {
				r.Hidden = append(r.Hidden, t.auditPlace)
			}
		}
	}
	for _, version := range slices.Sorted(maps.Keys(a.versions)) {
		r.Versions = append(r.Versions, auditVersion{version, a.versions[version]})
	}
	for _, name := range auditFindings {
		r.Findings = append(r.Findings, *a.findings[name])
	}
	for _, day := range slices.Sorted(maps.Keys(a.days)) {
		r.Days = append(r.Days, auditDay{time.UnixMilli(0).UTC().AddDate(0, 0, int(day)).Format(time.DateOnly), *a.days[day]})
	}
	return r
}

// auditTop is the number of nodes and days in the tables.
const auditTop = 10

// printAudit prints the result as tables. databases is set if there are several.
func (c *app) printAudit(r *auditResult, databases bool) error {
	name := func(p auditPlace) string {
		if databases {
			return p.Database + ": " + p.Table + "." + p.Column
		}
		return p.Table + "." + p.Column
	}
	var columns, findings []table.Row
	for _, t := range r.Tables {
		row := table.Row{name(t.auditPlace), t.Type, humanize.Comma(t.Rows), humanize.Comma(t.Nulls)}
		if t.First != nil {
			row = append(row, stamp(t.First.Time), stamp(t.Last.Time))
		}
		columns = append(columns, row)
	}
	for _, f := range r.Findings {
		row := table.Row{f.Finding, "-", ""}
		if f.Checked {
			row[1] = humanize.Comma(f.Count)
		}
		if f.Count > 0 {
			row[1] = c.Paint(text.FgRed, row[1].(string))
		}
		for _, e := range f.Examples {
			row[2] = e.describe(f.Finding, name)
			findings = append(findings, row)
			row = table.Row{"", "", ""}
		}
		if f.more && len(f.Examples) > 0 {
			findings = append(findings, table.Row{"", "", "..."})
		}
		for _, reason := range f.Reasons {
			row[2] = "not checked: " + reason
			findings = append(findings, row)
			row = table.Row{"", "", ""}
		}
		if len(f.Examples)+len(f.Reasons) == 0 {
			findings = append(findings, row)
		}
	}
	for i, t := range []struct {
		header table.Row
		rows   []table.Row
	}{
		{table.Row{"COLUMN", "TYPE", "ROWS", "NULLS", "FIRST", "LAST"}, columns},
		{table.Row{"FINDING", "COUNT", "EXAMPLES"}, findings},
		{table.Row{"TYPE", "NODE", "ROWS", "SHARE", ""}, nodeRows(r.Nodes)},
		{table.Row{"UUID VERSION", "ROWS", "SHARE"}, versionRows(r.Versions)},
		{table.Row{"DAY", "ROWS", "SHARE"}, dayRows(r.Days)},
	} {
		if i > 0 && len(t.rows) > 0 {
			fmt.Fprintln(c.Out)
		}
		if err := c.PrintTable(t.header, t.rows); err != nil {
			return err
		}
	}
	if n := len(r.Days); n > auditTop {
		fmt.Fprintf(c.Out, "\nThe days are from %s to %s.\n", r.Days[0].Day, r.Days[n-1].Day)
	}
	for _, p := range r.Hidden {
		fmt.Fprintf(c.Out, "\nRow-level security can hide rows of %s from the role.\n", name(p))
	}
	return nil
}

// describe returns an example for the table of findings.
func (e *auditExample) describe(finding string, name func(auditPlace) string) string {
	var names []string
	for _, p := range e.Places {
		names = append(names, name(p))
	}
	s := e.Key
	switch finding {
	case "future":
		s += " of " + stamp(e.Time.Time)
	case "apart":
		s += " of " + stamp(e.Time.Time) + ", but created at " + e.CreatedAt
	case "unknown_node":
		s += " of node " + strconv.Itoa(*e.Node)
	}
	if e.Rows > 1 {
		s += fmt.Sprintf(", %d times", e.Rows)
	}
	return s + " in " + strings.Join(names, ", ")
}

// nodeRows returns the nodes with the most rows, in order of the nodes.
func nodeRows(nodes []auditNode) (rows []table.Row) {
	var total int64
	for _, n := range nodes {
		total += n.Rows
	}
	shown, others, rest := top(nodes, func(n auditNode) int64 { return n.Rows })
	for _, n := range shown {
		note := ""
		if n.Known != nil && !*n.Known {
			note = "unknown"
		}
		rows = append(rows, table.Row{n.Type, n.Node, humanize.Comma(n.Rows), share(n.Rows, total), note})
	}
	if others > 0 {
		rows = append(rows, table.Row{english.Plural(others, "other", ""), "", humanize.Comma(rest), share(rest, total)})
	}
	return rows
}

// versionRows returns the versions of UUIDs.
func versionRows(versions []auditVersion) (rows []table.Row) {
	var total int64
	for _, v := range versions {
		total += v.Rows
	}
	for _, v := range versions {
		rows = append(rows, table.Row{v.Version, humanize.Comma(v.Rows), share(v.Rows, total)})
	}
	return rows
}

// dayRows returns the days with the most rows, in order of the days.
func dayRows(days []auditDay) (rows []table.Row) {
	var total int64
	for _, d := range days {
		total += d.Rows
	}
	shown, others, rest := top(days, func(d auditDay) int64 { return d.Rows })
	for _, d := range shown {
		rows = append(rows, table.Row{d.Day, humanize.Comma(d.Rows), share(d.Rows, total)})
	}
	if others > 0 {
		rows = append(rows, table.Row{english.Plural(others, "other day", ""), humanize.Comma(rest), share(rest, total)})
	}
	return rows
}

// top returns the elements with the most rows, in their order, and the number and rows
// of the others.
func top[T any](all []T, rows func(T) int64) (shown []T, others int, rest int64) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(rows(all[j]), rows(all[i])) })
	keep := order[:min(auditTop, len(order))]
	slices.Sort(keep)
	for _, i := range keep {
		shown = append(shown, all[i])
	}
	for _, i := range order[len(keep):] {
		rest += rows(all[i])
	}
	return shown, len(order) - len(keep), rest
}

func share(n, total int64) string {
	return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(max(total, 1)))
}
