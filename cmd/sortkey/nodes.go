package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/spf13/cobra"
)

func (c *cli) nodesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List, reserve and release node numbers",
		Long: `Nodes shows and changes the node numbers of a database.

Programs claim numbers from pools, and column defaults use reserved numbers. The
pools of the formats are snowflake, snowflake-si, sno, and spread64-0 to
spread64-15, one per cluster. The name spread64 stands for all pools of
Spread64: its numbers are generator << 4 | cluster.`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if negative.MatchString(err.Error()) {
			return usagef("negative node number: want 0 to 65535")
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	cmd.AddCommand(c.nodesListCommand(), c.nodesShowCommand(), c.nodesReserveCommand(), c.nodesReleaseCommand())
	return cmd
}

func (c *cli) nodesListCommand() *cobra.Command {
	var flags databaseFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "list [POOL]",
		Short: "List pools, or the numbers of a pool",
		Long: `List prints the pools of node numbers, or the numbers of a pool that are held or
reserved or were used before.

The columns of pools:

    HELD      numbers that a program holds
    RESERVED  numbers that no program can claim
    FREE      numbers that a program can claim now
    AHEAD     other numbers, with a high-water mark ahead of the server's clock
    FENCE     the end of the wait after a failover: until then, the server
              grants no number of the pool

The columns of numbers:

    STATE     held, reserved or free
    HOLDER    the program with the claim, or with the number's expired claim
    CLAIMED   the age of the claim
    EXPIRES   the end of the claim, unless the holder renews it
    MARK      the high-water mark: the number may have been used up to this time
    SKEW      MARK minus the server's clock. The mark of a healthy holder is at
              most one TTL ahead. If it is further ahead, the clock of a holder
              was wrong.
    TERM      the number of claims so far
    NOTE      the note of the reservation`,
		Example: `  sortkey nodes list
  sortkey nodes list snowflake
  sortkey nodes list --all --output json`,
		Args: asUsage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return usagef("--all lists the numbers of all pools: omit %s or --all", args[0])
			}
			n, err := openNodes(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			defer n.Close()
			if all || len(args) > 0 {
				err = c.listNumbers(cmd.Context(), n, args)
			} else {
				err = c.listPools(cmd.Context(), n)
			}
			return n.explain(cmd.Context(), err, mayList)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list the numbers of all pools")
	return cmd
}

func (c *cli) nodesShowCommand() *cobra.Command {
	var flags databaseFlags
	cmd := &cobra.Command{
		Use:   "show POOL NUMBER",
		Short: "Show a node number, its holder and its use",
		Long: `Show prints a node number: its holder or reservation, its high-water mark, the
fields that it has in IDs, and the defaults of this database that use it.`,
		Example: `  sortkey nodes show snowflake 7`,
		Args:    asUsage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pool, number, err := parsePoolNumber(args)
			if err != nil {
				return err
			}
			n, err := openNodes(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			defer n.Close()
			node, err := n.node(cmd.Context(), pool, number)
			if err != nil {
				return n.explain(cmd.Context(), err, mayList)
			}
			return c.printNode(node)
		},
	}
	flags.add(cmd)
	return cmd
}

