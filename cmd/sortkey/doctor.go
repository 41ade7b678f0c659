package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/rekey"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The limits of doctor.
const (
	year          = 365 * 24 * time.Hour
	shortLifetime = 5 * year               // warning below
	smallSkew     = 100 * time.Millisecond // warning above
	largeSkew     = time.Second            // problem above: the generators of the SQL defaults wait that long
	longestFence  = time.Hour              // the longest TTL
	countedRows   = 1000                   // of a default partition
	largestKeys   = 1000                   // of a column
	longRekey     = 24 * time.Hour         // without a step: warning above
)

func (c *cli) doctorCommand() *cobra.Command {
	var flags databaseFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a database and suggest remedies",
		Long: `Doctor checks the installation in a database and everything that depends on it,
and prints the results on one page, with a remedy below each problem. It changes
nothing.

    server        version, Citus, primary or standby
    clock         this machine's clock and the server's: a difference above
                  100 ms is a warning, above 1 s a problem
    installation  migrations and layouts
    generators    the clocks of the next_ functions, which must not be ahead,
                  nor behind the largest keys of columns with such a default
    lifetime      the last times of the formats: less than 5 years is a warning
    setting       sortkey.node, the node number of the defaults
    defaults      missing and unreserved node numbers of defaults
    claims        the pools of node numbers, and wrong clocks of holders
    partitions    partitions ahead, default partitions, the last maintenance
    rekey         incomplete replacements of keys
    citus         distribution columns of a domain, workers without a number

Each result is ok, a warning, a problem, or unknown if the role lacks the
privilege to read it. The exit code is 1 if there is a problem, or if the role
cannot read the installation.`,
		Example: `  sortkey doctor --database postgres://owner@db.example/shop
  sortkey doctor --output json | jq '.checks[] | select(.status == "problem")'`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			db, err := flags.open(cmd.Context())
			if err != nil {
				return err
			}
			defer db.Close()
			d := &doctor{nodes: nodes{db, migrations.Config{Schema: flags.schema}}, now: c.now, report: report{counts: map[status]int{}}}
			if err := d.examine(cmd.Context()); err != nil {
				return err
			}
			if err := c.printReport(&d.report); err != nil {
				return err
			}
			if d.counts[statusProblem] > 0 || d.blind {
				return errFound
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}

// A report is the result of doctor.
type report struct {
	Server server  `json:"server"`
	Checks []check `json:"checks"`

	counts map[status]int
}

type server struct {
	Version    string  `json:"version"`
	Citus      *string `json:"citus"` // the version of the extension; nil without it
	InRecovery bool    `json:"in_recovery"`
	Database   string  `json:"database"`
	Role       string  `json:"role"`
}

// A check is a line of the report.
type check struct {
	Area    string `json:"area"`
	Status  status `json:"status"`
	Subject string `json:"subject"`
	Detail  string `json:"detail"`
	Remedy  string `json:"remedy,omitempty"`
}

type status string

const (
	statusOK      status = "ok"
	statusWarning status = "warning"
	statusProblem status = "problem"
	statusUnknown status = "unknown"
)

// A doctor examines a database.
type doctor struct {
	nodes
	now    func() time.Time
	ahead  time.Duration // of the server's clock
	absent bool          // there is no installation that the other checks could read
	blind  bool          // the installation is unreadable
	// outdated is the remedy for missing migrations; "" if there are none.
	outdated string
	report
	area string
}

// serverNow returns the time of the server's clock.
func (d *doctor) serverNow() time.Time { return d.now().Add(d.ahead) }

func (d *doctor) add(s status, subject, detail, remedy string) {
	d.Checks = append(d.Checks, check{d.area, s, subject, detail, remedy})
	d.counts[s]++
}

// examine makes the report.
func (d *doctor) examine(ctx context.Context) error {
	const usage = "USAGE ON SCHEMA $s"
	for _, a := range []struct {
		name  string
		check func(context.Context) error
		needs []string // privileges
	}{
		{"server", d.checkServer, nil},
		{"clock", d.checkClock, nil},
		{"installation", d.checkInstallation, []string{usage}},
		{"generators", d.checkGenerators, nil},
		{"lifetime", d.checkLifetime, nil},
		{"setting", d.checkSetting, []string{usage}},
		{"defaults", d.checkDefaults, []string{usage}},
		{"claims", d.checkClaims, []string{mayList}},
		{"partitions", d.checkPartitions, []string{usage}},
		{"rekey", d.checkRekey, nil},
		{"citus", d.checkCitus, nil},
	} {
		if d.absent {
			break
		}
		d.area = a.name
		switch err := a.check(ctx); {
		case unreadable(err):
			d.blind = d.blind || a.name == "installation"
			d.failed(ctx, a.name, err, a.needs...)
		case err != nil:
			return fmt.Errorf("check %s: %w", a.name, err)
		}
	}
	return nil
}

// unreadable reports whether the server answered with an error: the role lacks a
// privilege, for example, or the installation lacks an object.
func unreadable(err error) bool { return sqlState(err) != "" && !ended(err) }

// ended reports whether the connection was lost, or the server ended the session or
// canceled the statement (class 57).
func ended(err error) bool { return isLost(err) || strings.HasPrefix(sqlState(err), "57") }

// failed adds a check that failed with err. The result is unknown if the role lacks
// privileges, and a problem otherwise.
func (d *doctor) failed(ctx context.Context, subject string, err error, privileges ...string) {
	message, remedy := serverError(err).Message, serverError(err).Hint
	switch {
	case sqlState(err) == insufficientPrivilege:
		d.add(statusUnknown, subject, message, d.asOwner(ctx, err, d.Schema, privileges...))
		return
	case missing(err) && d.outdated != "":
		remedy = d.outdated
	case missing(err):
		remedy = remedyMissing
	}
	d.add(statusProblem, subject, message, remedy)
}

func (d *doctor) checkServer(ctx context.Context) error {
	var number int
	var readOnly bool // transaction_read_only would be the one of readRow
	err := readRow(ctx, d, []any{&d.Server.Version, &number, &readOnly, &d.Server.InRecovery, &d.Server.Database, &d.Server.Role, &d.Server.Citus}, `SELECT current_setting('server_version'), current_setting('server_version_num')::integer, current_setting('default_transaction_read_only')::boolean, pg_is_in_recovery(), current_database(), current_user,
		(SELECT e.extversion FROM pg_extension e WHERE e.extname = 'citus')`)
	if err != nil {
		return err
	}
	version := "PostgreSQL " + d.Server.Version
	if d.Server.Citus != nil {
		version += ", Citus " + *d.Server.Citus
	}
	if number < 150000 {
		d.add(statusProblem, "version", version, "upgrade the server to PostgreSQL 15 or later")
	} else {
		d.add(statusOK, "version", version, "")
	}
	if d.Server.InRecovery {
		d.add(statusWarning, "standby", "inserts with defaults, claims and partition maintenance need the primary, and the clock and the generators below can differ there",
			"connect to the primary, for example with target_session_attrs=read-write in the URL")
	} else if readOnly {
		d.add(statusWarning, "primary", "default_transaction_read_only is on, so inserts, claims and partition maintenance fail",
			"remove the setting from the connection string, the role, the database or the server")
	} else {
		d.add(statusOK, "primary", "accepts writes", "")
	}
	return nil
}

// checkClock measures the difference between the clocks. The server reads its clock
// during the round trip, so the shortest of several ones has the smallest error.
func (d *doctor) checkClock(ctx context.Context) error {
	const trips = 10
	shortest := time.Duration(math.MaxInt64)
	err := read(ctx, d, func(tx pgx.Tx) error {
		for range trips {
			var there time.Time
			before := d.now()
			if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&there); err != nil {
				return err
			}
			if trip := d.now().Sub(before); trip < shortest {
				shortest, d.ahead = trip, there.Sub(before.Add(trip/2))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	direction := "ahead of"
	if d.ahead < 0 {
		direction = "behind"
	}
	detail := fmt.Sprintf("%s %s this machine's (± %s)", short(d.ahead.Abs()), direction, short(shortest/2))
	const why = "; IDs of programs and of SQL defaults then sort and expire by different clocks, and a time window such as the last minute misses rows"
	const remedy = "find out which clock is wrong, and slew it with NTP"
	switch certain := d.ahead.Abs() - shortest/2; {
	case certain > largeSkew:
		d.add(statusProblem, "the server's clock", detail+why, remedy)
	case certain > smallSkew:
		d.add(statusWarning, "the server's clock", detail+why, remedy)
	default:
		d.add(statusOK, "the server's clock", detail, "")
	}
	return nil
}

// short returns a duration in a few digits.
func short(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return english.Plural(int(d.Hours()/24), "day", "")
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// checkInstallation reads the Config of the installation.
func (d *doctor) checkInstallation(ctx context.Context) error {
	subject := "schema " + d.Schema
	config, err := migrations.Installed(ctx, d.std, d.Schema)
	var detail, remedy string
	switch {
	case err == nil:
		d.Config = config
		return d.checkMigrations(ctx, subject)
	case unreadable(err), ended(err):
		return err
	case errors.Is(err, migrations.ErrNotInstalled):
		detail, remedy = "sortkey is not installed", remedyUp
		others, err := collect(ctx, d, pgx.RowTo[string], `SELECT n.nspname FROM pg_namespace n
			WHERE (SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname IN ('revision', 'layout', 'node_lease')) = 3 ORDER BY 1`)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			remedy = "pass --schema " + strings.Join(others, " or --schema ")
		}
	default: // such as a layout that this version doesn't know
		if detail, remedy = d.diagnose(ctx, err, d.Schema); detail == "" {
			detail, remedy = strings.TrimPrefix(err.Error(), "migrations: "), "upgrade the command"
		}
	}
	d.absent = true
	d.add(statusProblem, subject, detail, remedy)
	return nil
}

// checkMigrations compares the migrations and layouts of the installation with the ones
// that this version knows.
func (d *doctor) checkMigrations(ctx context.Context, subject string) error {
	var installed, newest int
	if err := readRow(ctx, d, []any{&installed, &newest}, d.sql(`SELECT count(*), max(version) FROM $s.revision`)); err != nil {
		return err
	}
	byUp, err := d.installedByUp(ctx, d.Schema)
	if err != nil {
		return err
	}
	tool := "another tool"
	if byUp {
		tool = "sortkey migrate up"
	}
	known, err := migrations.List(d.Config)
	if err != nil {
		return err
	}
	detail := fmt.Sprintf("%d of %d migrations, run by %s", installed, len(known), tool)
	err = migrations.Check(ctx, d.std, d.Config)
	problem, remedy := d.diagnose(ctx, err, d.Schema)
	var objects []string
	if newest <= len(known) && problem == "" {
		var failed error
		if objects, failed = d.missingObjects(ctx, d.Config); failed != nil {
			return failed
		}
	}
	switch {
	case newest > len(known):
		d.add(statusWarning, subject, fmt.Sprintf("migrations up to %d, run by %s; this command knows %d", newest, tool, len(known)), "upgrade the command")
	case errors.Is(err, migrations.ErrOutdated):
		d.outdated = remedy
		d.add(statusProblem, subject, detail, remedy)
	case len(objects) > 0:
		for _, object := range objects {
			d.add(statusProblem, subject, object+" is missing", remedyMissing)
		}
	case err == nil:
		d.add(statusOK, subject, detail, "")
	case unreadable(err):
		return err
	default:
		d.add(statusProblem, subject, cmp.Or(problem, err.Error()), remedy)
	}
	l, si := d.Snowflake, d.SnowflakeSI
	d.add(statusOK, "snowflake", layoutArgs(l.Epoch, l.DatacenterBits, l.WorkerBits, l.SequenceBits), "")
	if si != (idtype.SnowflakeSILayout{}) {
		d.add(statusOK, "snowflake-si", layoutArgs(si.BaseClock, si.MachineBits, si.IndexBits), "")
	}
	return nil
}

// layoutArgs returns the flags that select a layout.
func layoutArgs(epoch time.Time, widths ...int) string {
	layout := "2006-01-02T15:04:05.999Z07:00"
	if epoch = epoch.UTC(); epoch.Equal(epoch.Truncate(24 * time.Hour)) {
		layout = time.DateOnly
	}
	return fmt.Sprintf("--epoch %s --bits %s", epoch.Format(layout), strings.Trim(strings.ReplaceAll(fmt.Sprint(widths), " ", "/"), "[]"))
}

// A timespan is the time that a format can hold.
type timespan struct {
	format      string // as in SQL
	first, last time.Time
	unit        time.Duration
}

// generated returns the beginning of the window of time in a value of the sequence of a
// server's generator: the upper of its 63 bits are the number of the window, of 4 ms.
func (s timespan) generated(value int64) time.Time {
	const windowMS = 4
	first := s.first.UnixMilli()
	lastWindow := (s.last.UnixMilli() - first) / windowMS
	return time.UnixMilli(first + value>>(63-bits.Len64(uint64(lastWindow)))*windowMS)
}

func (d *doctor) timespans() []timespan {
	if d.Snowflake == (idtype.SnowflakeLayout{}) { // the layouts are unreadable
		return nil
	}
	var lowest, highest idtype.Sno
	for i := range highest {
		highest[i] = math.MaxUint8
	}
	spans := []timespan{
		{"snowflake", d.Snowflake.Time(0), d.Snowflake.Time(idtype.MaxSnowflake), time.Millisecond},
		{"uid60", idtype.UID60(0).Time(), idtype.UID60(idtype.MaxUID60).Time(), time.Millisecond},
		{"spread64", idtype.Spread64(0).Time(), idtype.Spread64(-1).Time(), time.Millisecond},
		{"sno", lowest.Time(), highest.Time(), 4 * time.Millisecond},
	}
	if d.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
		spans = append(spans, timespan{"snowflake_si", d.SnowflakeSI.Time(0), d.SnowflakeSI.Time(idtype.MaxSnowflakeSI), time.Millisecond})
	}
	return spans
}

// checkGenerators finds formats whose last ID was generated while the server's clock was
// ahead. Then the defaults fail until the clock has caught up.
func (d *doctor) checkGenerators(ctx context.Context) error {
	var values map[string]*int64 // by the name of the sequence; nil: unreadable, 0: no ID yet
	err := readRow(ctx, d, []any{&values}, d.sql(`
		SELECT coalesce(jsonb_object_agg(c.relname, CASE WHEN has_sequence_privilege(s.seqrelid, 'USAGE, SELECT')
			THEN coalesce(pg_sequence_last_value(s.seqrelid), 0) END), '{}')
		FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = '$s_internal'`))
	if err != nil {
		return err
	}
	found := false
	var unread []string
	lasts := map[string]time.Time{} // by format
	for _, span := range d.timespans() {
		value, ok := values[span.format+"_clock"]
		if !ok { // an outdated installation
			continue
		}
		if value == nil {
			unread = append(unread, span.format)
			continue
		}
		last := span.generated(*value)
		lasts[span.format] = last
		if last.Sub(d.serverNow()) > largeSkew {
			found = true
			d.add(statusProblem, "next_"+span.format, fmt.Sprintf("fails until %s (%s): it generated IDs while the server's clock was ahead", stamp(last), distance(last, d.serverNow())),
				d.resetRemedy(span.format))
		}
	}
	if len(unread) > 0 {
		d.add(statusUnknown, "next_ functions", "the role cannot read the sequences of "+strings.Join(unread, ", "), "connect as the owner of schema "+d.Schema)
	} else if !found && d.timespans() != nil {
		d.add(statusOK, "next_ functions", "no generator is ahead of the server's clock", "")
	}
	if d.timespans() == nil {
		return nil
	}
	return d.checkKeys(ctx, lasts)
}

// A generatedColumn is a column with the default of a next_ function, and with an index.
type generatedColumn struct {
	Format   string
	Table    string // as in SQL
	Name     string // as in SQL
	Readable bool
	Nodes    []int // of the defaults of the format
}

// checkKeys compares the largest keys of columns with the clock, and keys with the node
// number of a default with the last ID of the generator. The IDs of spread64 don't sort by
// time, and the ones of uid60 have no node number. lasts has the last IDs of the generators.
func (d *doctor) checkKeys(ctx context.Context, lasts map[string]time.Time) error {
	columns, err := collect(ctx, d, pgx.RowToStructByPos[generatedColumn], d.sql(`
		SELECT DISTINCT substr(p.proname, 6), format('%I.%I', n.nspname, c.relname), quote_ident(a.attname),
			has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, a.attnum, 'SELECT'),
			ARRAY(SELECT DISTINCT d.number FROM $s.node_defaults d WHERE d.format = substr(p.proname, 6) AND d.number IS NOT NULL)
		FROM pg_proc p JOIN pg_depend x ON x.refclassid = 'pg_proc'::regclass AND x.refobjid = p.oid AND x.classid = 'pg_attrdef'::regclass
			JOIN pg_attrdef f ON f.oid = x.objid JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
			JOIN pg_type t ON t.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE p.pronamespace = '$s'::regnamespace AND p.proname IN ('next_snowflake', 'next_snowflake_si', 'next_uid60', 'next_sno')
			AND p.prorettype IN (t.oid, t.typbasetype) AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_temp_'
			AND EXISTS (SELECT FROM pg_index i JOIN pg_class k ON k.oid = i.indexrelid JOIN pg_am m ON m.oid = k.relam
				WHERE i.indrelid = c.oid AND i.indkey[0] = a.attnum AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree')
		ORDER BY 2, 3`))
	if err != nil {
		return err
	}
	denied := 0
	for _, col := range columns {
		err := d.checkKeysOf(ctx, col, lasts)
		switch {
		case errors.Is(err, errDenied), errors.Is(err, migrations.ErrUntrusted):
			denied++
		case unreadable(err):
			d.failed(ctx, col.Table+"."+col.Name, err)
		case err != nil:
			return err
		}
	}
	if denied > 0 {
		d.add(statusUnknown, "keys", english.Plural(denied, "column", "")+" with a default can't be read", "connect as the owner of the tables")
	}
	return nil
}

// errDenied: the role lacks the privilege to read a column.
var errDenied = errors.New("permission denied")

// checkKeysOf is checkKeys for a column.
func (d *doctor) checkKeysOf(ctx context.Context, col generatedColumn, lasts map[string]time.Time) error {
	if !col.Readable {
		return errDenied
	}
	if err := readable(ctx, d, col.Table); err != nil {
		return err
	}
	node := "$s." + col.Format + "_node(k)"
	if col.Format == "uid60" {
		node = "NULL::integer"
	}
	var newest, own *time.Time
	err := readRow(ctx, d, []any{&newest, &own}, d.sql(fmt.Sprintf(`
		SELECT max($s.%[1]s_time(k)), max($s.%[1]s_time(k)) FILTER (WHERE %[2]s = ANY ($1::int[]))
		FROM (SELECT t.%[3]s AS k FROM %[4]s t WHERE t.%[3]s IS NOT NULL ORDER BY t.%[3]s DESC LIMIT %[5]d) x`,
		col.Format, node, col.Name, col.Table, largestKeys)), col.Nodes)
	if err != nil {
		return err
	}
	now := d.serverNow()
	last, known := lasts[col.Format]
	behind := known && own != nil && own.Sub(last) > largeSkew
	subject := col.Table + "." + col.Name
	switch {
	case behind && own.Sub(now) > largeSkew:
		d.add(statusProblem, subject, fmt.Sprintf("has a key of %s (%s) with the node number of a default, and the last ID of next_%s is of %s: the default repeats keys at that time",
			stamp(*own), distance(*own, now), col.Format, stamp(last)), "reserve another node number for the defaults before that time")
	case newest != nil && newest.Sub(now) > largeSkew:
		d.add(statusProblem, subject, fmt.Sprintf("has a key of %s (%s): a clock was wrong", stamp(*newest), distance(*newest, now)),
			"find the program that generated it, and correct its clock; until that time, no new key sorts after this one")
	case behind:
		d.add(statusWarning, subject, fmt.Sprintf("has a key of %s with the node number of a default, and the last ID of next_%s is of %s: its sequence was set back, or another generator uses the number",
			stamp(*own), col.Format, stamp(last)), d.sql("run sortkey audit "+col.Table+" to find duplicates, and never set or restore $s_internal."+col.Format+"_clock by itself; the next ID is of the present again"))
	}
	return nil
}

// resetRemedy returns the remedy for a generator ahead of the clock. The reset of its
// sequence repeats IDs unless each session and default has another node number. IDs of
// uid60 have no node number.
func (d *doctor) resetRemedy(format string) string {
	if format == "uid60" {
		return "wait until then: a reset of the generator could repeat IDs"
	}
	call := "next_" + format + "(5)"
	if format == "sno" {
		call = "next_sno(0, 5)"
	}
	return d.sql(fmt.Sprintf("wait until then. If you can't wait: reserve a node number with which no ID was generated; set $s.node to it, and replace the number in each default that passes a literal, such as %[2]s; "+
		"end all sessions, since they keep their number; only then run SELECT setval('$s_internal.%[1]s_clock', 1)", format, call))
}

func (d *doctor) checkLifetime(context.Context) error {
	const remedy = "move to a format or a layout that ends later"
	for _, span := range d.timespans() {
		name := strings.ReplaceAll(span.format, "_", "-")
		left := span.last.Sub(d.serverNow())
		end := span.last.UTC().Format(time.DateOnly)
		switch {
		case left < 0:
			d.add(statusProblem, name, "ended on "+end+": IDs can't have later times", remedy)
		case left < shortLifetime:
			d.add(statusWarning, name, fmt.Sprintf("until %s (%s)", end, distance(span.last, d.serverNow())), remedy)
		default:
			d.add(statusOK, name, fmt.Sprintf("until %s (%d years from now)", end, left/year), "")
		}
	}
	return nil
}

// checkSetting compares the setting sortkey.node of this session with the one of the
// database. A default that needs the setting is a matter of checkDefaults.
func (d *doctor) checkSetting(ctx context.Context) error {
	name := d.Schema + ".node"
	var session, database, alter string
	err := readRow(ctx, d, []any{&session, &alter, &database}, `SELECT coalesce(current_setting($1, true), ''), format('run ALTER DATABASE %I SET %s = ', current_database(), $1), coalesce((
			SELECT substr(c, length($1) + 2) FROM pg_db_role_setting s JOIN pg_database b ON b.oid = s.setdatabase, unnest(s.setconfig) c
			WHERE b.datname = current_database() AND s.setrole = 0 AND starts_with(c, $1 || '=')), '')`, name)
	switch {
	case err != nil:
		return err
	case session == "" && database == "":
		d.add(statusOK, name, "not set", "")
	case database == "":
		d.add(statusWarning, name, session+" in this session only: its connection string or its role sets it", alter+session+", and reconnect")
	case session != database:
		d.add(statusWarning, name, fmt.Sprintf("%s for the database, but %s in this session: its connection string or its role sets it", database, cmp.Or(session, "not set")), alter+"N, and reconnect, or drop the other setting")
	default:
		d.add(statusOK, name, session+" for the database", "")
	}
	if session == "" {
		return nil
	}
	if !nodeNumberText.MatchString(session) {
		d.add(statusWarning, "reservation", fmt.Sprintf("%q is not a node number", session), alter+"N, and reconnect")
		return nil
	}
	reservations, err := d.reservations(ctx)
	var reserved, outOfRange []string
	for _, r := range reservations {
		switch strconv.Itoa(r.setting) {
		case session:
			reserved = append(reserved, fmt.Sprintf("%s (%s)", r.Pool, r.Note))
		case "-1":
			if strconv.Itoa(r.Number) == session {
				outOfRange = append(outOfRange, r.rangeText())
			}
		}
	}
	if len(session) > 5 || session > "65535" && len(session) == 5 {
		outOfRange = append(outOfRange, "no format has this number")
	}
	switch {
	case unreadable(err):
		d.failed(ctx, "reservation", err, mayList)
	case err != nil:
		return err
	case len(outOfRange) > 0:
		d.add(statusProblem, "reservation", fmt.Sprintf("number %s is out of range: %s", session, strings.Join(outOfRange, ", ")), alter+"N with a number in range, and reconnect")
	case len(reserved) == 0:
		d.add(statusWarning, "reservation", "number "+session+" is not reserved in any pool: a program could claim it",
			fmt.Sprintf("run sortkey nodes reserve POOL %s, with the pool of each format that defaults use", session))
	default:
		d.add(statusOK, "reservation", "number "+session+" is reserved in "+strings.Join(reserved, ", "), "")
	}
	return nil
}

// A reservedNumber is a reservation in a pool of a format, or in one that a program has
// created.
type reservedNumber struct {
	Pool   string
	Number int
	Note   string
	Size   *int // of the pool
	Layout string

	size    int // of the pool or of its format
	setting int // the value of the setting; -1: no ID can have this number
}

// rangeText returns the range of the numbers.
func (r reservedNumber) rangeText() string { return fmt.Sprintf("%s has 0 to %d", r.Pool, r.size-1) }

func (d *doctor) reservations(ctx context.Context) ([]reservedNumber, error) {
	list, err := collect(ctx, d, pgx.RowToStructByNameLax[reservedNumber], d.sql(`
		SELECT s.pool, s.number, s.reserved AS note, p.size, coalesce(p.layout, '') AS layout
		FROM $s.node_status s LEFT JOIN $s.node_pool p ON p.name = s.pool WHERE s.reserved IS NOT NULL ORDER BY s.pool, s.number`))
	var known []reservedNumber
	for _, r := range list {
		f := d.formatOf(r.Pool, r.Layout)
		switch {
		case r.Size != nil:
			r.size = *r.Size
		case f != nil:
			r.size = f.pool.Size
		default: // a misspelled pool, or one that a program will create
			continue
		}
		switch {
		case r.Number >= r.size:
			r.setting = -1
		case f != nil:
			r.setting = f.node(r.Number)
		default:
			r.setting = r.Number
		}
		known = append(known, r)
	}
	return known, err
}

// nodeNumberText matches the values of the setting that the next_ functions accept.
var nodeNumberText = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)

// nodeProblem matches a problem and its remedy in the view node_problems.
var nodeProblem = regexp.MustCompile(`^(.*) \(((?:choose|run) .*)\)$`)

// reserveCall matches a call in the remedy of such a problem.
var reserveCall = regexp.MustCompile(`^run SELECT [a-z0-9_]+\.reserve_node\('([a-z0-9-]+)', ([0-9]+), `)

// defaultProblem splits a problem of the view node_problems from its remedy. It adds
// the command to a remedy that reserves a number.
func defaultProblem(text, schema string) (problem, remedy string) {
	for _, sentinel := range []error{migrations.ErrUnreservedNode, migrations.ErrNoNode} {
		text = strings.TrimSuffix(text, ": "+sentinel.Error())
	}
	m := nodeProblem.FindStringSubmatch(text)
	if m == nil {
		return text, ""
	}
	problem, remedy = m[1], m[2]
	if call := reserveCall.FindStringSubmatch(remedy); call != nil {
		option := ""
		if schema != migrations.DefaultSchema {
			option = " --schema " + schema
		}
		remedy = fmt.Sprintf("run sortkey nodes reserve%s %s %s, or %s", option, call[1], call[2], strings.TrimPrefix(remedy, "run "))
	}
	return problem, remedy
}

func (d *doctor) checkDefaults(ctx context.Context) error {
	var total, opaque int
	err := readRow(ctx, d, []any{&total, &opaque}, d.sql(`SELECT count(DISTINCT (kind, name)), count(DISTINCT (kind, name)) FILTER (WHERE number IS NULL AND NOT from_setting) FROM $s.node_defaults`))
	if err != nil {
		return err
	}
	problems, err := collect(ctx, d, pgx.RowTo[string], d.sql(`SELECT problem FROM $s.node_problems ORDER BY no_node DESC, pool, number, problem`))
	if err != nil {
		return err
	}
	for _, detail := range problems {
		problem, remedy := defaultProblem(detail, d.Schema)
		d.add(statusProblem, "node number", problem, remedy)
	}
	switch {
	case total == 0:
		d.add(statusOK, "node numbers", "no default uses one", "")
	case len(problems) == 0 && total > opaque:
		d.add(statusOK, "node numbers", english.Plural(total-opaque, "default uses a reserved number", "defaults use reserved numbers"), "")
	}
	if opaque > 0 {
		d.add(statusWarning, "node numbers", english.Plural(opaque, "default doesn't pass a literal, so its number is unknown", "defaults don't pass a literal, so their numbers are unknown"),
			"pass a reserved number as a literal, or use the setting "+d.Schema+".node")
	}
	return nil
}

func (d *doctor) checkClaims(ctx context.Context) error {
	pools, err := d.pools(ctx)
	if err != nil {
		return err
	}
	if len(pools) == 0 {
		d.add(statusOK, "pools", "no program has claimed a number, and none is reserved", "")
		return nil
	}
	for _, p := range pools {
		d.checkPool(p)
	}
	reserved, err := d.reservations(ctx)
	if err != nil {
		return err
	}
	for _, r := range reserved {
		if r.setting < 0 {
			d.add(statusProblem, fmt.Sprintf("number %d of pool %s", r.Number, r.Pool), "reserved, but out of range: "+r.rangeText(),
				fmt.Sprintf("run sortkey nodes release %s %d", r.Pool, r.Number))
		}
	}
	numbers, err := d.numbers(ctx, "", -1)
	if err != nil {
		return err
	}
	const shown = 5
	wrong := slices.DeleteFunc(numbers, func(l nodeNumber) bool { return !l.FarAhead })
	for _, l := range wrong[:min(shown, len(wrong))] {
		remedy := "no program can claim the number until then; the documentation of package pglease describes when you may set a mark back"
		if l.Holder != nil {
			remedy = "correct the clock of " + *l.Holder
		}
		d.add(statusWarning, fmt.Sprintf("number %d of pool %s", l.Number, l.Pool), fmt.Sprintf("high-water mark %s ahead of the server's clock: the clock of a holder was wrong", short(l.Mark.Sub(l.now))), remedy)
	}
	if len(wrong) > shown {
		d.add(statusWarning, "other numbers", fmt.Sprintf("%d more high-water marks are ahead", len(wrong)-shown), "run sortkey nodes list --all")
	}
	return nil
}

func (d *doctor) checkPool(p poolStatus) {
	subject := "pool " + p.Pool
	if p.Size == nil {
		d.add(statusOK, subject, fmt.Sprintf("%d reserved; no program has claimed a number", p.Reserved), "")
		return
	}
	detail := fmt.Sprintf("%d held, %d reserved, %d free", p.Held, p.Reserved, *p.Free)
	if p.Ahead > 0 {
		detail += fmt.Sprintf(", %d ahead of the clock", p.Ahead)
	}
	switch {
	case *p.Free <= 0:
		d.add(statusProblem, subject, detail+": no other program can start", "stop programs that don't need their number, or release their claims: sortkey nodes list "+p.Pool)
	case *p.Free*4 < p.Held:
		d.add(statusWarning, subject, detail+": a rolling deploy with a surge of 25 % needs more", "move to a layout with more node numbers, or deploy in smaller steps")
	default:
		d.add(statusOK, subject, detail, "")
	}
	if p.FencedUntil != nil {
		s, remedy := statusWarning, "wait: claims that a standby had not received at the failover expire until then"
		if p.FencedUntil.Sub(d.serverNow()) > longestFence {
			s, remedy = statusProblem, d.sql("the server's clock was ahead when the fence began: correct $s.node_pool.fenced_until by hand, to at least one TTL after the failover")
		}
		d.add(s, subject, fmt.Sprintf("fenced: the server grants no number until %s (%s)", p.FencedUntil, p.FencedUntil.from(d.serverNow())), remedy)
	}
	want := map[string]string{"snowflake": nodelease.ForSnowflake(d.Snowflake).Layout}
	if d.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
		want["snowflake_si"] = nodelease.ForSnowflakeSI(d.SnowflakeSI).Layout
	}
	format, _, _ := strings.Cut(*p.Layout, ":")
	if layout, ok := want[format]; ok && *p.Layout != layout {
		d.add(statusWarning, subject, fmt.Sprintf("has layout %q, but the functions of this database have %q", *p.Layout, layout),
			"use the same layout in all programs, or the functions read wrong times from their IDs")
	}
}

func (d *doctor) checkPartitions(ctx context.Context) error {
	tables, err := managedTables(ctx, d.database, d.Schema)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		d.add(statusOK, "managed tables", "none", "")
	}
	for _, t := range tables {
		for _, check := range []func(context.Context, *managedTable) error{d.checkHorizon, d.checkDefaultPartition, d.checkMaintenance} {
			err := check(ctx, t)
			switch {
			case errors.Is(err, migrations.ErrUntrusted):
				d.add(statusUnknown, t.Table, err.Error(), "connect as the owner of the table")
			case sqlState(err) == insufficientPrivilege:
				d.add(statusUnknown, t.Table, serverError(err).Message, "connect as the owner of the table and of schema "+d.Schema)
			case unreadable(err): // such as bounds that are no IDs
				d.failed(ctx, t.Table, err)
			case err != nil:
				return err
			}
		}
	}
	return nil
}

