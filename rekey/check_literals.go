package rekey

import (
	"regexp"
	"slices"
	"strings"
)

// Comparisons of a key with a constant, such as customer_id IN (3, 4, 5), would find other rows, or
// none, by the new keys. Expressions aren't analyzed: what has a constant beside a key is refused
// by name, unless the Spec lists it in Literals.

// literal adds a problem about an object with constants, unless the Spec waives it. It can only be
// waived if the types of the keys stay.
func (m *model) literal(object, reason string, waivable bool) {
	remedy := "drop it and create it again after contract"
	if waivable {
		if slices.Contains(m.literals, object) {
			m.waived = append(m.waived, object)
			return
		}
		remedy += ", or, if it may stay as it is, list \"" + object + "\" under literals"
	}
	m.problem(object, "%s", remedy, reason)
}

// checkLiterals looks for constants beside keys in views and functions, and for waivers that name no
// such object. Checks and indexes come before.
func (m *model) checkLiterals() {
	names := map[string]bool{}
	for _, r := range m.relations {
		for _, c := range r.columns {
			if !c.key.InPlace {
				names[c.Quoted] = true
			}
		}
	}
	for _, v := range m.views {
		if found := besideLiteral(v.Definition, names); found != "" {
			m.literal("view "+v.Name, "has a constant beside a key: "+found, true)
		}
	}
	for _, f := range m.functions {
		if len(m.uses(f)) == 0 && !slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Function == f.OID }) {
			continue
		}
		for _, found := range constant.FindAllStringSubmatch(f.Source, -1) {
			if names[strings.ToLower(found[1])] {
				m.literal("function "+f.Name, "has a constant beside a key: "+strings.Join(strings.Fields(found[0]), " "), true)
				break
			}
		}
	}
	for _, object := range m.literals {
		if !slices.Contains(m.waived, object) {
			m.problem("literals "+object, "names no object with a constant beside a key", "write it as inspect does, such as view public.report, or remove it")
		}
	}
}

// constant finds a comparison of a name with a constant in the text of a function.
var constant = regexp.MustCompile(`([\pL_][\pL\pN_$]*)"?\s*(?:=|<>|!=|<=|>=|<|>|%|\b(?i:NOT\s+)?(?i:IN)\s*\()\s*(?:'[^']*'|-?\d+)`)

// besideLiteral returns an expression of a view that contains a key and a constant, or "". Postgres
// prints each operator with its operands in parentheses. names has the quoted names of the keys, and
// gets the names that the view gives them.
func besideLiteral(query string, names map[string]bool) string {
	list := slices.DeleteFunc(tokens(query), func(t string) bool { return strings.TrimSpace(t) == "" })
	at := func(i int) string {
		if i < 0 || i >= len(list) {
			return ""
		}
		return list[i]
	}
	for i, t := range list {
		if !names[t] || at(i+1) == "." || at(i+1) == "(" {
			continue
		}
		first := i
		for at(first-1) == "." {
			first -= 2
		}
		if at(first-1) == "CASE" {
			return strings.Join(list[first-1:min(i+3, len(list))], " ")
		}
		if at(i+1) == "AS" {
			names[at(i+2)] = true
		}
		// The innermost parentheses around more than the name.
		for low, high := first, i; ; {
			low, high = enclosing(list, low, high)
			if low < 0 || slices.Contains([]string{"SELECT", "WITH", "VALUES"}, at(low+1)) {
				break
			}
			group := list[low : high+1]
			if slices.ContainsFunc(group, isConstant) {
				return strings.Join(group, " ")
			}
			if high-low > i-first+2 {
				break
			}
		}
	}
	return ""
}

// enclosing returns the indexes of the parentheses around a part of a list, or -1.
func enclosing(list []string, low, high int) (int, int) {
	depth := 0
	for low--; low >= 0; low-- {
		switch list[low] {
		case ")":
			depth++
		case "(":
			depth--
		}
		if depth < 0 {
			break
		}
	}
	if low < 0 {
		return -1, -1
	}
	depth = 0
	for high++; high < len(list); high++ {
		switch list[high] {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth < 0 {
			return low, high
		}
	}
	return -1, -1
}

// isConstant reports whether a token is a number or a text.
func isConstant(token string) bool {
	return strings.HasSuffix(token, "'") || token[0] >= '0' && token[0] <= '9'
}
