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

// A candidate is a column without a foreign key that could refer to a key, by its type.
type candidate struct {
	Table    int64
	Name     string // of the table, qualified and quoted
	Column   string // without quotes
	Quoted   string
	Base     string // pg_type.typname without domains
	Array    bool
	Own      bool   // it is a primary key, or has a default
	Kind     string // quoted name of a column beside it, such as subject_type of subject_id; empty if there is none
	Rows     float64
	Readable bool // without a policy, which would run code
}

// comparable reports whether a column can refer to a key by its type: that of the key, another
// integer type, or a text.
func (x candidate) comparable(k *key) bool {
	family := baseTypes[x.Base]
	return family == baseTypes[k.root.Base] || family == "text"
}

// checkUnlisted looks for columns without a foreign key that refer to a key that changes: some of
// their values are keys, or they are named after its table, or beside a column such as subject_type
// with a value that is named after the table. They would keep the old keys. Small integers prove
// nothing, so their columns are noted. To plan a query of a table can run code of its owner, so
// checkUnlisted reads no values of a table whose owner the session doesn't trust.
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
	small := map[string][]string{} // columns of a table whose values prove nothing
	var tables []string
	readable := map[int64]bool{}
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
		if _, known := readable[x.Table]; !known && x.Readable {
			var trusted bool
			err := db.QueryRowContext(ctx, "SELECT NOT EXISTS ("+trust.Tables(fmt.Sprintf("ARRAY[%d::pg_catalog.oid]", x.Table))+")").Scan(&trusted)
			if err != nil {
				return err
			}
			readable[x.Table] = trusted
		}
		x.Readable = x.Readable && readable[x.Table]
		unsure, err := m.checkCandidate(ctx, db, x, listed)
		if err != nil {
			return err
		}
		if unsure {
			if small[x.Name] == nil {
				tables = append(tables, x.Name)
			}
			small[x.Name] = append(small[x.Name], x.Quoted)
		}
	}
	for _, table := range tables {
		m.note("table "+table, "has numbers in the range of keys in %s", "if one of these columns refers to a key, list it under references: it would keep its old keys", strings.Join(small[table], ", "))
	}
	return nil
}

// checkCandidate adds a problem if a column refers to a key. It reports whether small integers leave
// that open.
func (m *model) checkCandidate(ctx context.Context, db querier, x candidate, listed *column) (unsure bool, err error) {
	object := "column " + x.Name + "." + x.Quoted
	if m.refused(object) ||
		slices.ContainsFunc(m.relations, func(r *relation) bool { return r.Partition && r.Root == x.Name }) {
		return false, nil // it is refused already
	}
	var kinds []string // of rows
	if x.Kind != "" && x.Readable {
		err := readJSON(ctx, db, &kinds, "SELECT json_agg(DISTINCT kind)::text FROM (SELECT t."+x.Kind+" AS kind FROM "+x.Name+" t WHERE t."+x.Quoted+" IS NOT NULL AND t."+x.Kind+" IS NOT NULL LIMIT 1000) x")
		if err != nil {
			return false, err
		}
	}
	for _, k := range m.keys {
		root := k.root
		if root == nil || listed != nil && listed.refersTo(k) || root.rel.OID == x.Table && root.Name == x.Column || !x.comparable(k) ||
			len(k.columns) == 0 && x.Base == "int8" { // its values stay, and it has room for new ones
			continue
		}
		remedy := "list it under references, or, if it doesn't refer to it, under not_references"
		if i := slices.IndexFunc(kinds, func(kind string) bool { return namedAfter(afterSeparators.ReplaceAllString(kind, ""), root.rel.Plain) }); i >= 0 {
			m.problem(object, "seems to refer to %s by its rows with %s, and would keep its old keys", remedy+"; in references, set where to "+x.Kind+" = "+literal(kinds[i]), root.rel.Name, literal(kinds[i]))
			continue
		}
		named := x.Table != root.rel.OID && namedAfter(x.Column, root.rel.Plain)
		if !x.Readable || x.Array {
			if named && baseTypes[x.Base] == baseTypes[root.Base] {
				m.problem(object, "seems to refer to %s without a foreign key, and would keep its old keys", remedy, root.rel.Name)
				return false, nil
			}
			continue
		}
		v, err := k.compare(ctx, db, x)
		if err != nil {
			return false, err
		}
		switch {
		case v.proofs > 0:
			m.problem(object, "has keys of %s in %d of %d values that were read, and would keep its old keys", remedy, root.rel.Name, v.proofs, v.values)
			return false, nil
		case named && (v.values == 0 && baseTypes[x.Base] == baseTypes[root.Base] || v.keys > 0):
			m.problem(object, "seems to refer to %s without a foreign key, and would keep its old keys", remedy, root.rel.Name)
			return false, nil
		case v.values > 0 && v.keys == v.values && !x.Own:
			unsure = true
		}
	}
	return unsure, nil
}

// A comparison counts values of a column that were read, how many are keys, and how many of these are
// no small integers.
type comparison struct{ values, keys, proofs int64 }

// compare reads up to some 2,000 values: the first ones of the table, and others of random pages.
func (k *key) compare(ctx context.Context, db querier, x candidate) (v comparison, err error) {
	sample := "(SELECT t." + x.Quoted + " AS v FROM " + x.Name + " t WHERE t." + x.Quoted + " IS NOT NULL LIMIT 1000)"
	if x.Rows > 10_000 {
		sample += fmt.Sprintf(" UNION ALL (SELECT t.%s FROM %s t TABLESAMPLE SYSTEM (%f) REPEATABLE (1) WHERE t.%[1]s IS NOT NULL LIMIT 1000)", x.Quoted, x.Name, 100*10_000/x.Rows)
	}
	value, small := "x.v", "false"
	if baseTypes[x.Base] != baseTypes[k.root.Base] {
		value = k.parse(value)
	}
	if baseTypes[k.root.Base] == "integer" {
		small = "coalesce(" + value + " BETWEEN -2147483648 AND 2147483647, true)"
	}
	found := "EXISTS (SELECT FROM ONLY " + k.root.rel.Name + " p WHERE p." + k.root.Quoted + " = " + value + k.root.collate() + ")"
	err = db.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE found), count(*) FILTER (WHERE found AND NOT small) FROM (SELECT "+found+" AS found, "+small+" AS small FROM ("+sample+") x) y").Scan(&v.values, &v.keys, &v.proofs)
	return v, err
}

// parse renders the key that a text contains, or NULL.
func (k *key) parse(text string) string {
	switch baseTypes[k.root.Base] {
	case "uuid":
		return "(CASE WHEN " + text + "::text ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN " + text + "::text::uuid END)"
	case "integer":
		return "(CASE WHEN " + text + "::text ~ '^(0|-?[1-9][0-9]{0,17})$' THEN " + text + "::text::bigint END)"
	}
	return text
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