// checkHorizon checks that partitions exist for the present and the next interval.
func (d *doctor) checkHorizon(ctx context.Context, t *managedTable) error {
	if err := t.readHorizon(ctx, d.database, d.Schema); err != nil {
		return err
	}
	if err := t.readSteps(ctx, d.database, d.Schema); err != nil {
		return err
	}
	remedy := d.sql("run sortkey partitions run regularly, or CALL $s.maintain_partitions()")
	if !t.covered() {
		loss := "inserts fail"
		if t.DefaultPartition != nil {
			loss = "new rows go to the default partition"
		}
		d.add(statusProblem, t.Table, "no partition covers the present: "+loss, remedy)
		return nil
	}
	until := t.Horizon.String()
	if end := t.Horizon.time; !end.IsZero() {
		until = fmt.Sprintf("%s (%s)", end.Format(time.DateTime+" UTC"), distance(end, d.serverNow()))
	}
	detail := fmt.Sprintf("partitions of %s until %s", t.Every, until)
	switch missing := t.Steps["create"]; {
	case !t.ahead:
		d.add(statusProblem, t.Table, detail+", less than one interval ahead", remedy)
	case missing*2 >= t.Premake:
		d.add(statusWarning, t.Table, fmt.Sprintf("%s; %d of %d partitions ahead are missing", detail, missing, t.Premake), remedy)
	default:
		d.add(statusOK, t.Table, detail, "")
	}
	return nil
}

