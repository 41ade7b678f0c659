package rekey

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A savedKey is a key that a reference can be added to.
type savedKey struct {
	N                int    // index in the Spec
	Table            string // qualified
	Visible, Hidden  string // quoted names of its columns
	OldType, NewType string
	OldBase          string // pg_type.typname
	NewOf, OldOf     string // functions that look a key up
}

// An addedReference is a column that AddReference has mapped. It has new keys while the exchange of
// its key's columns is in effect: Undo and Contract map it in the transaction that exchanges them.
type addedReference struct {
	Key                   int
	Table, Column, Family string // qualified and quoted
	OldType               string // if the type changes
	Where                 string
}

func (r addedReference) String() string { return r.Table + "." + r.Column }

// meets renders whether a row t meets the condition of the reference.
func (r addedReference) meets() string {
	if r.Where == "" {
		return "true"
	}
	return "(SELECT (" + r.Where + ") FROM (SELECT t.*) x)"
}

// A mapping replaces keys in other columns.
type mapping struct {
	From, To         string // columns of the key's table
	FromType, ToType string
	FromText, ToText string // columns of rekey_pending
	Translate        string // function
}

// mapping returns the mapping to the new keys, or back to the old ones. Exchanged means that contract,
// or undo, has exchanged the names of the key's columns.
func (k savedKey) mapping(back, exchanged bool) mapping {
	m := mapping{k.Hidden, k.Visible, k.OldType, k.NewType, "old_key", "new_key", k.NewOf}
	if back {
		m = mapping{k.Hidden, k.Visible, k.NewType, k.OldType, "new_key", "old_key", k.OldOf}
	}
	if !exchanged {
		m.From, m.To = m.To, m.From
	}
	return m
}

// AddReference gives the rows of a column new keys that Inspect and the Spec have missed. It can run
// after [Contract], until [Cleanup]. Values that are no old keys, such as new ones that programs have
// written since, stay. It returns the number of rows that it has changed. If the column is mapped
// already, it changes nothing and returns 0.
//
// A column of the new type or a text is updated, in one statement. Another one gets the new type,
// which rewrites its table, so that programs wait meanwhile. [Undo] maps both back, and another
// Contract maps them again.
func AddReference(ctx context.Context, db *sql.DB, r Reference, o Options) (rows int64, err error) {
	table, to, err := tableNames(ctx, db, r, o.SearchPath)
	if err != nil {
		return 0, fmt.Errorf("rekey: add reference: %w", err)
	}
	err = run(ctx, db, o, "add reference", "", func(j *job) error {
		if !j.state.exists || j.state.next() != StepCleanup || j.state.cleaned() {
			return j.wrongStep("add reference")
		}
		i := slices.IndexFunc(j.state.job.Keys, func(k savedKey) bool { return k.Table == to })
		switch {
		case table == "":
			return fmt.Errorf("table %s doesn't exist; correct the name", r.Table)
		case i < 0:
			return fmt.Errorf("table %s has no key that the rekey replaces; name one of %s", r.To, strings.Join(each(j.state.job.Keys, func(k savedKey) string { return k.Table }), ", "))
		}
		if reason := checkExpression(r.Where); reason != "" {
			return fmt.Errorf("where %q %s; set it to a single expression over columns of the table", r.Where, reason)
		}
		if err := checkJob(ctx, j.conn, []string{table}); err != nil {
			return err
		}
		added := addedReference{Key: i, Table: table, Column: ident(r.Column), Where: r.Where}
		if mapped, err := j.mapped(ctx, added); err != nil || mapped {
			return err
		}
		if added, err = j.describe(ctx, j.conn, added); err != nil {
			return err
		}
		return j.inOneTransaction(ctx, StepCleanup, "map "+added.String(), func(tx *sql.Tx, a action) error {
			if added.OldType != "" {
				if err := j.execute(ctx, tx, a, lock(allPrograms, table)); err != nil {
					return err
				}
			}
			if rows, err = j.mapColumn(ctx, tx, added, false); err != nil {
				return err
			}
			return j.saveAdded(ctx, tx, append(slices.Clone(j.state.added), added))
		})
	})
	return rows, err
}