func (c *cli) nodesReserveCommand() *cobra.Command {
	var flags databaseFlags
	var note string
	var whileHeld, newPool bool
	cmd := &cobra.Command{
		Use:   "reserve POOL [NUMBER]",
		Short: "Reserve a node number permanently",
		Long: `Reserve reserves a node number, so that no program can claim it, and prints the
statement that makes it the number of the database's column defaults.

Without NUMBER, reserve chooses a number that nobody holds, reserved or uses in
a default: the highest one that was never used, or else the highest one. Each of
several concurrent commands gets its own number.

If a program holds the number, reserve fails. With --while-held it prevents only
further claims: stop the holder, and run the command again before you use the
number.

POOL is a pool of a format, or one that a program has created under a name of
its own. For such a pool before its first claim, pass --new-pool.`,
		Example: `  sortkey nodes reserve snowflake
  sortkey nodes reserve snowflake 1023 --note 'defaults of shop'`,
		Args: asUsage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			number := -1
			if len(args) == 2 {
				var err error
				if number, err = parseNumber(args[1]); err != nil {
					return err
				}
			} else if whileHeld {
				return usagef("--while-held: want a NUMBER, since reserve chooses only numbers that nobody holds")
			}
			n, err := openNodes(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			defer n.Close()
			r, err := n.reserve(cmd.Context(), args[0], number, note, whileHeld, newPool)
			if err != nil {
				return n.explain(cmd.Context(), err, mayList, mayReserve)
			}
			return c.printReservation(r)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&note, "note", "", "`text` that describes the use of the number (default: defaults of DATABASE)")
	cmd.Flags().BoolVar(&whileHeld, "while-held", false, "reserve a number that a program holds, for the time after its claim")
	cmd.Flags().BoolVar(&newPool, "new-pool", false, "accept a pool that doesn't exist yet, of a program with its own pool name")
	return cmd
}

func (c *cli) nodesReleaseCommand() *cobra.Command {
	var flags databaseFlags
	var usedUntil string
	var force, stillUsed bool
	cmd := &cobra.Command{
		Use:   "release POOL NUMBER",
		Short: "Cancel a reservation, or take a number away from its holder",
		Long: `Release frees a node number. It cancels the reservation of a number that
generates no more IDs. If a default or the setting sortkey.node may use the
number, release fails: change them first, and end the sessions that have used
the number. A session checks its number only once, and continues to use it until
the session ends. Release can't find such sessions, nor calls in triggers and
PL/pgSQL functions. If a program claims the number meanwhile, both can generate
the same IDs. With --still-used, release ignores defaults and the setting, too.

With --force it also takes a number away from the program that holds it. For a
claim this is safe at any time: the holder generates IDs up to its high-water
mark at most, and the next holder starts after it.`,
		Example: `  sortkey nodes release snowflake 1023
  sortkey nodes release snowflake 7 --force`,
		Args: asUsage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pool, number, err := parsePoolNumber(args)
			if err != nil {
				return err
			}
			until := func() (*time.Time, error) {
				if usedUntil == "" {
					return nil, nil
				}
				t, err := c.parseTime(usedUntil)
				if err != nil {
					return nil, usagef("--used-until: %w", err)
				}
				return &t, nil
			}
			if _, err := until(); err != nil {
				return err
			}
			n, err := openNodes(cmd.Context(), &flags)
			if err != nil {
				return err
			}
			defer n.Close()
			// A time such as -1h is by the server's clock, as the default is.
			var now time.Time
			if err := readRow(cmd.Context(), n, []any{&now}, "SELECT clock_timestamp()"); err != nil {
				return err
			}
			c.now = func() time.Time { return now }
			used, err := until()
			if err != nil {
				return err
			}
			r, err := n.release(cmd.Context(), pool, number, used, force, stillUsed)
			if err != nil {
				return err
			}
			return c.printRelease(r)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&force, "force", false, "take the number away from the program that holds it")
	cmd.Flags().BoolVar(&stillUsed, "still-used", false, "cancel a reservation that a default or a setting uses, which can cause duplicate IDs")
	cmd.Flags().StringVar(&usedUntil, "used-until", "", "`time` of the last ID of a reserved number, by the server's clock (default: now)")
	return cmd
}

// parsePoolNumber parses the arguments POOL and NUMBER. A number of pool spread64 is
// one of a cluster's pool, as in the SQL function reserve_node.
func parsePoolNumber(args []string) (pool string, number int, err error) {
	pool = args[0]
	if number, err = parseNumber(args[1]); err != nil {
		return "", 0, err
	}
	if pool == "spread64" {
		pool, number = fmt.Sprintf("spread64-%d", number&15), number>>4
	}
	return pool, number, nil
}

func parseNumber(s string) (int, error) {
	number, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, usagef("node number %q: want 0 to 65535", s)
	}
	return int(number), nil
}

// nodes reads and changes the node numbers of an installation.
type nodes struct {
	database
	migrations.Config
}

// openNodes connects to a database with an installation.
func openNodes(ctx context.Context, f *databaseFlags) (*nodes, error) {
	db, config, err := f.openInstalled(ctx)
	return &nodes{db, config}, err
}

