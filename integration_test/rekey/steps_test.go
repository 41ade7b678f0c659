package rekey

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

// steps are the steps in order.
var steps = []rekey.Step{rekey.StepExpand, rekey.StepBackfill, rekey.StepValidate, rekey.StepContract}

// run runs a step.
func run(ctx context.Context, db *sql.DB, step rekey.Step, spec rekey.Spec, o rekey.Options) error {
	o.Config = cmp.Or(o.Config, config)
	switch step {
	case rekey.StepExpand:
		return rekey.Expand(ctx, db, spec, o)
	case rekey.StepBackfill:
		return rekey.Backfill(ctx, db, o)
	case rekey.StepValidate:
		return rekey.Validate(ctx, db, o)
	case rekey.StepContract:
		return rekey.Contract(ctx, db, o)
	case rekey.StepAbort:
		return rekey.Abort(ctx, db, o)
	}
	return fmt.Errorf("unknown step %q", step)
}

// mustRun runs steps, and fails the test on an error.
func mustRun(t testing.TB, db *sql.DB, spec rekey.Spec, o rekey.Options, list ...rekey.Step) {
	t.Helper()
	for _, step := range list {
		if err := run(t.Context(), db, step, spec, o); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

// wantStatus fails the test unless the state of the rekey has these steps.
func wantStatus(t testing.TB, db *sql.DB, step, next rekey.Step) {
	t.Helper()
	s, err := rekey.ReadStatus(t.Context(), db, rekey.Options{Config: config})
	must(t, err)
	if s.Step != step || s.Next != next {
		t.Errorf("expected the status %q, next %q, got %q, next %q (%s)", step, next, s.Step, s.Next, s.Action)
	}
}

// dump returns the output of pg_dump for the application's schemas.
func (s *shop) dump(t testing.TB, options ...string) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	must(t, err)
	u.Host = "127.0.0.1:5432" // in the container
	command := append([]string{"pg_dump", "--exclude-schema=sortkey", "--exclude-schema=sortkey_internal", "--exclude-schema=before"}, options...)
	out, err := pgtest.Exec(t, s.Container(), "root", append(command, u.String())...)
	must(t, err)
	out = regexp.MustCompile(`(?m)^\\(un)?restrict .*\n`).ReplaceAllString(out, "")
	return strings.ReplaceAll(out, s.Name, "shop")
}

// data returns the rows of a dump, sorted.
func (s *shop) data(t testing.TB) string {
	t.Helper()
	lines := strings.Split(s.dump(t, "--data-only"), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var (
	spaces = regexp.MustCompile(`\s+`)
	// Before version 16, pg_dump uses ALTER TABLE.
	sequenceOwner = regexp.MustCompile(`^ALTER TABLE (\S+_seq) OWNER`)
	createTable   = regexp.MustCompile(`^CREATE TABLE (\S+) \((.*)\)$`)
)

// statements returns the statements of a dump of schemas. Each column of a table is a
// statement of its own, because the new columns are the last ones of a table.
func statements(dump string) (list []string) {
	var lines []string
	for line := range strings.Lines(dump) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	for s := range strings.SplitSeq(strings.Join(lines, ""), ";\n") {
		body := strings.TrimSpace(spaces.ReplaceAllString(strings.ReplaceAll(s, ",\n", "\x00"), " "))
		body = sequenceOwner.ReplaceAllString(body, "ALTER SEQUENCE $1 OWNER")
		if table := createTable.FindStringSubmatch(body); table != nil {
			for column := range strings.SplitSeq(table[2], "\x00") {
				list = append(list, table[1]+": "+strings.TrimSpace(column))
			}
			continue
		}
		list = append(list, strings.ReplaceAll(body, "\x00", ", "))
	}
	return list
}

// difference returns the statements that only one of the dumps has, after a - or +.
func difference(before, after string) (list []string) {
	counts := map[string]int{}
	for _, s := range statements(before) {
		counts[s]--
	}
	for _, s := range statements(after) {
		counts[s]++
	}
	for s, n := range counts {
		for ; n < 0; n++ {
			list = append(list, "- "+s)
		}
		for ; n > 0; n-- {
			list = append(list, "+ "+s)
		}
	}
	slices.Sort(list)
	return list
}

// wantDifference fails the test unless the dumps differ in these statements only.
func wantDifference(t testing.TB, before, after string, want []string) {
	t.Helper()
	got := difference(before, after)
	want = slices.Sorted(slices.Values(want))
	for _, s := range got {
		if !slices.Contains(want, s) {
			t.Errorf("unexpected difference of the dumps: %s", s)
		}
	}
	for _, s := range want {
		if !slices.Contains(got, s) {
			t.Errorf("missing difference of the dumps: %s", s)
		}
	}
	if len(got) != len(want) {
		t.Errorf("expected %d differences of the dumps, got %d", len(want), len(got))
	}
}

// same fails the test unless two dumps are equal.
func same(t testing.TB, what, before, after string) {
	t.Helper()
	if before == after {
		return
	}
	b, a := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("%s: expected equal dumps, got in line %d\n%s\ninstead of\n%s\ndifferences: %q", what, i+1, a[i], b[i], difference(before, after))
			return
		}
	}
	t.Errorf("%s: expected equal dumps, got %d lines instead of %d", what, len(a), len(b))
}

// shopDifference is the difference of the dumps of a shop before expand and after
// contract: the types of keys and references, and defaults instead of sequences.
var shopDifference = []string{
	"- public.customers: id bigint NOT NULL",
	"+ public.customers: id bigint DEFAULT sortkey.next_snowflake(1000) NOT NULL",
	"- CREATE SEQUENCE public.customers_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1",
	"- ALTER SEQUENCE public.customers_id_seq OWNER TO shop_owner",
	"- ALTER SEQUENCE public.customers_id_seq OWNED BY public.customers.id",
	"- ALTER TABLE ONLY public.customers ALTER COLUMN id SET DEFAULT nextval('public.customers_id_seq'::regclass)",
	"- GRANT USAGE ON SEQUENCE public.customers_id_seq TO shop_app",

	"- public.addresses: id integer NOT NULL",
	"+ public.addresses: id bigint DEFAULT sortkey.next_snowflake(1002) NOT NULL",
	"- CREATE SEQUENCE public.addresses_id_seq AS integer START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1",
	"- ALTER SEQUENCE public.addresses_id_seq OWNER TO shop_owner",
	"- ALTER SEQUENCE public.addresses_id_seq OWNED BY public.addresses.id",
	"- ALTER TABLE ONLY public.addresses ALTER COLUMN id SET DEFAULT nextval('public.addresses_id_seq'::regclass)",
	"- GRANT USAGE ON SEQUENCE public.addresses_id_seq TO shop_app",

	"- public.categories: id smallint NOT NULL",
	"+ public.categories: id bigint DEFAULT sortkey.next_uid60() NOT NULL",
	"- public.categories: parent_id smallint",
	"+ public.categories: parent_id bigint",
	"- ALTER TABLE public.categories ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY ( SEQUENCE NAME public.categories_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 )",

	"- public.products: id uuid DEFAULT gen_random_uuid() NOT NULL",
	"+ public.products: id uuid DEFAULT sortkey.next_sno(0, 60000) NOT NULL",
	"- public.products: category_id smallint NOT NULL",
	"+ public.products: category_id bigint NOT NULL",

	"- public.orders: id bigint NOT NULL",
	"+ public.orders: id bigint DEFAULT sortkey.next_snowflake(1004) NOT NULL",
	"- public.orders: billing_id integer NOT NULL",
	"+ public.orders: billing_id bigint NOT NULL",
	"- public.orders: shipping_id integer",
	"+ public.orders: shipping_id bigint",
	"- ALTER TABLE public.orders ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY ( SEQUENCE NAME public.orders_id_seq START WITH 100 INCREMENT BY 3 NO MINVALUE NO MAXVALUE CACHE 1 )",

	`- billing."Payments": id text NOT NULL COLLATE pg_catalog."C"`,
	`+ billing."Payments": id uuid NOT NULL`,

	"- public.reviews: id integer NOT NULL",
	"+ public.reviews: id bigint DEFAULT sortkey.next_snowflake(1006) NOT NULL",
	"- ALTER TABLE public.reviews ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ( SEQUENCE NAME public.reviews_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1 )",

	// The comment tells sortkey audit the type.
	"+ COMMENT ON COLUMN public.addresses.customer_id IS 'sortkey: snowflake'",
	"+ COMMENT ON COLUMN public.categories.parent_id IS 'sortkey: uid60'",
	"+ COMMENT ON COLUMN public.products.category_id IS 'sortkey: uid60'",
	"- COMMENT ON COLUMN public.orders.customer_id IS 'The customer''s key.'",
	"+ COMMENT ON COLUMN public.orders.customer_id IS 'The customer''s key. sortkey: snowflake'",
	"+ COMMENT ON COLUMN public.orders.billing_id IS 'sortkey: snowflake'",
	"+ COMMENT ON COLUMN public.orders.shipping_id IS 'sortkey: snowflake'",
	"+ COMMENT ON COLUMN public.order_lines.order_id IS 'sortkey: snowflake'",
	`- COMMENT ON COLUMN billing."Payments"."orderId" IS 'The key of the order.'`,
	`+ COMMENT ON COLUMN billing."Payments"."orderId" IS 'The key of the order. sortkey: snowflake'`,
	`+ COMMENT ON COLUMN billing."Payments".customer_id IS 'sortkey: snowflake'`,
	"+ COMMENT ON COLUMN public.reviews.customer_id IS 'sortkey: snowflake'",
	"- COMMENT ON COLUMN public.reviews.order_id IS 'The key of the order, if it exists.'",
	"+ COMMENT ON COLUMN public.reviews.order_id IS 'The key of the order, if it exists. sortkey: snowflake'",

	// Postgres lists these columns in their order in the table.
	"- CREATE STATISTICS public.orders_of_status (ndistinct, dependencies) ON customer_id, status FROM public.orders",
	"+ CREATE STATISTICS public.orders_of_status (ndistinct, dependencies) ON status, customer_id FROM public.orders",
}

// The way of a shop, from the first step to the last, by a role that owns the tables and
// has no other privileges. Programs of both versions work between the steps.
func TestSteps(t *testing.T) {
	t.Parallel()
	pgtest.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		s := newShop(t, db, 4000)
		ctx, spec := t.Context(), shopSpec()
		s.snapshot(t)
		before := s.dump(t, "--schema-only")
		plan, err := rekey.Inspect(ctx, s.owner, spec, rekey.Options{Config: config})
		must(t, err)
		if len(plan.Problems) > 0 {
			t.Fatalf("expected no problems, got %v", plan.Problems)
		}
		same(t, "Inspect", before, s.dump(t, "--schema-only"))
		checkPlan(t, plan)

		var mu sync.Mutex
		reported := map[rekey.Step]map[string]bool{} // the actions that are done
		o := rekey.Options{Progress: func(p rekey.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if reported[p.Step] == nil {
				reported[p.Step] = map[string]bool{}
			}
			if p.Done {
				reported[p.Step][p.Action] = true
			}
		}}
		wantStatus(t, s.owner, "", rekey.StepExpand)
		old := s.program(t, "old", false)
		old.probe(t)
		for i, step := range steps {
			mustRun(t, s.owner, spec, o, step)
			if step == rekey.StepContract {
				wantStatus(t, s.owner, "", rekey.StepExpand)
				break
			}
			wantStatus(t, s.owner, step, steps[i+1])
			old.probe(t)
			s.verify(t, oldPath)
			if got := s.nodes(t); got != shopNodes {
				t.Errorf("after %s: expected the reserved node numbers %s, got %s", step, shopNodes, got)
			}
			if step != rekey.StepExpand {
				agree(t, s.Conn(t), plan, 0)
			}
		}
		for _, step := range steps {
			var want []string
			for _, a := range plan.Actions {
				if a.Step == step {
					want = append(want, a.Title)
				}
			}
			for _, title := range want {
				if !reported[step][title] {
					t.Errorf("%s: expected progress about %q, got %v", step, title, reported[step])
				}
			}
		}
		fresh := s.program(t, "new", true)
		fresh.takeOver(old)
		fresh.probe(t)
		s.verify(t, oldPath)
		s.verifyIDs(t)
		s.verifyPrograms(t, fresh)
		if got := s.nodes(t); got != shopDefaultNodes {
			t.Errorf("after contract: expected the reserved node numbers %s, got %s", shopDefaultNodes, got)
		}
		must(t, migrations.Check(ctx, s.owner, config))
		wantDifference(t, before, s.dump(t, "--schema-only"), shopDifference)
	})
}

