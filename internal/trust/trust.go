// Package trust renders queries that find objects of roles that a session doesn't trust.
//
// A statement runs code that it doesn't name: a view's functions, a trigger, a policy, the
// CHECK of a domain. That code has the rights of the session. Which code it is can't be judged
// from outside. So before a command uses a schema or opens a table, it asks the catalog for the
// owner:
//
//   - A session trusts itself, the roles that it is a member of, the owner of the
//     database, and superusers.
//   - A session of a superuser trusts only superusers: it is a member of every role.
//
// The rules hold for the session's user and for its current role, because any code can
// run RESET ROLE.
package trust

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Rule states the rules in a sentence, for errors.
const Rule = "a session trusts itself, roles that it is a member of, the database's owner and superusers; a superuser trusts only superusers"

// Roles is a query for the OIDs of the roles that the session trusts. pg_database_owner
// stands for the owner of the database.
const Roles = `SELECT o.oid FROM pg_catalog.pg_roles o, pg_catalog.pg_database d, pg_catalog.pg_roles b
    WHERE d.datname = pg_catalog.current_database() AND b.oid = d.datdba AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_roles s WHERE s.rolname IN (session_user, current_user)
            AND NOT CASE WHEN s.rolsuper THEN o.rolsuper OR o.rolname = 'pg_database_owner' AND b.rolsuper
                ELSE o.rolsuper OR o.oid = b.oid OR o.rolname = 'pg_database_owner' OR pg_catalog.pg_has_role(s.oid, o.oid, 'MEMBER') END)`

// Installation renders [Schemas] for the two schemas of an installation by package migrations.
// Other roles may write to the tables of partitions, whose rows the functions check.
func Installation(schema string) string {
	return Schemas([]string{schema, schema + "_internal"}, []string{"partition_settings", "partition_log"})
}

// Schemas renders a query for the problems with schemas and the objects in them: objects of
// untrusted roles, untrusted roles that can create objects or write to tables, and their
// triggers. Each row has an object and a reason. Others may write to the tables in
// shared. The names are put into literals without quoting.
func Schemas(schemas, shared []string) string {
	names := func(list []string) string { return "'{" + strings.Join(list, ",") + "}'::pg_catalog.name[]" }
	return `WITH trusted AS MATERIALIZED (` + Roles + `),
spaces AS (SELECT n.oid, n.nspowner, n.nspacl FROM pg_catalog.pg_namespace n WHERE n.nspname = ANY (` + names(schemas) + `)),
tables AS (SELECT c.* FROM pg_catalog.pg_class c WHERE c.relnamespace IN (SELECT oid FROM spaces) AND c.relkind NOT IN ('i', 'I', 't')),
owned (class, oid, owner) AS (
    SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid, nspowner FROM spaces
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, oid, relowner FROM tables
    UNION ALL SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, p.proowner FROM pg_catalog.pg_proc p WHERE p.pronamespace IN (SELECT oid FROM spaces)
    UNION ALL SELECT 'pg_catalog.pg_type'::pg_catalog.regclass, t.oid, t.typowner FROM pg_catalog.pg_type t WHERE t.typnamespace IN (SELECT oid FROM spaces) AND t.typrelid = 0 AND t.typelem = 0
    UNION ALL SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass, o.oid, o.oprowner FROM pg_catalog.pg_operator o WHERE o.oprnamespace IN (SELECT oid FROM spaces)
    UNION ALL SELECT 'pg_catalog.pg_opclass'::pg_catalog.regclass, o.oid, o.opcowner FROM pg_catalog.pg_opclass o WHERE o.opcnamespace IN (SELECT oid FROM spaces)
), writers (class, oid, grantee, privilege) AS (
    SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, s.oid, a.grantee, a.privilege_type FROM spaces s, pg_catalog.aclexplode(s.nspacl) a WHERE a.privilege_type = 'CREATE' AND a.grantee <> s.nspowner
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, t.oid, a.grantee, a.privilege_type FROM tables t, pg_catalog.aclexplode(t.relacl) a
        WHERE a.grantee <> t.relowner AND (t.relname <> ALL (` + names(shared) + `) OR a.privilege_type = 'TRIGGER') AND (t.relkind IN ('r', 'p', 'f') AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER') OR t.relkind = 'S' AND a.privilege_type = 'UPDATE')
    UNION ALL SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, t.oid, a.grantee, a.privilege_type FROM tables t JOIN pg_catalog.pg_attribute c ON c.attrelid = t.oid, pg_catalog.aclexplode(c.attacl) a
        WHERE t.relname <> ALL (` + names(shared) + `) AND t.relkind IN ('r', 'p', 'f') AND a.privilege_type IN ('INSERT', 'UPDATE')
)
SELECT * FROM (
    SELECT pg_catalog.pg_describe_object(o.class, o.oid, 0), pg_catalog.format('belongs to role %I', pg_catalog.pg_get_userbyid(o.owner)) FROM owned o
        WHERE o.owner NOT IN (SELECT oid FROM trusted) AND (o.class = 'pg_catalog.pg_namespace'::pg_catalog.regclass OR o.owner NOT IN (SELECT nspowner FROM spaces)) -- once per owner of a schema
    UNION SELECT pg_catalog.pg_describe_object(w.class, w.oid, 0), pg_catalog.format('grants %s to %s', w.privilege, CASE w.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.format('role %I', pg_catalog.pg_get_userbyid(w.grantee)) END)
        FROM writers w WHERE w.grantee NOT IN (SELECT oid FROM trusted)
    UNION SELECT pg_catalog.pg_describe_object('pg_catalog.pg_trigger'::pg_catalog.regclass, g.oid, 0), pg_catalog.format('calls a function of role %I', pg_catalog.pg_get_userbyid(p.proowner))
        FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid WHERE g.tgrelid IN (SELECT oid FROM tables) AND p.proowner NOT IN (SELECT oid FROM trusted UNION SELECT nspowner FROM spaces)
) x (object, reason) ORDER BY object !~ '^schema ', 1, 2`
}