// checkDefaultPartition counts the rows in the default partition.
func (d *doctor) checkDefaultPartition(ctx context.Context, t *managedTable) error {
	if t.DefaultPartition == nil {
		return nil
	}
	rows, err := countRows(ctx, d.database, *t.DefaultPartition, countedRows)
	if err != nil || rows == 0 {
		return err
	}
	if err := t.readSteps(ctx, d.database, d.Schema); err != nil {
		return err
	}
	count := english.Plural(int(rows), "row", "")
	if rows == countedRows {
		count = humanize.Comma(rows) + " rows or more"
	}
	var key string
	if err := readRow(ctx, d, []any{&key}, `SELECT quote_ident(a.attname) FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
		WHERE p.partrelid = $1`, t.OID); err != nil {
		return err
	}
	find := fmt.Sprintf("SELECT %s.%s_time(%s), * FROM %s ORDER BY %[3]s", d.Schema, t.Format, key, *t.DefaultPartition)
	remedy := "run " + find + " to see them. Maintenance doesn't move rows older than the retention: delete them, or move them to another table. It moves later rows when their time comes: if that is far in the future, correct the clock of the program that generated them"
	if t.Steps["drain"] > 0 {
		remedy = "run sortkey partitions run, which moves rows within the retention and the partitions ahead to partitions of their own; if rows remain, run " + find + " to see them"
	}
	d.add(statusWarning, t.Table, fmt.Sprintf("default partition %s has %s outside all other partitions", *t.DefaultPartition, count), remedy)
	return nil
}

