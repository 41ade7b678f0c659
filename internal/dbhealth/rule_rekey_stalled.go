package dbhealth

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/internal/trust"
)

const longRekey = day // without a step: warning above

// rekeySchema is the schema of sortkey rekey.
const rekeySchema = "rekeyed"

var rekeyStalled = Rule{
	ID: "rekey-stalled", Area: "rekey",
	Means:  "a replacement of keys is incomplete, and had no step for a day, or its triggers are missing: each INSERT sets both keys",
	Remedy: "take the next step, or `sortkey rekey undo` and `sortkey rekey abort`",
	check: func(ctx context.Context, e *Examination) error {
		// A role that has no USAGE on a schema finds its tables in the catalog, but not by name.
		schemas, err := e.texts(ctx, `SELECT n.nspname FROM pg_catalog.pg_class s JOIN pg_catalog.pg_namespace n ON n.oid = s.relnamespace
			WHERE n.nspname = '`+rekeySchema+`' AND s.relname = 'rekey_state' AND s.relkind = 'r'
			AND EXISTS (SELECT FROM pg_catalog.pg_class p WHERE p.relnamespace = n.oid AND p.relname = 'rekey_pending')`)
		if err != nil || len(schemas) == 0 {
			return err
		}
		err = e.rekey(ctx)
		if pgerror.State(err) == pgerror.InsufficientPrivilege {
			e.add(Unknown, "", rekeySchema, pgerror.Message(err), "connect as the role that runs sortkey rekey")
			return nil
		}
		return err
	},
}

// rekey examines the replacement of keys.
func (e *Examination) rekey(ctx context.Context) error {
	var findings []trust.Finding
	var keys, next, lost sql.NullString
	var changed time.Time
	err := e.read(ctx, func(tx *sql.Tx) (err error) {
		if findings, err = trust.Find(ctx, tx, trust.Schemas([]string{rekeySchema}, nil)); err != nil || len(findings) > 0 {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT s.updated_at, s.job::pg_catalog.json->'Actions'->s.position->>'step',
			(SELECT pg_catalog.string_agg(k->>'table', ', ') FROM pg_catalog.json_array_elements(s.job::pg_catalog.json->'Spec'->'keys') k),
			(SELECT pg_catalog.string_agg(DISTINCT t->>'Table', ', ') FROM pg_catalog.json_array_elements(coalesce(nullif(s.job::pg_catalog.json->>'Triggers', 'null'), '[]')::pg_catalog.json) t, pg_catalog.json_array_elements_text(t->'Names') n
			WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = pg_catalog.to_regclass(t->>'Table') AND g.tgname = n AND g.tgenabled = 'A'))
			FROM ONLY `+rekeySchema+`.rekey_state s`).Scan(&changed, &next, &keys, &lost)
	})
	if err != nil {
		return err
	}
	if len(findings) > 0 {
		e.add(Warning, "", rekeySchema, trust.List(findings)+" ("+trust.Rule+")", "don't run sortkey rekey, unless you connect as its owner")
		return nil
	}
	now := e.serverNow()
	detail := fmt.Sprintf("keys of %s: the next step is %s, the last change was %s", keys.String, next.String, distance(changed, now))
	contracted := next.String == "cleanup"
	switch {
	case lost.Valid && next.String != "expand" && next.String != "abort": // these steps create or drop the triggers
		remedy := "run sortkey rekey backfill and sortkey rekey validate, which restore them"
		if contracted {
			remedy = "run sortkey rekey cleanup, or sortkey rekey undo, which restores them"
		}
		e.add(Warning, "", rekeySchema, detail+"; triggers of rekey on "+lost.String+" are missing or disabled, so rows can have one key alone", remedy)
	case now.Sub(changed) < longRekey:
		e.add(OK, "", rekeySchema, detail, "")
	case contracted:
		e.add(Warning, "", rekeySchema, detail, "run sortkey rekey cleanup, or sortkey rekey undo; until then, each INSERT and DELETE takes some 5 to 30 µs per row more, and old keys are used up")
	default:
		e.add(Warning, "", rekeySchema, detail, "run sortkey rekey "+next.String+", or sortkey rekey abort; until then, each INSERT sets both keys")
	}
	return nil
}
