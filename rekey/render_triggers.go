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
func (k *key) newKey() string { return Schema + ".new_key_" + strconv.Itoa(k.n) }
func (k *key) oldKey() string { return Schema + ".old_key_" + strconv.Itoa(k.n) }

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
func pendingTable() string { return Schema + ".rekey_pending" }

// claimTable returns the table of claims. A transaction that claims a text makes others that
// claim it wait until its end, as an advisory lock would. But advisory locks need shared
// memory for each text.
func claimTable() string { return Schema + ".rekey_claims" }

// claim renders the statement that claims the variable hash of a function.
func claim() string {
	return query("claim", claimTable())
}

// claimText renders the statements that claim a text.
func claimText(text string) string {
	return `hash := hashtextextended((` + text + `) COLLATE "C", 0); ` + claim()
}

// claimOld and claimNew render the claims of a key.
func (k *key) claimOld(value string) string {
	return claimText(fmt.Sprintf("'old %d ' || %s", k.n, value))
}

func (k *key) claimNew(value string) string {
	return claimText(fmt.Sprintf("'new %d ' || %s", k.n, value))
}

// functionOptions are the options of all functions. The plans of a session stay the same when
// a table grows, so they must not read it whole.
const functionOptions = "LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off"

// backfillSetting is a setting with which the triggers leave a row as the backfill sets it.
const backfillSetting = "sortkey.rekey_backfill"

// jobTables returns the tables of a job.
func jobTables() []string {
	return []string{pendingTable(), claimTable(), stateTable()}
}

// createTables renders the tables of pairs and of claims.
func createTables() []string {
	return []string{
		"CREATE TABLE " + pendingTable() + ` (key integer NOT NULL, old_key text COLLATE "C" NOT NULL, new_key text COLLATE "C" NOT NULL, PRIMARY KEY (key, old_key), UNIQUE (key, new_key))`,
		"COMMENT ON TABLE " + pendingTable() + " IS 'Both keys of rows that were deleted, and of rows that others refer to before they exist.'",
		"CREATE UNLOGGED TABLE " + claimTable() + " (claim bigint PRIMARY KEY)",
		"COMMENT ON TABLE " + claimTable() + " IS 'Makes transactions that insert the same key wait for each other.'",
	}
}

// inRange renders a condition for whether an integer fits the types of the old key and of all
// references to it.
func (k *key) inRange(value string) string {
	limit := k.maxOld()
	return fmt.Sprintf("%s BETWEEN %d AND %d", value, -limit, limit)
}

// oldKeyFor renders the old key of a row with a new key. In place, it is the same if it fits.
func (k *key) oldKeyFor(newKey string) string {
	if k.InPlace {
		return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", k.inRange(newKey), newKey, k.oldExpr)
	}
	return k.oldExpr
}

// newOf and oldOf are the functions that look keys up, by the present names of the columns.
func (k *key) newOf() string { return Schema + ".new_of_" + strconv.Itoa(k.n) }
func (k *key) oldOf() string { return Schema + ".old_of_" + strconv.Itoa(k.n) }

// translators renders the functions that translate keys. They lock the table of the key before they
// call another function, which contract replaces with the names of the columns: a session could
// otherwise go on with a function of the old names after contract has changed them.
func (k *key) translators() (sql []string) {
	for _, f := range [][4]string{
		{k.newKey(), k.argument(), k.format.sqlType, k.newOf()},
		{k.oldKey(), k.format.sqlType, k.root.Type, k.oldOf()},
	} {
		sql = append(sql,
			"CREATE FUNCTION "+f[0]+"(given "+f[1]+") RETURNS "+f[2]+" "+functionOptions+" AS "+body(query("translator", values{"table": k.root.rel.Name, "look_up": f[3]})),
			fmt.Sprintf("REVOKE EXECUTE ON FUNCTION %s(%s) FROM PUBLIC", f[0], f[1]))
	}
	return sql
}

// lookups renders the functions that look keys up. If a row isn't visible, they wait for
// a transaction that inserts it or refers to it. If it doesn't exist yet, as that of a deferred
// foreign key, they choose its other key.
func (k *key) lookups() []string {
	root := k.root
	lookup := func(function, from, fromType, collation, to, toType, fromText, toText, claims, fresh string) []string {
		return []string{
			"CREATE OR REPLACE FUNCTION " + function + "(given " + fromType + ") RETURNS " + toType + " " + functionOptions + " AS " + body(query("look up", values{
				"table": root.rel.Name, "from": from, "collation": collation, "to": to, "type": toType, "from_text": fromText, "to_text": toText,
				"pending": pendingTable(), "key": k.n, "claim": claims, "fresh": fresh, "named": literal("of " + root.rel.Name)})),
			fmt.Sprintf("REVOKE EXECUTE ON FUNCTION %s(%s) FROM PUBLIC", function, fromType),
		}
	}
	return append(
		lookup(k.newOf(), root.old(), k.argument(), root.collate(), root.new(), k.format.sqlType, "old_key", "new_key", k.claimOld("given"), k.nextID("given")),
		lookup(k.oldOf(), root.new(), k.format.sqlType, "", root.old(), root.Type, "new_key", "old_key", k.claimNew("given"), k.oldKeyFor("given"))...)
}

