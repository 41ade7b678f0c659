package rekey

import (
	"context"
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
	Rows    bool   // it returns rows of a table that changes

	text  string   // Source in lower case, without quotes of names
	words []string // of text
}

// readFunctions reads the triggers, and the functions that they might call.
func (m *model) readFunctions(ctx context.Context, db querier, tables string) error {
	err := readJSON(ctx, db, &m.triggers, rows(query("triggers", nil)), tables)
	if err != nil {
		return err
	}
	return readJSON(ctx, db, &m.functions, rows(query("functions", nil)), tables, pgArray(m.own))
}
