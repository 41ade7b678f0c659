// Package rekey replaces the primary key of a table in use, and every reference to it,
// with an ID type of package idtype. It is a module of its own; the command sortkey contains it.
//
// The table keeps its rows, and programs keep reading and writing them. From [Expand] to
// [Cleanup], the table has both keys. Programs of the old version use the old key, and
// programs of the new version the new key, on the same rows:
//
//	spec := rekey.Spec{Keys: []rekey.Key{{
//		Table: "orders", Format: rekey.Snowflake, Node: 1022, BackfillNode: 1023,
//		Times: rekey.Times{Column: "created_at"},
//	}}}
//	plan, err := rekey.Inspect(ctx, db, spec, options) // changes nothing
//	err = rekey.Expand(ctx, db, spec, options)         // adds the columns
//	err = rekey.Backfill(ctx, db, options)             // fills them in existing rows
//	err = rekey.Validate(ctx, db, options)             // adds indexes, foreign keys and views
//	// Replace the programs of the old version, one by one.
//	err = rekey.Contract(ctx, db, options)             // exchanges the names of the columns
//	err = rekey.Cleanup(ctx, db, options)              // drops the old columns
//
// Until Contract, [Abort] restores the tables. Until Cleanup, [Undo] takes Contract back, and
// [AddReference] maps a column that was missed. [ReadStatus] returns the next step. The
// command sortkey rekey does all of this, and docs/rekey.md is the guide.
//
// # Two versions of a program
//
// The new columns are named after the old ones: rekey_id is the new key beside id. A
// program of the new version doesn't need these names. [Validate] creates a schema with
// a view of each table, in which the new columns have the names of the old ones. A
// program of the new version puts this schema first in its search_path. [Contract] exchanges the
// names of the columns, and [Cleanup] drops the views, so that a program of the new version needs no
// second release.
//
// Triggers keep both keys equal: a statement that sets a reference by one key sets it by
// the other key, too. Triggers of the application see the old keys until [Contract], and the new
// ones afterwards.
//
// # Who is the authority
//
// The schema of the views also has the table rekey_state with the plan and the progress.
// Each step changes the database and rekey_state in the same transaction. Only CREATE INDEX
// CONCURRENTLY can't run in a transaction; an invalid index is dropped and created again.
// So any step can be repeated after a crash of the program or of the server. An
// advisory lock rejects a second program, with [ErrBusy].
package rekey
