package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/internal/dbhealth"
)

// A node is a number with its use.
type node struct {
	dbhealth.Number
	Size     *int           `json:"size"`
	Layout   *string        `json:"layout"`
	Fields   map[string]int `json:"fields"` // of IDs; nil if the layout is unknown
	Defaults []nodeDefault  `json:"defaults"`

	fields  string
	inRange bool
	setting int    // the value of sortkey.node with this number; -1: none
	format  string // of the pool's IDs, as in SQL; "": unknown
}

// A nodeDefault is a default that uses a number.
type nodeDefault struct {
	Kind        string `json:"kind"` // column, domain or function
	Name        string `json:"name"`
	Expression  string `json:"expression"`
	FromSetting bool   `json:"from_setting"`
}

func (db database) node(ctx context.Context, pool string, number int) (node, error) {
	health := db.poolHealth()
	l := node{setting: -1, Number: dbhealth.Number{Pool: pool, Number: number, State: "free"}}
	pools, err := health.Pools(ctx)
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
	f := dbhealth.FormatOf(db.Config, pool, layout)
	if f != nil {
		size = cmp.Or(size, f.Size)
	}
	l.inRange = size == 0 || number < size
	switch {
	case !l.inRange:
		l.fields = fmt.Sprintf("out of range; want 0 to %d", size-1)
	case f != nil:
		l.setting, l.format = f.Node(number), f.Name
		layouts := ids.Layouts{Snowflake: db.Snowflake, SnowflakeSI: db.SnowflakeSI}
		l.Fields, l.fields = ids.ByName(strings.ReplaceAll(f.Name, "_", "-"), layouts).NodeFields(l.setting)
	}
	found, err := health.Numbers(ctx, pool, number)
	switch {
	case err != nil:
		return l, err
	case len(found) > 0:
		l.Number = found[0]
	case !l.inRange:
		return l, outOfRange(pool, number, size)
	case size > 0: // no program has used the number
	case unknownPool(pool, pools) != nil:
		return l, unknownPool(pool, pools)
	default:
		return l, fmt.Errorf("number %d of pool %s is neither reserved nor held, and no program has claimed a number of this pool", number, pool)
	}
	l.Defaults, err = cli.Collect(ctx, db, pgx.RowToStructByName[nodeDefault], db.sql(`
		SELECT d.kind, d.name, d.expression, d.from_setting FROM $s.node_defaults d
		WHERE d.pool = $1 AND d.number = $2 ORDER BY d.kind, d.name`), pool, number)
	return l, err
}

// listNumber prints a number as in the list of its pool, and below it its fields in IDs and the defaults that use it.
func (c *app) listNumber(ctx context.Context, db database, pool string, number int) error {
	l, err := db.node(ctx, pool, number)
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.PrintJSON(l)
	}
	if err := c.printNumbers([]dbhealth.Number{l.Number}); err != nil {
		return err
	}
	lines := ""
	if l.fields != "" {
		lines = "\nin IDs: " + l.fields + "\n"
	}
	const shown = 10 // each partition has its own default
	for i, d := range l.Defaults {
		if i == shown {
			lines += fmt.Sprintf("(and %d more)\n", len(l.Defaults)-shown)
			break
		}
		lines += fmt.Sprintf("used by %s %s, default %s\n", d.Kind, cli.Printable(d.Name), cli.Printable(d.Expression))
	}
	return c.note("%s", lines)
}