// checkMaintenance reads the last run of a table's maintenance in partition_log.
func (d *doctor) checkMaintenance(ctx context.Context, t *managedTable) error {
	var last *time.Time
	var late bool
	var outcome, failure string
	err := readRow(ctx, d, []any{&last, &late, &outcome, &failure}, d.sql(`
		WITH l AS (
			SELECT l.* FROM $s.partition_log l WHERE l.parent_table = $1
		), runs AS (
			SELECT l.ended_at, row_number() OVER (ORDER BY l.ended_at DESC) AS number FROM l WHERE l.action = 'maintain'
		)
		SELECT r.ended_at, coalesce(r.ended_at < clock_timestamp() - greatest($2::text::interval, interval '1 day'), false),
			coalesce(f.outcome, ''), concat(concat_ws(' ', f.action, f.partition), ': ', f.problem)
		FROM (SELECT) x LEFT JOIN runs r ON r.number = 1
			LEFT JOIN LATERAL (
				SELECT * FROM l WHERE l.outcome <> 'done' AND l.ended_at > coalesce((SELECT b.ended_at FROM runs b WHERE b.number = 2), '-infinity')
				ORDER BY l.outcome = 'failed' DESC, l.ended_at DESC LIMIT 1
			) f ON true`), t.Table, t.Every)
	switch {
	case err != nil:
		return err
	case outcome == "failed":
		d.add(statusProblem, t.Table, "the last maintenance of a table with this name failed at step "+failure, "correct the cause, and run sortkey partitions run")
	case outcome != "":
		d.add(statusWarning, t.Table, "the last maintenance of a table with this name skipped step "+failure, "run sortkey partitions run while no long transaction uses the table")
	case late:
		d.add(statusWarning, t.Table, "the last maintenance was "+distance(*last, d.serverNow()), "run sortkey partitions run every hour or so")
	case last != nil:
		d.add(statusOK, t.Table, "the last maintenance was "+distance(*last, d.serverNow()), "")
	}
	return nil
}