// write runs a statement, with begin, and returns the number of rows.
func (n *nodes) write(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	err = begin(ctx, n, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, n.sql(statement), args...)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// sql replaces $s in a query with the schema.
func (n *nodes) sql(query string) string { return inSchema(n.Schema, query) }

func (n *nodes) explain(ctx context.Context, err error, privileges ...string) error {
	return n.database.explain(ctx, err, n.Schema, privileges...)
}

// The privileges for the tables and functions of node numbers.
const (
	mayList    = "SELECT ON $s.node_pool, $s.node_status"
	mayReserve = "EXECUTE ON FUNCTION $s.reserve_node"
	mayRelease = "EXECUTE ON FUNCTION $s.unreserve_node"
	mayTake    = "SELECT, UPDATE ON $s.node_lease"
)

// A poolStatus is a pool of node numbers.
type poolStatus struct {
	Pool        string   `json:"pool"`
	Size        *int     `json:"size"` // nil until the first claim creates the pool
	Layout      *string  `json:"layout"`
	Held        int      `json:"held"`
	Reserved    int      `json:"reserved"`
	Free        *int     `json:"free"`
	Ahead       int      `json:"ahead"`
	FencedUntil *instant `json:"fenced_until"` // nil: not fenced
}

// An instant is a time of the server. The zero time stands for -infinity, and
// endOfTime for infinity.
type instant struct{ time.Time }

var endOfTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

func (i *instant) Scan(src any) error {
	switch v := src.(type) {
	case time.Time:
		i.Time = v.UTC()
	case string: // infinity or -infinity
		i.Time = time.Time{}
		if v == "infinity" {
			i.Time = endOfTime
		}
	}
	return nil
}

func (i instant) MarshalText() ([]byte, error) {
	switch i.Time {
	case endOfTime:
		return []byte("infinity"), nil
	case time.Time{}:
		return []byte("-infinity"), nil
	}
	return i.Time.MarshalText()
}

// MarshalJSON replaces the one of time.Time.
func (i instant) MarshalJSON() ([]byte, error) {
	text, err := i.MarshalText()
	return []byte(`"` + string(text) + `"`), err
}

// String returns the instant for tables.
func (i instant) String() string {
	if i.Time == endOfTime || i.IsZero() {
		text, _ := i.MarshalText()
		return string(text)
	}
	return stamp(i.Time)
}

// from returns the distance from a time, such as 3 minutes ago.
func (i instant) from(now time.Time) string {
	if i.Time == endOfTime || i.IsZero() {
		return i.String()
	}
	return distance(i.Time, now)
}

// pools returns all pools.
func (n *nodes) pools(ctx context.Context) ([]poolStatus, error) {
	return collect(ctx, n, pgx.RowToStructByName[poolStatus], n.sql(`
		SELECT coalesce(p.name, s.pool) AS pool, p.size, p.layout,
			count(*) FILTER (WHERE s.state = 'held') AS held,
			count(*) FILTER (WHERE s.state = 'reserved') AS reserved,
			p.size - count(*) FILTER (WHERE s.state <> 'free' OR s.mark > clock_timestamp()) AS free,
			count(*) FILTER (WHERE s.state = 'free' AND s.mark > clock_timestamp()) AS ahead,
			CASE WHEN p.fenced_until > clock_timestamp() THEN p.fenced_until END AS fenced_until
		FROM $s.node_pool p FULL JOIN $s.node_status s ON s.pool = p.name
		GROUP BY 1, p.name ORDER BY 1`))
}

// unknownPool returns an error unless the pool exists or has reservations.
func unknownPool(name string, pools []poolStatus) error {
	if len(pools) == 0 {
		return fmt.Errorf("pool %q doesn't exist, and there are no others: the first claim or reservation creates a pool", name)
	}
	var names []string
	for _, p := range pools {
		if p.Pool == name || name == "spread64" && strings.HasPrefix(p.Pool, "spread64-") {
			return nil
		}
		names = append(names, p.Pool)
	}
	return fmt.Errorf("pool %q doesn't exist; the pools are %s", name, strings.Join(names, ", "))
}

// A nodeNumber is a number of a pool.
type nodeNumber struct {
	Pool      string   `json:"pool"`
	Number    int      `json:"number"`
	State     string   `json:"state"` // held, reserved or free
	Holder    *string  `json:"holder"`
	ClaimedAt *instant `json:"claimed_at"` // by the holder, or by the last one
	RenewedAt *instant `json:"renewed_at"`
	ExpiresAt *instant `json:"expires_at"`
	TTL       *float64 `json:"ttl_seconds"`
	Mark      *instant `json:"mark"`         // nil: never used
	Skew      *float64 `json:"skew_seconds"` // Mark minus the server's clock; nil if that is infinite
	Term      int64    `json:"term"`
	Note      *string  `json:"note" db:"reserved"` // nil: not reserved

	// FarAhead is set if the mark is further ahead than the one of a holder whose clock is
	// at most a second ahead.
	FarAhead bool `json:"-"`

	now time.Time // by the server's clock
}

// numbers returns the numbers that are not free or were used: one number of a pool, or
// all if number is -1. Without a pool it returns the numbers of all pools.
func (n *nodes) numbers(ctx context.Context, pool string, number int) ([]nodeNumber, error) {
	numbers, err := collect(ctx, n, pgx.RowToStructByName[nodeNumber], n.sql(`
		SELECT s.pool, s.number, s.state, s.holder, s.claimed_at, s.expires_at - s.ttl AS renewed_at, s.expires_at,
			CASE WHEN s.holder IS NOT NULL THEN extract(epoch FROM s.ttl)::float8 END AS ttl,
			s.mark, CASE WHEN isfinite(s.mark) THEN extract(epoch FROM s.mark - clock_timestamp())::float8 END AS skew, s.term, s.reserved,
			coalesce(s.mark > clock_timestamp() + coalesce(s.ttl, '0') + interval '1 second', false) AS far_ahead
		FROM $s.node_status s
		WHERE $1 IN ('', s.pool, regexp_replace(s.pool, '^spread64-[0-9]+$', 'spread64')) AND $2 IN (-1, s.number)
			AND (s.state <> 'free' OR s.mark IS NOT NULL)
		ORDER BY s.pool, s.number`), pool, number)
	if err != nil {
		return nil, err
	}
	var now time.Time
	err = readRow(ctx, n, []any{&now}, "SELECT clock_timestamp()")
	for i := range numbers {
		numbers[i].now = now
	}
	return numbers, err
}

// A node is a number with its use.
type node struct {
	nodeNumber
	Size     *int           `json:"size"`
	Layout   *string        `json:"layout"`
	Fields   map[string]int `json:"fields"` // of IDs; nil if the layout is unknown
	Defaults []nodeDefault  `json:"defaults"`

	fields  string
	inRange bool
	setting int    // the value of sortkey.node with this number; -1: none
	format  string // of the pool's IDs; "": unknown
}

// outOfRange returns the error of a number that a pool doesn't have.
func outOfRange(pool string, number, size int) error {
	return usagef("number %d of pool %s is out of range; want 0 to %d", number, pool, size-1)
}

// A nodeDefault is a default that uses a number.
type nodeDefault struct {
	Kind        string `json:"kind"` // column, domain or function
	Name        string `json:"name"`
	Expression  string `json:"expression"`
	FromSetting bool   `json:"from_setting"`
}

func (n *nodes) node(ctx context.Context, pool string, number int) (node, error) {
	l := node{setting: -1, nodeNumber: nodeNumber{Pool: pool, Number: number, State: "free"}}
	pools, err := n.pools(ctx)
	if err != nil {
		return l, err
	}
	size, layout := 0, ""
	for _, p := range pools {
		if p.Pool == pool && p.Size != nil { // a claim created the pool
			l.Size, l.Layout = p.Size, p.Layout
			size, layout = *p.Size, *p.Layout
		}
	}
	f := n.formatOf(pool, layout)
	if f != nil {
		size = cmp.Or(size, f.pool.Size)
	}
	l.inRange = size == 0 || number < size
	switch {
	case !l.inRange:
		l.fields = fmt.Sprintf("out of range; want 0 to %d", size-1)
	case f != nil:
		l.setting, l.format = f.node(number), f.Name
		l.Fields, l.fields = f.NodeFields(l.setting)
	}
	found, err := n.numbers(ctx, pool, number)
	switch {
	case err != nil:
		return l, err
	case len(found) > 0:
		l.nodeNumber = found[0]
	case !l.inRange:
		return l, outOfRange(pool, number, size)
	case size > 0: // no program has used the number
	case unknownPool(pool, pools) != nil:
		return l, unknownPool(pool, pools)
	default:
		return l, fmt.Errorf("number %d of pool %s is neither reserved nor held, and no program has claimed a number of this pool", number, pool)
	}
	l.Defaults, err = collect(ctx, n, pgx.RowToStructByName[nodeDefault], n.sql(`
		SELECT d.kind, d.name, d.expression, d.from_setting FROM $s.node_defaults d
		WHERE d.pool = $1 AND d.number = $2 ORDER BY d.kind, d.name`), pool, number)
	return l, err
}

// A poolFormat is the format of a pool's IDs.
type poolFormat struct {
	*ids.Format
	pool nodelease.Pool
	// node returns the node number of a number of the pool, as in the setting sortkey.node.
	node func(number int) int
}

// formatOf returns the format of a pool. Without a layout, since no claim has created
// the pool, the name of the pool determines the format. It returns nil if the format
// is unknown.
func (n *nodes) formatOf(pool, layout string) *poolFormat {
	same := func(number int) int { return number }
	if pool == "spread64" { // the numbers of all clusters
		return &poolFormat{ids.ByName("spread64", ids.Layouts{}), nodelease.Pool{Size: 1 << 10}, same}
	}
	formats := []*poolFormat{{ids.ByName("snowflake", ids.Layouts{Snowflake: n.Snowflake}), nodelease.ForSnowflake(n.Snowflake), same}, {ids.ByName("sno", ids.Layouts{}), nodelease.ForSno(), same}}
	if n.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
		formats = append(formats, &poolFormat{ids.ByName("snowflake-si", ids.Layouts{SnowflakeSI: n.SnowflakeSI}), nodelease.ForSnowflakeSI(n.SnowflakeSI), same})
	}
	for cluster := range 16 {
		formats = append(formats, &poolFormat{ids.ByName("spread64", ids.Layouts{}), nodelease.ForSpread64(cluster), func(number int) int { return number<<4 | cluster }})
	}
	for _, f := range formats {
		if layout == f.pool.Layout || layout == "" && pool == f.pool.Name {
			return f
		}
	}
	return nil
}