// Definitions renders a query for the tables and views in schemas, and for everything about them that
// can run code: triggers, rules, policies, constraints with an expression, indexes and statistics
// with an expression, defaults, other types than the server's, and children. Each row has the
// name of a relation and a definition, which begins with the [Part] that it defines.
func Definitions(schemas []string) string {
	return `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS relation, pg_catalog.regexp_replace(x.definition, '\s+', ' ', 'g')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace, LATERAL (
    SELECT 'kind: ' || c.relkind::pg_catalog.text
    UNION ALL SELECT pg_catalog.format('type of %I: %s', a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)) FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND t.typnamespace <> 'pg_catalog'::pg_catalog.regnamespace
    UNION ALL SELECT pg_catalog.format('default of %I: %s', a.attname, pg_catalog.pg_get_expr(d.adbin, d.adrelid)) FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = c.oid
    UNION ALL SELECT pg_catalog.format('constraint %I: %s', k.conname, pg_catalog.pg_get_constraintdef(k.oid)) FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('c', 'x')
    UNION ALL SELECT pg_catalog.format('index %s: %s', i.indexrelid::pg_catalog.regclass, pg_catalog.pg_get_indexdef(i.indexrelid)) FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
    UNION ALL SELECT pg_catalog.format('statistics %I: %s', s.stxname, pg_catalog.pg_get_statisticsobjdef(s.oid)) FROM pg_catalog.pg_statistic_ext s WHERE s.stxrelid = c.oid AND s.stxexprs IS NOT NULL
    UNION ALL SELECT pg_catalog.format('trigger %I: %s, %s', g.tgname, pg_catalog.pg_get_triggerdef(g.oid), g.tgenabled) FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal
    UNION ALL SELECT pg_catalog.format('rule %I: %s', r.rulename, pg_catalog.pg_get_ruledef(r.oid)) FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_type <> '1'
    UNION ALL SELECT pg_catalog.format('policy %I', p.polname) FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid
    UNION ALL SELECT 'row security' WHERE c.relrowsecurity
    UNION ALL SELECT pg_catalog.format('child %s', h.inhrelid::pg_catalog.regclass) FROM pg_catalog.pg_inherits h WHERE h.inhparent = c.oid
) x (definition)
WHERE n.nspname = ANY ('{` + strings.Join(schemas, ",") + `}'::pg_catalog.name[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
ORDER BY n.nspname, c.relname, x.definition COLLATE "C"`
}

// Part returns the kind and the name of the part of a table that a definition describes.
func Part(definition string) string {
	part, _, _ := strings.Cut(definition, ": ")
	return part
}