// checkRekey lists the incomplete rekeys. Until contract or abort, each INSERT sets both keys.
func (d *doctor) checkRekey(ctx context.Context) error {
	schemas, err := rekey.Schemas(ctx, d.std)
	if err != nil {
		return err
	}
	for _, schema := range schemas {
		s, err := rekey.ReadStatus(ctx, d.std, rekey.Options{Config: d.Config, Schema: schema})
		switch {
		case sqlState(err) == insufficientPrivilege:
			d.add(statusUnknown, schema, serverError(err).Message, "connect as the role that runs sortkey rekey")
			continue
		case errors.Is(err, migrations.ErrUntrusted):
			d.add(statusWarning, schema, strings.TrimPrefix(err.Error(), "rekey: read status: "), "don't run sortkey rekey with this schema, unless you connect as its owner")
			continue
		case err != nil:
			return err
		case s.Step == "":
			continue // it has just ended
		}
		var tables []string
		for _, k := range s.Spec.Keys {
			tables = append(tables, k.Table)
		}
		detail := fmt.Sprintf("keys of %s: the next step is %s, the last change was %s", strings.Join(tables, ", "), s.Next, distance(s.UpdatedAt, d.serverNow()))
		if d.serverNow().Sub(s.UpdatedAt) < longRekey {
			d.add(statusOK, schema, detail, "")
			continue
		}
		flag := ""
		if schema != rekey.DefaultSchema {
			flag = " --views " + schema
		}
		d.add(statusWarning, schema, detail, fmt.Sprintf("run sortkey rekey %s%s, or sortkey rekey abort%[2]s; until then, each INSERT sets both keys", s.Next, flag))
	}
	return nil
}

