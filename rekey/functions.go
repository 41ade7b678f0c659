package rekey

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// A trigger is a trigger of the user on a table.
type trigger struct {
	Table    int64
	Name     string // without quotes
	Function int64
	Before   bool // BEFORE INSERT OR UPDATE … FOR EACH ROW
	// Old and New are the names of transition tables.
	Old, New string
}

// A function is a function of the user in a language that the server doesn't analyze. Its text
// can name tables, which are other relations in programs of the new version.
type function struct {
	OID     int64
	Name    string // with its argument types
	Plain   string // without schema
	Source  string
	Owner   string // quoted
	Owned   bool   // the role may change it
	Path    bool   // it has a search_path of its own
	Definer bool   // SECURITY DEFINER
	names   *text
	Rows    bool // it returns rows of a table that changes
}

// readFunctions reads the triggers, and the functions that they might call.
func (m *model) readFunctions(ctx context.Context, db querier, tables string) error {
	err := readJSON(ctx, db, &m.triggers, rows(`SELECT t.tgrelid::bigint AS "Table", t.tgname AS "Name", t.tgfoid::bigint AS "Function", t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0 AND t.tgenabled IN ('O', 'A') AS "Before",
		coalesce(t.tgoldtable, '') AS "Old", coalesce(t.tgnewtable, '') AS "New"
		FROM pg_catalog.pg_trigger t WHERE t.tgrelid = ANY ($1::text::oid[]) AND NOT t.tgisinternal AND t.tgname !~ '`+ownTriggers+`' ORDER BY 1, 2`), tables)
	if err != nil {
		return err
	}
	return readJSON(ctx, db, &m.functions, rows(`SELECT p.oid::bigint AS "OID", p.oid::regprocedure::text AS "Name", p.proname AS "Plain", p.prosrc AS "Source",
		pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(p.proowner)) AS "Owner", pg_catalog.pg_has_role(p.proowner, 'USAGE') AS "Owned", p.prosecdef AS "Definer",
		EXISTS (SELECT FROM pg_catalog.unnest(p.proconfig) s WHERE pg_catalog.starts_with(s, 'search_path=')) AS "Path",
		EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid = p.prorettype AND t.typrelid = ANY ($1::text::oid[])) AS "Rows"
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) AND p.pronamespace::regnamespace::text <> ALL ($2::text::text[]) AND l.lanname NOT IN ('c', 'internal') AND p.prosqlbody IS NULL AND p.prokind <> 'a'
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
		ORDER BY 2`), tables, pgArray(m.own))
}

var (
	// sourcePattern splits the text of a function: comments, strings, names and other characters.
	sourcePattern = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\pL_][\pL\pN_$]*|\S`)
	// comparedRows and message are harmless uses of rows and names.
	comparedRows = regexp.MustCompile(`(?i)\(?\b(NEW|OLD)\s*\.\s*\*\s*\)?\s*(=|<>|!=|IS\s+(NOT\s+)?DISTINCT\s+FROM)\s*\(?\s*(NEW|OLD)\s*\.\s*\*`)
	rowArgument  = regexp.MustCompile(`(?i)\b(\w+)\s*\(\s*(NEW|OLD)\s*\.\s*\*\s*\)`) // as in to_jsonb(NEW.*)
	message      = regexp.MustCompile(`(?i)\bRAISE\s+(\w+\s+)?'(?:[^']|'')*'`)
	// wholeRow finds all columns of a row: NEW.* or ($1).*.
	wholeRow = regexp.MustCompile(`(?i)\b(NEW|OLD)\s*\.\s*\*|\)\s*\.\s*\*`)
	// copiedRows finds statements that copy all columns of tables, such as INSERT INTO t SELECT *
	// FROM u, and allRows the queries of all columns.
	copiedRows = regexp.MustCompile(`(?i)\b(INSERT\s+INTO|CREATE)\s[^;]*?(\bSELECT\s+|[\pL\pN_"]\s*\.\s*)\*[^;]*`)
	allRows    = regexp.MustCompile(`(?i)\bSELECT\s+\*[^;]*`)
)