// checkPlan fails the test unless the plan lists all columns that change.
func checkPlan(t testing.TB, plan *rekey.Plan) {
	t.Helper()
	want := map[string]string{
		"public.customers.id":            "rekey_id bigint -> bigint",
		"public.addresses.id":            "rekey_id integer -> bigint",
		"public.addresses.customer_id":   "rekey_customer_id bigint -> bigint public.customers",
		"public.categories.id":           "rekey_id smallint -> bigint",
		"public.categories.parent_id":    "rekey_parent_id smallint -> bigint public.categories",
		"public.products.id":             "rekey_id uuid -> uuid",
		"public.products.category_id":    "rekey_category_id smallint -> bigint public.categories",
		"public.orders.id":               "rekey_id bigint -> bigint",
		"public.orders.customer_id":      "rekey_customer_id bigint -> bigint public.customers",
		"public.orders.billing_id":       "rekey_billing_id integer -> bigint public.addresses",
		"public.orders.shipping_id":      "rekey_shipping_id integer -> bigint public.addresses",
		"public.order_lines.order_id":    "rekey_order_id bigint -> bigint public.orders",
		"public.order_lines.product_id":  "rekey_product_id uuid -> uuid public.products",
		`billing."Payments".id`:          "rekey_id text -> uuid",
		`billing."Payments".orderId`:     "rekey_orderId bigint -> bigint public.orders",
		`billing."Payments".customer_id`: "rekey_customer_id bigint -> bigint public.customers",
		"public.reviews.id":              "rekey_id integer -> bigint",
		"public.reviews.product_id":      "rekey_product_id uuid -> uuid public.products",
		"public.reviews.customer_id":     "rekey_customer_id bigint -> bigint public.customers",
		"public.reviews.order_id":        "rekey_order_id bigint -> bigint public.orders",
	}
	for _, table := range plan.Tables {
		for _, c := range table.Columns {
			name := table.Name + "." + c.Name
			got := strings.TrimSpace(fmt.Sprintf("%s %s -> %s %s", c.NewName, c.OldType, c.NewType, c.To))
			if got != want[name] {
				t.Errorf("plan of %s: expected %q, got %q", name, want[name], got)
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("plan: expected column %s, got none", name)
	}
	for _, a := range plan.Actions {
		if len(a.SQL) == 0 || a.Title == "" || !slices.Contains(steps, a.Step) && a.Step != rekey.StepAbort {
			t.Errorf("plan: expected a title, a step and SQL, got %+v", a)
		}
	}
}

// agree fails the test unless all references refer to the same row by both keys, and all rows
// except for a number of rows that aren't backfilled have new keys.
func agree(t testing.TB, conn *pgx.Conn, plan *rekey.Plan, without int) {
	t.Helper()
	keys := map[string]rekey.Column{}
	for _, table := range plan.Tables {
		for _, c := range table.Columns {
			if c.To == "" {
				keys[table.Name] = c
			}
		}
	}
	quote := func(alias, column string) string { return alias + "." + pgx.Identifier{column}.Sanitize() }
	for _, table := range plan.Tables {
		for _, c := range table.Columns {
			if c.To == "" {
				without -= pgtest.Value[int](t, conn, fmt.Sprintf("SELECT count(*) FROM %s x WHERE %s IS NULL", table.Name, quote("x", c.NewName)))
				continue
			}
			to := keys[c.To]
			if n := pgtest.Value[int](t, conn, fmt.Sprintf("SELECT count(*) FROM %s x LEFT JOIN %s y ON %s = %s WHERE %s IS DISTINCT FROM %s",
				table.Name, c.To, quote("y", to.Name), quote("x", c.Name), quote("x", c.NewName), quote("y", to.NewName))); n != 0 {
				t.Errorf("%s.%s: expected both keys to refer to the same row, got %d other rows", table.Name, c.Name, n)
			}
		}
	}
	if without != 0 {
		t.Errorf("expected another row count without new keys: the difference is %d", without)
	}
}

// Steps reject a wrong order, and can be repeated.
func TestStepOrder(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		l := newLibrary(t, db, bigintLibrary)
		l.fill(t)
		wantStep := func(step rekey.Step) {
			t.Helper()
			if err := run(t.Context(), pool, step, l.spec(), rekey.Options{}); !errors.Is(err, rekey.ErrStep) {
				t.Errorf("%s: expected %v, got %v", step, rekey.ErrStep, err)
			}
		}
		for _, step := range []rekey.Step{rekey.StepBackfill, rekey.StepValidate, rekey.StepContract, rekey.StepAbort} {
			wantStep(step)
		}
		for i, step := range steps {
			for _, later := range steps[i+1:] {
				wantStep(later)
			}
			mustRun(t, pool, l.spec(), rekey.Options{}, step)
			if step != rekey.StepContract {
				mustRun(t, pool, l.spec(), rekey.Options{}, step)
				wantStatus(t, pool, step, steps[i+1])
			}
		}
		wantStep(rekey.StepContract)
		wantStep(rekey.StepAbort)
	})
}

