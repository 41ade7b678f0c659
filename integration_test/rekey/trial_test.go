package rekey

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// Contract tries the triggers of an application, and Inspect reads its functions.

// films is a library of films, with integer keys.
const films = `
	CREATE TABLE films (id serial PRIMARY KEY, title text NOT NULL UNIQUE, counted integer NOT NULL DEFAULT 0);
	CREATE TABLE copies (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, film_id integer NOT NULL REFERENCES films, no integer NOT NULL,
		twice integer GENERATED ALWAYS AS (no * 2) STORED, UNIQUE (film_id, no));
	CREATE TABLE shelves (film_id integer REFERENCES films, place integer, PRIMARY KEY (film_id, place));
	CREATE TABLE seen (value bigint); -- outside of the rekey
	CREATE TABLE seen_before (value integer);
	INSERT INTO films (title) SELECT 'film ' || i FROM generate_series(1, 20) i;
	INSERT INTO copies (film_id, no) SELECT i, n FROM generate_series(1, 20) i, generate_series(1, 3) n;
	INSERT INTO shelves SELECT i, i % 3 FROM generate_series(1, 20) i;`

func filmsSpec() rekey.Spec {
	return rekey.Spec{Keys: []rekey.Key{
		{Table: "films", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: rekey.Times{Start: sourceStart}},
		{Table: "copies", Format: rekey.Snowflake, Node: 3, BackfillNode: 4, Times: rekey.Times{Start: sourceStart}},
	}}
}

// triggerOn returns the definition of a trigger with a function in PL/pgSQL.
func triggerOn(table, when, body string) string {
	declare := ""
	if rest, ok := strings.CutPrefix(body, "DECLARE "); ok {
		declare, body, _ = strings.Cut(rest, "; ")
		declare = "DECLARE " + declare + ";"
	}
	return fmt.Sprintf("CREATE OR REPLACE FUNCTION on_%[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ %[3]s BEGIN %[4]s; RETURN NEW; END $$; CREATE OR REPLACE TRIGGER t %[2]s ON %[1]s FOR EACH ROW EXECUTE FUNCTION on_%[1]s();", table, when, declare, body)
}

