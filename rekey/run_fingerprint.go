package rekey

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// objects names the objects of a fingerprint.
type objects struct {
	Tables  []string // qualified
	Columns []string // that change, as table.name
	Views   []string // qualified
}

// objects returns the objects of tables.
func (m *model) objects(list ...*relation) *objects {
	o := &objects{}
	for _, r := range list {
		o.Tables = append(o.Tables, r.Name)
		for _, c := range r.columns {
			o.Columns = append(o.Columns, r.Name+"."+c.Name)
		}
	}
	return o
}

// typePrefix begins the lines about types and defaults of the columns that change, and
// queryPrefix the lines about the queries of views.
const (
	typePrefix  = "type and default of "
	queryPrefix = "query of "
)

func without(lines []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return strings.HasPrefix(s, prefix) })
}

// changes compares a fingerprint with the one of expand. It returns what the plan doesn't know:
// the properties of keys and views, which contract gives to others, and the columns, constraints,
// triggers and policies. Triggers that are gone, and new indexes on other columns, do no harm,
// dependentCheck looks for those on old columns, and viewPrivileges compares privileges.
func changes(then, now []string) (findings []string) {
	find := func(what string, list, other []string, kinds ...string) {
		for _, line := range list {
			kind, _, _ := strings.Cut(line, " ")
			if !slices.Contains(kinds, kind) || slices.Contains(other, line) {
				continue
			}
			findings = append(findings, what+" since expand: "+line)
			if object, _, _ := strings.Cut(line, ": "); kind == "index" { // new ones aren't listed below
				findings = append(findings, each(filter(other, func(s string) bool { return strings.HasPrefix(s, object+": ") }), func(s string) string { return "new since expand: " + s })...)
			}
		}
	}
	find("gone", then, now, "owner", "type", "key", "constraint", "policy", "view", "query", "index")
	find("new", now, then, "owner", "type", "key", "constraint", "trigger", "policy", "view", "query")
	return findings
}

// unchanged returns an error that wraps [ErrInconsistent] if the plan of expand no longer fits
// the tables.
func (j *job) unchanged(ctx context.Context) error {
	if j.state.job.Objects == nil {
		return nil
	}
	now, err := j.state.job.Objects.fingerprint(ctx, j.conn)
	if err != nil {
		return err
	}
	if findings := changes(j.state.job.Fingerprint, now); len(findings) > 0 {
		return fmt.Errorf("%w\nUndo these changes until contract, and repeat the step; or abort, and begin again with expand", inconsistent(findings))
	}
	return nil
}

// allObjects returns the objects of the plan, or nil if no column changes.
func (m *model) allObjects() *objects {
	if len(m.relations) == 0 {
		return nil
	}
	o := m.objects(m.relations...)
	o.Views = each(m.views, func(v *view) string { return v.Name })
	return o
}

// fingerprint describes the tables and the views in lines. It leaves out what belongs to the
// job.
func (o *objects) fingerprint(ctx context.Context, db textQuerier) ([]string, error) {
	return texts(ctx, db, query("fingerprint", nil), pgArray(o.Tables), pgArray(o.Columns), pgArray(o.Views))
}

// pgArray returns the text of a text[].
func pgArray(list []string) string {
	return "{" + strings.Join(each(list, func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}), ",") + "}"
}
