package dbhealth

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sortkey/sortkey/migrations"
)

var nodeSetting = Rule{
	ID: "node-setting", Area: "setting",
	Means:  "the setting `sortkey.node` of the session is not the one of the database",
	Remedy: "`ALTER DATABASE … SET sortkey.node = N`, and reconnect",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		name := e.Config.Schema + ".node"
		s, err := e.setting(ctx)
		switch {
		case err != nil:
			return err
		case s.session == "" && s.database == "":
			e.add(OK, "", name, "not set", "")
		case s.database == "":
			e.add(Warning, "", name, s.session+" in this session only: its connection string or its role sets it", s.alter+s.session+", and reconnect")
		case s.session != s.database:
			e.add(Warning, "", name, fmt.Sprintf("%s for the database, but %s in this session: its connection string or its role sets it", s.database, cmp.Or(s.session, "not set")), s.alter+"N, and reconnect, or drop the other setting")
		default:
			e.add(OK, "", name, s.session+" for the database", "")
		}
		return nil
	},
}

// A setting is the node number of defaults, in the session and for the database, and the
// beginning of the statement that sets it.
type setting struct{ session, database, alter string }

func (e *Examination) setting(ctx context.Context) (setting, error) {
	return recall(e, "setting", func() (s setting, err error) {
		err = e.row(ctx, []any{&s.session, &s.alter, &s.database}, `
			SELECT coalesce(current_setting($1::text, true), ''), format('run ALTER DATABASE %I SET %s = ', current_database(), $1::text), coalesce((
				SELECT substr(c, length($1::text) + 2) FROM pg_db_role_setting s JOIN pg_database b ON b.oid = s.setdatabase, unnest(s.setconfig) c
				WHERE b.datname = current_database() AND s.setrole = 0 AND starts_with(c, $1::text || '=')), '')`, e.Config.Schema+".node")
		return s, err
	})
}

var settingUnreserved = Rule{
	ID: "setting-unreserved", Area: "setting",
	Means:  "the setting `sortkey.node` is not a node number, is out of range, or is not reserved in any pool",
	Remedy: "reserve the number with `sortkey nodes reserve`, or set a reserved one",
	needs:  []string{mayList},
	check:  checkReservation,
}

// nodeNumber matches the values of the setting that the next_ functions accept.
var nodeNumber = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})$`)

func checkReservation(ctx context.Context, e *Examination) error {
	const subject = "reservation"
	s, err := e.setting(ctx)
	if err != nil || s.session == "" {
		return err
	}
	if !nodeNumber.MatchString(s.session) {
		e.add(Warning, "", subject, fmt.Sprintf("%q is not a node number", s.session), s.alter+"N, and reconnect")
		return nil
	}
	reservations, err := e.reservations(ctx)
	if err != nil {
		return err
	}
	var reserved, outOfRange []string
	for _, r := range reservations {
		switch strconv.Itoa(r.setting) {
		case s.session:
			reserved = append(reserved, fmt.Sprintf("%s (%s)", r.pool, r.note))
		case "-1":
			if strconv.Itoa(r.number) == s.session {
				outOfRange = append(outOfRange, r.rangeText())
			}
		}
	}
	if len(s.session) > 5 || s.session > "65535" && len(s.session) == 5 {
		outOfRange = append(outOfRange, "no format has this number")
	}
	switch {
	case len(outOfRange) > 0:
		e.add(Problem, "", subject, fmt.Sprintf("number %s is out of range: %s", s.session, strings.Join(outOfRange, ", ")), s.alter+"N with a number in range, and reconnect")
	case len(reserved) == 0:
		e.add(Warning, "", subject, "number "+s.session+" is not reserved in any pool: a program could claim it",
			fmt.Sprintf("run sortkey nodes reserve POOL %s, with the pool of each format that defaults use", s.session))
	default:
		e.add(OK, "", subject, "number "+s.session+" is reserved in "+strings.Join(reserved, ", "), "")
	}
	return nil
}

var nodeMissing = Rule{
	ID: "node-missing", Area: "defaults",
	Means:  "a default takes its node number from the setting `sortkey.node`, which is missing or no node number, so inserts fail",
	Remedy: "reserve a number, and `ALTER DATABASE … SET sortkey.node = N`",
	needs:  []string{usage},
	check:  func(ctx context.Context, e *Examination) error { return e.addDefaults(ctx, true) },
}

// addDefaults adds the rows of the view node_problems, which [migrations.CheckDefaults] reports
// to programs: the defaults without a node number, or the ones whose number isn't reserved.
func (e *Examination) addDefaults(ctx context.Context, noNode bool) error {
	type row struct {
		noNode                   bool
		subject, problem, remedy string
	}
	rows, err := recall(e, "defaults", func() ([]row, error) {
		return collect(ctx, e, func(r *row) []any { return []any{&r.noNode, &r.subject, &r.problem, &r.remedy} },
			`SELECT no_node, subject, problem, remedy FROM $s.node_problems ORDER BY pool, number, subject, problem`)
	})
	for _, r := range rows {
		if r.noNode == noNode {
			e.add(Problem, "", r.subject, r.problem, withCommand(r.remedy, e.Config.Schema))
		}
	}
	return err
}

// reserveCall matches a call in the remedy for an unreserved number.
var reserveCall = regexp.MustCompile(`^run SELECT [a-z0-9_]+\.reserve_node\('([a-z0-9-]+)', ([0-9]+), `)

// withCommand adds the command to a remedy that reserves a number.
func withCommand(remedy, schema string) string {
	call := reserveCall.FindStringSubmatch(remedy)
	if call == nil {
		return remedy
	}
	option := ""
	if schema != migrations.DefaultSchema {
		option = " --schema " + schema
	}
	return fmt.Sprintf("run sortkey nodes reserve%s %s %s, or %s", option, call[1], call[2], strings.TrimPrefix(remedy, "run "))
}

var nodeUnreserved = Rule{
	ID: "node-unreserved", Area: "defaults",
	Means:  "a default generates IDs with a node number that a program could claim, and then both can generate the same ones",
	Remedy: "`sortkey nodes reserve POOL N`",
	needs:  []string{usage},
	check:  func(ctx context.Context, e *Examination) error { return e.addDefaults(ctx, false) },
}

var nodeOpaque = Rule{
	ID: "node-opaque", Area: "defaults",
	Means:  "a default computes its node number, so no other rule can check it",
	Remedy: "pass a reserved number as a literal",
	needs:  []string{usage},
	check: func(ctx context.Context, e *Examination) error {
		var total, problems int
		err := e.row(ctx, []any{&total, &problems}, "SELECT count(DISTINCT (kind, name)), (SELECT count(*) FROM $s.node_problems) FROM $s.node_defaults")
		if err != nil {
			return err
		}
		opaque, err := e.texts(ctx, "SELECT DISTINCT concat_ws(' ', kind, name) FROM $s.node_defaults WHERE number IS NULL AND NOT from_setting ORDER BY 1")
		if err != nil {
			return err
		}
		const subject = "node numbers"
		switch known := total - len(opaque); {
		case total == 0:
			e.add(OK, "", subject, "no default uses one", "")
		case problems == 0 && known > 0:
			e.add(OK, "", subject, plural(known, "default uses a reserved number", "defaults use reserved numbers"), "")
		}
		for _, name := range opaque {
			e.add(Warning, "", name, "doesn't pass a literal, so its node number is unknown",
				"pass a reserved number as a literal, or use the setting "+e.Config.Schema+".node")
		}
		return nil
	},
}

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