// expandsRows reports whether a function names all columns of a row, which has more columns
// until contract. changes reports whether a statement names a table with such rows.
func expandsRows(source string, transition bool, changes func(statement string) bool) bool {
	source = rowArgument.ReplaceAllStringFunc(comparedRows.ReplaceAllString(source, ""), func(s string) string {
		if name := rowArgument.FindStringSubmatch(s)[1]; strings.EqualFold(name, "VALUES") {
			return s
		}
		return ""
	})
	return wholeRow.MatchString(source) || slices.ContainsFunc(copiedRows.FindAllString(source, -1), changes) ||
		transition && slices.ContainsFunc(allRows.FindAllString(source, -1), changes)
}

// changesIn returns a function that reports whether a statement of a trigger's function names a
// table, a view or a function whose rows change, or a transition table. It is true for SQL
// that is composed.
func (m *model) changesIn(f *function, t *trigger) func(statement string) bool {
	return func(statement string) bool {
		part := &function{Source: statement, Path: f.Path}
		names := part.text()
		return f.text().dynamic || len(m.uses(part)) > 0 || slices.Contains(names.bare, t.Old) || slices.Contains(names.bare, t.New) ||
			slices.ContainsFunc(m.functions, func(g *function) bool { return g.Rows && slices.Contains(names.calls, g.Plain) })
	}
}

// unquote returns a name as in the catalog.
func unquote(name string) string {
	if strings.HasPrefix(name, `"`) {
		return undouble(name, `"`)
	}
	return strings.ToLower(name)
}

// undouble returns the text between two quotes, which are double in it.
func undouble(text, quote string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(text, quote), quote), quote+quote, quote)
}

// A text lists the names in the text of a function.
type text struct {
	bare      []string // names of columns, types and tables without a schema
	qualified []string // names with a schema
	calls     []string // names before an open parenthesis
	dynamic   bool     // it runs SQL that it composes
}

