package rekey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The triggers of a table. Triggers fire in the order of their names: the first ones before
// all triggers of the user, which see both keys of references then, and the others after
// them, since they may set a key.
const (
	firstInsertTrigger = `" rekey insert"`
	firstUpdateTrigger = `" rekey update"`
	insertTrigger      = `"~rekey insert"`
	updateTrigger      = `"~rekey update"`
	deleteTrigger      = `"~rekey delete"`
)

// ownTriggers is a regular expression for the names of these triggers.
const ownTriggers = "^[ ~]rekey "

// newKey and oldKey are the functions that translate keys.
func (k *key) newKey(schema string) string { return schema + ".new_key_" + strconv.Itoa(k.n) }
func (k *key) oldKey(schema string) string { return schema + ".old_key_" + strconv.Itoa(k.n) }

// argument is the type of old keys in calls of newKey. A reference can have another type
// of integer than the key.
func (k *key) argument() string {
	if baseTypes[k.root.Base] == "integer" {
		return "bigint"
	}
	return k.root.Type
}

// pendingTable returns the table of pairs of keys whose rows don't exist: not yet, because
// rows that refer to them came first, or no longer.
func pendingTable(schema string) string { return schema + ".rekey_pending" }

// claimTable returns the table of claims. A transaction that claims a text makes others that
// claim it wait until its end, as an advisory lock would. But advisory locks need shared
// memory for each text. A claim is a row that is inserted and deleted at once: another
// transaction can't insert it before the first one ends.
func claimTable(schema string) string { return schema + ".rekey_claims" }

// claim renders the statements that claim a text, in a function with a variable hash.
func claim(schema, text string) string {
	return fmt.Sprintf("hash := hashtextextended((%[2]s) COLLATE \"C\", 0); INSERT INTO %[1]s VALUES (hash) ON CONFLICT DO NOTHING; DELETE FROM %[1]s c WHERE c.claim = hash;", claimTable(schema), text)
}

// claimOld and claimNew render the claims of a key.
func (k *key) claimOld(schema, value string) string {
	return claim(schema, fmt.Sprintf("'old %d ' || %s", k.n, value))
}

func (k *key) claimNew(schema, value string) string {
	return claim(schema, fmt.Sprintf("'new %d ' || %s", k.n, value))
}

// functionOptions are the options of all functions. The plans of a session stay the same when
// a table grows, so they must not read it whole.
const functionOptions = "LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off"

// backfillSetting is a setting with which the triggers leave a row as the backfill sets it.
const backfillSetting = "sortkey.rekey_backfill"

// createPending renders the tables of pairs and of claims.
func createPending(schema string) []string {
	return []string{
		"CREATE TABLE " + pendingTable(schema) + ` (key integer NOT NULL, old_key text COLLATE "C" NOT NULL, new_key text COLLATE "C" NOT NULL, PRIMARY KEY (key, old_key), UNIQUE (key, new_key))`,
		"COMMENT ON TABLE " + pendingTable(schema) + " IS 'Both keys of rows that were deleted, and of rows that others refer to before they exist.'",
		"CREATE UNLOGGED TABLE " + claimTable(schema) + " (claim bigint PRIMARY KEY)",
		"COMMENT ON TABLE " + claimTable(schema) + " IS 'Makes transactions that insert the same key wait for each other.'",
	}
}

// inRange renders a condition for whether an integer fits the types of the old key and of all
// references to it.
func (k *key) inRange(value string) string {
	bits := 63
	for _, c := range k.columns {
		bits = min(bits, map[string]int{"int2": 15, "int4": 31, "int8": 63}[c.Base])
	}
	limit := int64(1)<<bits - 1
	return fmt.Sprintf("%s BETWEEN %d AND %d", value, -limit, limit)
}

// oldKeyFor renders the old key of a row with a new key. In place, it is the same if it fits.
func (k *key) oldKeyFor(newKey string) string {
	if k.InPlace {
		return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", k.inRange(newKey), newKey, k.oldExpr)
	}
	return k.oldExpr
}

