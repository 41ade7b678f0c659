package dbhealth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

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

func checkSetting(ctx context.Context, e *Examination) error {
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
	number, _ := strconv.Atoi(s.session)
	reservations, err := e.reservations(ctx)
	if err != nil {
		return err
	}
	var reserved, outOfRange []string
	for _, r := range reservations {
		switch {
		case r.setting == number:
			reserved = append(reserved, fmt.Sprintf("%s (%s)", r.pool, r.note))
		case r.setting < 0 && r.number == number:
			outOfRange = append(outOfRange, r.rangeText())
		}
	}
	if number > math.MaxUint16 {
		outOfRange = append(outOfRange, "no format has this number")
	}
	switch {
	case len(outOfRange) > 0:
		e.add(Problem, "", subject, fmt.Sprintf("number %d is out of range: %s", number, strings.Join(outOfRange, ", ")), s.alter+"N with a number in range, and reconnect")
	case len(reserved) == 0:
		e.add(Warning, "", subject, fmt.Sprintf("number %d is not reserved in any pool: a program could claim it", number),
			"run "+e.command("nodes reserve POOL %d", number)+", with the pool of each format that defaults use")
	default:
		e.add(OK, "", subject, fmt.Sprintf("number %d is reserved in %s", number, strings.Join(reserved, ", ")), "")
	}
	return nil
}

// checkDefaults returns the check that adds rows of the view node_problems, which
// [migrations.CheckDefaults] reports to programs: the defaults without a node number, or the ones
// whose number isn't reserved. It adds the command to a remedy that reserves a number.
func checkDefaults(noNode bool) checkFunc {
	return func(ctx context.Context, e *Examination) error {
		_, err := e.addRows(ctx, Problem, fmt.Sprintf(`
			SELECT '', subject, problem, regexp_replace(remedy, $$^run (SELECT [a-z0-9_]+[.]reserve_node[(]'([a-z0-9-]+)', ([0-9]+), )$$, $$run %s, or \1$$)
			FROM $s.node_problems WHERE no_node = %t ORDER BY pool, number, subject, problem`, e.command(`nodes reserve \2 \3`), noNode))
		return err
	}
}

func checkOpaque(ctx context.Context, e *Examination) error {
	opaque, err := e.addRows(ctx, Warning, `
		SELECT DISTINCT '', concat_ws(' ', kind, name), 'doesn''t pass a literal, so its node number is unknown', 'pass a reserved number as a literal, or use the setting $s.node'
		FROM $s.node_defaults WHERE number IS NULL AND NOT from_setting ORDER BY 2`)
	if err != nil {
		return err
	}
	var total, problems int
	err = e.row(ctx, []any{&total, &problems}, "SELECT count(DISTINCT (kind, name)), (SELECT count(*) FROM $s.node_problems) FROM $s.node_defaults")
	switch known := total - opaque; {
	case err != nil:
		return err
	case total == 0:
		e.add(OK, "", "node numbers", "no default uses one", "")
	case problems == 0 && known > 0:
		e.add(OK, "", "node numbers", plural(known, "default uses a reserved number", "defaults use reserved numbers"), "")
	}
	return nil
}

func checkDenied(ctx context.Context, e *Examination) error {
	// A partition has the defaults of its table, through which rows are inserted.
	_, err := e.addRows(ctx, Warning, `
		WITH defaults AS (
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
			WHERE NOT has_function_privilege(i.grantee, d.function, 'EXECUTE') -- a default needs no USAGE on the schema
		)
		SELECT name, format('column %s.%I', name, attname),
			format('%s%s can insert rows, but can''t execute %s, its default', (array['role ', 'roles '])[least(count(*), 2)], string_agg(role, ' and ' ORDER BY role), signature),
			format('run GRANT EXECUTE ON FUNCTION %s TO %s', signature, string_agg(role, ', ' ORDER BY role))
		FROM denied GROUP BY name, attname, signature ORDER BY name, attname, signature`)
	return err
}
