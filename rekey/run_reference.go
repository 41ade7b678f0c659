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

// An addedReference is a column that AddReference has mapped.
type addedReference struct {
	Key                   int
	Table, Column, Family string // qualified and quoted
	OldType               string // if the type has changed
	Where                 string
}

// AddReference gives the rows of a column new keys that Inspect and the Spec have missed. It can run
// after [Contract], until [Cleanup]. Values that are no old keys, such as new ones that programs have
// written since, stay. It returns the number of rows that it has changed.
//
// A column of the new type or a text is updated, in one statement. Another one gets the new type,
// which rewrites its table, so that programs wait meanwhile. [Undo] takes both back.
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
		added := addedReference{Key: i, Table: table, Where: r.Where}
		rows, err = j.mapReference(ctx, added, r.Column)
		return err
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

// mapReference maps a column to new keys, and records that.
func (j *job) mapReference(ctx context.Context, r addedReference, column string) (rows int64, err error) {
	k := j.state.job.Keys[r.Key]
	var kind, base string
	err = j.conn.QueryRowContext(ctx, `SELECT pg_catalog.quote_ident(a.attname), pg_catalog.format_type(a.atttypid, a.atttypmod), t.typname
		FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid WHERE a.attrelid = $1::text::pg_catalog.regclass AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped`, r.Table, column).Scan(&r.Column, &kind, &base)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("table %s has no column %q; correct the name", r.Table, column)
	}
	if err != nil {
		return 0, err
	}
	if slices.Contains(j.state.job.Objects.Columns, r.Table+"."+column) {
		return 0, fmt.Errorf("column %s.%s changes already", r.Table, r.Column)
	}
	r.Family = baseTypes[base]
	if r.Family == "" || r.Family != baseTypes[k.OldBase] && r.Family != "text" {
		return 0, fmt.Errorf("column %s.%s has type %s, and the old key of %s has type %s; map the rows by column %s of that table", r.Table, r.Column, kind, k.Table, k.OldType, k.Hidden)
	}
	if kind != k.NewType && r.Family != "text" {
		r.OldType = kind
	}
	err = j.inOneTransaction(ctx, StepCleanup, "map "+r.Table+"."+r.Column, func(tx *sql.Tx, a action) error {
		if r.OldType != "" {
			if r.Where != "" {
				return fmt.Errorf("column %s.%s has type %s, which the rows that don't meet the condition keep; move them to a column of their own", r.Table, r.Column, kind)
			}
			if err := j.unmatched(ctx, tx, r, k); err != nil {
				return err
			}
			if err := j.execute(ctx, tx, a, append(lock(allPrograms, r.Table), fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %s(%[2]s)", r.Table, r.Column, k.NewType, k.NewOf))); err != nil {
				return err
			}
			if err := tx.QueryRowContext(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NOT NULL", r.Table, r.Column)).Scan(&rows); err != nil {
				return err
			}
		} else if rows, err = j.update(ctx, tx, r, k.Hidden, k.Visible); err != nil {
			return err
		}
		return j.saveAdded(ctx, tx, append(slices.Clone(j.state.added), r))
	})
	return rows, err
}

// unmatched returns an error if values of a column are no keys.
func (j *job) unmatched(ctx context.Context, tx *sql.Tx, r addedReference, k savedKey) error {
	var count int64
	var most sql.NullString
	value, pending := "t."+r.Column, pendingTable()
	err := tx.QueryRowContext(ctx, "SELECT count(*), mode() WITHIN GROUP (ORDER BY "+value+"::text) FROM "+r.Table+" t WHERE "+value+" IS NOT NULL AND NOT EXISTS (SELECT FROM ONLY "+k.Table+" p WHERE p."+k.Hidden+" = "+value+
		") AND NOT EXISTS (SELECT FROM "+pending+" d WHERE d.key = $1 AND d.old_key = "+value+"::text COLLATE \"C\")", k.N).Scan(&count, &most)
	if count > 0 {
		err = fmt.Errorf("%w: %d rows of %s refer to no row of %s, most often with the value %q; delete these rows, or set the column to NULL", ErrInconsistent, count, r.Table, k.Table, most.String)
	}
	return err
}

// update replaces the keys in a column: from and to are the columns of the key's table.
func (j *job) update(ctx context.Context, tx *sql.Tx, r addedReference, from, to string) (int64, error) {
	k := j.state.job.Keys[r.Key]
	key, value := "p."+from, "p."+to
	if r.Family == "text" {
		key, value = key+"::text", value+"::text"
	}
	where := ""
	if r.Where != "" {
		where = " AND (SELECT (" + r.Where + ") FROM (SELECT t.*) x)"
	}
	_, err := tx.ExecContext(ctx, "SELECT pg_catalog.set_config('"+backfillSetting+"', 'on', true), CASE WHEN $1::boolean THEN pg_catalog.set_config('session_replication_role', 'replica', true) END", j.state.job.ReplicaRole)
	if err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s t SET %s = %s FROM ONLY %s p WHERE %s = t.%[2]s%[6]s", r.Table, r.Column, value, k.Table, key, where))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
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

// undoAdded maps the columns of AddReference back, the last one first.
func (j *job) undoAdded(ctx context.Context) error {
	for len(j.state.added) > 0 {
		last := len(j.state.added) - 1
		r, k := j.state.added[last], j.state.job.Keys[j.state.added[last].Key]
		err := j.inOneTransaction(ctx, j.state.next(), "map "+r.Table+"."+r.Column+" back", func(tx *sql.Tx, a action) (err error) {
			if r.OldType != "" {
				err = j.execute(ctx, tx, a, append(lock(allPrograms, r.Table), fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s TYPE %s USING %s(%[2]s)", r.Table, r.Column, r.OldType, k.OldOf)))
			} else {
				_, err = j.update(ctx, tx, r, k.Visible, k.Hidden)
			}
			if err != nil {
				return err
			}
			return j.saveAdded(ctx, tx, j.state.added[:last])
		})
		if err != nil {
			return err
		}
		j.state.added = j.state.added[:last]
	}
	return nil
}