// checkCitus finds distribution columns of a domain, and workers without a node number.
// Citus routes WHERE id = $1 by the hash of the base type, and then misses the rows of
// such a column.
func (d *doctor) checkCitus(ctx context.Context) error {
	if d.Server.Citus == nil {
		return nil
	}
	type column struct{ Table, Column, Domain, Base string }
	columns, err := collect(ctx, d, pgx.RowToStructByPos[column], `SELECT p.logicalrelid::regclass::text, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), format_type(t.typbasetype, t.typtypmod)
		FROM pg_dist_partition p JOIN pg_attribute a ON a.attrelid = p.logicalrelid AND a.attname = column_to_column_name(p.logicalrelid, p.partkey)
			JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'd'
		WHERE p.partkey IS NOT NULL ORDER BY 1`)
	if err != nil {
		return err
	}
	for _, c := range columns {
		d.add(statusProblem, c.Table, fmt.Sprintf("distribution column %s has domain %s: WHERE %[1]s = $1 misses rows", c.Column, c.Domain),
			fmt.Sprintf("run SELECT undistribute_table('%s'); ALTER TABLE %[1]s ALTER %s TYPE %s; SELECT create_distributed_table('%[1]s', '%[2]s')", c.Table, c.Column, c.Base))
	}
	if len(columns) == 0 {
		d.add(statusOK, "distribution columns", "none has a domain", "")
	}

	type worker struct{ Setting, Host, Database string }
	workers, err := collect(ctx, d, pgx.RowToStructByPos[worker], d.sql(`SELECT '$s.node_' || n.groupid, n.nodename, quote_ident(current_database()) FROM pg_dist_node n
		WHERE n.groupid > 0 AND n.noderole = 'primary' AND n.isactive AND coalesce(current_setting('$s.node_' || n.groupid, true), '') = ''
			AND EXISTS (SELECT FROM $s.node_defaults f WHERE f.from_setting)
		ORDER BY n.groupid`))
	if err != nil {
		return err
	}
	for _, w := range workers {
		d.add(statusWarning, w.Setting, fmt.Sprintf("not set: worker %s has no node number, so defaults fail there", w.Host),
			fmt.Sprintf("reserve a number N, and run ALTER DATABASE %s SET %s = N and SELECT * FROM run_command_on_workers('SELECT %s.prepare_citus_worker()')", w.Database, w.Setting, d.Schema))
	}
	return nil
}

