package rekey

import (
	"fmt"
	"strconv"
	"strings"
)

// The triggers of a table. BEFORE triggers fire in the order of their names, and these
// come after all others, which may set a key.
const (
	insertTrigger = `"~rekey insert"`
	updateTrigger = `"~rekey update"`
)

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

// pendingTable returns the table of keys whose rows don't exist yet.
func pendingTable(schema string) string { return schema + ".rekey_pending" }

const security = "LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp"

// translators renders the functions that translate keys. If a row doesn't exist yet, as
// that of a deferred foreign key, they choose its other key.
func (k *key) translators(schema string) []string {
	root := k.root
	table, pending := root.rel.Name, pendingTable(schema)
	body := func(function, from, fromType, to, toType, fromText, toText, fresh string) string {
		return fmt.Sprintf(`CREATE FUNCTION %[1]s(given %[2]s) RETURNS %[3]s %[4]s AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key %[3]s;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT t.%[5]s INTO found_key FROM ONLY %[6]s t WHERE t.%[7]s = given;
    IF FOUND THEN
        RETURN found_key; -- NULL before the backfill
    END IF;
    INSERT INTO %[8]s (key, %[9]s, %[10]s) VALUES (%[11]d, given::text, (%[12]s)::text) ON CONFLICT DO NOTHING;
    SELECT p.%[10]s::%[3]s INTO STRICT found_key FROM %[8]s p WHERE p.key = %[11]d AND p.%[9]s = given::text;
    RETURN found_key;
END
$rekey$`, function, fromType, toType, security, to, table, from, pending, fromText, toText, k.n, fresh)
	}
	sql := []string{
		body(k.newKey(schema), root.Quoted, k.argument(), root.fresh, k.format.sqlType, "old_key", "new_key", k.nextID("given")),
		body(k.oldKey(schema), root.fresh, k.format.sqlType, root.Quoted, root.Type, "new_key", "old_key", k.oldExpr),
	}
	for i, f := range []string{k.newKey(schema), k.oldKey(schema)} {
		t := []string{k.argument(), k.format.sqlType}[i]
		sql = append(sql, fmt.Sprintf("REVOKE EXECUTE ON FUNCTION %s(%s) FROM PUBLIC", f, t))
	}
	return sql
}

// triggerSQL renders the trigger function of a table and its triggers.
func (m *model) triggerSQL(r *relation, n int, schema string) []string {
	var insert, update strings.Builder
	var conditions []string
	var root *column
	for _, c := range r.columns {
		if c.root {
			root = c
			continue
		}
		names := strings.NewReplacer("{old}", c.Quoted, "{new}", c.fresh, "{new_key}", c.key.newKey(schema), "{old_key}", c.key.oldKey(schema), "{error}", disagree(c), "{argument}", c.key.argument())
		insert.WriteString(names.Replace(`
        IF NEW.{new} IS NULL THEN
            NEW.{new} := {new_key}(NEW.{old}::{argument});
        ELSIF NEW.{old} IS NULL THEN
            NEW.{old} := {old_key}(NEW.{new});
        ELSIF NEW.{new} IS DISTINCT FROM {new_key}(NEW.{old}::{argument}) THEN
            {error}
        END IF;`))
		update.WriteString(names.Replace(`
    IF NEW.{new} IS NOT DISTINCT FROM OLD.{new} THEN
        IF NEW.{old} IS DISTINCT FROM OLD.{old} OR NEW.{new} IS NULL THEN
            NEW.{new} := {new_key}(NEW.{old}::{argument});
        END IF;
    ELSIF NEW.{old} IS DISTINCT FROM OLD.{old} THEN
        IF NEW.{new} IS DISTINCT FROM {new_key}(NEW.{old}::{argument}) THEN
            {error}
        END IF;
    ELSIF OLD.{new} IS NOT NULL OR OLD.{old} IS NULL OR NEW.{new} IS DISTINCT FROM {new_key}(NEW.{old}::{argument}) THEN
        NEW.{old} := {old_key}(NEW.{new});
    END IF; -- otherwise the backfill sets it`))
		conditions = append(conditions, names.Replace("OLD.{old} IS DISTINCT FROM NEW.{old} OR OLD.{new} IS DISTINCT FROM NEW.{new} OR NEW.{new} IS NULL AND NEW.{old} IS NOT NULL"))
	}
	if root != nil {
		k := root.key
		names := strings.NewReplacer("{old}", root.Quoted, "{new}", root.fresh, "{pending}", pendingTable(schema), "{key}", strconv.Itoa(k.n),
			"{old_type}", root.Type, "{new_type}", k.format.sqlType, "{next}", k.nextID("NEW."+root.Quoted), "{old_expr}", k.oldExpr)
		// A row that refers to this one may have come first, and chosen the key.
		insert.WriteString(names.Replace(`
        IF NEW.{new} IS NOT NULL THEN
            DELETE FROM {pending} p WHERE p.key = {key} AND p.new_key = NEW.{new}::text RETURNING p.old_key INTO chosen;
            IF FOUND THEN
                NEW.{old} := chosen::{old_type};
            ELSIF NEW.{old} IS NULL THEN
                NEW.{old} := {old_expr};
            END IF;
        ELSE
            IF NEW.{old} IS NULL THEN
                NEW.{old} := {old_expr};
            END IF;
            DELETE FROM {pending} p WHERE p.key = {key} AND p.old_key = NEW.{old}::text RETURNING p.new_key INTO chosen;
            IF FOUND THEN
                NEW.{new} := chosen::{new_type};
            ELSE
                NEW.{new} := {next};
            END IF;
        END IF;`))
		if k.InPlace {
			update.WriteString(names.Replace(`
    IF NEW.{old} IS DISTINCT FROM OLD.{old} AND OLD.{new} = OLD.{old} AND NEW.{new} = OLD.{new} THEN
        NEW.{new} := NEW.{old};
    END IF;`))
			conditions = append(conditions, names.Replace("OLD.{old} IS DISTINCT FROM NEW.{old}"))
		}
	}
	function := schema + ".fill_" + strconv.Itoa(n)
	sql := []string{
		fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger %s AS $rekey$
DECLARE
    chosen text;
BEGIN
    IF TG_OP = 'INSERT' THEN%s
        RETURN NEW;
    END IF;%s
    RETURN NEW;
END
$rekey$`, function, security, insert.String(), update.String()),
		fmt.Sprintf("REVOKE EXECUTE ON FUNCTION %s() FROM PUBLIC", function),
		fmt.Sprintf("COMMENT ON FUNCTION %s() IS %s", function, literal("Keeps both keys of "+r.Name+" equal during a rekey.")),
	}
	sql = append(sql, lock(writers, r.Name)...)
	sql = append(sql, fmt.Sprintf("CREATE TRIGGER %s BEFORE INSERT ON %s FOR EACH ROW EXECUTE FUNCTION %s()", insertTrigger, r.Name, function))
	if len(conditions) > 0 {
		sql = append(sql, fmt.Sprintf("CREATE TRIGGER %s BEFORE UPDATE ON %s FOR EACH ROW WHEN (%s) EXECUTE FUNCTION %s()",
			updateTrigger, r.Name, strings.Join(conditions, " OR "), function))
	}
	return sql
}

// disagree renders the error for a row whose two references mean different rows.
func disagree(c *column) string {
	return fmt.Sprintf(`RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = %s, HINT = 'Set only one of them.';`,
		literal(fmt.Sprintf("columns %s and %s of table %s refer to different rows", c.Quoted, c.fresh, c.rel.Name)))
}
