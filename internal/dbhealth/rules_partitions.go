package dbhealth

import (
	"context"
	"fmt"
	"time"
)

func checkSkippedTables(ctx context.Context, e *Examination) error {
	tables, err := e.ManagedTables(ctx)
	if err == nil && len(tables) == 0 {
		e.add(OK, "", "managed tables", "none", "")
	}
	for _, t := range tables {
		if t.Skipped != "" {
			e.skip(t.Table, t.Skipped)
		}
	}
	return err
}

func checkMissingTables(ctx context.Context, e *Examination) error {
	if _, err := e.ManagedTables(ctx); err != nil { // for the same error as in the other rules, if the installation is outdated
		return err
	}
	_, err := e.addRows(ctx, Warning, `
		SELECT format('%I.%I', s.schema, s.name), format('%I.%I', s.schema, s.name), 'has settings for partitions, and doesn''t exist',
			format('restore the table with its data, or run DELETE FROM $s.partition_settings WHERE schema = %L AND name = %L', s.schema, s.name)
		FROM $s.partition_settings s WHERE NOT EXISTS (SELECT FROM $s.partitioned_table t WHERE t.parent = s.id)
			AND NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = s.schema AND c.relname = s.name) ORDER BY 1`)
	return err
}

// eachTable returns a check that calls f for each managed table that the session may open. If the
// role can't read one, the check adds a finding.
func eachTable(f func(context.Context, *Examination, *ManagedTable) error) checkFunc {
	return func(ctx context.Context, e *Examination) error {
		tables, err := e.ManagedTables(ctx)
		for _, t := range tables {
			if t.Skipped != "" {
				continue
			}
			if err := e.fail(ctx, t.Table, t.Table, f(ctx, e, t)); err != nil {
				return err
			}
		}
		return err
	}
}

// runRegularly returns the remedy for missing partitions.
func (e *Examination) runRegularly() string {
	return e.sql("run " + e.command("partitions run") + " regularly, or CALL $s.maintain_partitions()")
}

func checkHorizon(ctx context.Context, e *Examination, t *ManagedTable) error {
	if err := e.ReadHorizon(ctx, t); err != nil {
		return err
	}
	remedy := e.runRegularly()
	switch {
	case !t.covered() && t.DefaultPartition != nil:
		e.add(Problem, t.Table, t.Table, "no partition covers the present: new rows go to the default partition", remedy)
	case !t.covered():
		e.add(Problem, t.Table, t.Table, "no partition covers the present: inserts fail", remedy)
	case !t.ahead:
		e.add(Problem, t.Table, t.Table, e.until(t)+", less than one interval ahead", remedy)
	default:
		e.add(OK, t.Table, t.Table, e.until(t), "")
	}
	return nil
}

// until describes the horizon of a table.
func (e *Examination) until(t *ManagedTable) string {
	until := t.Horizon.Infinite
	if until == "" {
		until = fmt.Sprintf("%s (%s)", t.Horizon.Format(time.DateTime+" UTC"), t.Horizon.From(e.serverNow()))
	}
	return fmt.Sprintf("partitions of %s until %s", t.Every, until)
}

func checkPremake(ctx context.Context, e *Examination, t *ManagedTable) error {
	if e.ReadHorizon(ctx, t) != nil || !t.covered() || !t.ahead {
		return nil // partition-horizon
	}
	if err := e.ReadSteps(ctx, t); err != nil {
		return err
	}
	if missing := t.Steps["create"]; missing*2 >= t.Premake && missing > 0 {
		e.add(Warning, t.Table, t.Table, fmt.Sprintf("%s; %d of %d partitions ahead are missing", e.until(t), missing, t.Premake), e.runRegularly())
	}
	return nil
}

const countedRows = 1000 // of a default partition

func checkDefault(ctx context.Context, e *Examination, t *ManagedTable) error {
	rows, err := e.CountDefaultRows(ctx, t, countedRows)
	if err != nil || rows == 0 {
		return err
	}
	if err := e.ReadSteps(ctx, t); err != nil {
		return err
	}
	count := plural(rows, "row", "")
	if rows == countedRows {
		count = "1,000 rows or more"
	}
	var key string
	if err := e.row(ctx, []any{&key}, `SELECT quote_ident(a.attname) FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
		WHERE p.partrelid = $1::bigint::oid`, t.OID); err != nil {
		return err
	}
	find := fmt.Sprintf("SELECT %s.%s_time(%s), * FROM %s ORDER BY %[3]s", e.Config.Schema, t.Format, key, *t.DefaultPartition)
	remedy := "run " + find + " to see them. Maintenance doesn't move rows older than the retention: delete them, or move them to another table. It moves later rows when their time comes: if that is far in the future, correct the clock of the program that generated them"
	if t.Steps["drain"] > 0 {
		remedy = "run " + e.command("partitions run") + ", which moves rows within the retention and the partitions ahead to partitions of their own; if rows remain, run " + find + " to see them"
	}
	e.add(Warning, t.Table, t.Table, fmt.Sprintf("default partition %s has %s outside all other partitions", *t.DefaultPartition, count), remedy)
	return nil
}

func checkMaintenance(ctx context.Context, e *Examination, t *ManagedTable) error {
	var last *time.Time
	var late bool
	var outcome, failure string
	err := e.row(ctx, []any{&last, &late, &outcome, &failure}, `
		WITH l AS (
			SELECT l.* FROM $s.partition_log l WHERE l.parent_table = $1
		), runs AS (
			SELECT l.ended_at, row_number() OVER (ORDER BY l.ended_at DESC) AS number FROM l WHERE l.action = 'maintain'
		)
		SELECT r.ended_at, coalesce(r.ended_at < clock_timestamp() - greatest($2::text::interval, interval '1 day'), false),
			coalesce(f.outcome, ''), concat(concat_ws(' ', f.action, f.partition), ': ', f.problem)
		FROM (SELECT) x LEFT JOIN runs r ON r.number = 1
			LEFT JOIN LATERAL (
				SELECT * FROM l WHERE l.outcome <> 'done' AND l.ended_at > coalesce((SELECT b.ended_at FROM runs b WHERE b.number = 2), '-infinity')
				ORDER BY l.outcome = 'failed' DESC, l.ended_at DESC LIMIT 1
			) f ON true`, t.name, t.Every)
	switch {
	case err != nil:
		return err
	case outcome == "failed":
		e.add(Problem, t.Table, t.Table, "the last maintenance of a table with this name failed at step "+failure, "correct the cause, and run "+e.command("partitions run"))
	case outcome != "":
		e.add(Warning, t.Table, t.Table, "the last maintenance of a table with this name skipped step "+failure, "run "+e.command("partitions run")+" while no long transaction uses the table")
	case late:
		e.add(Warning, t.Table, t.Table, "the last maintenance was "+distance(*last, e.serverNow()), "run "+e.command("partitions run")+" every hour or so")
	case last != nil:
		e.add(OK, t.Table, t.Table, "the last maintenance was "+distance(*last, e.serverNow()), "")
	}
	return nil
}
