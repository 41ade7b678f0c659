{{/*
The tables and the views in lines. The parameters are names of tables, of columns that change, and of views. An ACL
is sorted, since the order of its entries has no meaning. Whether an index is a primary key is left out, since
that stays with the old column until cleanup.
*/}}
{{define "fingerprint" -}}
WITH tables AS MATERIALIZED (
    SELECT c.oid::regclass::text AS name, c.* FROM pg_class c WHERE c.relkind = 'r' AND c.oid::regclass::text = ANY ($1::text::text[])
), views AS MATERIALIZED (
    SELECT c.oid::regclass::text AS name, c.* FROM pg_class c WHERE c.relkind = 'v' AND c.oid::regclass::text = ANY ($3::text::text[])
), columns AS (
    SELECT t.name || '.' || a.attname AS name, a.*, t.name || '.' || a.attname = ANY ($2::text::text[]) AS changes
    FROM tables t JOIN pg_attribute a ON a.attrelid = t.oid WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname !~ '^rekey_'
), acl AS (
    SELECT o.kind || 'privilege ' || a.privilege_type || ' on ' || o.name || ' for ' || coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC') || CASE WHEN a.is_grantable THEN ' with grant option' ELSE '' END AS line
    FROM (
        SELECT '' AS kind, name, coalesce(relacl, acldefault('r', relowner)) AS relacl FROM tables
        UNION ALL SELECT CASE WHEN changes THEN 'key ' ELSE '' END, 'column ' || name, attacl FROM columns
        UNION ALL SELECT 'view ', name, coalesce(relacl, acldefault('r', relowner)) FROM views
    ) o, aclexplode(o.relacl) a
)
SELECT line FROM (
    SELECT 'table ' || t.name || ': ' || concat_ws(', ', 'options ' || t.reloptions::text, 'replica identity ' || t.relreplident::text, 'comment ' || obj_description(t.oid, 'pg_class')) AS line FROM tables t
    UNION ALL
    SELECT 'owner and row security of table ' || t.name || ': ' || concat_ws(', ', t.relowner::regrole, CASE WHEN t.relrowsecurity THEN 'row security' END, CASE WHEN t.relforcerowsecurity THEN 'forced row security' END) FROM tables t
    UNION ALL
    SELECT CASE WHEN c.changes THEN 'key ' ELSE '' END || 'column ' || c.name || ': ' || concat_ws(', ', CASE WHEN c.attnotnull THEN 'NOT NULL' END, 'comment ' || col_description(c.attrelid, c.attnum)) FROM columns c
    UNION ALL
    SELECT CASE WHEN c.changes THEN 'type and default of ' ELSE 'type of column ' END || c.name || ': ' || concat_ws(', ', format_type(c.atttypid, c.atttypmod),
        CASE WHEN c.attidentity <> '' THEN 'identity ' || c.attidentity::text END, CASE WHEN c.attgenerated <> '' THEN 'generated' END, 'default ' || pg_get_expr(d.adbin, d.adrelid))
    FROM columns c LEFT JOIN pg_attrdef d ON d.adrelid = c.attrelid AND d.adnum = c.attnum
    UNION ALL
    SELECT 'index ' || c.relname || ': ' || pg_get_indexdef(c.oid) || concat_ws(', ', '', CASE WHEN NOT i.indisvalid THEN 'invalid' END,
        'tablespace ' || s.spcname, 'comment ' || obj_description(c.oid, 'pg_class'))
    FROM tables t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_tablespace s ON s.oid = c.reltablespace WHERE c.relname !~ '^rekey_'
    UNION ALL
    SELECT 'constraint ' || k.conname || ' of ' || t.name || ': ' || CASE WHEN k.contype = 'f'
        THEN concat_ws(', ', 'foreign key to', k.confrelid::regclass, k.confdeltype, k.confupdtype, k.confmatchtype, cardinality(k.confdelsetcols), k.condeferrable, k.condeferred) -- its columns have other names
        ELSE pg_get_constraintdef(k.oid) END || concat_ws(', ', '', CASE WHEN NOT k.convalidated THEN 'not validated' END, 'comment ' || obj_description(k.oid, 'pg_constraint'))
    FROM pg_constraint k JOIN tables t ON t.oid = k.conrelid WHERE k.contype NOT IN ('t', 'p') AND k.conname !~ '^rekey_'
    UNION ALL
    SELECT 'trigger ' || g.tgname || ' of ' || t.name || ': ' || pg_get_triggerdef(g.oid) || ', ' || g.tgenabled::text || concat_ws(', ', '', 'comment ' || obj_description(g.oid, 'pg_trigger'))
    FROM pg_trigger g JOIN tables t ON t.oid = g.tgrelid WHERE NOT g.tgisinternal AND g.tgname !~ '{{ownTriggers}}'
    UNION ALL
    SELECT 'policy ' || p.polname || ' of ' || t.name || ': ' || concat_ws(', ', p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)) FROM pg_policy p JOIN tables t ON t.oid = p.polrelid
    UNION ALL
    SELECT 'publication ' || p.pubname || ' of ' || t.name || ': ' || concat_ws(', ', (SELECT string_agg(a.attname, ', ' ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs::smallint[])), pg_get_expr(r.prqual, r.prrelid))
    FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid JOIN tables t ON t.oid = r.prrelid
    UNION ALL
    SELECT 'view ' || v.name || ': ' || concat_ws(', ', (SELECT string_agg(concat_ws(' ', a.attname, col_description(a.attrelid, a.attnum)), ', ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = v.oid AND a.attnum > 0),
        'options ' || v.reloptions::text, 'owner ' || v.relowner::regrole, 'comment ' || obj_description(v.oid, 'pg_class')) FROM views v
    UNION ALL
    SELECT 'query of view ' || v.name || ': ' || pg_get_viewdef(v.oid) FROM views v
    UNION ALL
    SELECT line FROM acl
) x ORDER BY line
{{- end}}

{{/* The triggers of rekey that are missing or disabled. The parameters are tables and their triggers, one pair per trigger. */}}
{{define "lost triggers" -}}
SELECT DISTINCT x.name FROM unnest($1::text::text[], $2::text::text[]) x (name, trigger)
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = pg_catalog.to_regclass(x.name) AND t.tgname = x.trigger AND t.tgenabled = 'A') ORDER BY 1
{{- end}}

