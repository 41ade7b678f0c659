package rekey

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/sortkey/sortkey/internal/trust"
)

// readDependents returns the objects that depend on the columns, and reads the views.
func (m *model) readDependents(ctx context.Context, db querier) ([]dependent, error) {
	var columns []string
	for _, r := range m.relations {
		for _, c := range r.columns {
			columns = append(columns, strconv.FormatInt(r.OID, 10)+":"+strconv.Itoa(c.Num))
		}
	}
	var direct []dependent
	err := readJSON(ctx, db, &direct, rows(query("dependents of columns", nil)), "{"+strings.Join(columns, ",")+"}")
	if err != nil {
		return nil, err
	}
	all := direct
	for level := 1; len(direct) > 0; level++ {
		var rules []int64
		for _, d := range direct {
			if d.Class == "pg_rewrite" {
				rules = append(rules, d.OID)
			}
		}
		var found []*view
		// Names of tables in the definition depend on the search_path.
		err := readJSON(ctx, db, &found, rows(query("views", trust.Roles)),
			oids(rules, func(v int64) int64 { return v }))
		if err != nil {
			return nil, err
		}
		for _, v := range found {
			// A view comes after all views that it reads.
			m.views = slices.DeleteFunc(m.views, func(o *view) bool { return o.OID == v.OID })
			m.views = append(m.views, v)
		}
		direct = nil
		if len(found) == 0 {
			break
		}
		err = readJSON(ctx, db, &direct, rows(query("dependents of views", nil)),
			oids(found, func(v *view) int64 { return v.OID }))
		if err != nil {
			return nil, err
		}
		all = append(all, direct...)
	}
	slices.SortStableFunc(all, func(a, b dependent) int { return strings.Compare(a.Object, b.Object) })
	return slices.CompactFunc(all, func(a, b dependent) bool { return a.Object == b.Object }), nil
}
