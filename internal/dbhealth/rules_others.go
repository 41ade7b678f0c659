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

var citusDomain = Rule{
	ID: "citus-domain", Area: "citus",
	Means:  "a distribution column of Citus has a domain: `WHERE id = $1` misses rows",
	Remedy: "undistribute the table, change the type to the domain's base, and distribute it again",
	check: func(ctx context.Context, e *Examination) error {
		if e.report.Server.Citus == nil {
			return nil
		}
		// Citus routes WHERE id = $1 by the hash of the base type, and then misses the rows.
		type column struct{ table, name, domain, base string }
		columns, err := collect(ctx, e, func(c *column) []any { return []any{&c.table, &c.name, &c.domain, &c.base} }, `
			SELECT p.logicalrelid::regclass::text, quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), format_type(t.typbasetype, t.typtypmod)
			FROM pg_dist_partition p JOIN pg_attribute a ON a.attrelid = p.logicalrelid AND a.attname = column_to_column_name(p.logicalrelid, p.partkey)
				JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'd'
			WHERE p.partkey IS NOT NULL ORDER BY 1`)
		for _, c := range columns {
			e.add(Problem, c.table, c.table, fmt.Sprintf("distribution column %s has domain %s: WHERE %[1]s = $1 misses rows", c.name, c.domain),
				fmt.Sprintf("run SELECT undistribute_table('%s'); ALTER TABLE %[1]s ALTER %s TYPE %s; SELECT create_distributed_table('%[1]s', '%[2]s')", c.table, c.name, c.base))
		}
		if err == nil && len(columns) == 0 {
			e.add(OK, "", "distribution columns", "none has a domain", "")
		}
		return err
	},
}

var citusWorker = Rule{
	ID: "citus-worker", Area: "citus",
	Means:  "a worker of Citus has no node number, so defaults fail there",
	Remedy: "reserve a number, and set `sortkey.node_GROUP` of the database",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		if e.report.Server.Citus == nil {
			return nil
		}
		type worker struct{ setting, host, database string }
		workers, err := collect(ctx, e, func(w *worker) []any { return []any{&w.setting, &w.host, &w.database} }, `
			SELECT '$s.node_' || n.groupid, n.nodename, quote_ident(current_database()) FROM pg_dist_node n
			WHERE n.groupid > 0 AND n.noderole = 'primary' AND n.isactive AND coalesce(current_setting('$s.node_' || n.groupid, true), '') = ''
				AND EXISTS (SELECT FROM $s.node_defaults f WHERE f.from_setting)
			ORDER BY n.groupid`)
		for _, w := range workers {
			e.add(Warning, "", w.setting, fmt.Sprintf("not set: worker %s has no node number, so defaults fail there", w.host),
				fmt.Sprintf("reserve a number N, and run ALTER DATABASE %s SET %s = N and SELECT * FROM run_command_on_workers('SELECT %s.prepare_citus_worker()')", w.database, w.setting, e.Config.Schema))
		}
		return err
	},
}