// A reservation is the result of reserve.
type reservation struct {
	Pool    string  `json:"pool"`
	Number  int     `json:"number"`
	Note    string  `json:"note"`
	Holder  *string `json:"holder"`  // with --while-held: the program that still holds the number
	Setting *string `json:"setting"` // the statement for defaults; nil if the pool's format is unknown
}

// reserve reserves a number, or, if number is -1, a number that it chooses.
func (n *nodes) reserve(ctx context.Context, pool string, number int, note string, whileHeld, newPool bool) (reservation, error) {
	r := reservation{Pool: pool, Number: number, Note: note}
	var layout, database string
	var size int
	err := readRow(ctx, n, []any{&layout, &size, &database, &r.Note}, n.sql(`SELECT coalesce(p.layout, ''), coalesce(p.size, 0), quote_ident(current_database()), coalesce(nullif($2, ''), 'defaults of ' || current_database())
		FROM (SELECT) x LEFT JOIN $s.node_pool p ON p.name = $1`), pool, note)
	if err != nil {
		return r, err
	}
	f := n.formatOf(pool, layout)
	if f != nil {
		size = cmp.Or(size, f.pool.Size)
	}
	switch {
	case size == 0 && !newPool && pool != "snowflake-si":
		return r, usagef("pool %q doesn't exist; want %sone of %s, or pass --new-pool for the pool of a program that has not claimed a number yet",
			pool, similarPool(pool), strings.Join(formatPools, ", "))
	case number < 0 && size == 0:
		return r, usagef("pool %q doesn't exist yet, and its size is unknown: pass a NUMBER", pool)
	case size > 0 && number >= size:
		return r, outOfRange(pool, number, size)
	}
	// A command conflicts with claims and with concurrent commands. At each conflict,
	// one of them succeeds.
	for range 1000 {
		err = begin(ctx, n, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			return n.reserveOnce(ctx, tx, &r, number, size, whileHeld)
		})
		if sqlState(err) != "40001" { // serialization_failure
			break
		}
	}
	if err == nil && f != nil {
		setting := fmt.Sprintf("ALTER DATABASE %s SET %s.node = %d", database, n.Schema, f.node(r.Number))
		r.Setting = &setting
	}
	return r, err
}

