package rekey

import (
	"regexp"
	"slices"
	"strings"
)

// tokens splits a definition that Postgres has printed: strings, names, operators, and
// the space between them.
func tokens(sql string) []string { return tokenPattern.FindAllString(sql, -1) }

var tokenPattern = regexp.MustCompile(`E?'(?:[^']|'')*'|"(?:[^"]|"")*"|[\pL_][\pL\pN_$]*|\pN[\pN.]*|\s+|[<>=!~+*/%&|^#@?:-]+|.`)

// after returns the part of a definition after a keyword and the next end.
func after(sql, keyword, end string) string {
	list := tokens(sql)
	i := slices.Index(list, keyword)
	i += slices.Index(list[i:], end)
	return strings.Join(list[i+1:], "")
}

// rename replaces the names of columns in a definition that Postgres has printed. It
// leaves names of tables, functions and types alone.
func rename(sql string, names map[string]string) string {
	list := tokens(sql)
	for i, t := range list {
		fresh, ok := names[t]
		switch {
		case !ok:
		case i > 0 && (list[i-1] == "." || list[i-1] == "::"): // t is qualified or a type
		case i+1 < len(list) && (list[i+1] == "(" || list[i+1] == "."): // t is a function or a schema
		case i+1 < len(list) && list[i+1] == "=": // t is an option, as in WITH (fillfactor='70')
		default:
			list[i] = fresh
		}
	}
	return strings.Join(list, "")
}

// fitsAnyKey reports whether an expression has the same value with other keys: it only
// compares keys with each other or with NULL. keys maps the names of the columns to their
// keys.
func fitsAnyKey(expression string, keys map[string]*key) bool {
	list := slices.DeleteFunc(tokens(expression), func(t string) bool { return strings.TrimSpace(t) == "" })
	at := func(i int) string {
		if i < 0 || i >= len(list) {
			return ""
		}
		return list[i]
	}
	equality := func(t string) bool { return t == "=" || t == "<>" }
	counted := func(i int) bool { // whether the name is an argument of num_nulls or num_nonnulls
		for i--; at(i) == "," || at(i) != "(" && at(i+1) == ","; i-- {
		}
		return at(i) == "(" && (at(i-1) == "num_nulls" || at(i-1) == "num_nonnulls")
	}
	for i, t := range list {
		k := keys[t]
		if k == nil || at(i+1) == "IS" && (at(i+2) == "NULL" || at(i+2) == "NOT" && at(i+3) == "NULL") ||
			equality(at(i+1)) && keys[at(i+2)] == k || equality(at(i-1)) && keys[at(i-2)] == k || counted(i) {
			continue
		}
		return false
	}
	return true
}