// collate renders the collation of a key, for comparisons with a reference that may have
// another one.
func (c *column) collate() string {
	if c.Collation == "" {
		return ""
	}
	return " COLLATE " + c.Collation
}

// existing renders the statements that find and lock a row with the same key as a new one, or
// claim the key. The lock is needed before the server looks for the row: while another program
// updates it, the server can miss it.
func existing(r *relation, into, condition, claims string) string {
	row := find(r, into, condition)
	return row + "\n            IF NOT FOUND THEN\n                " + claims + "\n                " + row + "\n            END IF;"
}

// find renders a statement that finds and locks a row.
func find(r *relation, into, condition string) string {
	return into + " FROM ONLY " + r.Name + " t WHERE " + condition + " FOR NO KEY UPDATE;"
}

// readable is a condition under which a transaction reads a table before it inserts a row. A
// SERIALIZABLE one would then depend on all other inserts.
const readable = " AND current_setting('transaction_isolation') <> 'serializable'"

// functionSQL renders the functions of tables that keep both keys equal, with the present names of
// the columns.
func (m *model) functionSQL(list ...*relation) (sql []string) {
	for _, k := range m.moved() {
		if slices.Contains(list, k.root.rel) {
			sql = append(sql, k.lookups()...)
		}
	}
	for _, r := range list {
		sql = append(sql, m.fillFunction(r)...)
	}
	return sql
}

// twice reports whether the triggers of a table fire before and after the ones of the user.
func (m *model) twice(r *relation) bool {
	return slices.ContainsFunc(m.triggers, func(t *trigger) bool { return t.Table == r.OID && t.Before })
}

func (m *model) fillName(r *relation) string {
	return Schema + ".fill_" + strconv.Itoa(slices.Index(m.relations, r))
}

// fillFunction renders the trigger function of a table.
func (m *model) fillFunction(r *relation) []string {
	var first, last struct{ insert, update strings.Builder }
	var root *key
	for _, c := range r.columns {
		if c.root {
			root = c.key
			continue
		}
		v := values{"old": c.old(), "new": c.new(), "to_new": c.toNew("NEW"), "to_old": c.toOld("NEW"),
			"redirected": c.redirected(), "error": disagree(c), "changed": query("changed", c), "follower": c.new(), "followed": c.toNew("NEW")}
		if r.swapped { // triggers of the user see and set the new key
			v["follower"], v["followed"] = c.old(), c.toOld("NEW")
		}
		first.insert.WriteString(query("insert a reference", v))
		first.update.WriteString(query("update a reference", v))
		last.insert.WriteString(query("follow an insert", v))
		last.update.WriteString(query("follow an update", v))
	}
	inserts, updates, deletes := first.insert.String(), first.update.String(), ""
	if m.twice(r) {
		remember := ""
		if root != nil {
			remember = root.rootSQL("remember a row")
		}
		const phases = "\n        IF left(TG_NAME, 1) = ' ' THEN%s\n            RETURN NEW;\n        END IF;%s"
		inserts = fmt.Sprintf(phases, inserts+remember, last.insert.String())
		updates = fmt.Sprintf(phases, updates, last.update.String())
	}
	if root != nil {
		inserts += root.rootSQL("insert a row")
		updates += root.rootSQL("update a row")
		deletes = root.rootSQL("delete a row")
	}
	inserts += m.claimUnique(r)
	function := m.fillName(r)
	return []string{
		fmt.Sprintf("CREATE OR REPLACE FUNCTION %s() RETURNS trigger %s AS ", function, functionOptions) + body(query("trigger", values{"inserts": inserts, "updates": updates, "deletes": deletes})),
		fmt.Sprintf("REVOKE EXECUTE ON FUNCTION %s() FROM PUBLIC", function),
		fmt.Sprintf("COMMENT ON FUNCTION %s() IS %s", function, literal("Keeps both keys of "+r.Name+" equal during a rekey.")),
	}
}

// triggerNames returns the names of the triggers of rekey on a table.
func (m *model) triggerNames(r *relation) (list []string) {
	if m.twice(r) {
		list = append(list, firstInsertTrigger, firstUpdateTrigger)
	}
	list = append(list, insertTrigger, updateTrigger)
	if slices.ContainsFunc(r.columns, func(c *column) bool { return c.root }) {
		list = append(list, deleteTrigger)
	}
	return list
}

