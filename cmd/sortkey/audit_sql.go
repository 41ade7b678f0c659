package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
)

// smallLimit is above the keys of serial columns, and below almost all IDs.
const smallLimit = 1 << 32

// setChecks sets valid, the condition for IDs, and the checks. known has the known node numbers, or is nil. now is the time by
// the server's clock, and serialUntil the largest key of a serial column.
func (k *auditKey) setChecks(known map[int]bool, serialUntil int64, now time.Time) error {
	f := k.format
	latest := now.Add(time.Second)
	future := "" // IDs that sort by time are compared with the lowest one of the future
	if f.Window != nil {
		low, _, err := f.Window(latest, latest)
		if err != nil {
			return err
		}
		future = fmt.Sprintf("id >= %s AND ", literal(f, low))
	}
	check := func(name, condition string) {
		k.checks = append(k.checks, auditCheck{name: name, condition: condition})
	}
	node := ""
	switch f.Name {
	case "snowflake", "snowflake-si", "uid60":
		last := map[string]int64{"snowflake": math.MaxInt64, "snowflake-si": int64(idtype.MaxSnowflakeSI), "uid60": idtype.MaxUID60}[f.Name]
		first := max(serialUntil+1, smallLimit)
		k.valid = fmt.Sprintf("id BETWEEN %d AND %d", first, last)
		node = fmt.Sprintf("id >> %d & %d", bits.Len(uint(f.Sequences-1)), f.NodeLimit()-1)
		check("malformed", fmt.Sprintf("id NOT BETWEEN 0 AND %d", last))
		check("zero", "id = 0")
		check("small", fmt.Sprintf("id BETWEEN %d AND %d", serialUntil+1, first-1))
	case "spread64":
		k.valid, node = fmt.Sprintf("id & 64512 = 0 AND id NOT BETWEEN 0 AND %d", serialUntil), "id & 1023"
		future = fmt.Sprintf("reverse(substr(id::bit(64)::text, 1, 42))::bit(42)::bigint > %d AND ", latest.UnixMilli())
		check("malformed", fmt.Sprintf("id & 64512 <> 0 AND id NOT BETWEEN 0 AND %d", serialUntil))
		check("zero", "id = 0")
	case "sno": // the 16 digits of the text, from 2 to 9 and from a to x
		const zero, others = "id = '32323232-3232-3232-3232-323232323232'", "btrim(uuid_send(id), '23456789abcdefghijklmnopqrstuvwx')"
		digit := func(n int) string { return fmt.Sprintf("((get_byte(uuid_send(id), %d) - 50) %% 39)", n) }
		k.valid, node = others+" = '' AND NOT "+zero, fmt.Sprintf("((%s & 3) << 14) | (%s << 9) | (%s << 4) | (%s >> 1)", digit(9), digit(10), digit(11), digit(12))
		check("malformed", others+" <> ''")
		check("zero", zero)
	case "uuid7":
		const zero, version, variant = "id = '00000000-0000-0000-0000-000000000000'", "get_byte(uuid_send(id), 6) >> 4", "get_byte(uuid_send(id), 8) >> 6"
		k.valid = version + " = 7 AND " + variant + " = 2"
		check("malformed", variant+" <> 2 AND NOT "+zero)
		check("zero", zero)
		for _, n := range []int{1, 4, 6, 7} {
			check(fmt.Sprint("version_", n), fmt.Sprintf("%s = %d AND %s = 2", version, n, variant))
		}
	}
	check("future", future+k.valid)
	if known != nil {
		numbers := strings.ReplaceAll(strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(known))), "[]"), " ", ",")
		check("unknown_node", fmt.Sprintf("%s AND (%s) <> ALL ('{%s}')", k.valid, node, numbers))
	}
	return nil
}