// translators renders the functions that translate keys. If a row isn't visible, they wait for
// a transaction that inserts it or refers to it. If it doesn't exist yet, as that of a deferred
// foreign key, they choose its other key.
func (k *key) translators(schema string) []string {
	root := k.root
	body := func(function, from, fromType, collation, to, toType, fromText, toText, claims, fresh string) string {
		return strings.NewReplacer("{function}", function, "{given_type}", fromType, "{type}", toType, "{options}", functionOptions,
			"{to}", to, "{table}", root.rel.Name, "{from}", from, "{collation}", collation, "{pending}", pendingTable(schema), "{from_text}", fromText, "{to_text}", toText,
			"{key}", strconv.Itoa(k.n), "{claim}", claims, "{fresh}", fresh).Replace(`CREATE FUNCTION {function}(given {given_type}) RETURNS {type} {options} AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key {type};
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.{to} INTO found_key FROM ONLY {table} t WHERE t.{from} = given{collation};
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.{to_text}::{type} INTO found_key FROM {pending} p WHERE p.key = {key} AND p.{from_text} = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            {claim}
        END IF;
    END LOOP;
    INSERT INTO {pending} AS p (key, {from_text}, {to_text}) VALUES ({key}, given::text, ({fresh})::text) ON CONFLICT DO NOTHING RETURNING p.{to_text}::{type} INTO STRICT found_key;
    RETURN found_key;
END
$rekey$`)
	}
	sql := []string{
		body(k.newKey(schema), root.Quoted, k.argument(), root.collate(), root.fresh, k.format.sqlType, "old_key", "new_key", k.claimOld(schema, "given"), k.nextID("given")),
		body(k.oldKey(schema), root.fresh, k.format.sqlType, "", root.Quoted, root.Type, "new_key", "old_key", k.claimNew(schema, "given"), k.oldKeyFor("given")),
	}
	for i, f := range []string{k.newKey(schema), k.oldKey(schema)} {
		t := []string{k.argument(), k.format.sqlType}[i]
		sql = append(sql, fmt.Sprintf("REVOKE EXECUTE ON FUNCTION %s(%s) FROM PUBLIC", f, t))
	}
	return sql
}

// collate renders the collation of a key, for comparisons with a reference that may have
// another one.
func (c *column) collate() string {
	if c.Collation == "" {
		return ""
	}
	return " COLLATE " + c.Collation
}

// insertReference and updateReference set one key of a reference from the other one.
const (
	insertReference = `
        IF NEW.{new} IS NULL THEN
            NEW.{new} := {new_key}(NEW.{old}::{argument});
        ELSIF NEW.{old} IS NULL THEN
            NEW.{old} := {old_key}(NEW.{new});
        ELSIF NEW.{new} IS DISTINCT FROM {new_key}(NEW.{old}::{argument}) THEN
            {error}
        END IF;`
	updateReference = `
        IF NEW.{new} IS NOT DISTINCT FROM OLD.{new} THEN
            IF NEW.{old} IS DISTINCT FROM OLD.{old} OR NEW.{new} IS NULL THEN
                NEW.{new} := {new_key}(NEW.{old}::{argument});
            END IF;
        ELSIF NEW.{old} IS NOT DISTINCT FROM OLD.{old} THEN
            NEW.{old} := {old_key}(NEW.{new});
        ELSIF NEW.{new} IS DISTINCT FROM {new_key}(NEW.{old}::{argument}) THEN
            {error}
        END IF;`
	// followInsert and followUpdate are for references whose keys are equal, unless a trigger of
	// the user has changed the old one since.
	followInsert = `
        NEW.{new} := {new_key}(NEW.{old}::{argument});`
	followUpdate = `
        IF {changed} THEN
            NEW.{new} := {new_key}(NEW.{old}::{argument});
        END IF;`
)