// Expand rejects another Spec while a rekey is incomplete.
func TestOtherSpec(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		l := newLibrary(t, db, bigintLibrary)
		mustRun(t, db.SQL(t), l.spec(), rekey.Options{}, rekey.StepExpand)
		other := l.spec()
		other.Keys = other.Keys[:1]
		if err := run(t.Context(), db.SQL(t), rekey.StepExpand, other, rekey.Options{}); !errors.Is(err, rekey.ErrStep) && !errors.Is(err, rekey.ErrRefused) {
			t.Errorf("expected an error for another Spec, got %v", err)
		}
		wantStatus(t, db.SQL(t), rekey.StepExpand, rekey.StepBackfill)
	})
}

// While a program runs a step, all steps of other programs fail with ErrBusy.
func TestBusy(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		l := newLibrary(t, db, bigintLibrary)
		l.fill(t)
		for _, step := range steps {
			var once sync.Once
			entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				done <- run(t.Context(), pool, step, l.spec(), rekey.Options{Progress: func(rekey.Progress) {
					once.Do(func() { close(entered); <-leave })
				}})
			}()
			select {
			case <-entered:
			case err := <-done:
				t.Fatalf("%s: expected a call of Progress, got the end of the step: %v", step, err)
			}
			for _, other := range []rekey.Step{step, rekey.StepAbort} {
				if err := run(t.Context(), pool, other, l.spec(), rekey.Options{}); !errors.Is(err, rekey.ErrBusy) {
					t.Errorf("%s during %s: expected %v, got %v", other, step, rekey.ErrBusy, err)
				}
			}
			close(leave)
			must(t, <-done)
		}
	})
}

