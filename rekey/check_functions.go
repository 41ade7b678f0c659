package rekey

import (
	"regexp"
	"slices"
	"strings"
)

// expandsRow finds all columns of a row, NEW.* or ($1).*, and expandsTable all columns of a query, as
// in SELECT * or o.*, now(). SELECT * INTO fills a variable, which has the columns of the moment.
var (
	expandsRow   = regexp.MustCompile(`(?i)(\b(NEW|OLD)|\))\s*\.\s*\*`)
	expandsTable = regexp.MustCompile(`(?i)\bSELECT\s+\*(\s*INTO\b)?|[\pL\pN_"]\s*\.\s*\*\s*(,|FROM\b)`)
	word         = regexp.MustCompile(`[\pL_][\pL\pN_$]*`)
	call         = regexp.MustCompile(`([\pL_][\pL\pN_$]*)\s*\(`)
)

// The text of a function isn't parsed: a name counts wherever it stands, also in a comment or
// a string, in upper or lower case. So a rule can refuse more than it needs to, but misses
// nothing except for names that a function composes.

// names reports whether the text contains a name as a word.
func (f *function) names(name string) bool {
	if f.words == nil {
		f.text = strings.ReplaceAll(strings.ToLower(f.Source), `"`, "")
		f.words = word.FindAllString(f.text, -1)
	}
	name = strings.ToLower(name)
	if word.FindString(name) != name {
		return strings.Contains(f.text, strings.ReplaceAll(name, `"`, ""))
	}
	return slices.Contains(f.words, name)
}

// calls returns the names before an open parenthesis.
func calls(text string) []string {
	return each(call.FindAllStringSubmatch(strings.ToLower(text), -1), func(s []string) string { return s[1] })
}

// dynamic reports whether the text can run statements that it composes.
func (f *function) dynamic() bool { return f.names("EXECUTE") }

// unquote returns a name as in the catalog.
func unquote(name string) string {
	if strings.HasPrefix(name, `"`) {
		return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(name, `"`), `"`), `""`, `"`)
	}
	return strings.ToLower(name)
}

// A use is a table or a view that a function names.
type use struct {
	relation string // qualified
	bare     bool   // named without a schema, by a function without a search_path
}

// uses returns the tables and views that change and that a function names.
func (m *model) uses(f *function) (list []use) {
	add := func(schema, plain, name string) {
		if f.names(plain) {
			rest := &function{Source: strings.ReplaceAll(f.text, strings.ToLower(schema+"."+plain), "")}
			list = append(list, use{name, !f.Path && rest.names(plain)})
		}
	}
	for _, r := range m.relations {
		add(unquote(r.Schema), r.Plain, r.Name)
	}
	for _, v := range m.views {
		add(unquote(v.schema()), unquote(v.Plain), v.Name)
	}
	return list
}

// called returns a function with the functions that it calls.
func (m *model) called(f *function) []*function {
	list := []*function{f}
	for i := 0; i < len(list); i++ {
		names := calls(list[i].Source)
		for _, g := range m.functions {
			if slices.Contains(names, strings.ToLower(g.Plain)) && !slices.Contains(list, g) {
				list = append(list, g)
			}
		}
	}
	return list
}

// allUses returns the uses of a function and of the functions that it calls.
func (m *model) allUses(f *function) (list []use) {
	for _, g := range m.called(f) {
		for _, u := range m.uses(g) {
			list = append(list, use{u.relation, u.bare && !f.Path})
		}
	}
	return list
}

// expands reports whether the function of a trigger names all columns of a row, or of a query in
// a text that names a table with such rows.
func (m *model) expands(f *function, t *trigger) bool {
	if expandsRow.MatchString(f.Source) {
		return true
	}
	return slices.ContainsFunc(expandsTable.FindAllStringSubmatch(f.Source, -1), func(s []string) bool { return s[1] == "" }) &&
		(f.dynamic() || len(m.uses(f)) > 0 || t.Old != "" && f.names(t.Old) || t.New != "" && f.names(t.New) ||
			slices.ContainsFunc(m.called(f), func(g *function) bool { return g.Rows }))
}