// setStatements sets the statements, whose column id is the key. They need no installation.
func (k *auditKey) setStatements(o *auditFlags, unique bool) error {
	rows, err := k.rows(o.since, o.until)
	if err != nil {
		return err
	}
	serial, low, high := fmt.Sprintf("id BETWEEN 1 AND %d", o.serialUntil), "min(id)", "max(id)"
	if k.format.Column == "uuid" { // Postgres 18 is the first with min(uuid)
		serial, low, high = "false", `min(id::text COLLATE "C")`, `max(id::text COLLATE "C")`
		if o.serialUntil > 0 {
			return cli.Usagef("--serial-until %d: column %s is of type uuid", o.serialUntil, k)
		}
	}
	results := fmt.Sprintf("count(id) AS rows, count(*) - count(id) AS nulls, count(*) FILTER (WHERE serial) AS serial,\n    %s FILTER (WHERE valid)::text AS first, %s FILTER (WHERE valid)::text AS last", low, high)
	conditions := fmt.Sprintf("%s AS serial,\n        %s AS valid", serial, k.valid)
	for _, c := range k.checks {
		example := map[bool]string{true: high, false: low}[c.name == "small"]
		results += fmt.Sprintf(",\n    count(*) FILTER (WHERE %s) AS %[1]s, %s FILTER (WHERE %[1]s)::text", c.name, example)
		conditions += fmt.Sprintf(",\n        %s AS %s", c.condition, c.name)
	}
	k.counts = fmt.Sprintf("SELECT %s\nFROM (\n    SELECT id, %s\n    FROM %s\n) t", results, conditions, rows)
	if !unique {
		k.duplicates = fmt.Sprintf("SELECT count(*) AS duplicate, %s::text\nFROM (SELECT id, lag(id) OVER (ORDER BY id) AS previous FROM %s) t\nWHERE id = previous", low, rows)
	}
	return nil
}

// rows returns a subquery for the keys of a time window.
func (k *auditKey) rows(since, until time.Time) (string, error) {
	var where string
	if !since.IsZero() || !until.IsZero() {
		if k.format.Window == nil {
			return "", cli.Usagef("type %s: the IDs don't sort by time; omit --since and --until", k.format.Name)
		}
		low, high, err := k.format.Window(since, until)
		if err != nil {
			return "", cli.Usage(err)
		}
		where = fmt.Sprintf(" WHERE %s >= %s", k.column, literal(k.format, low))
		if !until.IsZero() {
			where += fmt.Sprintf(" AND %s < %s", k.column, literal(k.format, high))
		}
	}
	return fmt.Sprintf("(SELECT %s::%s AS id FROM %s%s) t", k.column, k.format.Column, k.table, where), nil
}

// literal returns an ID as a literal of SQL.
func literal(f *ids.Format, id ids.ID) string {
	if f.Column == "uuid" {
		return "'" + ids.ColumnText(id) + "'"
	}
	return ids.ColumnText(id)
}

// runAudit runs the statements.
func (db database) runAudit(ctx context.Context, k *auditKey) (auditResult, error) {
	var r auditResult
	var first, last *string
	duplicate := auditCheck{name: "duplicate"}
	dst := []any{&r.Rows, &r.Nulls, &r.Serial, &first, &last}
	for i := range k.checks {
		dst = append(dst, &k.checks[i].rows, &k.checks[i].example)
	}
	err := cli.Read(ctx, db, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, k.counts).Scan(dst...)
		if err == nil && k.duplicates != "" {
			err = tx.QueryRow(ctx, k.duplicates).Scan(&duplicate.rows, &duplicate.example)
		}
		return err
	})
	if err != nil {
		return r, fmt.Errorf("column %s: %w", k, err)
	}
	r.Table, r.Column, r.Type, r.Hidden = k.table, k.column, k.format.Name, k.hidden
	if p := k.partsOf(first); !p.Time.IsZero() && k.format.Window != nil {
		r.First, r.Last = &ids.Time{Time: p.Time}, &ids.Time{Time: k.partsOf(last).Time}
	}
	for _, c := range append(k.checks, duplicate) {
		if version, is := strings.CutPrefix(c.name, "version_"); is {
			r.Versions = append(r.Versions, auditVersion{version, c.rows})
			continue
		}
		f := auditFinding{Finding: c.name, Count: &c.rows, Example: c.example}
		switch {
		case c.rows == 0:
		case c.name == "small":
			f.Note = "if they are keys of a serial column, pass --serial-until " + *c.example
		case c.name == "unknown_node":
			f.Note = fmt.Sprintf("node %d", k.partsOf(c.example).Node)
		}
		r.Findings = append(r.Findings, f)
	}
	if k.unchecked != "" {
		r.Findings = append(r.Findings, auditFinding{Finding: "unknown_node", Note: "not checked: " + k.unchecked})
	}
	return r, nil
}

// partsOf returns the parts of an ID in the text of its column, or none.
func (k *auditKey) partsOf(text *string) (p ids.Parts) {
	if text == nil {
		return p
	}
	if n, err := strconv.ParseInt(*text, 10, 64); err == nil {
		p, _ = k.format.Parts(k.format.FromInt64(n))
	} else if id, err := k.format.FromUUID(uuid.MustParse(*text)); err == nil {
		p, _ = k.format.Parts(id)
	}
	return p
}