// printReport prints the report as sections of lines, with remedies below problems.
func (c *cli) printReport(r *report) error {
	if c.json() {
		return c.printJSON(r)
	}
	colors := map[status]text.Color{statusOK: text.FgGreen, statusWarning: text.FgYellow, statusProblem: text.FgRed, statusUnknown: text.FgHiBlack}
	width := 0
	if f, ok := file(c.out); ok {
		width, _, _ = term.GetSize(int(f.Fd())) // 0 unless it is a terminal
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", c.paint(text.Bold, "database "+c.printable(r.Server.Database)))
	area := ""
	for _, check := range r.Checks {
		if check.Area != area {
			area = check.Area
			fmt.Fprintf(&b, "\n%s\n", c.paint(text.Bold, area))
		}
		padding := strings.Repeat(" ", len(statusProblem)-len(check.Status))
		fmt.Fprintf(&b, "  %s%s  %s\n", c.paint(colors[check.Status], string(check.Status)), padding, wrap(c.printable(check.Subject+": "+check.Detail), 11, width))
		if check.Remedy != "" {
			fmt.Fprintf(&b, "           → %s\n", wrap(c.printable(check.Remedy), 13, width))
		}
	}
	var counts []string
	for _, s := range []status{statusProblem, statusWarning} {
		if n := r.counts[s]; n > 0 {
			counts = append(counts, english.Plural(n, string(s), ""))
		}
	}
	if n := r.counts[statusUnknown]; n > 0 {
		counts = append(counts, fmt.Sprintf("%d unknown", n))
	}
	fmt.Fprintf(&b, "\n%s\n", cmp.Or(strings.Join(counts, ", "), "no problems"))
	_, err := c.out.Write([]byte(b.String()))
	return err
}

// wrap breaks a text that begins after a margin into lines of a terminal. Width 0 means
// no terminal: other programs read whole lines.
func wrap(s string, margin, width int) string {
	if width < 2*margin {
		return s
	}
	lines := strings.Split(text.WrapSoft(s, width-margin), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", margin))
}