// parse reads the text of a function. Strings count, since they can be parts of a statement.
func (t *text) parse(source string) {
	list := sourcePattern.FindAllString(source, -1)
	list = slices.DeleteFunc(list, func(s string) bool { return strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*") })
	at := func(i int) string {
		if i < 0 || i >= len(list) {
			return ""
		}
		return list[i]
	}
	for i, s := range list {
		switch {
		case strings.HasPrefix(s, "'"):
			t.parse(undouble(s, "'"))
		case !namePattern.MatchString(s):
		case at(i-1) == ".":
			t.qualified = append(t.qualified, unquote(at(i-2))+"."+unquote(s))
		case strings.EqualFold(s, "EXECUTE"):
			t.dynamic = true
		default:
			t.bare = append(t.bare, unquote(s))
		}
		if namePattern.MatchString(s) && at(i+1) == "(" {
			t.calls = append(t.calls, unquote(s))
		}
	}
}

// text returns the names in the text of a function. It is read once.
func (f *function) text() *text {
	if f.names == nil {
		f.names = &text{}
		f.names.parse(message.ReplaceAllString(f.Source, ""))
	}
	return f.names
}

// A use is a table or a view that a function names.
type use struct {
	relation string // qualified
	bare     bool   // named without a schema, by a function without a search_path
}

// uses returns the tables and views that change and that a function names.
func (m *model) uses(f *function) (list []use) {
	names := f.text()
	add := func(schema, plain, name string) {
		bare := slices.Contains(names.bare, plain)
		if bare || slices.Contains(names.qualified, schema+"."+plain) {
			list = append(list, use{name, bare && !f.Path})
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

// allUses returns the uses of a function and of the functions that it calls.
func (m *model) allUses(f *function) (list []use) {
	seen := map[*function]bool{}
	var visit func(f *function, path bool)
	visit = func(f *function, path bool) {
		if seen[f] {
			return
		}
		seen[f] = true
		path = path || f.Path
		for _, u := range m.uses(f) {
			list = append(list, use{u.relation, u.bare && !path})
		}
		for _, g := range m.functions {
			if slices.Contains(f.text().calls, g.Plain) {
				visit(g, path)
			}
		}
	}
	visit(f, false)
	return list
}

// recompile renders statements after which sessions compile the functions again that work on
// tables. Otherwise, their variables and queries would keep the types of the old columns.
func (m *model) recompile(tables []*relation) (sql []string) {
	isTable := func(list []*relation, name string) bool {
		return slices.Contains(relationNames(list), name)
	}
	of := func(f *function) bool {
		return slices.ContainsFunc(m.triggers, func(t *trigger) bool {
			return t.Function == f.OID && isTable(tables, m.relation(t.Table).Name)
		}) || slices.ContainsFunc(m.uses(f), func(u use) bool {
			return isTable(tables, u.relation) || !isTable(m.relations, u.relation) // a view
		})
	}
	for _, f := range m.functions {
		if !f.Owned || !of(f) {
			continue
		}
		security := "INVOKER" // unchanged
		if f.Definer {
			security = "DEFINER"
		}
		sql = append(sql, "ALTER ROUTINE "+f.Name+" SECURITY "+security)
	}
	return sql
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
		object := "function " + f.Name + " of trigger " + ident(t.Name)
		if !f.Owned {
			problem(f, t, "belongs to %s, and you aren't a member of that role", "run rekey as its owner, or give it to the owner of the tables", f.Owner)
		}
		if expandsRows(f.Source, t.Old+t.New != "", m.changesIn(f, t)) {
			problem(f, t, "expands a row, such as NEW.*, and the table has more columns until contract", "name the columns")
		}
		if kind := m.narrow(f); kind != "" && !noted[f.Name] {
			noted[f.Name] = true
			m.note(object, "names the type %s, which can't hold a new key", "check that it doesn't hold one; contract tries the trigger with a row before it changes anything", kind)
		}
		if f.text().dynamic {
			m.linked = true // the SQL could work on any table
			if !f.Path {
				problem(f, t, "has EXECUTE and no search_path, so names could mean views with new keys in programs of the new version", remedy(f))
			}
		}
		var bare []string
		for _, u := range m.allUses(f) {
			m.linked = m.linked || u.relation != r.Name
			if u.bare && !slices.Contains(bare, u.relation) {
				bare = append(bare, u.relation)
			}
		}
		if len(bare) > 0 {
			problem(f, t, "names %s without its schema, which would mean a view with new keys in programs of the new version", remedy(f), strings.Join(bare, ", "))
		}
	}
	for _, f := range m.functions {
		var tables []string
		for _, u := range m.allUses(f) {
			if !u.bare {
				tables = append(tables, u.relation)
			}
		}
		slices.Sort(tables)
		m.linked = m.linked || len(slices.Compact(tables)) > 1
		for _, k := range m.moved() {
			if !f.Path && slices.Contains(calls(k.oldExpr), f.Plain) {
				m.problem("function "+f.Name, "chooses old keys of %s, and has no search_path", remedy(f), k.root.rel.Name)
			}
		}
	}
	if m.linked {
		m.note("functions", "work on several of the tables", "contract waits for a moment in which it can lock all tables at once")
	}
	for _, f := range m.functions {
		if slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Function == f.OID }) {
			continue
		}
		if f.Rows {
			m.note("function "+f.Name, "returns rows of a table, which have more columns until contract, and other types afterwards", "check that it works with them")
			continue
		}
		if uses := m.uses(f); len(uses) > 0 {
			names := strings.Join(each(uses, func(u use) string { return u.relation }), ", ")
			if kind := m.narrow(f); kind != "" {
				names += ", and the type " + kind + ", which can't hold a new key"
			}
			m.note("function "+f.Name, "names %s", "check that it works with the keys of both versions", names)
		}
	}
}

// narrow returns the first type that the arguments or the text of a function name, and that is
// too narrow for a new key, or "".
func (m *model) narrow(f *function) string {
	kinds := []string{"smallint", "int2", "integer", "int", "int4"}
	if slices.ContainsFunc(m.moved(), func(k *key) bool { return k.format.sqlType == "uuid" }) {
		kinds = append(kinds, "bigint", "int8")
	}
	arguments := &text{}
	arguments.parse(f.Name)
	for _, name := range append(arguments.bare, f.text().bare...) {
		if slices.Contains(kinds, name) {
			return name
		}
	}
	return ""
}

// calls returns the names of the functions in an expression.
func calls(expression string) []string {
	t := &text{}
	t.parse(expression)
	return t.calls
}
