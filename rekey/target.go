package rekey

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A target is a key that a reference refers to.
type target struct {
	key   *key
	where string  // SQL expression for the rows that refer to it; empty for all
	all   bool    // Where is true
	none  *string // the old value for no row
}

// none returns the text of None.
func (r Reference) none() (*string, error) {
	var text string
	switch v := r.None.(type) {
	case nil:
		return nil, nil
	case string:
		text = v
	case float64: // of a file
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case int, int16, int32, int64:
		text = fmt.Sprint(v)
	default:
		return nil, fmt.Errorf("has None of type %T", v)
	}
	return &text, nil
}

// zero returns the new value for no row, which is the zero ID. In place, none stays.
func (t target) zero() string {
	if t.key.InPlace {
		return literal(*t.none)
	}
	return t.key.format.zero
}

// plain reports whether a target is that of all rows and values.
func (t target) plain() bool { return t.where == "" && t.none == nil }

// plain reports whether all values of the column are translated in the same way.
func (c *column) plain() bool {
	return len(c.targets) == 1 && c.targets[0].plain()
}

// conditional reports whether the translation of a value depends on the rest of the row.
func (c *column) conditional() bool {
	return slices.ContainsFunc(c.targets, func(t target) bool { return t.where != "" })
}

// refersTo reports whether a key is the column's own or one that it refers to.
func (c *column) refersTo(k *key) bool {
	return c.key == k || slices.ContainsFunc(c.targets, func(t target) bool { return t.key == k })
}

// meets renders whether a row, such as NEW, meets the condition of a target. In the
// subquery, a name is a column.
func (t target) meets(row string) string {
	return "(SELECT (" + t.where + ") FROM (SELECT " + row + ".*) x)"
}

// choose renders an expression for the target of a row, or for other if the row meets no
// condition.
func (c *column) choose(row, other string, value func(t target) string) string {
	if !c.conditional() {
		return value(c.targets[0])
	}
	var b strings.Builder
	for _, t := range c.targets {
		b.WriteString(" WHEN " + t.meets(row) + " THEN " + value(t))
	}
	return "(CASE" + b.String() + " ELSE " + other + " END)"
}

// newValue renders the new value of a row, by an expression for the key that it refers to.
func (c *column) newValue(row string, key func(t target) string) string {
	old := row + "." + c.Quoted
	return c.choose(row, old+"::"+c.key.format.sqlType, func(t target) string {
		if t.none == nil {
			return key(t)
		}
		return "(CASE WHEN " + old + " = " + literal(*t.none) + " THEN " + t.zero() + " ELSE " + key(t) + " END)"
	})
}

// toNew and toOld render the translation of a row's values by the functions of the job.
func (c *column) toNew(row, schema string) string {
	return c.newValue(row, func(t target) string {
		return t.key.newKey(schema) + "(" + row + "." + c.Quoted + "::" + t.key.argument() + ")"
	})
}

func (c *column) toOld(row, schema string) string {
	fresh := row + "." + c.fresh
	return c.choose(row, fresh+"::"+c.Type, func(t target) string {
		translated := t.key.oldKey(schema) + "(" + fresh + ")"
		if t.none == nil {
			return translated
		}
		return "(CASE WHEN " + fresh + " = " + t.zero() + " THEN " + literal(*t.none) + " ELSE " + translated + " END)"
	})
}

// unset renders whether a row refers to no row by its old value, which can be a default.
func (c *column) unset(row string) string {
	old := row + "." + c.Quoted
	for _, t := range c.targets {
		if t.none != nil {
			return "(" + old + " IS NULL OR " + old + " = " + literal(*t.none) + ")"
		}
	}
	return old + " IS NULL"
}

// redirected renders whether an UPDATE changes the target of a row.
func (c *column) redirected() string {
	if !c.conditional() {
		return "false"
	}
	of := func(row string) string {
		n := 0
		return c.choose(row, "0", func(target) string { n++; return strconv.Itoa(n) })
	}
	return of("OLD") + " <> " + of("NEW")
}

var constant = regexp.MustCompile(`^\(?'?([^']*?)'?\)?(::[\w ]+(\(\d+\))?)?$`)

// defaultZero returns the default of the new column, if the old one's is the value for no row.
func (c *column) defaultZero() string {
	for _, t := range c.targets {
		if match := constant.FindStringSubmatch(c.Default); t.none != nil && match != nil && c.Default != "" && match[1] == *t.none {
			return t.zero()
		}
	}
	return ""
}

