package main

import (
	"fmt"
	"go/format"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// overrides returns the list overrides of sqlc.yaml.
func (c *catalog) overrides(types string) string {
	var b strings.Builder
	for _, column := range c.columns {
		name := sqlcPattern(column.Table) + "." + sqlcPattern(column.Column)
		if column.Schema != "public" {
			name = sqlcPattern(column.Schema) + "." + name
		}
		goType := types + "." + column.Type
		if column.Nullable {
			goType = fmt.Sprintf("{import: %s, type: %s, pointer: true}", types, column.Type)
		}
		fmt.Fprintf(&b, "- column: %q\n  go_type: %s\n", name, goType) // YAML has the escapes of Go
	}
	return b.String()
}

// sqlcPattern returns the pattern of sqlc for a name. ? stands for a dot, which would divide names, and for
// characters that aren't ASCII, which sqlc compares by the byte.
func sqlcPattern(name string) string {
	name = strings.NewReplacer("*", `\*`, "?", `\?`, `\`, `\\`).Replace(name)
	return regexp.MustCompile(`[.[:^ascii:]]`).ReplaceAllString(name, "?")
}

// gormModels returns a struct per table with the fields of its keys and references, first the fields of the primary key.
func (c *catalog) gormModels(pkg string) ([]byte, error) {
	columns := slices.Clone(c.columns)
	slices.SortStableFunc(columns, func(a, b *catalogColumn) int {
		if a.OID != b.OID {
			return compareColumns(a, b)
		}
		return min(b.Primary, 1) - min(a.Primary, 1)
	})
	var b strings.Builder
	var table uint32
	var used map[string]bool
	for _, column := range columns {
		if column.OID != table {
			if table != 0 {
				b.WriteString("}\n\n")
			}
			table, used = column.OID, map[string]bool{}
			fmt.Fprintf(&b, "// %s has the keys and references of the table %s.\ntype %s struct {\n", column.Model, column.tableName(), column.Model)
		}
		name := addName(used, goName(column.Column, "Column", false), "")
		var tags []string
		if !isGORMName(name, column.Column) {
			tags = append(tags, "column:"+strings.ReplaceAll(column.Column, ";", `\;`))
		}
		if column.Primary > 0 {
			tags = append(tags, "primaryKey")
		}
		pointer := ""
		if column.Nullable {
			pointer = "*"
		}
		fmt.Fprintf(&b, "%s %s%s.%s", name, pointer, pkg, column.Type)
		if tags != nil {
			b.WriteString(" `gorm:" + strings.ReplaceAll(strconv.Quote(strings.Join(tags, ";")), "`", `\x60`) + "`")
		}
		b.WriteString("\n")
	}
	if table != 0 {
		b.WriteString("}\n")
	}
	return format.Source([]byte(b.String()))
}

// isGORMName reports whether GORM finds the column for a field of words with one capital letter each.
func isGORMName(field, column string) bool {
	snake := regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(field, "${1}_$2")
	return regexp.MustCompile(`^([A-Z][a-z]+)*(ID)?$`).MatchString(field) && strings.ToLower(snake) == column
}

// typeScript returns a type per table, and a function that checks its texts.
func (c *catalog) typeScript() string {
	var b strings.Builder
	b.WriteString(`// The keys of the tables, as texts: the ones in JSON. The value of prefix is the
// text before the underscore, if the model in Go declares a prefix.

function check(type: string, text: string, prefix: string, form: RegExp, max?: bigint): string {
  const id = prefix === "" ? text : text.startsWith(prefix + "_") ? text.slice(prefix.length + 1) : "";
  if (!form.test(id) || (max !== undefined && BigInt(id) > max)) {
    throw new TypeError(` + "`parse ${JSON.stringify(text)} as ${type}: malformed${prefix === \"\" ? \"\" : \"; want the prefix \" + prefix}`" + `);
  }
  return text;
}
`)
	for _, column := range c.columns {
		if column.key != column {
			continue
		}
		parameter, text := "text: string", "text"
		if column.Format == "snowflake-si" { // a number in JSON
			parameter, text = "text: string | number", "String(text)"
		}
		fmt.Fprintf(&b, `
// %[1]s is the key of the table %[2]s.
export type %[1]s = string & { readonly __key: "%[1]s" };

// parse%[1]s returns text, or throws a TypeError.
export function parse%[1]s(%[3]s, prefix = ""): %[1]s {
  return check("%[1]s", %[4]s, prefix, %[5]s) as %[1]s;
}
`, column.Type, column.tableName(), parameter, text, textForm(column.Format))
	}
	return b.String()
}

// textForm returns the pattern of the texts of a format in JavaScript, and the largest decimal.
func textForm(name string) string {
	switch name {
	case "snowflake":
		return "/^(0|[1-9][0-9]{0,18})$/, 9223372036854775807n"
	case "snowflake-si":
		return "/^(0|[1-9][0-9]{0,15})$/, 9007199254740991n"
	case "uid60": // without leading zeros, which follow the first two digits, or padded
		return `prefix === "" ? /^[\w-]{2}([\w-]{2}|(?!A)[\w-]{3,7}|[\w-]{8})$/ : /^[\w-]{10}$/`
	case "spread64": // the reserved bits are zero
		return "/^[0-9a-f]{12}0[0-3][0-9a-f]{2}$/"
	case "sno":
		return "/^[2-9a-x]{16}$/"
	default: // a UUID, or a TypeID
		return `prefix === "" ? /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i : /^[0-7][0-9a-hjkmnp-tv-z]{25}$/`
	}
}