// Tables renders a query for the tables that the session must not open: they, or relations that
// inherit from them, belong to untrusted roles, or are in schemas of such roles. Relations inherit as partitions, at every level,
// and as children. Each row has the OID of a table, the relation, which is the table itself if
// possible, and the reason. tables is an SQL expression of type oid[].
//
// To open a relation, the server runs code of its owner: a statement evaluates constants in
// partition keys, indexes and constraints when it is planned. So a session opens no relation of
// an untrusted role, whatever its definition is. The owner of a schema can drop any relation in it,
// or rename the schema, and create another relation of the name, also after this query.
func Tables(tables string) string { return relations(tables, "") }

// Reads is [Tables] for statements that read all rows. It includes foreign tables: their rows
// are on another server.
func Reads(tables string) string { return relations(tables, " OR c.relkind = 'f'") }

// Joined renders an expression for the OIDs of a table, and of the others that a foreign key
// connects with it or with a relation that inherits from it. Changes of partitions open them
// all. table is an SQL expression of type oid.
func Joined(table string) string {
	return `ARRAY(WITH RECURSIVE t (oid) AS (SELECT ` + table + `::pg_catalog.oid UNION SELECT i.inhrelid FROM t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid)
    SELECT ` + table + `::pg_catalog.oid UNION SELECT e.oid FROM pg_catalog.pg_constraint k, pg_catalog.unnest(ARRAY[k.conrelid, k.confrelid]) e (oid)
        WHERE k.contype = 'f' AND (k.conrelid IN (SELECT oid FROM t) OR k.confrelid IN (SELECT oid FROM t)) AND e.oid NOT IN (SELECT oid FROM t))`
}

// Triggers renders a query for the triggers of tables that call a function of an untrusted role.
func Triggers(tables string) string {
	return `WITH trusted AS MATERIALIZED (` + Roles + `)
SELECT pg_catalog.pg_describe_object('pg_catalog.pg_trigger'::pg_catalog.regclass, g.oid, 0), pg_catalog.format('calls a function of role %I', pg_catalog.pg_get_userbyid(p.proowner))
FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid
WHERE g.tgrelid = ANY (` + tables + `) AND p.proowner NOT IN (SELECT oid FROM trusted) ORDER BY 1`
}

// relations renders Tables and Reads. more is an SQL condition for relations c of trusted roles.
func relations(tables, more string) string {
	return `WITH RECURSIVE trusted AS MATERIALIZED (` + Roles + `),
t (root, oid) AS (
    SELECT g.oid, g.oid FROM pg_catalog.unnest(` + tables + `) g (oid)
    UNION SELECT t.root, i.inhrelid FROM t JOIN pg_catalog.pg_inherits i ON i.inhparent = t.oid
)
SELECT DISTINCT ON (t.root) t.root::bigint, CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END || pg_catalog.format(' %I.%I', n.nspname, c.relname) AS object,
    CASE WHEN c.relowner NOT IN (SELECT oid FROM trusted) THEN pg_catalog.format('belongs to role %I', pg_catalog.pg_get_userbyid(c.relowner))
        WHEN n.nspowner NOT IN (SELECT oid FROM trusted) THEN pg_catalog.format('is in schema %I of role %I', n.nspname, pg_catalog.pg_get_userbyid(n.nspowner))
        ELSE 'is on another server' END AS reason
FROM t JOIN pg_catalog.pg_class c ON c.oid = t.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (c.relowner NOT IN (SELECT oid FROM trusted) OR n.nspowner NOT IN (SELECT oid FROM trusted)` + more + `) ORDER BY t.root, t.oid <> t.root, 2`
}

// A Finding is an object that a session must not use, with the reason.
type Finding struct{ Object, Reason string }

func (f Finding) String() string { return Visible(f.Object) + " " + Visible(f.Reason) }

// A Beginner is a *sql.DB or a *sql.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Read calls f with a read-only transaction that has the [Settings].
func Read(ctx context.Context, db Beginner, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it only read
	if _, err := tx.ExecContext(ctx, Settings()); err != nil {
		return err
	}
	return f(tx)
}

// settings are the settings on which our SQL depends. Names and operators without a schema are the
// server's, whatever the settings of the database and the role are.
var settings = []struct{ name, value string }{
	{"search_path", "pg_catalog, pg_temp"},
	{"standard_conforming_strings", "on"},
	{"intervalstyle", "postgres"},
	{"quote_all_identifiers", "off"},
}

// Settings returns the statements that give a transaction the settings on which our SQL depends.
func Settings() string {
	var statements []string
	for _, s := range settings {
		statements = append(statements, "SET LOCAL "+s.name+" = "+s.value)
	}
	return strings.Join(statements, "; ")
}

