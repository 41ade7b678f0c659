package rekey

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

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
	if m.refused(c.String()) {
		return nil
	}
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
		conditions := []string{"t." + c.Quoted + " IS NOT NULL", "NOT EXISTS (SELECT FROM " + table + " p WHERE p." + t.key.root.Quoted + " = " + c.safeValue(t.key) + t.key.root.collate() + ")"}
		if t.where != "" {
			conditions = append(conditions, t.meets("t"))
		}
		remedy := "delete these rows, or set the column to NULL"
		if m.loose(c) {
			remedy += ", and let programs write NULL; if only some rows refer to " + table + ", set where in the reference"
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

// safeValue renders the key that a row t refers to, or NULL if its text is no key.
func (c *column) safeValue(k *key) string {
	value := "t." + c.Quoted
	if baseTypes[c.Base] != baseTypes[k.root.Base] {
		return k.parse(value)
	}
	return value
}