// checkFunctions looks for functions that would work on other rows, or with other columns.
func (m *model) checkFunctions() {
	path := slices.Clone(m.path)
	for _, schema := range m.sessionPath {
		if !slices.Contains(path, schema) {
			path = append(path, schema)
		}
	}
	remedy := func(f *function) string {
		return "run ALTER FUNCTION " + f.Name + " SET search_path = " + strings.Join(path, ", ")
	}
	noted := map[string]bool{}
	problem := func(f *function, t *trigger, reason, remedy string, args ...any) { // once for all triggers
		if !noted[f.Name+reason] {
			m.problem("function "+f.Name+" of trigger "+ident(t.Name), reason, remedy, args...)
		}
		noted[f.Name+reason] = true
	}
	for _, t := range m.triggers {
		r := m.relation(t.Table)
		if name := `"` + t.Name + `"`; t.Before && (name <= firstUpdateTrigger || name >= insertTrigger) {
			m.problem("trigger "+ident(t.Name)+" of "+r.Name, "has a name that sorts before or after the triggers of rekey", "rename it until contract")
		}
		i := slices.IndexFunc(m.functions, func(f *function) bool { return f.OID == t.Function })
		if i < 0 {
			continue
		}
		f := m.functions[i]
		if !f.Owned {
			problem(f, t, "belongs to %s, and you aren't a member of that role", "run rekey as its owner, or give it to the owner of the tables", f.Owner)
		}
		if m.expands(f, t) {
			problem(f, t, "expands a row, such as NEW.*, and the table has more columns until contract", "name the columns, or write NEW without .*")
		}
		if storesRow.MatchString(f.Source) && !noted[f.Name] {
			noted[f.Name] = true
			m.note("function "+f.Name+" of trigger "+ident(t.Name), "stores whole rows as JSON, which have both keys until cleanup", "let its readers ignore keys that begin with rekey_")
		}
		for _, r := range m.relations {
			if insertsByPosition(f.Source, r) {
				problem(f, t, "inserts into %s by position, and the columns have another order after contract", "name the columns", r.Name)
			}
		}
		if f.dynamic() && !f.Path {
			problem(f, t, "has EXECUTE and no search_path, so names could mean views with new keys in programs of the new version", remedy(f))
		}
		var bare []string
		for _, u := range m.allUses(f) {
			if u.bare && !slices.Contains(bare, u.relation) {
				bare = append(bare, u.relation)
			}
		}
		if len(bare) > 0 {
			problem(f, t, "names %s without its schema, which would mean a view with new keys in programs of the new version", remedy(f), strings.Join(bare, ", "))
		}
	}
	for _, f := range m.functions {
		for _, k := range m.moved() {
			if !f.Path && slices.Contains(calls(k.oldExpr), strings.ToLower(f.Plain)) {
				m.problem("function "+f.Name, "chooses old keys of %s, and has no search_path", remedy(f), k.root.rel.Name)
			}
		}
	}
	var names []string
	for _, f := range m.functions {
		if slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Function == f.OID }) {
			continue
		}
		if f.Rows {
			m.note("function "+f.Name, "returns rows of a table, which have more columns until cleanup, and other types after contract", "check that it works with them")
			continue
		}
		for _, r := range m.relations {
			if insertsByPosition(f.Source, r) {
				m.note("function "+f.Name, "inserts into %s by position, and the columns have another order after contract", "name the columns", r.Name)
			}
		}
		if m.namesKey(f) {
			names = append(names, f.Name)
		}
	}
	if len(names) > 0 {
		m.note("functions "+strings.Join(names, ", "), "name tables and their keys", "check that they work with the keys of both versions, and with the new types")
	}
}

// storesRow finds a conversion of the row of a trigger.
var storesRow = regexp.MustCompile(`(?i)\b(to_jsonb?|row_to_json|hstore)\s*\(\s*(NEW|OLD)\b`)

// inserting finds an INSERT without a list of columns.
var inserting = regexp.MustCompile(`(?i)\bINSERT\s+INTO\s+((?:[\pL_][\pL\pN_$]*|"[^"]+")(?:\s*\.\s*(?:[\pL_][\pL\pN_$]*|"[^"]+"))?)\s+(?:AS\s+\S+\s+)?(?:OVERRIDING\s+\S+\s+VALUE\s+)?(?:VALUES|SELECT|TABLE|WITH)\b`)

// insertsByPosition reports whether a text inserts rows of a table without naming the columns.
func insertsByPosition(source string, r *relation) bool {
	return slices.ContainsFunc(inserting.FindAllStringSubmatch(source, -1), func(s []string) bool {
		return unquote(strings.TrimSpace(s[1][strings.LastIndex(s[1], ".")+1:])) == r.Plain
	})
}

// namesKey reports whether a function names a table, or a view, and a column of it that changes.
func (m *model) namesKey(f *function) bool {
	return slices.ContainsFunc(m.uses(f), func(u use) bool {
		return !slices.ContainsFunc(m.relations, func(r *relation) bool { return r.Name == u.relation }) ||
			slices.ContainsFunc(m.relations, func(r *relation) bool {
				return r.Name == u.relation && slices.ContainsFunc(r.columns, func(c *column) bool { return f.names(c.Name) })
			})
	})
}
