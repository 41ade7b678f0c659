package rekey

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// The statement of a remedy solves its problem, which is listed once.
func TestRemedies(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		for _, c := range []struct{ name, change, undo string }{
			{name: "typed table", change: "CREATE TYPE shop.pair AS (id bigint, customer_id bigint); CREATE TABLE shop.t OF shop.pair; ALTER TABLE shop.t ADD FOREIGN KEY (customer_id) REFERENCES shop.customers"},
			{name: "inheritance", change: "CREATE TABLE shop.p (note text); ALTER TABLE shop.orders INHERIT shop.p"},
			{name: "sequence of a reference", change: "CREATE SEQUENCE shop.extra OWNED BY shop.orders.customer_id"},
			{name: "sequence in a view", change: "ALTER TABLE shop.customers ALTER id DROP IDENTITY; CREATE SEQUENCE shop.numbers OWNED BY shop.customers.id; ALTER TABLE shop.customers ALTER id SET DEFAULT nextval('shop.numbers'); CREATE VIEW shop.v AS SELECT last_value FROM shop.numbers"},
			{name: "publication", change: "CREATE PUBLICATION shop FOR TABLE shop.customers, shop.orders", undo: "DROP PUBLICATION shop"},
			{name: "function of two triggers and of two tables", change: `CREATE SCHEMA other; CREATE TABLE other.log (id bigint);
				CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO log SELECT count(*) FROM orders JOIN customers ON true; RETURN NEW; END';
				CREATE TRIGGER f AFTER INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.f(); CREATE TRIGGER g AFTER INSERT ON shop.customers FOR EACH ROW EXECUTE FUNCTION shop.f()`, undo: "DROP SCHEMA other CASCADE"},
		} {
			db.Exec(t, "DROP SCHEMA IF EXISTS shop CASCADE;"+refusalTables)
			pool := pool
			if strings.Contains(c.change, "other") {
				pool = db.SQL(t, pgtest.Config(func(cfg *pgx.ConnConfig) { cfg.RuntimeParams["search_path"] = "shop, other" }))
			}
			db.Exec(t, c.change)
			plan, err := rekey.Inspect(t.Context(), pool, refusalSpec(), rekey.Options{Config: config})
			must(t, err)
			if len(plan.Problems) != 1 {
				t.Errorf("%s: expected one problem, got %v", c.name, plan.Problems)
				continue
			}
			if c.name == "sequence in a view" && !strings.HasPrefix(plan.Problems[0].Reason, "is used by view shop.v,") {
				t.Errorf("%s: expected the view, got %v", c.name, plan.Problems)
			}
			remedy := plan.Problems[0].Remedy
			statement, ok := strings.CutPrefix(remedy, "run ")
			statement, _, _ = strings.Cut(statement, "; after")
			statement, _, _ = strings.Cut(statement, ", or ")
			if !ok {
				t.Errorf("%s: expected a statement, got %q", c.name, remedy)
			}
			db.Exec(t, statement)
			if got := problems(t, pool, refusalSpec()); got != "" {
				t.Errorf("%s: expected no problem after %s, got %q", c.name, statement, got)
			}
			if c.undo != "" {
				db.Exec(t, c.undo)
			}
		}
	})
}

// The remedy for a policy keeps rows closed, and a function that copies rows of other tables
// is fine.
func TestFalseAlarms(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		db.Exec(t, refusalTables+`CREATE TABLE shop.staging (a integer); CREATE TABLE shop.summary (a integer);
			CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO shop.summary SELECT * FROM shop.staging; RETURN NULL; END';
			CREATE TRIGGER f AFTER INSERT ON shop.orders REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION shop.f()`)
		if got := problems(t, pool, refusalSpec()); got != "" {
			t.Errorf("expected no problem, got %q", got)
		}
		db.Exec(t, "ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON shop.orders AS RESTRICTIVE USING (customer_id > 5)")
		wantProblem(t, pool, refusalSpec(), "policy own", "replace it in one transaction")
		if got := problems(t, pool, refusalSpec()); strings.Contains(got, "drop it and create") {
			t.Errorf("expected no advice to drop the policy, got %q", got)
		}
	})
}

// A note about rows before the first instant of a Snowflake names an epoch for them, and a
// check names a view, not its rule.
func TestEarlyRowsAndLateViews(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		db.Exec(t, refusalTables+"UPDATE shop.orders SET created_at = '2015-03-04 05:06:07Z' WHERE id = 3")
		plan, err := rekey.Inspect(t.Context(), pool, refusalSpec(), rekey.Options{Config: config})
		must(t, err)
		if len(plan.Notes) != 1 || !strings.Contains(plan.Notes[0].Remedy, "sortkey migrate up --epoch 2015-03-04") {
			t.Errorf("expected a note with the epoch, got %v", plan.Notes)
		}
		mustRun(t, pool, refusalSpec(), rekey.Options{}, steps[:3]...)
		db.Exec(t, "CREATE VIEW shop.late AS SELECT id FROM shop.orders")
		err = run(t.Context(), pool, rekey.StepContract, refusalSpec(), rekey.Options{})
		if !errors.Is(err, rekey.ErrInconsistent) || !strings.Contains(err.Error(), "view shop.late") || strings.Contains(err.Error(), "_RETURN") {
			t.Errorf("expected an error with view shop.late, got %v", err)
		}
	})
}