// A step whose lock is held for longer than LockWait fails with ErrLocked. Programs of
// both versions work, and the step can be repeated.
func TestLocked(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		l := newLibrary(t, db, bigintLibrary)
		l.fill(t)
		for _, step := range steps {
			if step == rekey.StepBackfill {
				mustRun(t, pool, l.spec(), rekey.Options{}, step)
				continue
			}
			tx, err := db.Conn(t).Begin(t.Context())
			must(t, err)
			_, err = tx.Exec(t.Context(), "INSERT INTO books (id, title, author_id) VALUES (900, 'held by "+string(step)+"', 1)")
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			want := rekey.ErrLocked
			if step == rekey.StepValidate {
				// CREATE INDEX CONCURRENTLY waits for the transaction without blocking others.
				want = context.DeadlineExceeded
				ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
			}
			err = run(ctx, pool, step, l.spec(), rekey.Options{LockTimeout: 50 * time.Millisecond, LockWait: 500 * time.Millisecond})
			cancel()
			if !errors.Is(err, want) {
				t.Errorf("%s: expected %v, got %v", step, want, err)
			}
			l.probe(t, false)
			if step == rekey.StepContract {
				l.probe(t, true)
			}
			must(t, tx.Rollback(t.Context()))
			mustRun(t, pool, l.spec(), rekey.Options{}, step)
		}
		l.probe(t, true)
	})
}

