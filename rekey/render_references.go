package rekey

import (
	"slices"
	"strconv"
	"strings"
)

// A target is a key that a reference refers to.
type target struct {
	key   *key
	where string // SQL expression for the rows that refer to it; empty for all
	all   bool   // Where is true
}

// plain reports whether all values of the column are translated in the same way.
func (c *column) plain() bool {
	return len(c.targets) == 1 && !c.conditional()
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
	return c.choose(row, row+"."+c.old()+"::"+c.key.format.sqlType, key)
}

// value renders the old key that a reference has in a row, as a value of the key's type.
func (c *column) value(k *key, row string) string {
	value := row + "." + c.old()
	if baseTypes[c.Base] != baseTypes[k.root.Base] {
		value += "::" + k.argument()
	}
	return value
}

// toNew and toOld render the translation of a row's values by the functions of the job.
func (c *column) toNew(row string) string {
	return c.newValue(row, func(t target) string {
		return t.key.newKey() + "(" + row + "." + c.old() + "::" + t.key.argument() + ")"
	})
}

func (c *column) toOld(row string) string {
	return c.choose(row, row+"."+c.new()+"::"+c.Type, func(t target) string {
		return t.key.oldKey() + "(" + row + "." + c.new() + ")"
	})
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

// maxOld returns the largest value that fits the types of the old key and of all references to
// it. It is an integer.
func (k *key) maxOld() int64 {
	bits := 63
	for _, c := range k.columns {
		switch c.Base {
		case "int2":
			bits = min(bits, 15)
		case "int4":
			bits = min(bits, 31)
		}
	}
	return int64(1)<<bits - 1
}