// formatPools are the pools of the formats.
var formatPools = []string{"snowflake", "snowflake-si", "spread64", "spread64-0 to spread64-15", "sno"}

// similarPool returns a suggestion for a misspelled pool of a format, or "".
func similarPool(pool string) string {
	pool = strings.ReplaceAll(pool, "_", "-")
	for _, name := range formatPools {
		if pool == name || pool == name+"s" {
			return name + ", or "
		}
	}
	return ""
}

// A candidate is a number that reserve could reserve.
type candidate struct {
	Argument  int // of reserve_node
	Pool      string
	Number    int
	Holder    *string // nil: not held
	ExpiresAt *instant
}

// reserveOnce is an attempt of reserve. It fails if another transaction changes the number.
func (n *nodes) reserveOnce(ctx context.Context, tx pgx.Tx, r *reservation, number, size int, whileHeld bool) error {
	// reserve_node needs a clock that is a second past the mark.
	rows, _ := tx.Query(ctx, n.sql(`
		WITH a AS (
			SELECT n AS argument, CASE WHEN $1 = 'spread64' THEN 'spread64-' || (n & 15) ELSE $1 END AS pool, CASE WHEN $1 = 'spread64' THEN n >> 4 ELSE n END AS number
			FROM generate_series(greatest($2, 0), CASE WHEN $2 < 0 THEN $3 - 1 ELSE $2 END) n
		), d AS MATERIALIZED (
			SELECT d.pool, d.number FROM $s.node_defaults d WHERE $2 < 0
		)
		SELECT a.argument, a.pool, a.number, CASE WHEN s.state = 'held' THEN s.holder END AS holder, s.expires_at
		FROM a LEFT JOIN $s.node_status s ON s.pool = a.pool AND s.number = a.number
		WHERE $2 >= 0 OR coalesce(s.state, 'free') = 'free' AND s.holder IS NULL
			AND coalesce(s.mark < clock_timestamp() - interval '2 seconds', true)
			AND NOT EXISTS (SELECT FROM d WHERE d.pool = a.pool AND d.number = a.number)
		ORDER BY s.mark IS NOT NULL, a.argument DESC LIMIT 1`), r.Pool, number, size)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[candidate])
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("pool %s has no free number among its %d numbers; run sortkey nodes list %[1]s to see their holders and reservations", r.Pool, size)
	}
	a := found[0]
	r.Number, r.Holder = a.Argument, a.Holder
	if a.Holder != nil && !whileHeld {
		return fmt.Errorf("number %d of pool %s is held by %q until %s, unless renewed; choose another number, or pass --while-held, stop the holder, and run the command again",
			a.Number, a.Pool, *a.Holder, a.ExpiresAt)
	}
	_, err = tx.Exec(ctx, n.sql(`SELECT $s.reserve_node($1, $2, $3, $4)`), r.Pool, r.Number, r.Note, whileHeld)
	if m := markAhead.FindStringSubmatch(serverError(err).Message); m != nil {
		ms, _ := strconv.ParseInt(m[1], 10, 64)
		return fmt.Errorf("number %d of pool %s may have been used until %s; run the command again once the server's clock is a second past this time, or choose another number",
			a.Number, a.Pool, stamp(time.UnixMilli(ms)))
	}
	return err
}