// Save reads the values that [Settings] replaces, and returns a function that restores them.
func Save(ctx context.Context, tx *sql.Tx) (restore func() error, err error) {
	var names []string
	for _, s := range settings {
		names = append(names, s.name)
	}
	var values string
	err = tx.QueryRowContext(ctx, "SELECT pg_catalog.json_object_agg(s, pg_catalog.current_setting(s))::pg_catalog.text FROM pg_catalog.unnest('{"+strings.Join(names, ",")+"}'::pg_catalog.text[]) s").Scan(&values)
	return func() error {
		_, err := tx.ExecContext(ctx, "SELECT pg_catalog.set_config(key, value, true) FROM pg_catalog.json_each_text($1::pg_catalog.text::pg_catalog.json)", values)
		return err
	}, err
}

// Find runs a query of this package with two columns, in a transaction with the [Settings].
func Find(ctx context.Context, tx *sql.Tx, query string) (list []Finding, err error) {
	err = find(ctx, tx, query, func(rows *sql.Rows) error {
		var f Finding
		err := rows.Scan(&f.Object, &f.Reason)
		list = append(list, f)
		return err
	})
	return list, err
}

// FindTables runs a query of [Tables] or [Reads], in a transaction with the [Settings]. It returns
// the findings by the OID of the table.
func FindTables(ctx context.Context, tx *sql.Tx, query string) (map[int64]Finding, error) {
	tables := map[int64]Finding{}
	err := find(ctx, tx, query, func(rows *sql.Rows) error {
		var table int64
		var f Finding
		err := rows.Scan(&table, &f.Object, &f.Reason)
		tables[table] = f
		return err
	})
	return tables, err
}

func find(ctx context.Context, tx *sql.Tx, query string, scan func(*sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("read the owners in the catalog: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Remedy returns the remedy for findings of [Installation]. If a superuser acts as another
// role, the remedy is to end that. If everything belongs to the owner of the schema, the
// remedy has the statement that states trust in that role, and that grants no other
// privilege. A superuser can't trust another role.
func Remedy(ctx context.Context, tx *sql.Tx, schema string, findings []Finding) string {
	const drop = "or, if the installation isn't yours, drop these objects or change their owner"
	var acting sql.Null[string]
	err := tx.QueryRowContext(ctx, `SELECT CASE WHEN s.rolsuper AND NOT c.rolsuper THEN pg_catalog.format('this session of superuser %I acts as role %I: run RESET ROLE, or, if a setting does this, ALTER DATABASE %I RESET role, or ALTER ROLE %1$I RESET role',
				s.rolname, c.rolname, pg_catalog.current_database()) END
			FROM pg_catalog.pg_roles s, pg_catalog.pg_roles c WHERE s.rolname = session_user AND c.rolname = current_user`).Scan(&acting)
	if err == nil && acting.Valid {
		return Visible(acting.V)
	}
	var owner, statement sql.Null[string]
	err = tx.QueryRowContext(ctx, `SELECT pg_catalog.format('%I', o.rolname), CASE WHEN NOT s.rolsuper THEN CASE
				WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 >= 160000 THEN pg_catalog.format('GRANT %I TO %I WITH INHERIT FALSE, SET FALSE', o.rolname, s.rolname)
				ELSE pg_catalog.format('ALTER DATABASE %I OWNER TO %I', pg_catalog.current_database(), o.rolname) END END
			FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner, pg_catalog.pg_roles s
			WHERE n.nspname = $1 AND s.rolname = session_user AND session_user = current_user`, schema).Scan(&owner, &statement)
	if err != nil || !statement.Valid || slices.ContainsFunc(findings, func(f Finding) bool { return f.Reason != "belongs to role "+owner.V }) {
		return "connect as the owner of the installation, " + drop
	}
	return fmt.Sprintf("connect as the owner of the installation, or, if this role can trust %s, run %s, %s", Visible(owner.V), Visible(statement.V), drop)
}

// List returns the text of up to three findings.
func List(findings []Finding) string {
	const shown = 3
	var texts []string
	for _, f := range findings[:min(shown, len(findings))] {
		texts = append(texts, f.String())
	}
	if more := len(findings) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// Visible returns a name for people. It quotes names with control characters, which could
// forge lines or change a terminal.
func Visible(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }) {
		return strconv.QuoteToGraphic(s)
	}
	return s
}
