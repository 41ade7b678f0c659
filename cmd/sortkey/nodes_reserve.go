package main

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/spf13/cobra"
)

func (c *app) nodesReserveCommand() *cobra.Command {
	var note string
	number := -1
	cmd := installedCommand(&cobra.Command{
		Use:   "reserve POOL [NUMBER]",
		Short: "Reserve a node number permanently",
		Long: `Reserve reserves a node number, so that no program can claim it, and prints how
column defaults use it. Without NUMBER, it chooses the highest number that was
never used, or else the highest one that is free and in no default. Reserving
a number again with the same note changes nothing.

The SQL function reserve_node also reserves a number that a program still holds,
and a number of a pool before the first claim of the program that creates it.`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completePools,
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if len(args) == 2 {
				number, err = parseNumber(args[1])
			}
			return err
		},
	}, func(ctx context.Context, db database, args []string) error {
		r, err := db.reserve(ctx, args[0], number, note)
		if err != nil {
			return err
		}
		return c.printReservation(r)
	}, mayList, mayReserve)
	cmd.Flags().StringVar(&note, "note", "", "`text` that describes the use of the number (default: defaults of DATABASE)")
	return cmd
}

// A reservation is the result of reserve.
type reservation struct {
	Pool    string  `json:"pool"`
	Number  int     `json:"number"`
	Note    string  `json:"note"`
	Default *string `json:"default"` // the expression of defaults; nil if the pool's format is unknown
	Setting *string `json:"setting"` // the statement for defaults without a number
	Already bool    `json:"already"` // reserved before with the same note
}

// reserve reserves a number, or, if number is -1, a number that it chooses.
func (db database) reserve(ctx context.Context, pool string, number int, note string) (reservation, error) {
	r := reservation{Pool: pool, Number: number, Note: note}
	var layout, database string
	var size int
	err := cli.ReadRow(ctx, db, []any{&layout, &size, &database, &r.Note}, db.sql(`SELECT coalesce(p.layout, ''), coalesce(p.size, 0), quote_ident(current_database()), coalesce(nullif($2, ''), 'defaults of ' || current_database())
		FROM (SELECT) x LEFT JOIN $s.node_pool p ON p.name = $1`), pool, note)
	if err != nil {
		return r, err
	}
	f := dbhealth.FormatOf(db.Config, pool, layout)
	if f != nil {
		size = cmp.Or(size, f.Size)
	}
	switch {
	case size == 0 && pool != "snowflake-si":
		return r, cli.Usagef("pool %q doesn't exist; want snowflake, snowflake-si, spread64, spread64-0 to spread64-15, sno, or the pool of a program after its first claim", pool)
	case number < 0 && size == 0:
		return r, cli.Usagef("pool %q doesn't exist yet, and its size is unknown: pass a NUMBER", pool)
	case size > 0 && number >= size:
		return r, outOfRange(pool, number, size)
	}
	// A command conflicts with claims and with concurrent commands. At each conflict,
	// one of them succeeds.
	for range 1000 {
		err = cli.Begin(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			return db.reserveOnce(ctx, tx, &r, number, size)
		})
		if pgerror.State(err) != "40001" { // serialization_failure
			break
		}
	}
	if err == nil && f != nil {
		expression := fmt.Sprintf("%s.next_%s(%d)", db.Schema, f.Name, f.Node(r.Number))
		setting := fmt.Sprintf("ALTER DATABASE %s SET %s.node = %d", database, db.Schema, f.Node(r.Number))
		r.Default, r.Setting = &expression, &setting
	}
	return r, err
}

// A candidate is a number that reserve could reserve.
type candidate struct {
	Argument  int // of reserve_node
	Pool      string
	Number    int
	Note      *string // nil: not reserved
	Holder    *string // nil: not held
	ExpiresAt *dbhealth.Moment
}

// reserveOnce is an attempt of reserve. It fails if another transaction changes the number.
func (db database) reserveOnce(ctx context.Context, tx pgx.Tx, r *reservation, number, size int) error {
	// reserve_node needs a clock that is a second past the mark.
	rows, _ := tx.Query(ctx, db.sql(`
		WITH a AS (
			SELECT n AS argument, CASE WHEN $1 = 'spread64' THEN 'spread64-' || (n & 15) ELSE $1 END AS pool, CASE WHEN $1 = 'spread64' THEN n >> 4 ELSE n END AS number
			FROM generate_series(greatest($2, 0), CASE WHEN $2 < 0 THEN $3 - 1 ELSE $2 END) n
		), d AS MATERIALIZED (
			SELECT d.pool, d.number FROM $s.node_defaults d WHERE $2 < 0
		)
		SELECT a.argument, a.pool, a.number, s.reserved AS note, CASE WHEN s.state = 'held' THEN s.holder END AS holder, `+dbhealth.MomentOf("s.expires_at")+` AS expires_at
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
		return fmt.Errorf("pool %s has no free number among its %d numbers; run %s to see their holders and reservations", r.Pool, size, db.command("nodes list %s", r.Pool))
	}
	a := found[0]
	r.Number, r.Already = a.Argument, a.Note != nil
	if a.Note != nil && *a.Note != r.Note {
		return fmt.Errorf("number %d of pool %s is reserved for %q; choose another number, or omit the number for a free one; or, if nothing uses this one any more, run %s",
			a.Number, a.Pool, *a.Note, db.command("nodes release %s %d", a.Pool, a.Number))
	}
	if a.Holder != nil {
		return fmt.Errorf("number %d of pool %s is held by %q until %s, unless renewed; choose another number, or stop the holder",
			a.Number, a.Pool, *a.Holder, a.ExpiresAt.Stamp())
	}
	_, err = tx.Exec(ctx, db.sql(`SELECT $s.reserve_node($1, $2, $3)`), r.Pool, r.Number, r.Note)
	if m := markAhead.FindStringSubmatch(pgerror.Detail(err)); m != nil {
		ms, _ := strconv.ParseInt(m[1], 10, 64)
		return fmt.Errorf("number %d of pool %s may have been used until %s; run the command again once the server's clock is a second past this time, or choose another number",
			a.Number, a.Pool, stamp(time.UnixMilli(ms)))
	}
	return err
}

// markAhead matches the detail of the error of reserve_node for a number with a high-water mark
// that the clock has not passed.
var markAhead = regexp.MustCompile(`high-water mark of ([0-9]+), and the clock is at`)

func (c *app) printReservation(r reservation) error {
	next := ""
	if r.Setting != nil {
		next = fmt.Sprintf("If the number is for column defaults, and no program has it, pass it to them: DEFAULT %s\nFor defaults without a number, run this statement and reconnect:\n\n  %s;\n", *r.Default, *r.Setting)
	}
	done := fmt.Sprintf("Reserved number %d of pool %s", r.Number, r.Pool)
	if r.Already {
		done = fmt.Sprintf("Number %d of pool %s was reserved already", r.Number, r.Pool)
	}
	return c.Print(r, "%s: %s\n%s", done, cli.Printable(r.Note), next)
}