// markAhead matches the message of reserve_node for a number with a high-water mark
// that the clock has not passed.
var markAhead = regexp.MustCompile(`high-water mark of ([0-9]+), and the clock is at`)

// A release is the result of release.
type release struct {
	Pool     string   `json:"pool"`
	Number   int      `json:"number"`
	Released string   `json:"released"` // reservation or claim
	Holder   *string  `json:"holder"`   // the former holder
	Note     *string  `json:"note"`     // the former note
	Mark     *instant `json:"mark"`
}

// release frees a number. used is the time of the last ID of a reserved number, or nil
// for the present.
func (n *nodes) release(ctx context.Context, pool string, number int, used *time.Time, force, stillUsed bool) (release, error) {
	r := release{Pool: pool, Number: number}
	l, err := n.node(ctx, pool, number)
	if err != nil {
		return r, n.explain(ctx, err, mayList)
	}
	r.Holder, r.Note = l.Holder, l.Note
	switch {
	case l.Holder == nil && l.Note == nil:
		return r, fmt.Errorf("number %d of pool %s is free already", number, pool)
	case l.Holder != nil && !force:
		until := "its claim has expired, but it can renew the claim"
		if l.State == "held" {
			until = "until " + l.ExpiresAt.String() + ", unless renewed"
		}
		return r, fmt.Errorf("number %d of pool %s is held by %q (%s); stop the holder, or pass --force to take the number away", number, pool, *l.Holder, until)
	}
	if l.Note != nil && l.inRange && !stillUsed {
		if err := n.refuseUsed(ctx, l); err != nil {
			return r, err
		}
	}
	if l.Note != nil {
		// It also ends a claim, and keeps the mark of the holder.
		r.Released = "reservation"
		if _, err := n.write(ctx, `SELECT $s.unreserve_node($1, $2, $3)`, pool, number, used); err != nil {
			return r, n.explain(ctx, err, mayList, mayRelease)
		}
	} else {
		r.Released = "claim"
		// The term excludes the claim of a later holder, which the user hasn't seen.
		taken, err := n.write(ctx, `UPDATE $s.node_lease SET holder = NULL, expires_at = NULL
			WHERE pool = $1 AND number = $2 AND term = $3 AND holder IS NOT NULL`, pool, number, l.Term)
		if err != nil {
			return r, n.explain(ctx, err, mayList, mayTake)
		}
		if taken == 0 {
			return r, fmt.Errorf("number %d of pool %s has changed hands in the meantime; run sortkey nodes show %[2]s %[1]d", number, pool)
		}
	}
	err = readRow(ctx, n, []any{&r.Mark}, n.sql(`SELECT s.mark FROM $s.node_status s WHERE s.pool = $1 AND s.number = $2`), pool, number)
	return r, err
}