// Contract runs the triggers of an application with the new keys before it changes anything.
func TestTrial(t *testing.T) {
	t.Parallel()
	const outOfRange = "integer out of range"
	for _, c := range []struct {
		name, change string
		want         string // in the error; empty: contract succeeds
		fix          string
	}{
		{"an integer variable", triggerOn("copies", "BEFORE INSERT", "DECLARE f integer := NEW.film_id; NEW.no := NEW.no + 0 * f"), outOfRange, triggerOn("copies", "BEFORE INSERT", "DECLARE f bigint := NEW.film_id; NEW.no := NEW.no + 0 * f")},
		{"an integer variable after the row", triggerOn("copies", "AFTER INSERT", "DECLARE f integer := NEW.film_id; PERFORM f"), outOfRange, "DROP TRIGGER t ON copies"},
		{"a variable of a table without a key", triggerOn("shelves", "AFTER INSERT", "DECLARE f integer := NEW.film_id; PERFORM f"), outOfRange, "DROP TRIGGER t ON shelves"},
		{"a deleted row", strings.Replace(triggerOn("copies", "AFTER DELETE", "DECLARE f integer := OLD.id; PERFORM f"), "RETURN NEW", "RETURN OLD", 1), outOfRange, "DROP TRIGGER t ON copies"},
		{"an updated row", triggerOn("films", "BEFORE UPDATE", "DECLARE f integer := NEW.id; PERFORM f"), outOfRange, "DROP TRIGGER t ON films"},
		{"a deferred trigger", strings.Replace(triggerOn("copies", "AFTER INSERT", "DECLARE f integer := NEW.film_id; PERFORM f"), "CREATE OR REPLACE TRIGGER t AFTER INSERT ON copies", "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON copies DEFERRABLE INITIALLY DEFERRED", 1), outOfRange, "DROP TRIGGER t ON copies"},
		{"an argument", "CREATE FUNCTION recount(ids integer[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE public.films f SET counted = (SELECT count(*) FROM public.copies WHERE film_id = f.id) WHERE id = ANY ($1); END $$;" +
			triggerOn("copies", "AFTER INSERT OR UPDATE", "PERFORM public.recount(ARRAY[NEW.film_id])"), "function public.recount(bigint[]) does not exist",
			"CREATE FUNCTION recount(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$ BEGIN UPDATE public.films f SET counted = (SELECT count(*) FROM public.copies WHERE film_id = f.id) WHERE id = ANY ($1); END $$"},
		{"a column of another table", triggerOn("films", "AFTER INSERT", "INSERT INTO seen_before VALUES (NEW.id)"), outOfRange, "ALTER TABLE seen_before ALTER value TYPE bigint"},
		{"values by position", triggerOn("films", "AFTER INSERT", "INSERT INTO public.shelves VALUES (NEW.id, 5)"), "INSERT INTO public.shelves VALUES (NEW.id, 5)", triggerOn("films", "AFTER INSERT", "INSERT INTO public.shelves (film_id, place) VALUES (NEW.id, 5)")},
		{"a wide column", triggerOn("films", "AFTER INSERT", "INSERT INTO seen VALUES (NEW.id)"), "", ""},
		{"a type of a column", triggerOn("copies", "BEFORE INSERT OR UPDATE", "DECLARE f public.copies.film_id%TYPE := NEW.film_id; PERFORM f"), "", ""},
		{"a new row of the table that it refers to", triggerOn("copies", "BEFORE INSERT", "INSERT INTO public.films (title) VALUES ('of ' || NEW.id) RETURNING id INTO NEW.film_id"), "", ""},
		{"rows that never change", triggerOn("copies", "BEFORE UPDATE OR DELETE", "RAISE EXCEPTION 'rows never change'"), "", ""},
		{"no rows", triggerOn("films", "BEFORE INSERT OR UPDATE", "DECLARE f integer := NEW.id; PERFORM f") + "TRUNCATE films, copies, shelves", outOfRange, "DROP TRIGGER t ON films"},
	} {
		t.Run(c.name, func(t *testing.T) {
			installed.One(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, films)
				db.Exec(t, c.change)
				pool, spec := db.SQL(t), filmsSpec()
				mustRun(t, pool, spec, rekey.Options{}, steps[:3]...)
				err := run(t.Context(), pool, rekey.StepContract, spec, rekey.Options{})
				if c.want != "" {
					if !errors.Is(err, rekey.ErrInconsistent) || !strings.Contains(err.Error(), c.want) {
						t.Fatalf("expected contract to fail with %q, got %v", c.want, err)
					}
					wantStatus(t, pool, rekey.StepContract, rekey.StepContract)
					if got := pgtest.Value[string](t, db.Conn(t), "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = 'films'::regclass AND attname = 'id'"); got != "integer" {
						t.Errorf("expected an integer key, got %s", got)
					}
					db.Exec(t, c.fix)
					err = run(t.Context(), pool, rekey.StepContract, spec, rekey.Options{})
				}
				must(t, err)
				conn := db.Conn(t)
				if n := pgtest.Value[int](t, conn, "SELECT count(*) FROM pg_proc WHERE proname LIKE 'trial%'"); n != 0 {
					t.Errorf("expected no function of a trial, got %d", n)
				}
				if got := pgtest.Value[string](t, conn, "SELECT count(*) || ' ' || (SELECT count(*) FROM copies) || ' ' || (SELECT count(*) FROM shelves) || ' ' || (SELECT count(*) FROM seen) FROM films"); got != "20 60 20 0" && got != "0 0 0 0" {
					t.Errorf("expected the rows from before, got %s", got)
				}
				_, err = conn.Exec(t.Context(), "INSERT INTO films (title) VALUES ('last'); INSERT INTO copies (film_id, no) SELECT id, 9 FROM films WHERE title = 'last'; INSERT INTO shelves (film_id, place) SELECT id, 9 FROM films WHERE title = 'last'")
				must(t, err)
			})
		})
	}
}

// Inspect notes functions that name a type that is too narrow for the new keys.
func TestNarrowTypes(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, films)
		db.Exec(t, triggerOn("copies", "BEFORE INSERT", "DECLARE f Integer := NEW.film_id; PERFORM f")+triggerOn("films", "BEFORE UPDATE", "NEW.title := 'new'")+
			"CREATE FUNCTION copies_of(films smallint[]) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM public.copies'; CREATE FUNCTION other(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n'")
		plan, err := rekey.Inspect(t.Context(), db.SQL(t), filmsSpec(), rekey.Options{Config: config})
		must(t, err)
		var got []string
		for _, n := range plan.Notes {
			got = append(got, n.Object+" "+n.Reason)
		}
		want := []string{"function public.on_copies() of trigger t names the type integer, which can't hold a new key", "function public.copies_of(smallint[]) names public.copies, and the type smallint, which can't hold a new key"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(plan.Problems) > 0 {
			t.Errorf("expected the notes %q, got %q and problems %v", want, got, plan.Problems)
		}
	})
}
