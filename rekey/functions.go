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
	Rows    bool   // it returns rows of a table that changes
}

// readFunctions reads the triggers, and the functions that they might call.
func (m *model) readFunctions(ctx context.Context, db querier, tables string) error {
	err := readJSON(ctx, db, &m.triggers, rows(`SELECT t.tgrelid::bigint AS "Table", t.tgname AS "Name", t.tgfoid::bigint AS "Function", t.tgtype & 3 = 3 AND t.tgtype & 20 <> 0 AND t.tgenabled IN ('O', 'A') AS "Before"
		FROM pg_catalog.pg_trigger t WHERE t.tgrelid = ANY ($1::text::oid[]) AND NOT t.tgisinternal AND t.tgname !~ '`+ownTriggers+`' ORDER BY 1, 2`), tables)
	if err != nil {
		return err
	}
	return readJSON(ctx, db, &m.functions, rows(`SELECT p.oid::bigint AS "OID", p.oid::regprocedure::text AS "Name", p.proname AS "Plain", p.prosrc AS "Source",
		pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(p.proowner)) AS "Owner", pg_catalog.pg_has_role(p.proowner, 'USAGE') AS "Owned", p.prosecdef AS "Definer",
		EXISTS (SELECT FROM pg_catalog.unnest(p.proconfig) s WHERE pg_catalog.starts_with(s, 'search_path=')) AS "Path",
		EXISTS (SELECT FROM pg_catalog.pg_type t WHERE t.oid = p.prorettype AND t.typrelid = ANY ($1::text::oid[])) AS "Rows"
		FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
		WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) AND l.lanname NOT IN ('c', 'internal') AND p.prosqlbody IS NULL AND p.prokind <> 'a'
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
		ORDER BY 2`), tables)
}

var (
	sqlComments   = regexp.MustCompile(`(?s)/\*.*?\*/|--[^\n]*`)
	sourcePattern = regexp.MustCompile(`"(?:[^"]|"")*"|[\pL_][\pL\pN_$]*|\S`)
	wholeRow      = regexp.MustCompile(`(?i)\b(NEW|OLD)\s*\)?\s*\.\s*\*`)
	beforeTable   = regexp.MustCompile(`(?i)^(FROM|JOIN|INTO|UPDATE|ONLY|TABLE|USING|COPY|TRUNCATE|,)$`)
)

// unquote returns a name as in the catalog.
func unquote(name string) string {
	if strings.HasPrefix(name, `"`) {
		return strings.ReplaceAll(strings.Trim(name, `"`), `""`, `"`)
	}
	return strings.ToLower(name)
}

// uses returns the names of tables in the text of a function, each with its schema if the text
// has it, and all other names. Names in strings count, since they can be parts of a statement.
func (f *function) uses() (tables, names []string) {
	list := sourcePattern.FindAllString(sqlComments.ReplaceAllString(f.Source, " "), -1)
	at := func(i int) string {
		if i < 0 || i >= len(list) {
			return ""
		}
		return list[i]
	}
	for i, t := range list {
		if !namePattern.MatchString(t) {
			continue
		}
		names = append(names, unquote(t))
		first := i // token of the name, which can have a schema
		if at(i-1) == "." {
			first = i - 2
		}
		before := beforeTable.MatchString(at(first - 1))
		isTable := before && at(i+1) != "." && !beforeTable.MatchString(t) ||
			at(i+1) == "%" && strings.EqualFold(at(i+2), "ROWTYPE") || at(i+1) == "." && at(i+3) == "%" && strings.EqualFold(at(i+4), "TYPE")
		switch {
		case !isTable:
		case first < i:
			tables = append(tables, unquote(at(first))+"."+unquote(t))
		default:
			tables = append(tables, unquote(t))
		}
	}
	return tables, names
}

// A use is a table or a view that a function names.
type use struct {
	function *function
	relation string // qualified
	bare     bool   // named without a schema, by a function without a search_path
}

// usesOf returns the tables and views that change and that a function names, or a function
// that it calls.
func (m *model) usesOf(f *function) (list []use) {
	type relation struct{ schema, plain, name string }
	var relations []relation
	for _, r := range m.relations {
		relations = append(relations, relation{unquote(r.Schema), r.Plain, r.Name})
	}
	for _, v := range m.views {
		relations = append(relations, relation{unquote(v.schema()), unquote(v.Plain), v.Name})
	}
	seen := map[*function]bool{}
	var visit func(f *function, path bool)
	visit = func(f *function, path bool) {
		if seen[f] {
			return
		}
		seen[f] = true
		path = path || f.Path
		tables, names := f.uses()
		for _, r := range relations {
			bare := slices.Contains(tables, r.plain)
			if bare || slices.Contains(tables, r.schema+"."+r.plain) {
				list = append(list, use{f, r.name, bare && !path})
			}
		}
		for _, g := range m.functions {
			if slices.Contains(names, g.Plain) {
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
	of := func(f *function) bool {
		return slices.ContainsFunc(m.triggers, func(t *trigger) bool {
			return t.Function == f.OID && slices.ContainsFunc(tables, func(r *relation) bool { return r.OID == t.Table })
		}) || slices.ContainsFunc(m.usesOf(f), func(u use) bool {
			isTable := func(list []*relation) bool {
				return slices.ContainsFunc(list, func(r *relation) bool { return r.Name == u.relation })
			}
			return u.function == f && (isTable(tables) || !isTable(m.relations))
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
	noted := map[string]bool{}
	problem := func(object, reason, remedy string, args ...any) {
		if !noted[object+reason] {
			m.problem(object, reason, remedy, args...)
		}
		noted[object+reason] = true
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
			problem(object, "belongs to %s, and you aren't a member of that role", "run rekey as its owner or as a superuser", f.Owner)
		}
		if wholeRow.MatchString(f.Source) {
			problem(object, "expands NEW.* or OLD.*, which have more columns until contract", "name the columns")
		}
		for _, u := range m.usesOf(f) {
			if u.relation != r.Name {
				m.linked = true
			}
			if u.bare {
				problem(object, "names %s without its schema, which would mean a view with new keys in programs of the new version", "ALTER FUNCTION "+f.Name+" SET search_path = "+strings.Join(m.path, ", ")+", and the other schemas that it needs", u.relation)
			}
		}
	}
	if m.linked {
		m.note("triggers", "work on several of the tables", "contract waits for a moment in which it can lock all tables at once")
	}
	for _, f := range m.functions {
		if slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Function == f.OID }) {
			continue
		}
		if f.Rows {
			m.note("function "+f.Name, "returns rows of a table, which have more columns until contract, and other types afterwards", "check that it works with them")
			continue
		}
		own := slices.DeleteFunc(m.usesOf(f), func(u use) bool { return u.function != f })
		if len(own) > 0 {
			m.note("function "+f.Name, "names %s", "check that it works with the keys of both versions", strings.Join(each(own, func(u use) string { return u.relation }), ", "))
		}
	}
}