// triggerSQL renders the triggers of a table. They fire in replication sessions, too, so that no
// program can leave them out. The conditions hold for either name of a column.
func (m *model) triggerSQL(r *relation) []string {
	sql := append(lock(writers, r.Name), script("drop triggers", r.Name)...)
	conditions := each(r.columns, func(c *column) string {
		if c.root {
			return query("changed", c)
		}
		return query("changed", c) + " OR (NEW." + c.Quoted + " IS NULL) <> (NEW." + c.fresh + " IS NULL)"
	})
	when := " WHEN (current_setting('" + backfillSetting + "', true) IS DISTINCT FROM 'on'"
	if !slices.ContainsFunc(r.columns, (*column).conditional) { // their conditions need a subquery
		when += " AND (" + strings.Join(conditions, " OR ") + ")"
	}
	when += ")"
	for _, name := range m.triggerNames(r) {
		event, condition := strings.ToUpper(strings.TrimSuffix(name[strings.LastIndex(name, " ")+1:], `"`)), ""
		if event == "UPDATE" {
			condition = when
		}
		sql = append(sql, fmt.Sprintf("CREATE TRIGGER %s BEFORE %s ON %s FOR EACH ROW%s EXECUTE FUNCTION %s()", name, event, r.Name, condition, m.fillName(r)),
			"ALTER TABLE "+r.Name+" ENABLE ALWAYS TRIGGER "+name)
	}
	return sql
}

// rootSQL renders a part of the trigger function for the table of the key.
func (k *key) rootSQL(part string) string {
	root := k.root
	old, fresh := "NEW."+root.old(), "NEW."+root.new()
	chooseOld := old + " IS NULL"
	if k.InPlace {
		chooseOld += " OR " + k.inRange(fresh)
	}
	sameOld, sameNew := "t."+root.old()+" = "+old+readable, "t."+root.new()+" = "+fresh
	return query(part, values{
		"existing_old": existing(root.rel, "SELECT t."+root.new()+" INTO "+fresh, sameOld, k.claimOld(old)),
		"existing_new": existing(root.rel, "SELECT t."+root.old()+"::text INTO chosen", sameNew, k.claimNew(fresh)),
		"find_new":     find(root.rel, "PERFORM", sameNew), "claim_old": k.claimOld(old),
		"old": root.old(), "new": root.new(), "old_text": old + `::text COLLATE "C"`, "new_text": fresh + `::text COLLATE "C"`,
		"old_type": root.Type, "new_type": k.format.sqlType, "new_key": k.newKey(), "old_key": k.oldKey(),
		"choose_old": chooseOld, "old_expr": k.oldKeyFor(fresh), "default": k.oldExpr, "next": k.nextID(old), "former": k.nextID("OLD." + root.old()),
		"pending": pendingTable(), "key": k.n,
	})
}

// claimUnique renders the claims of the unique indexes with a column that changes. Two
// programs that run INSERT … ON CONFLICT with the same values wait for each other at one of
// the indexes, the one on the old or the one on the new columns. At the other one, the second
// program would get an error.
func (m *model) claimUnique(r *relation) string {
	var b strings.Builder
	for i, x := range m.changed {
		if x.Table != r.OID || !x.Unique || !x.claimable() {
			continue
		}
		if c := m.column(r.OID, x.Columns[0]); len(x.Keys) == 1 && c != nil && c.root && !c.key.InPlace {
			continue // insertRoot claims them
		}
		var conditions []string
		if x.Predicate != "" {
			conditions = append(conditions, "("+x.Predicate+")")
		}
		hash := "hash_record_extended(ROW(" + strings.Join(append([]string{fmt.Sprintf("'index %d'::text", i)}, x.Keys...), ", ") + "), 0)"
		if x.byText {
			hash = fmt.Sprintf(`hashtextextended(concat_ws(' ', 'index %d', %s) COLLATE "C", 0)`, i, strings.Join(x.Keys, ", "))
		}
		statements := "SELECT " + hash + " INTO hash FROM (SELECT NEW.*) x"
		present := conditions
		if !x.NullsEqual {
			present = append(slices.Clone(conditions), each(x.Keys, func(k string) string { return k + " IS NOT NULL" })...)
		}
		if len(present) > 0 {
			statements += " WHERE " + strings.Join(present, " AND ")
		}
		statements += ";\n        IF FOUND THEN\n            " + claim() + "\n        END IF;"
		equal := append(each(x.Keys, func(k string) string { return "t." + k + " = NEW." + k }), conditions...)
		b.WriteString("\n        " + existing(r, "PERFORM", strings.Join(equal, " AND ")+readable, statements))
	}
	return b.String()
}

// claimable reports whether the triggers can compute the values of an index. It has plain columns alone.
func (x *index) claimable() bool { return x.Findable && !foreign(x.Predicate) }

// foreign reports whether an expression has functions or operators outside of pg_catalog.
// They can need another search_path than the triggers have.
func foreign(expression string) bool {
	list := tokens(expression)
	for i, t := range list {
		if t == "OPERATOR" || t == "(" && i > 1 && list[i-2] == "." {
			return true
		}
	}
	return false
}

// disagree renders the error for a row whose two references mean different rows.
func disagree(c *column) string {
	return fmt.Sprintf(`RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = %s, HINT = 'Set only one of them.';`,
		literal(fmt.Sprintf("columns %s and %s of table %s refer to different rows", c.old(), c.new(), c.rel.Name)))
}