// insertRoot and updateRoot set one key of a row from the other one. Rows that refer to it
// may have come first, and chosen the key.
const (
	insertRoot = `
        IF NEW.{new} IS NOT NULL THEN
            {claim_new}
            SELECT p.old_key INTO chosen FROM {pending} p WHERE p.key = {key} AND p.new_key = {new_text};
            IF FOUND THEN
                NEW.{old} := chosen::{old_type};
            ELSIF {choose_old} THEN
                NEW.{old} := {old_expr};
            END IF;
        ELSE
            IF NEW.{old} IS NULL THEN
                NEW.{old} := {default};
            END IF;
            {claim_old}
            SELECT p.new_key INTO chosen FROM {pending} p WHERE p.key = {key} AND p.old_key = {old_text};
            IF FOUND THEN
                NEW.{new} := chosen::{new_type};
            ELSE
                NEW.{new} := {next};
            END IF;
        END IF;`
	updateRoot = `
        IF NEW.{old} IS DISTINCT FROM OLD.{old} OR NEW.{new} IS DISTINCT FROM OLD.{new} THEN
            IF NEW.{old} IS NOT DISTINCT FROM OLD.{old} THEN
                {claim_new}
                SELECT p.old_key INTO chosen FROM {pending} p WHERE p.key = {key} AND p.new_key = {new_text};
                IF FOUND THEN
                    NEW.{old} := chosen::{old_type};
                END IF;
            ELSIF NEW.{new} IS NOT DISTINCT FROM OLD.{new} THEN
                {claim_old}
                SELECT p.new_key INTO chosen FROM {pending} p WHERE p.key = {key} AND p.old_key = {old_text};
                IF FOUND THEN
                    NEW.{new} := chosen::{new_type};
                {in_place}END IF;
            END IF;
            DELETE FROM {pending} p WHERE p.key = {key} AND (p.old_key = {old_text} OR p.new_key = {new_text}) AND (p.old_key, p.new_key) IS DISTINCT FROM ({old_text}, {new_text});
        END IF;`
	// deleteRoot keeps the pair for rows that still refer to the row, and for a row that is
	// inserted with the same key.
	deleteRoot = `
        INSERT INTO {pending} VALUES ({key}, OLD.{old}::text, coalesce(OLD.{new}, {deleted})::text) ON CONFLICT DO NOTHING;`
	updateInPlace = `ELSIF OLD.{new} = OLD.{old} THEN
                    NEW.{new} := NEW.{old};
                `
)

