package dbhealth

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sortkey/sortkey/internal/trust"
)

// A ManagedTable is a table with managed partitions.
type ManagedTable struct {
	Table            string         `json:"table"`
	Format           string         `json:"format"`
	Every            string         `json:"every"`
	Premake          int            `json:"premake"`
	Retention        *string        `json:"retention"` // nil: permanent
	RetentionAction  string         `json:"retention_action"`
	DefaultPartition *string        `json:"default_partition"`
	DefaultRows      *int64         `json:"default_rows"` // nil: no default partition, or unknown
	Partitions       int            `json:"partitions"`
	Bytes            int64          `json:"bytes"`
	Horizon          *Moment        `json:"horizon"` // nil: no partition has begun
	HorizonSeconds   *int64         `json:"horizon_seconds"`
	Steps            map[string]int `json:"steps"`             // by action; nil: unknown
	Skipped          string         `json:"skipped,omitempty"` // why the table isn't examined
	Problem          string         `json:"problem,omitempty"`

	OID        int64    `json:"-"`
	DefaultOID int64    `json:"-"`
	Estimate   *int64   `json:"-"` // of the rows in the default partition
	Maintained *float64 `json:"-"` // Unix time of the last successful maintenance; 0: none; nil: unknown

	// The names in queries. Those above are for people, with escapes for bytes that aren't UTF-8.
	name        string
	defaultName string // "": no default partition

	ahead bool // Horizon is an interval ahead, or more
}

// ManagedTables returns the managed tables, without the fields that the methods Read set. Those
// methods, and CountDefaultRows, must not be called for a table with Skipped.
func (e *Examination) ManagedTables(ctx context.Context) ([]*ManagedTable, error) {
	return recall(e, "managed tables", func() (list []*ManagedTable, err error) {
		oids, err := collect(ctx, e, func(oid *int64) []any { return []any{oid} }, "SELECT parent::oid::bigint FROM $s.partitioned_table")
		if err != nil {
			return nil, err
		}
		skipped, err := e.untrusted(ctx, trust.Tables, oids)
		if err != nil {
			return nil, err
		}
		tables, err := collect(ctx, e, func(t *ManagedTable) []any {
			return []any{&t.OID, &t.Table, &t.Format, &t.Every, &t.Premake, &t.Retention, &t.RetentionAction, &t.DefaultOID, &t.DefaultPartition, &t.Partitions, &t.Bytes, &t.Estimate}
		}, `SELECT c.oid::bigint, format('%I.%I', n.nspname, c.relname), t.format, t.every::text, t.premake, t.retention::text, t.retention_action,
				p.partdefid::bigint, (SELECT format('%I.%I', dn.nspname, d.relname) FROM pg_class d JOIN pg_namespace dn ON dn.oid = d.relnamespace WHERE d.oid = p.partdefid),
				(SELECT count(*) FROM pg_inherits i WHERE i.inhparent = c.oid AND i.inhrelid <> p.partdefid), CASE WHEN c.oid = ANY ($1::text::oid[]) THEN 0 ELSE `+SizeOf+` END, (SELECT `+EstimatedRows+` FROM pg_class c WHERE c.oid = p.partdefid)
			FROM $s.partitioned_table t JOIN pg_class c ON c.oid = t.parent JOIN pg_namespace n ON n.oid = c.relnamespace
				JOIN pg_partitioned_table p ON p.partrelid = c.oid ORDER BY 2`, array(slices.Collect(maps.Keys(skipped))))
		for _, t := range tables {
			t.Skipped = visible(reason(skipped[t.OID], t.Table))
			t.name, t.Table = t.Table, visible(t.Table)
			if t.DefaultPartition != nil {
				t.defaultName, t.DefaultPartition = *t.DefaultPartition, visiblePointer(t.DefaultPartition)
			}
			list = append(list, &t)
		}
		return list, err
	})
}

// SizeOf is an SQL expression for the size of a table c and its partitions.
const SizeOf = "(SELECT coalesce(sum(pg_total_relation_size(r.relid)), 0)::bigint FROM pg_partition_tree(c.oid) r)"

// EstimatedRows is an SQL expression for the rows of a table c: the count of the statistics
// since the last crash, or the result of the last ANALYZE or VACUUM.
const EstimatedRows = "coalesce(nullif(pg_stat_get_live_tuples(c.oid), 0), greatest(c.reltuples, 0)::bigint)"

// once calls f once per table and query, and returns its error each time.
func (e *Examination) once(t *ManagedTable, query string, f func() error) error {
	_, err := recall(e, fmt.Sprint(query, " ", t.OID), func() (any, error) { return nil, f() })
	return err
}

// ReadHorizon sets the horizon of a table.
func (e *Examination) ReadHorizon(ctx context.Context, t *ManagedTable) error {
	return e.once(t, "horizon", func() error {
		// One query per table, because the view fails if a table has bounds that are no IDs.
		return e.row(ctx, []any{&t.Horizon, &t.HorizonSeconds, &t.ahead}, `
			SELECT `+MomentOf("h.horizon")+`, CASE WHEN isfinite(h.horizon) THEN extract(epoch FROM h.horizon - clock_timestamp())::bigint END, coalesce(h.horizon >= clock_timestamp() + $2::text::interval, false)
			FROM $s.partition_horizon h WHERE h.parent = $1::bigint::oid`, t.OID, t.Every)
	})
}

// covered reports whether a partition contains the present, after ReadHorizon.
func (t *ManagedTable) covered() bool {
	return t.Horizon != nil && (t.HorizonSeconds == nil || *t.HorizonSeconds > 0)
}

// ReadSteps sets the steps that maintenance would take now. To plan them, the server reads the
// default partition.
func (e *Examination) ReadSteps(ctx context.Context, t *ManagedTable) error {
	return e.once(t, "steps", func() error {
		var steps []byte
		err := e.row(ctx, []any{&steps}, `
			SELECT coalesce(jsonb_object_agg(s.action, s.n), '{}')::text
			FROM (SELECT action, count(*) FROM $s.plan_partitions($1::bigint::oid) GROUP BY action) s (action, n)`, t.OID)
		if err != nil {
			return err
		}
		return json.Unmarshal(steps, &t.Steps)
	})
}

// CountDefaultRows returns the number of rows in the default partition of a table, up to a
// limit.
func (e *Examination) CountDefaultRows(ctx context.Context, t *ManagedTable, limit int) (rows int64, err error) {
	if t.defaultName == "" {
		return 0, nil
	}
	return rows, e.rowOf(ctx, []any{&rows}, fmt.Sprintf("SELECT count(*) FROM (SELECT FROM %s LIMIT %d) r", t.defaultName, limit))
}

// ReadMaintained sets the time of the last successful maintenance.
func (e *Examination) ReadMaintained(ctx context.Context, t *ManagedTable) error {
	return e.once(t, "maintained", func() error {
		return e.row(ctx, []any{&t.Maintained}, `SELECT coalesce(extract(epoch FROM max(l.ended_at)), 0)::float8 FROM $s.partition_log l
			WHERE l.parent_table = $1 AND l.action = 'maintain' AND l.outcome = 'done'`, t.name)
	})
}
