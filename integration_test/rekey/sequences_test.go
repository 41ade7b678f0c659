package rekey

import (
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Contract keeps a sequence that the text of a function names.
func TestSequenceOfFunction(t *testing.T) {
	t.Parallel()
	const create = "CREATE FUNCTION reserve() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN %; END $$"
	bigints := strings.NewReplacer("serial", "bigserial", "integer", "bigint").Replace(films)
	for _, c := range []struct {
		name, tables, function string
		inPlace                bool
		kept                   bool
		problem, note          string
	}{
		{name: "not named", function: "nextval('other_seq')"},
		{name: "with its schema", function: "nextval('public.films_id_seq')", kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "without its schema", function: `nextval('"films_id_seq"')`, kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "in dynamic SQL", function: "(SELECT 1); EXECUTE 'SELECT nextval(''films_id_seq'')'", kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "in place", function: "nextval('films_id_seq')", inPlace: true, kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "bigint in place", tables: bigints, function: "nextval('films_id_seq')", inPlace: true, kept: true, note: "sequence public.films_id_seq is named by public.reserve()"},
		{name: "bigint in place, not named", tables: bigints, function: "nextval('other_seq')", inPlace: true},
		{name: "identity", function: "nextval('public.copies_id_seq')", problem: "sequence public.copies_id_seq is named by public.reserve(), and would be dropped with the identity column"},
		{name: "by its column", function: "nextval(pg_get_serial_sequence('public.films', 'id'))", note: "function public.reserve() names public.films and calls pg_get_serial_sequence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			installed.One(t, func(t *testing.T, db *pgtest.DB) {
				if c.tables == "" {
					c.tables = films
				}
				db.Exec(t, c.tables)
				db.Exec(t, strings.Replace(create, "%", c.function, 1))
				spec := filmsSpec()
				if c.inPlace {
					spec.Keys = []rekey.Key{{Table: "films", Format: rekey.Snowflake, Node: 1, InPlace: true}}
				}
				plan, err := rekey.Inspect(t.Context(), db.SQL(t), spec, rekey.Options{Config: config})
				must(t, err)
				all := func(list []rekey.Problem) (text string) {
					for _, p := range list {
						text += p.String() + "\n"
					}
					return text
				}
				if got := all(plan.Problems); !strings.Contains(got, c.problem) || c.problem == "" && got != "" {
					t.Fatalf("expected the problem %q, got %q", c.problem, got)
				}
				if got := all(plan.Notes); !strings.Contains(got, c.note) || c.note == "" && strings.Contains(got, "sequence") {
					t.Errorf("expected the note %q, got %q", c.note, got)
				}
				if c.problem != "" {
					return
				}
				mustRun(t, db.SQL(t), spec, rekey.Options{}, steps...)
				conn := db.Conn(t)
				if got := pgtest.Value[bool](t, conn, "SELECT to_regclass('public.films_id_seq') IS NOT NULL"); got != c.kept {
					t.Errorf("expected that contract keeps the sequence: %v, got %v", c.kept, got)
				}
				if c.kept && c.name != "in dynamic SQL" {
					if got := pgtest.Value[int64](t, conn, "SELECT reserve()"); got != 21 {
						t.Errorf("expected the next value 21, got %d", got)
					}
				}
			})
		})
	}
}