// tableNames returns the qualified names of the tables of a reference, or "", by the search_path of a
// session.
func tableNames(ctx context.Context, db *sql.DB, r Reference, path string) (table, to string, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return "", "", err
	}
	defer tx.Rollback() //nolint:errcheck // it only read
	if err := usePath(ctx, tx, path); err != nil {
		return "", "", err
	}
	named, err := resolve(ctx, tx, Spec{References: []Reference{r}})
	if err != nil {
		return "", "", err
	}
	if _, err := tx.ExecContext(ctx, "SET LOCAL search_path = pg_catalog"); err != nil {
		return "", "", err
	}
	for name, dst := range map[string]*string{r.Table: &table, r.To: &to} {
		err := tx.QueryRowContext(ctx, "SELECT coalesce((SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::text::oid AND c.relkind IN ('r', 'p')), '')", fmt.Sprint(named[name])).Scan(dst)
		if err != nil {
			return "", "", err
		}
	}
	if r.Table == r.To {
		table = to
	}
	return table, to, nil
}

// mapped reports whether a reference was added before. To map a value twice could change a new key, so
// the conditions of several references of a column have to exclude each other.
func (j *job) mapped(ctx context.Context, r addedReference) (mapped bool, err error) {
	for _, other := range j.state.added {
		if other.String() != r.String() {
			continue
		}
		if other.Key == r.Key && other.Where == r.Where {
			j.o.Progress(Progress{Step: StepCleanup, Action: "skip the mapped column " + r.String(), Done: true})
			return true, nil
		}
		both := r.Where == "" || other.Where == ""
		if !both {
			query := fmt.Sprintf("SELECT EXISTS (SELECT FROM %s t WHERE %s AND %s)", r.Table, r.meets(), other.meets())
			if err := j.conn.QueryRowContext(ctx, query).Scan(&both); err != nil {
				return false, err
			}
		}
		if both {
			return false, fmt.Errorf("column %s has keys of %s already; give each of its references a condition (--where), so that no row meets two", r, j.state.job.Keys[other.Key].Table)
		}
	}
	return false, nil
}

// describe completes a reference by the present type of its column. It returns an error if the column
// can't be mapped to the new keys.
func (j *job) describe(ctx context.Context, db querier, r addedReference) (addedReference, error) {
	k, name := j.state.job.Keys[r.Key], unquote(r.Column)
	var kind, base, obstacle string
	err := db.QueryRowContext(ctx, query("added column", nil), r.Table, name).Scan(&kind, &base, &obstacle)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, fmt.Errorf("table %s has no column %q; correct the name", r.Table, name)
	case err != nil:
		return r, err
	case slices.Contains(j.state.job.Objects.Columns, r.Table+"."+name):
		return r, fmt.Errorf("column %s changes already", r)
	case obstacle != "":
		return r, fmt.Errorf("column %s %s", r, obstacle)
	}
	r.Family = baseTypes[base]
	if r.Family == "" || r.Family != baseTypes[k.OldBase] && r.Family != "text" {
		return r, fmt.Errorf("column %s has type %s, and the old key of %s has type %s; map the rows by column %s of that table", r, kind, k.Table, k.OldType, k.Hidden)
	}
	r.OldType = ""
	if kind != k.NewType && r.Family != "text" {
		r.OldType = kind
		if r.Where != "" {
			return r, fmt.Errorf("column %s has type %s, which the rows that don't meet the condition keep; move them to a column of their own", r, kind)
		}
	}
	return r, nil
}

// unmatched returns an error if values of a column are no keys, which a mapping would invent.
func (j *job) unmatched(ctx context.Context, db querier, r addedReference, m mapping) error {
	k := j.state.job.Keys[r.Key]
	var count int64
	var most sql.NullString
	value := "t." + r.Column
	err := db.QueryRowContext(ctx, "SELECT count(*), mode() WITHIN GROUP (ORDER BY "+value+"::text) FROM "+r.Table+" t WHERE "+value+" IS NOT NULL AND NOT EXISTS (SELECT FROM ONLY "+k.Table+" p WHERE p."+m.From+" = "+value+
		") AND NOT EXISTS (SELECT FROM "+pendingTable()+" d WHERE d.key = $1 AND d."+m.FromText+" = "+value+"::text COLLATE \"C\")", k.N).Scan(&count, &most)
	if count > 0 {
		err = fmt.Errorf("%w: %d rows of %s refer to no row of %s, most often with the value %q in %s; delete these rows, or set the column to NULL", ErrInconsistent, count, r.Table, k.Table, most.String, r.Column)
	}
	return err
}

