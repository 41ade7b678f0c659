package hostile

import (
	"strings"
	"testing"
)

// Names and notes with newlines and escape sequences are in the output of the commands. They
// can't forge lines or change a terminal: the checks of each call look at every output.
func TestNames(t *testing.T) {
	// U&"" has escapes in names: \001b is ESC, \0007 BEL, \009b a control sequence of 8 bits, and \202e reverses text.
	const name = `U&"x\000aforged: fine\001b[31m\0007\009b2J\007f\000d\202e"`
	const other = `U&"y\000aforged: fine\001b[31m"`
	const text = `E'x\nforged: fine\u001b[31m\u0007\u009b2J\u007f\r\u202e'`
	all := append(append([]call{}, readers...), sortkey("nodes list snowflake 7"), sortkey("migrate down --yes"))
	springs(t, []trap{
		{name: "default, and schema of a rekey", names: []string{"forged", "depend"}, steps: []step{
			admin("GRANT USAGE ON SCHEMA sortkey TO {mallory}; GRANT EXECUTE ON FUNCTION sortkey.next_snowflake(integer), sortkey.next_snowflake() TO {mallory}"),
			mallory(`CREATE TABLE mallory.` + name + ` (` + name + ` sortkey.snowflake DEFAULT sortkey.next_snowflake(7), b bigint DEFAULT sortkey.next_snowflake());
				CREATE FUNCTION mallory.` + name + `() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT sortkey.next_snowflake(8); END;
				CREATE SCHEMA ` + name + `; CREATE TABLE ` + name + `.rekey_state (` + columns + `); CREATE TABLE ` + name + `.rekey_pending ()`),
			calls(all...),
		}},
		{name: "view over a key", names: append([]string{"forged", "depend", "mallory"}, absent...), steps: []step{
			admin("GRANT SELECT, REFERENCES ON shop.orders TO {mallory}; GRANT USAGE ON SCHEMA sortkey TO {mallory}"),
			mallory(`CREATE VIEW mallory.` + name + ` AS SELECT id AS ` + name + ` FROM shop.orders; CREATE TABLE mallory.t (` + name + ` bigint CONSTRAINT ` + name + ` REFERENCES shop.orders); CREATE INDEX ` + other + ` ON mallory.t (` + name + `)`),
			calls(readers...), calls(inspect...), calls(expand), calls(sortkey("migrate down --yes")),
		}},
		{name: "names of the administrator", names: []string{"forged", "depend", "has begun", "shop.orders"}, steps: []step{ // copied from a file, for example
			admin(`CREATE VIEW shop.` + name + ` AS SELECT id FROM shop.orders; CREATE INDEX ` + other + ` ON shop.orders (id, note); ALTER TABLE shop.orders ADD ` + name + ` text;
				CREATE TABLE shop.t (ref bigint CONSTRAINT ` + name + ` REFERENCES shop.orders);
				CREATE TABLE shop.U&"z\000aforged: fine\001b[31m\202e" (` + other + ` uuid PRIMARY KEY, ` + name + ` uuid REFERENCES shop.U&"z\000aforged: fine\001b[31m\202e");
				SELECT sortkey.reserve_node('snowflake', 7, ` + text + `); COMMENT ON TABLE shop.orders IS ` + text),
			calls(readers...), calls(inspect...), calls(expand), calls(sortkey("rekey status"), abort, sortkey("nodes list snowflake 7"), sortkey("nodes release snowflake 7"), sortkey("migrate down --yes")),
		}},
		{name: "schema of an installation", names: []string{"forged", "depend"}, bare: true, steps: []step{
			mallory(`CREATE SCHEMA ` + name + `; CREATE TABLE ` + name + `.revision (); CREATE TABLE ` + name + `.layout (); CREATE TABLE ` + name + `.node_lease ()`),
			refused(sortkey("doctor")),
		}},
	})
}

// A rekey that stands still is a line of doctor, for each role that may see it.
func TestDoctor(t *testing.T) {
	const line = "rekeyed: keys of shop.orders: the next step is backfill, the last change was 3 days ago"
	stands := func(w *world) {
		w.t.Helper()
		for _, c := range []call{sortkey("doctor"), sortkey("doctor -o json")} {
			o := c.do(w)
			part := line
			if c.name != "sortkey doctor" {
				part = line[len("rekeyed: "):]
			}
			if !strings.Contains(o.text, part) || strings.Contains(o.text, "pg_toast") {
				w.t.Errorf("%s: want a line with %q and none with pg_toast, got\n%s", c.name, part, o.text)
			}
		}
	}
	springs(t, []trap{{name: "rekey", names: []string{"mallory"}, steps: []step{
		admin("GRANT REFERENCES ON shop.orders TO {mallory}"), allowed(expand), admin("UPDATE rekeyed.rekey_state SET updated_at = now() - interval '3 days'"), stands, calls(sortkey("doctor")),
		mallory("CREATE SCHEMA other; CREATE TABLE other.rekey_state (" + columns + "); CREATE TABLE other.rekey_pending (); GRANT ALL ON SCHEMA other TO PUBLIC"), stands,
	}}})
}
