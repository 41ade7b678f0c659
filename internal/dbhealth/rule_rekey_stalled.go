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

// rekeySchema is the schema that sortkey rekey uses by default.
const rekeySchema = "rekeyed"

var rekeyStalled = Rule{
	ID: "rekey-stalled", Area: "rekey",
	Means:  "a replacement of keys is incomplete, and had no step for a day: each INSERT sets both keys",
	Remedy: "take the next step, or `sortkey rekey abort`",
	check: func(ctx context.Context, e *Examination) error {
		// A role that has no USAGE on a schema finds its tables in the catalog, but not by name.
		schemas, err := e.texts(ctx, `SELECT n.nspname FROM pg_catalog.pg_class s JOIN pg_catalog.pg_namespace n ON n.oid = s.relnamespace
			WHERE s.relname = 'rekey_state' AND s.relkind = 'r' AND n.nspname ~ '^[a-z_][a-z0-9_]*$'
			AND EXISTS (SELECT FROM pg_catalog.pg_class p WHERE p.relnamespace = n.oid AND p.relname = 'rekey_pending') ORDER BY 1`)
		if err != nil {
			return err
		}
		for _, schema := range schemas {
			if err := e.rekey(ctx, schema); pgerror.State(err) == pgerror.InsufficientPrivilege {
				e.add(Unknown, "", schema, pgerror.Message(err), "connect as the role that runs sortkey rekey")
			} else if err != nil {
				return err
			}
		}
		return nil
	},
}

// rekey examines the replacement of keys whose plan is in a schema.
func (e *Examination) rekey(ctx context.Context, schema string) error {
	var findings []trust.Finding
	var keys, next sql.NullString
	var changed time.Time
	err := e.read(ctx, func(tx *sql.Tx) (err error) {
		if findings, err = trust.Find(ctx, tx, trust.Schemas([]string{schema}, nil)); err != nil || len(findings) > 0 {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT s.updated_at, s.job::pg_catalog.json->'Actions'->s.position->>'step',
			(SELECT pg_catalog.string_agg(k->>'table', ', ') FROM pg_catalog.json_array_elements(s.job::pg_catalog.json->'Spec'->'keys') k) FROM ONLY `+schema+`.rekey_state s`).
			Scan(&changed, &next, &keys)
	})
	if err != nil {
		return err
	}
	if len(findings) > 0 {
		e.add(Warning, "", schema, trust.List(findings)+" ("+trust.Rule+")", "don't run sortkey rekey with this schema, unless you connect as its owner")
		return nil
	}
	now := e.serverNow()
	detail := fmt.Sprintf("keys of %s: the next step is %s, the last change was %s", keys.String, next.String, distance(changed, now))
	if now.Sub(changed) < longRekey {
		e.add(OK, "", schema, detail, "")
		return nil
	}
	flag := ""
	if schema != rekeySchema {
		flag = " --views " + schema
	}
	e.add(Warning, "", schema, detail, fmt.Sprintf("run sortkey rekey %s%s, or sortkey rekey abort%[2]s; until then, each INSERT sets both keys", next.String, flag))
	return nil
}