// refuseUsed returns an error if a default or a setting may use a reserved number.
func (n *nodes) refuseUsed(ctx context.Context, l node) error {
	var uses, remedies []string
	if len(l.Defaults) > 0 {
		d := l.Defaults[0]
		more := ""
		if len(l.Defaults) > 1 {
			more = fmt.Sprintf(" and %d more", len(l.Defaults)-1)
		}
		uses = append(uses, fmt.Sprintf("%s %s (default %s)%s", d.Kind, d.Name, d.Expression, more))
		if !d.FromSetting {
			remedies = append(remedies, "change the default")
		}
	}
	opaque, err := collect(ctx, n, pgx.RowTo[string], n.sql(`
		SELECT format('%s %s (default %s)', d.kind, d.name, d.expression) FROM $s.node_defaults d
		WHERE d.number IS NULL AND NOT d.from_setting AND d.format = $1 ORDER BY 1 LIMIT 1`), strings.ReplaceAll(l.format, "-", "_"))
	if err != nil {
		return err
	}
	if len(opaque) > 0 {
		uses = append(uses, opaque[0]+", whose number is no literal")
		remedies = append(remedies, "pass a literal in that default")
	}
	// The workers of a Citus cluster have settings of their own.
	settings, err := collect(ctx, n, pgx.RowTo[string], n.sql(`
		SELECT 'ALTER ' || CASE
			WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ROLE ALL' WHEN s.setrole = 0 THEN format('DATABASE %I', current_database())
			WHEN s.setdatabase = 0 THEN format('ROLE %I', pg_get_userbyid(s.setrole)) ELSE format('ROLE %I IN DATABASE %I', pg_get_userbyid(s.setrole), current_database()) END
			|| ' RESET ' || split_part(c, '=', 1)
		FROM pg_db_role_setting s, unnest(s.setconfig) c
		WHERE s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
			AND c ~* ('^$s\.node(_[0-9]+)?=' || $1 || '$')
		ORDER BY 1`), strconv.Itoa(l.setting))
	if err != nil {
		return err
	}
	var session string
	if err := readRow(ctx, n, []any{&session}, "SELECT coalesce(current_setting($1, true), '')", n.Schema+".node"); err != nil {
		return err
	}
	if len(settings) > 0 || session == strconv.Itoa(l.setting) {
		uses = append(uses, fmt.Sprintf("the setting %s.node", n.Schema))
	}
	if len(settings) > 0 {
		remedies = append(remedies, "run "+strings.Join(settings, "; "))
	} else if session == strconv.Itoa(l.setting) {
		remedies = append(remedies, fmt.Sprintf("remove the setting %s.node from the connection strings and the server's configuration", n.Schema))
	}
	if len(uses) == 0 {
		return nil
	}
	return fmt.Errorf("number %d of pool %s is reserved, and may be used by %s; first %s, and end the sessions that have used the number; or pass --still-used if you know that no session uses it",
		l.Number, l.Pool, strings.Join(uses, " and by "), strings.Join(remedies, ", "))
}

func (c *cli) listPools(ctx context.Context, n *nodes) error {
	pools, err := n.pools(ctx)
	if err != nil {
		return err
	}
	header := table.Row{"Pool", "Size", "Held", "Reserved", "Free", "Ahead", "Fence", "Layout"}
	return printRows(c, pools, header, func(p poolStatus) table.Row {
		var fence, layout any = "", "(not used yet)"
		if p.FencedUntil != nil {
			fence = p.FencedUntil
		}
		if p.Layout != nil {
			layout = *p.Layout
		}
		return table.Row{p.Pool, cell(p.Size), p.Held, p.Reserved, cell(p.Free), p.Ahead, fence, layout}
	})
}