// triggerSQL renders the trigger function of a table and its triggers.
func (m *model) triggerSQL(r *relation, n int, schema string) []string {
	var first, last struct{ insert, update strings.Builder }
	var conditions []string
	for _, c := range r.columns {
		changed := strings.NewReplacer("{old}", c.Quoted, "{new}", c.fresh).Replace("OLD.{old} IS DISTINCT FROM NEW.{old} OR OLD.{new} IS DISTINCT FROM NEW.{new}")
		if c.root {
			conditions = append(conditions, changed)
			continue
		}
		changed += " OR NEW." + c.fresh + " IS NULL AND NEW." + c.Quoted + " IS NOT NULL"
		conditions = append(conditions, changed)
		names := strings.NewReplacer("{old}", c.Quoted, "{new}", c.fresh, "{new_key}", c.key.newKey(schema), "{old_key}", c.key.oldKey(schema),
			"{error}", disagree(c), "{argument}", c.key.argument(), "{changed}", changed)
		first.insert.WriteString(names.Replace(insertReference))
		first.update.WriteString(names.Replace(updateReference))
		last.insert.WriteString(names.Replace(followInsert))
		last.update.WriteString(names.Replace(followUpdate))
	}
	inserts, updates := first.insert.String(), first.update.String()
	twice := inserts != "" && slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Table == r.OID && t.Before })
	if twice {
		const phases = "\n        IF left(TG_NAME, 1) = ' ' THEN%s\n            RETURN NEW;\n        END IF;%s"
		inserts = fmt.Sprintf(phases, inserts, last.insert.String())
		updates = fmt.Sprintf(phases, updates, last.update.String())
	}
	for _, c := range r.columns {
		if c.root {
			inserts += c.key.rootSQL(insertRoot, schema)
			updates += c.key.rootSQL(updateRoot, schema)
		}
	}
	inserts += m.claimUnique(r, schema)
	deletes := ""
	for _, c := range r.columns {
		if c.root {
			deletes = c.key.rootSQL(deleteRoot, schema)
		}
	}
	function := schema + ".fill_" + strconv.Itoa(n)
	sql := []string{
		fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger %s AS $rekey$
DECLARE
    chosen text;
    hash bigint;
BEGIN
    IF TG_OP = 'INSERT' THEN%s
    ELSIF TG_OP = 'UPDATE' THEN
        IF current_setting('%s', true) = 'on' THEN
            RETURN NEW;
        END IF;%s
    ELSE%s
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$`, function, functionOptions, inserts, backfillSetting, updates, deletes),
		fmt.Sprintf("REVOKE EXECUTE ON FUNCTION %s() FROM PUBLIC", function),
		fmt.Sprintf("COMMENT ON FUNCTION %s() IS %s", function, literal("Keeps both keys of "+r.Name+" equal during a rekey.")),
	}
	sql = append(sql, lock(writers, r.Name)...)
	create := func(name, event, condition string) {
		sql = append(sql, fmt.Sprintf("CREATE TRIGGER %s BEFORE %s ON %s FOR EACH ROW%s EXECUTE FUNCTION %s()", name, event, r.Name, condition, function))
	}
	when := " WHEN (" + strings.Join(conditions, " OR ") + ")"
	if twice {
		create(firstInsertTrigger, "INSERT", "")
		create(firstUpdateTrigger, "UPDATE", when)
	}
	create(insertTrigger, "INSERT", "")
	create(updateTrigger, "UPDATE", when)
	if deletes != "" {
		create(deleteTrigger, "DELETE", "")
	}
	return sql
}

// rootSQL renders a part of the trigger function for the table of the key.
func (k *key) rootSQL(body, schema string) string {
	root := k.root
	old, fresh := "NEW."+root.Quoted, "NEW."+root.fresh
	chooseOld, inPlace := old+" IS NULL", ""
	if k.InPlace {
		chooseOld, inPlace = old+" IS NULL OR "+k.inRange(fresh), updateInPlace
	}
	body = strings.ReplaceAll(body, "{in_place}", inPlace)
	return strings.NewReplacer("{old}", root.Quoted, "{new}", root.fresh, "{old_text}", old+`::text COLLATE "C"`, "{new_text}", fresh+`::text COLLATE "C"`,
		"{pending}", pendingTable(schema), "{key}", strconv.Itoa(k.n), "{old_type}", root.Type, "{new_type}", k.format.sqlType,
		"{claim_old}", k.claimOld(schema, old), "{claim_new}", k.claimNew(schema, fresh), "{choose_old}", chooseOld,
		"{old_expr}", k.oldKeyFor(fresh), "{default}", k.oldExpr, "{next}", k.nextID(old), "{deleted}", k.nextID("OLD."+root.Quoted)).Replace(body)
}

// claimUnique renders the claims of the unique indexes with a column that changes. Two
// programs that run INSERT … ON CONFLICT with the same values wait for each other at one of
// the indexes, the one on the old or the one on the new columns. At the other one, the second
// program would get an error.
func (m *model) claimUnique(r *relation, schema string) string {
	var b strings.Builder
	names := map[string]string{}
	for _, name := range append(each(r.columns, func(c *column) string { return c.Quoted }), r.others...) {
		names[name] = "NEW." + name
	}
	for i, x := range m.changed {
		if x.Table != r.OID || !x.Unique {
			continue
		}
		if c := m.column(r.OID, x.Columns[0]); len(x.Keys) == 1 && c != nil && c.root && !c.key.InPlace {
			continue // new keys of such rows differ
		}
		values := each(x.Keys, func(k string) string { return rename(k, names) })
		var conditions []string
		if x.Predicate != "" {
			conditions = append(conditions, "("+rename(x.Predicate, names)+")")
		}
		if !x.NullsEqual {
			conditions = append(conditions, each(values, func(v string) string { return v + " IS NOT NULL" })...)
		}
		statements := claim(schema, fmt.Sprintf("concat_ws(' ', 'index %d', %s)", i, strings.Join(values, ", ")))
		if len(conditions) > 0 {
			statements = "IF " + strings.Join(conditions, " AND ") + " THEN\n            " + statements + "\n        END IF;"
		}
		b.WriteString("\n        " + statements)
	}
	return b.String()
}

// disagree renders the error for a row whose two references mean different rows.
func disagree(c *column) string {
	return fmt.Sprintf(`RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = %s, HINT = 'Set only one of them.';`,
		literal(fmt.Sprintf("columns %s and %s of table %s refer to different rows", c.Quoted, c.fresh, c.rel.Name)))
}
