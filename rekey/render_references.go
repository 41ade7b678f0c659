package rekey

import (
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

// maxOld returns the largest value that fits the types of the old key and of all references to
// it. It is an integer.
func (k *key) maxOld() int64 {
	bits := 63
	for _, c := range k.columns {
		bits = min(bits, map[string]int{"int2": 15, "int4": 31, "int8": 63}[c.Base])
	}
	return int64(1)<<bits - 1
}
