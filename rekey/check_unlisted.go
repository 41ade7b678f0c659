package rekey

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/internal/trust"
)

// qualifiedColumn splits a column of Spec.NotReferences into its table and its name.
var qualifiedColumn = regexp.MustCompile(`^(.+)\.("(?:[^"]|"")+"|[^".]+)$`)

// splitColumn returns the table and the unquoted name of a column.
func splitColumn(qualified string) (table, column string) {
	parts := qualifiedColumn.FindStringSubmatch(strings.TrimSpace(qualified))
	if parts == nil {
		return "", ""
	}
	return parts[1], unquote(parts[2])
}

// A waiver is a column of Spec.NotReferences.
type waiver struct {
	name   string
	table  int64
	column string // without quotes
	num    int    // 0 if there is no such column
}

// A candidate is a column that could refer to a key, by its type.
type candidate struct {
	Table    int64
	Name     string // of the table, qualified and quoted
	Column   string // without quotes
	Quoted   string
	Base     string // pg_type.typname without domains
	Array    bool
	Kind     string // quoted name of a column beside it, such as subject_type of subject_id; empty if there is none
	Readable bool   // without a policy, which would run code
}

// checkUnlisted looks for columns without a foreign key that seem to refer to a key that
// changes. They have its type, and are named after its table, with values that are keys, or are
// beside a column such as subject_type with a value that is named after the table. They would
// keep the old keys. To plan a query of a table can run code of its owner, so checkUnlisted
// reads no values of a table whose owner the session doesn't trust.
func (m *model) checkUnlisted(ctx context.Context, db querier) error {
	for _, w := range m.waivers {
		if w.num == 0 {
			m.problem("not_references "+w.name, "is no column", "write the table and the column, as in orders.customer_id, or remove it")
		}
	}
	var list []candidate
	err := readJSON(ctx, db, &list, rows(query("unlisted", nil)), pgArray(m.own))
	if err != nil {
		return err
	}
	for _, x := range list {
		var listed *column
		if r := m.relation(x.Table); r != nil {
			if i := slices.IndexFunc(r.columns, func(c *column) bool { return c.Name == x.Column }); i >= 0 {
				listed = r.columns[i]
			}
		}
		if listed != nil && !listed.conditional() || slices.ContainsFunc(m.waivers, func(w waiver) bool { return w.table == x.Table && w.column == x.Column }) {
			continue
		}
		if !slices.ContainsFunc(m.keys, func(k *key) bool { return x.Kind != "" || namedAfter(x.Column, k.root.rel.Plain) }) {
			continue
		}
		if x.Readable {
			err := db.QueryRowContext(ctx, "SELECT NOT EXISTS ("+trust.Tables(fmt.Sprintf("ARRAY[%d::pg_catalog.oid]", x.Table))+")").Scan(&x.Readable)
			if err != nil {
				return err
			}
		}
		var kinds []string // of rows
		if x.Kind != "" && x.Readable {
			err := readJSON(ctx, db, &kinds, "SELECT json_agg(DISTINCT kind)::text FROM (SELECT t."+x.Kind+" AS kind FROM "+x.Name+" t WHERE t."+x.Quoted+" IS NOT NULL AND t."+x.Kind+" IS NOT NULL LIMIT 1000) x")
			if err != nil {
				return err
			}
		}
		for _, k := range m.keys {
			root := k.root
			if listed != nil && listed.refersTo(k) || root.rel.OID == x.Table && root.Name == x.Column || baseTypes[root.Base] != baseTypes[x.Base] ||
				len(k.columns) == 0 && x.Base == "int8" { // its values stay, and it has room for new ones
				continue
			}
			object, remedy := "column "+x.Name+"."+x.Quoted, "list it under references, or, if it doesn't refer to it, under not_references"
			if i := slices.IndexFunc(kinds, func(kind string) bool { return namedAfter(afterSeparators.ReplaceAllString(kind, ""), root.rel.Plain) }); i >= 0 {
				m.problem(object, "seems to refer to %s by its rows with %s, and would keep its old keys", remedy+"; in references, set where to "+x.Kind+" = "+literal(kinds[i]), root.rel.Name, literal(kinds[i]))
				continue
			}
			found := x.Table != root.rel.OID && namedAfter(x.Column, root.rel.Plain)
			if found && x.Readable && !x.Array {
				err := db.QueryRowContext(ctx, "SELECT count(*) = 0 OR bool_or(EXISTS (SELECT FROM ONLY "+root.rel.Name+" p WHERE p."+root.Quoted+" = x.v"+root.collate()+
					")) FROM (SELECT t."+x.Quoted+" AS v FROM "+x.Name+" t WHERE t."+x.Quoted+" IS NOT NULL LIMIT 1000) x").Scan(&found)
				if err != nil {
					return err
				}
			}
			if found {
				m.problem(object, "seems to refer to %s without a foreign key, and would keep its old keys", remedy, root.rel.Name)
				break
			}
		}
	}
	return nil
}

// afterSeparators finds what is before the name of a class, as in App\Models\Post.
var afterSeparators = regexp.MustCompile(`^.*[\\:./]`)

// namedAfter reports whether a column is named after a table: customer, customer_id or
// billing_customer_id after customers or shop_customers, also without underscores.
func namedAfter(column, table string) bool {
	column, table = words(column), words(table)
	bare := column
	for _, suffix := range []string{"_ids", "_id", "_uuid", "_key", "ids", "id"} {
		if s, ok := strings.CutSuffix(column, suffix); ok && s != "" {
			bare = s
			break
		}
	}
	forms := []string{table, strings.TrimSuffix(table, "s"), strings.TrimSuffix(table, "es")}
	if s, ok := strings.CutSuffix(table, "ies"); ok {
		forms = append(forms, s+"y")
	}
	return slices.ContainsFunc(forms, func(form string) bool {
		return column == form || bare != column && (bare == form || strings.HasSuffix(bare, "_"+form) || strings.HasSuffix(form, "_"+bare))
	})
}

var capital = regexp.MustCompile(`([\p{Ll}\pN])(\p{Lu})`)

// words returns a name in lower case, with underscores between its words.
func words(name string) string { return strings.ToLower(capital.ReplaceAllString(name, "${1}_$2")) }
