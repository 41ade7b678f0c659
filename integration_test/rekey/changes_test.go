package rekey

import (
	"strings"
	"testing"

	"github.com/sortkey/sortkey/rekey"
)

// filmsChanged has films with an index, a view, a trigger and a privilege.
const filmsChanged = films + `CREATE INDEX copies_of_film ON copies (film_id); CREATE VIEW report AS SELECT id, title FROM films; GRANT SELECT ON copies TO pg_monitor;`

// Validate and contract name what has changed since expand, before they change anything, and
// go on when it is undone or its remedy is applied.
func TestChangesSinceExpand(t *testing.T) {
	for i, step := range steps[2:4] {
		t.Run("before "+string(step), func(t *testing.T) {
			oneJob(t, filmsChanged+triggerOn("copies", "BEFORE INSERT", "NULL")+"ALTER TRIGGER t ON copies RENAME TO was", filmsSpec(), func(t *testing.T, j *job) {
				j.run(steps[:i+2]...)
				testChanges(t, j, step)
				j.run(steps[i+2:]...)
			})
		})
	}
}

func testChanges(t *testing.T, j *job, step rekey.Step) {
	const function = "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';"
	for _, c := range []struct {
		name, change string
		want         string     // empty: no step fails
		undo         string     // "paste": the SQL in the error
		step         rekey.Step // the only step that fails; empty: both
	}{
		{"column", "ALTER TABLE films ADD note text", "new since expand: type of column public.films.note: text", "ALTER TABLE films DROP note", ""},
		{"dropped column", "ALTER TABLE films DROP counted", "gone since expand: type of column public.films.counted: integer, default 0", "ALTER TABLE films ADD counted integer NOT NULL DEFAULT 0", rekey.StepValidate},
		{"type", "ALTER TABLE films ALTER counted TYPE bigint", "new since expand: type of column public.films.counted: bigint", "ALTER TABLE films ALTER counted TYPE integer", rekey.StepValidate},
		{"default of a key", "ALTER TABLE films ALTER id SET DEFAULT 7", "new since expand: type and default of public.films.id: integer, default 7", "ALTER TABLE films ALTER id SET DEFAULT nextval('films_id_seq')", ""},
		{"trigger", function + "CREATE TRIGGER t BEFORE INSERT ON films FOR EACH ROW EXECUTE FUNCTION f()", "new since expand: trigger t of public.films", "DROP TRIGGER t ON films", ""},
		{"dropped trigger", "DROP TRIGGER was ON copies", "", "", ""},
		{"foreign key", "ALTER TABLE copies DROP CONSTRAINT copies_film_id_fkey", "gone since expand: constraint copies_film_id_fkey of public.copies", "ALTER TABLE copies ADD CONSTRAINT copies_film_id_fkey FOREIGN KEY (film_id) REFERENCES films", ""},
		{"index", "DROP INDEX copies_of_film", "gone since expand: index copies_of_film", "CREATE INDEX copies_of_film ON copies (film_id)", ""},
		{"index of the same name", "DROP INDEX copies_of_film; CREATE INDEX copies_of_film ON copies (film_id, no)", "new since expand: index copies_of_film: CREATE INDEX copies_of_film ON public.copies USING btree (film_id, no)", "DROP INDEX copies_of_film; CREATE INDEX copies_of_film ON copies (film_id)", ""},
		{"child", "CREATE TABLE late () INHERITS (copies)", "table public.late inherits from public.copies, and its rows have one key alone; move them to public.copies, and drop it", "DROP TABLE late", ""},
		{"parent", "CREATE TABLE late (title text); ALTER TABLE films INHERIT late", "table public.films inherits from public.late; run ALTER TABLE public.films NO INHERIT public.late", "ALTER TABLE films NO INHERIT late; DROP TABLE late", ""},
		{"partition", "CREATE TABLE late (LIKE films) PARTITION BY RANGE (title); ALTER TABLE late ATTACH PARTITION films DEFAULT", "table public.films is a partition of public.late; run ALTER TABLE public.late DETACH PARTITION public.films", "ALTER TABLE late DETACH PARTITION films; DROP TABLE late", ""},
		{"index on another column", "CREATE INDEX by_number ON copies (no)", "", "", ""},
		{"policy", "ALTER TABLE films ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON films USING (title <> '')", "new since expand: policy p of public.films", "DROP POLICY p ON films; ALTER TABLE films DISABLE ROW LEVEL SECURITY", ""},
		{"row security", "ALTER TABLE films ENABLE ROW LEVEL SECURITY", "new since expand: owner and row security of table public.films: ", "ALTER TABLE films DISABLE ROW LEVEL SECURITY", ""},
		{"view", "CREATE OR REPLACE VIEW report AS SELECT id, title FROM films WHERE title <> ''", "new since expand: query of view public.report", "CREATE OR REPLACE VIEW report AS SELECT id, title FROM films", ""},
		{"privilege on a view", "GRANT SELECT ON report TO pg_signal_backend", "new since expand: view privilege SELECT on public.report for pg_signal_backend", "REVOKE SELECT ON report FROM pg_signal_backend", ""},
		{"privilege on a key", "GRANT SELECT (id) ON films TO pg_signal_backend", "new since expand: key privilege SELECT on column public.films.id for pg_signal_backend", "REVOKE SELECT (id) ON films FROM pg_signal_backend", ""},
		{"comment on a key", "COMMENT ON COLUMN films.id IS 'The key.'", "new since expand: key column public.films.id: NOT NULL, comment The key.", "COMMENT ON COLUMN films.id IS NULL", ""},
		{"renamed table", "ALTER TABLE films RENAME TO movies", "table public.films doesn't exist; give it its name and its schema again", "ALTER TABLE movies RENAME TO films", ""},
		{"storage parameter", "ALTER TABLE films SET (autovacuum_vacuum_scale_factor = 0.01); COMMENT ON TABLE films IS 'Films.'; ALTER TABLE films ALTER title SET STATISTICS 200", "", "", ""},
		// Before PUBLIC has these privileges.
		{"privilege to insert", "GRANT INSERT ON films TO pg_signal_backend; GRANT INSERT ON rekeyed.films TO pg_signal_backend", "role pg_signal_backend inserts into public.films, and can't execute sortkey.next_snowflake(integer), the default after contract; GRANT USAGE", "paste", rekey.StepContract},
		{"privilege", "GRANT SELECT, INSERT (title) ON films TO pg_signal_backend; GRANT USAGE ON SCHEMA sortkey TO PUBLIC; GRANT EXECUTE ON FUNCTION sortkey.next_snowflake(integer) TO PUBLIC",
			"SELECT of role pg_signal_backend on public.films is new: GRANT SELECT ON rekeyed.films TO pg_signal_backend", "paste", ""},
		{"revoked privilege", "REVOKE SELECT ON copies FROM pg_monitor", "SELECT of role pg_monitor on public.copies is gone: REVOKE SELECT ON rekeyed.copies FROM pg_monitor", "paste", ""},
		{"late view", "CREATE VIEW late AS SELECT id FROM films", "would be lost: view public.late", "DROP VIEW late", rekey.StepContract},
	} {
		if c.step != "" && c.step != step {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			j := &job{TB: t, db: j.db, pool: j.pool, spec: j.spec, session: &session{t: t, conn: j.conn}}
			j.do(c.change)
			if c.want == "" {
				return // the step succeeds at the end
			}
			text, undo := j.fails(step, rekey.ErrInconsistent, c.want), c.undo
			if undo == "paste" {
				undo = ""
				for line := range strings.Lines(text) {
					if i := strings.IndexAny(line, ":;"); i > 0 && strings.HasPrefix(line, "  ") {
						undo += line[i+1:] + ";"
					}
				}
			}
			j.do(undo)
		})
	}
}