// mapColumn maps a column after its key's columns were exchanged. If its type changes, its table is
// locked.
func (j *job) mapColumn(ctx context.Context, tx *sql.Tx, r addedReference, back bool) (rows int64, err error) {
	k := j.state.job.Keys[r.Key]
	m := k.mapping(back, true)
	if r.OldType == "" {
		return j.update(ctx, tx, r, m)
	}
	if err := j.unmatched(ctx, tx, r, m); err != nil {
		return 0, err
	}
	kind := k.NewType
	if back {
		kind = r.OldType
	}
	if err := j.execute(ctx, tx, action{}, []string{fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %s(%[2]s)", r.Table, r.Column, kind, m.Translate)}); err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NOT NULL", r.Table, r.Column)).Scan(&rows)
	return rows, err
}

// update replaces the keys in a column, also the keys of rows that were deleted.
func (j *job) update(ctx context.Context, tx *sql.Tx, r addedReference, m mapping) (int64, error) {
	_, err := tx.ExecContext(ctx, "SELECT pg_catalog.set_config('"+backfillSetting+"', 'on', true), CASE WHEN $1::boolean THEN pg_catalog.set_config('session_replication_role', 'replica', true) END", j.state.job.ReplicaRole)
	if err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, query("map a column", values{"table": r.Table, "column": r.Column, "text": r.Family == "text", "meets": r.meets(),
		"key": j.state.job.Keys[r.Key], "mapping": m, "pending": pendingTable()}))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// addedOf returns the added references to the keys that an action exchanges.
func (j *job) addedOf(a action) []addedReference {
	if a.Kind != kindSwap {
		return nil
	}
	return filter(j.state.added, func(r addedReference) bool { return slices.Contains(a.Objects.Tables, j.state.job.Keys[r.Key].Table) })
}

// withAdded returns an action that also locks the tables of added references, at once with its own.
func (j *job) withAdded(a action) action {
	added := j.addedOf(a)
	if len(added) == 0 {
		return a
	}
	tables, names := slices.Clone(a.Objects.Tables), []string{}
	for _, r := range added {
		names = append(names, r.String())
		if !slices.Contains(tables, r.Table) {
			tables = append(tables, r.Table)
		}
	}
	a.Title += " and map " + strings.Join(slices.Compact(names), ", ")
	if a.Step == StepUndo {
		a.Title += " back"
	}
	a.SQL = append(lock(allPrograms, tables...), filter(a.SQL, func(s string) bool { return !isLock(s) })...)
	return a
}

// mapAdded maps the added references of an exchange, in its transaction. It returns the added references
// as they are then.
func (j *job) mapAdded(ctx context.Context, tx *sql.Tx, a action) ([]addedReference, error) {
	of, list := j.addedOf(a), slices.Clone(j.state.added)
	if len(of) == 0 {
		return list, nil
	}
	for i, r := range list {
		if !slices.Contains(of, r) {
			continue
		}
		var err error
		if a.Step == StepContract {
			r, err = j.describe(ctx, tx, r)
		}
		if err == nil {
			_, err = j.mapColumn(ctx, tx, r, a.Step == StepUndo)
		}
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", r, err)
		}
		list[i] = r
	}
	return list, j.saveAdded(ctx, tx, list)
}

// checkAdded returns an error if contract or undo couldn't map an added reference.
func (j *job) checkAdded(ctx context.Context, back bool) error {
	for _, r := range j.state.added {
		var exists bool
		err := j.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = pg_catalog.to_regclass($1) AND attname = $2 AND NOT attisdropped)", r.Table, unquote(r.Column)).Scan(&exists)
		if err != nil {
			return err
		}
		if !exists {
			return fmt.Errorf("%w: column %s, which add-reference has mapped, doesn't exist; give it its name again, or, if it was dropped, add an empty one", ErrInconsistent, r)
		}
		if !back {
			if r, err = j.describe(ctx, j.conn, r); err != nil {
				return err
			}
		}
		if r.OldType != "" {
			if err := j.unmatched(ctx, j.conn, r, j.state.job.Keys[r.Key].mapping(back, false)); err != nil {
				return err
			}
		}
	}
	return nil
}

// inOneTransaction runs f in a transaction, again if it doesn't get its locks.
func (j *job) inOneTransaction(ctx context.Context, step Step, title string, f func(tx *sql.Tx, a action) error) error {
	a := action{Action: Action{Step: step, Kind: kindDDL, Title: title}}
	err := j.retry(ctx, a, func(int) error {
		return j.tx(ctx, j.o.LockTimeout, func(tx *sql.Tx) error { return f(tx, a) })
	})
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	j.o.Progress(Progress{Step: step, Action: title, Done: true})
	return nil
}

func (j *job) saveAdded(ctx context.Context, tx *sql.Tx, list []addedReference) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE "+stateTable()+" SET added = $1, updated_at = clock_timestamp()", string(text))
	return err
}
