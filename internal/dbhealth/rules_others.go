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

func checkRekey(ctx context.Context, e *Examination) error {
	// A role that has no USAGE on a schema finds its tables in the catalog, but not by name.
	schemas, err := e.texts(ctx, `SELECT n.nspname FROM pg_class s JOIN pg_namespace n ON n.oid = s.relnamespace
		WHERE n.nspname = '`+rekeySchema+`' AND s.relname = 'rekey_state' AND s.relkind = 'r'
		AND EXISTS (SELECT FROM pg_class p WHERE p.relnamespace = n.oid AND p.relname = 'rekey_pending')`)
	if err != nil || len(schemas) == 0 {
		return err
	}
	var findings []trust.Finding
	var keys, next, lost sql.NullString
	var changed time.Time
	err = e.read(ctx, func(tx *sql.Tx) (err error) {
		if findings, err = trust.Find(ctx, tx, trust.Schemas([]string{rekeySchema}, nil)); err != nil || len(findings) > 0 {
			return err
		}
		return tx.QueryRowContext(ctx, `SELECT s.updated_at, s.job::json->'Actions'->s.position->>'step',
			(SELECT string_agg(k->>'table', ', ') FROM json_array_elements(s.job::json->'Spec'->'keys') k),
			(SELECT string_agg(DISTINCT t->>'Table', ', ') FROM json_array_elements(coalesce(nullif(s.job::json->>'Triggers', 'null'), '[]')::json) t, json_array_elements_text(t->'Names') n
			WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = to_regclass(t->>'Table') AND g.tgname = n AND g.tgenabled = 'A'))
			FROM ONLY `+rekeySchema+`.rekey_state s`).Scan(&changed, &next, &keys, &lost)
	})
	switch {
	case pgerror.State(err) == pgerror.InsufficientPrivilege:
		e.add(Unknown, "", rekeySchema, pgerror.Message(err), "connect as the role that runs sortkey rekey")
		return nil
	case err != nil:
		return err
	case len(findings) > 0:
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

// checkDistribution finds columns with a domain: Citus routes WHERE id = $1 by the hash of the base
// type, and then misses the rows.
func checkDistribution(ctx context.Context, e *Examination) error {
	if e.report.Server.Citus == nil {
		return nil
	}
	n, err := e.addRows(ctx, Problem, `
		SELECT d.name, d.name, format('distribution column %I has domain %s: WHERE %I = $1 misses rows', a.attname, format_type(a.atttypid, a.atttypmod), a.attname),
			format('run SELECT undistribute_table(%L); ALTER TABLE %s ALTER %I TYPE %s; SELECT create_distributed_table(%L, %L)',
				d.name, d.name, a.attname, format_type(t.typbasetype, t.typtypmod), d.name, quote_ident(a.attname))
		FROM pg_dist_partition p, CAST(p.logicalrelid::regclass AS text) AS d (name), pg_attribute a, pg_type t
		WHERE p.partkey IS NOT NULL AND a.attrelid = p.logicalrelid AND a.attname = column_to_column_name(p.logicalrelid, p.partkey)
			AND t.oid = a.atttypid AND t.typtype = 'd' ORDER BY 1`)
	if err == nil && n == 0 {
		e.add(OK, "", "distribution columns", "none has a domain", "")
	}
	return err
}

func checkWorkers(ctx context.Context, e *Examination) error {
	if e.report.Server.Citus == nil {
		return nil
	}
	_, err := e.addRows(ctx, Warning, `
		SELECT '', w.setting, format('not set: worker %s has no node number, so defaults fail there', n.nodename),
			format('reserve a number N, and run ALTER DATABASE %I SET %s = N and SELECT * FROM run_command_on_workers(''SELECT $s.prepare_citus_worker()'')', current_database(), w.setting)
		FROM pg_dist_node n, concat('$s.node_', n.groupid) AS w (setting)
		WHERE n.groupid > 0 AND n.noderole = 'primary' AND n.isactive AND coalesce(current_setting(w.setting, true), '') = ''
			AND EXISTS (SELECT FROM $s.node_defaults f WHERE f.from_setting)
		ORDER BY n.groupid`)
	return err
}
