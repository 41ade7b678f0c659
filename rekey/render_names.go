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

// rigid returns the part of the query of a view that can't mean another relation, or "". That
// is a list of names for columns by position, as in orders o(key, total), and a relation with
// its schema. The maps have the quoted names of the relations.
func rigid(query string, plain, qualified map[string]bool) string {
	list := tokens(query)
	// A group is an open parenthesis.
	type group struct{ query, join bool }
	var groups []group
	named := func(i int) bool { // whether an alias with a list of names follows
		return i+3 < len(list) && strings.TrimSpace(list[i+1]) == "" && namePattern.MatchString(list[i+2]) && list[i+3] == "("
	}
	for i, t := range list {
		switch {
		case t == "(":
			next := ""
			for _, next = range list[i+1:] {
				if strings.TrimSpace(next) != "" {
					break
				}
			}
			groups = append(groups, group{query: slices.Contains([]string{"SELECT", "VALUES", "WITH", "TABLE"}, next)})
		case t == "JOIN" && len(groups) > 0:
			groups[len(groups)-1].join = true
		case t == ")" && len(groups) > 0:
			g := groups[len(groups)-1]
			groups = groups[:len(groups)-1]
			if g.join && !g.query && named(i) {
				return "the names of columns " + list[i+2] + "(…)"
			}
		case plain[t] && i > 1 && list[i-1] == "." && qualified[list[i-2]+"."+t]:
			return "the name " + list[i-2] + "." + t
		case plain[t] && named(i):
			return "the names of columns " + t + " " + list[i+2] + "(…)"
		}
	}
	return ""
}

var namePattern = regexp.MustCompile(`^("|[\pL_])`)