// checkTarget looks for targets that can't be told apart or translated.
func (m *model) checkTarget(c *column, t target) {
	if t.where == "" {
		for _, suffix := range []string{"_type", "Type"} {
			other := regexp.MustCompile(`(?i)_?id$`).ReplaceAllString(c.Name, suffix)
			if !t.all && m.loose(c) && other != c.Name && slices.Contains(c.rel.others, ident(other)) {
				m.problem(c.String(), "could refer to several tables, since beside it is "+other, "set where in the reference, such as "+ident(other)+" = '…', or true if all rows refer to "+t.key.root.rel.Name)
			}
		}
		return
	}
	problem := func(reason, remedy string, args ...any) {
		m.problem(c.String(), "has the condition %s, which "+reason, remedy, append([]any{t.where}, args...)...)
	}
	family := baseTypes[c.Base]
	switch reason := checkExpression(t.where); {
	case reason != "":
		problem("%s", "set where to a single expression, without comments, dollar quotes and backslashes", reason)
	case slices.ContainsFunc(tokens(t.where), func(s string) bool { return strings.EqualFold(s, "SELECT") }):
		problem("has a subquery", "use columns of the table alone")
	case foreign(t.where):
		problem("names a schema", "use functions and operators of Postgres alone")
	case m.mentions(c.rel.OID, t.where):
		problem("names a column that changes", "use other columns of the table")
	case slices.ContainsFunc(m.foreignKeys, func(f *foreignKey) bool { return f.To == c.rel.OID && slices.Contains(f.ToColumns, c.Num) }):
		problem("is for a column with foreign keys to it", "drop them, or move the reference to a column of its own")
	case family == "text", family == "uuid" && t.key.format.sqlType != "uuid", family == "integer" && t.key.format.sqlType != "bigint", t.key.format.sqlType != c.key.format.sqlType:
		problem("leaves values of type %s in a column of type %s", "choose a format of the same type, or move the reference to a column of its own", c.Type, c.key.format.sqlType)
	}
}

// checkReferences looks for values of references that aren't keys.
func (m *model) checkReferences(ctx context.Context, db querier, c *column) error {
	one := each(c.targets, func(t target) string { return "CASE WHEN (" + t.where + ") THEN 1 ELSE 0 END" })
	if c.conditional() {
		failure, err := try(ctx, db, "EXPLAIN SELECT "+strings.Join(one, ", ")+" FROM ONLY "+c.rel.Name+" x")
		if err != nil {
			return err
		}
		if failure != nil {
			m.problem(c.String(), "has a condition that fails: %v", "set where to a boolean expression over columns of the table", failure)
			return nil
		}
		var several int64
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM ONLY "+c.rel.Name+" x WHERE "+strings.Join(one, " + ")+" > 1").Scan(&several); err != nil {
			return err
		}
		if several > 0 {
			m.problem(c.String(), "has %d rows that meet several conditions", "make the conditions exclude each other", several)
		}
	}
	valid := slices.ContainsFunc(m.foreignKeys, func(f *foreignKey) bool { return f.Table == c.rel.OID && f.Columns[0] == c.Num && f.Valid })
	for _, t := range c.targets {
		if valid {
			break
		}
		table := t.key.root.rel.Name
		conditions := []string{"t." + c.Quoted + " IS NOT NULL", "NOT EXISTS (SELECT FROM " + table + " p WHERE " + c.equals(t.key, "p", "t") + ")"}
		if t.where != "" {
			conditions = append(conditions, t.meets("t"))
		}
		remedy := "delete these rows, or set the column to NULL"
		if m.loose(c) {
			remedy += "; if the value means no row, set none in the reference; if only some rows refer to " + table + ", set where"
		}
		if t.none != nil {
			none := literal(*t.none) + "::" + c.Type
			failure, err := try(ctx, db, "SELECT 1 / (NOT EXISTS (SELECT FROM "+table+" p WHERE p."+t.key.root.Quoted+" = "+none+t.key.root.collate()+"))::integer")
			if err != nil {
				return err
			}
			if failure != nil {
				reason := failure.Error()
				if sqlState(failure) == "22012" { // division_by_zero
					reason = "it is the key of a row"
				}
				m.problem(c.String(), "can't have the value %q for no row of %s: %s", "correct none", *t.none, table, reason)
				continue
			}
			conditions = append(conditions, "t."+c.Quoted+" <> "+none)
		}
		var dangling int64
		var value *string
		err := db.QueryRowContext(ctx, "SELECT count(*), mode() WITHIN GROUP (ORDER BY t."+c.Quoted+"::text) FROM ONLY "+c.rel.Name+" t WHERE "+strings.Join(conditions, " AND ")).Scan(&dangling, &value)
		if err != nil {
			return err
		}
		if dangling > 0 {
			m.problem(c.String(), "has %d rows that refer to no row of %s, most often with the value %q", remedy, dangling, table, *value)
		}
	}
	return nil
}
