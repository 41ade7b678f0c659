package dbhealth

import (
	"context"
	"fmt"
)

var defaultDenied = Rule{
	ID: "default-denied", Area: "defaults",
	Means:  "a role may insert rows into a table, and can't execute the function of a default: its inserts fail with `permission denied`",
	Remedy: "`GRANT USAGE ON SCHEMA sortkey`, and `GRANT EXECUTE ON FUNCTION`, to the role",
	check: func(ctx context.Context, e *Examination) error {
		type denial struct{ table, subject, function, roles, grantees string }
		// A partition has the defaults of its table, through which rows are inserted.
		list, err := collect(ctx, e, func(d *denial) []any {
			return []any{&d.table, &d.subject, &d.function, &d.roles, &d.grantees}
		}, `WITH defaults AS (
				SELECT c.oid, c.relowner, c.relacl, format('%I.%I', n.nspname, c.relname) AS name, a.attname, p.oid AS function,
					format('%s.%I(%s)', '$s', p.proname, oidvectortypes(p.proargtypes)) AS signature
				FROM pg_proc p JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid AND d.classid = 'pg_attrdef'::regclass
					JOIN pg_attrdef f ON f.oid = d.objid JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
					JOIN pg_class c ON c.oid = f.adrelid JOIN pg_namespace n ON n.oid = c.relnamespace
				WHERE p.pronamespace = '$s'::regnamespace AND starts_with(p.proname, 'next_') AND c.relpersistence <> 't' AND NOT c.relispartition
			), inserters AS (
				SELECT d.oid, x.grantee FROM defaults d, aclexplode(coalesce(d.relacl, acldefault('r', d.relowner))) x WHERE x.privilege_type = 'INSERT'
				UNION SELECT d.oid, x.grantee FROM defaults d JOIN pg_attribute t ON t.attrelid = d.oid, aclexplode(t.attacl) x WHERE x.privilege_type = 'INSERT'
			), denied AS (
				SELECT DISTINCT d.name, d.attname, d.signature, CASE i.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(i.grantee)) END AS role
				FROM defaults d JOIN inserters i ON i.oid = d.oid
				WHERE NOT (has_schema_privilege(i.grantee, '$s', 'USAGE') AND has_function_privilege(i.grantee, d.function, 'EXECUTE'))
			)
			SELECT name, format('column %s.%I', name, attname), signature, (array['role ', 'roles '])[least(count(*), 2)] || string_agg(role, ' and ' ORDER BY role), string_agg(role, ', ' ORDER BY role)
			FROM denied GROUP BY name, attname, signature ORDER BY name, attname, signature`)
		for _, d := range list {
			e.add(Warning, d.table, d.subject, fmt.Sprintf("%s can insert rows, but can't execute %s, its default", d.roles, d.function),
				e.sql(fmt.Sprintf("run GRANT USAGE ON SCHEMA $s TO %s; GRANT EXECUTE ON FUNCTION %s TO %[1]s", d.grantees, d.function)))
		}
		return err
	},
}