// listNumbers prints the numbers of the pool in args, or of all pools.
func (c *cli) listNumbers(ctx context.Context, n *nodes, args []string) error {
	pool := ""
	if len(args) > 0 {
		pool = args[0]
		pools, err := n.pools(ctx)
		if err != nil {
			return err
		}
		if err := unknownPool(pool, pools); err != nil {
			return err
		}
	}
	numbers, err := n.numbers(ctx, pool, -1)
	if err != nil {
		return err
	}
	header := table.Row{"Pool", "Number", "State", "Holder", "Claimed", "Expires", "Mark", "Skew", "Term", "Note"}
	return printRows(c, numbers, header, func(l nodeNumber) table.Row {
		var claimed, expires, mark, skew string
		if l.Holder != nil && l.ClaimedAt != nil {
			claimed = l.ClaimedAt.from(l.now)
		}
		if l.Holder != nil && l.ExpiresAt != nil {
			expires = l.ExpiresAt.from(l.now)
		}
		if l.Mark != nil {
			mark, skew = l.Mark.String(), l.skew()
		}
		if l.FarAhead {
			skew = c.paint(text.FgYellow, skew)
		}
		return table.Row{l.Pool, l.Number, l.State, cell(l.Holder), claimed, expires, mark, skew, l.Term, cell(l.Note)}
	})
}

// skew returns Skew with a sign, as +27s or -3d.
func (l *nodeNumber) skew() string {
	d := l.Mark.Sub(l.now)
	switch {
	case l.Skew == nil:
		return l.Mark.String()
	case d.Abs() >= 48*time.Hour:
		return fmt.Sprintf("%+dd", int(d.Hours()/24))
	case d.Abs() >= time.Minute:
		d = d.Round(time.Second)
	default:
		d = d.Round(100 * time.Millisecond)
	}
	if d >= 0 {
		return "+" + d.String()
	}
	return d.String()
}

func (c *cli) printNode(l node) error {
	if c.json() {
		return c.printJSON(l)
	}
	var rows []table.Row
	add := func(label string, value any) { rows = append(rows, table.Row{label, value}) }
	at := func(label string, t *instant) {
		if t != nil {
			add(label, fmt.Sprintf("%s (%s)", t, t.from(l.now)))
		}
	}
	if l.Size != nil {
		add("Pool", fmt.Sprintf("%s (%d numbers)", l.Pool, *l.Size))
		add("Layout", *l.Layout)
	} else {
		add("Pool", l.Pool)
	}
	add("Number", l.Number)
	if l.fields != "" {
		add("In IDs", l.fields)
	}
	add("State", l.State)
	if l.Note != nil {
		add("Reserved for", *l.Note)
	}
	if l.Holder != nil {
		add("Holder", *l.Holder)
		if l.TTL != nil {
			add("TTL", time.Duration(*l.TTL*float64(time.Second)))
		}
		at("Claimed", l.ClaimedAt)
		at("Renewed", l.RenewedAt)
		at("Expires", l.ExpiresAt)
	}
	if l.Mark != nil {
		add("High-water mark", fmt.Sprintf("%s (%s)", l.Mark, l.skew()))
	} else {
		add("High-water mark", "never used by a program")
	}
	add("Claims so far", l.Term)
	label := "Used by"
	const shown = 10 // each partition has its own default
	for i, d := range l.Defaults {
		if i == shown {
			add("", fmt.Sprintf("(and %d more)", len(l.Defaults)-shown))
			break
		}
		add(label, fmt.Sprintf("%s %s, default %s", d.Kind, d.Name, d.Expression))
		label = ""
	}
	return c.printBlock(rows)
}

func (c *cli) printReservation(r reservation) error {
	if c.json() {
		return c.printJSON(r)
	}
	out := fmt.Sprintf("Reserved number %d of pool %s: %s\n", r.Number, r.Pool, c.printable(r.Note))
	switch {
	case r.Holder != nil:
		out += c.printable(*r.Holder) + " still holds it. Stop this program, and run the command again before you use the number.\n"
	case r.Setting != nil:
		out += "For column defaults, run this statement and reconnect:\n\n  " + *r.Setting + ";\n"
	}
	_, err := fmt.Fprint(c.out, out)
	return err
}

func (c *cli) printRelease(r release) error {
	if c.json() {
		return c.printJSON(r)
	}
	done, sessions := fmt.Sprintf("Took number %d of pool %s away from %s", r.Number, r.Pool, c.printable(fmt.Sprint(cell(r.Holder)))), ""
	if r.Released == "reservation" {
		done = fmt.Sprintf("Released number %d of pool %s: %s", r.Number, r.Pool, c.printable(fmt.Sprint(cell(r.Note))))
		sessions = "Sessions that have used the number can still use it until they end.\n"
	}
	_, err := fmt.Fprintf(c.out, "%s. Programs can claim it after its high-water mark, %s.\n%s", done, r.Mark, sessions)
	return err
}