{{/* A description of a row a of pg_stat_activity. */}}
{{define "session of" -}}
pg_catalog.concat('session ', a.pid, ' (' || nullif(pg_catalog.concat_ws(', ', nullif(a.application_name, ''), nullif(a.backend_type, 'client backend'), a.state), '') || ')')
{{- end}}

{{/* The oldest other transaction that holds a lock on one of the tables. */}}
{{define "holder" -}}
SELECT concat_ws(' ', {{template "session of"}}, 'has a lock on', l.relation::regclass, 'in a transaction since ' || date_trunc('second', a.xact_start))
    FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.granted AND l.pid <> pg_backend_pid() AND l.relation IN (SELECT to_regclass(x) FROM unnest($1::text::text[]) x) AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY a.xact_start, a.pid LIMIT 1
{{- end}}

{{/*
The settings of a batch. They make it read its rows, and the rows that they refer to, by indexes or by pages.
The new column has no statistics yet, so the server would expect few rows without a new key, and read and sort
the whole table for each batch. With the role replica, an UPDATE fires no triggers. Otherwise, the triggers of
rekey leave the row as the batch sets it.
*/}}
{{define "batch settings" -}}
SELECT set_config(name, setting, true) FROM (VALUES
    ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'), ('enable_sort', 'off'), ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('jit', 'off'),
    ('plan_cache_mode', 'force_custom_plan'), ('timezone', 'UTC'), ('datestyle', 'ISO'), ('{{.}}', 'on'), ('session_replication_role', 'replica')) s (name, setting)
    WHERE name <> 'session_replication_role' OR $1::boolean
{{- end}}

{{/* The triggers that can keep rows from their update. */}}
{{define "stopping triggers" -}}
SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = $1::text::regclass AND NOT tgisinternal AND tgtype & 19 = 19 AND tgname !~ '{{ownTriggers}}'
    AND (tgenabled IN ('A', 'R') OR tgenabled = 'O' AND NOT $2::boolean) ORDER BY 1
{{- end}}

{{/* The position in the WAL, and the replica that is furthest behind. */}}
{{define "pressure" -}}
SELECT row_to_json(x)::text FROM (SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint AS "Position",
    coalesce(r.application_name, '') AS "Replica", coalesce(pg_wal_lsn_diff(r.replay_lsn, '0/0')::bigint, 9223372036854775807) AS "Replayed"
    FROM (SELECT) one LEFT JOIN (SELECT * FROM pg_stat_replication WHERE replay_lsn IS NOT NULL ORDER BY replay_lsn LIMIT 1) r ON true) x
{{- end}}

{{/* The type of a column and its base type, and the reason for which the column is no reference. The parameters are its table and its name. */}}
{{define "added column" -}}
SELECT pg_catalog.format_type(a.atttypid, a.atttypmod), t.typname, coalesce(
        CASE WHEN a.attidentity <> '' OR a.attgenerated <> '' THEN 'is an identity or a generated column; map another column' END,
        (SELECT 'is in the primary key of its table and has a default, so it is a key of its own; map another column'
            FROM pg_catalog.pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey) AND a.atthasdef),
        (SELECT 'belongs to foreign key ' || pg_catalog.quote_ident(k.conname) || ' of ' || k.conrelid::pg_catalog.regclass || '; drop it, map the columns of both tables, and create it again'
            FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND (k.conrelid = a.attrelid AND a.attnum = ANY (k.conkey) OR k.confrelid = a.attrelid AND a.attnum = ANY (k.confkey)) ORDER BY k.conname LIMIT 1), '')
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = $1::text::pg_catalog.regclass AND a.attname = $2 AND a.attnum > 0 AND NOT a.attisdropped
{{- end}}

{{/* Replaces the keys in a column, also the keys of deleted rows. A text has an explicit collation, since the two columns can have different ones. */}}
{{define "map a column" -}}
UPDATE {{.table}} t SET {{.column}} = p.replacement{{if .text}}::text{{end}} FROM (
        SELECT k.{{.mapping.From}} AS present, k.{{.mapping.To}} AS replacement FROM ONLY {{.key.Table}} k
        UNION ALL
        SELECT d.{{.mapping.FromText}}::{{.mapping.FromType}}, d.{{.mapping.ToText}}::{{.mapping.ToType}} FROM {{.pending}} d
            WHERE d.key = {{.key.N}} AND NOT EXISTS (SELECT FROM ONLY {{.key.Table}} k WHERE k.{{.mapping.From}}::text COLLATE "C" = d.{{.mapping.FromText}})
    ) p WHERE p.present{{if .text}}::text COLLATE "C"{{end}} = t.{{.column}} AND {{.meets}}
{{- end}}