// After contract, the same schema can be rekeyed to another format.
func TestTwice(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		l := newLibrary(t, db, bigintLibrary)
		l.fill(t)
		mustRun(t, pool, l.spec(), rekey.Options{}, steps...)
		l.probe(t, true)
		second := rekey.Spec{Keys: []rekey.Key{
			{Table: "authors", Format: rekey.Sno, Node: 50, BackfillNode: 51, Times: rekey.Times{Key: rekey.KeySnowflake, Epoch: snowflakeEpoch, Unit: time.Millisecond, Shift: 22}},
			{Table: "books", Format: rekey.UID60, Times: rekey.Times{Key: rekey.KeySnowflake, Epoch: snowflakeEpoch, Unit: time.Millisecond, Shift: 22}},
		}}
		conn := db.Conn(t)
		const names = "SELECT string_agg(b.title || ' by ' || a.name, ', ' ORDER BY b.title) FROM books b JOIN authors a ON a.id = author_id"
		want := pgtest.Value[string](t, conn, names)
		mustRun(t, pool, second, rekey.Options{}, steps...)
		conn = db.Conn(t)
		if got := pgtest.Value[string](t, conn, names); got != want {
			t.Errorf("expected %s, got %s", want, got)
		}
		for _, column := range []string{"authors id uuid", "books id bigint", "books author_id uuid"} {
			var table, name, kind string
			_, err := fmt.Sscan(column, &table, &name, &kind)
			must(t, err)
			if got := pgtest.Value[string](t, conn, "SELECT data_type FROM information_schema.columns WHERE table_name = $1 AND column_name = $2", table, name); got != kind {
				t.Errorf("%s.%s: expected type %s, got %s", table, name, kind, got)
			}
		}
		if left := pgtest.Value[int](t, conn, "SELECT count(*) FROM pg_class WHERE relname LIKE 'rekey%'"); left != 0 {
			t.Errorf("expected no relation of rekey, got %d", left)
		}
	})
}

// A pool of one connection suffices, and keeps its settings. They don't change the SQL of rekey.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE \"ro\\ws\" (id serial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now()); INSERT INTO \"ro\\ws\" SELECT FROM generate_series(1, 1000)")
		pool := db.SQL(t)
		pool.SetMaxOpenConns(1)
		_, err := pool.ExecContext(t.Context(), "SET lock_timeout = 4321; SET standard_conforming_strings = off; SET quote_all_identifiers = on")
		must(t, err)
		spec := rekey.Spec{Keys: []rekey.Key{{Table: `"ro\ws"`, Format: rekey.UID60, Times: rekey.Times{Column: "created_at"}}}}
		mustRun(t, pool, spec, rekey.Options{}, steps...)
		var settings string
		must(t, pool.QueryRowContext(t.Context(), "SELECT current_setting('search_path') || ' ' || current_setting('lock_timeout') || ' ' || current_setting('max_parallel_workers_per_gather') || ' ' || current_setting('standard_conforming_strings')").Scan(&settings))
		if want := `"$user", public 4321ms 2 off`; settings != want {
			t.Errorf("expected the settings %q, got %q", want, settings)
		}
	})
}
