package rekey

import (
	"context"
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

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

// The way of a shop, from the first step to the last, by a role that owns the tables and
// has no other privileges. Programs of both versions work between the steps.
func TestSteps(t *testing.T) {
	t.Parallel()
	pgtest.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		s := newShop(t, db, 4000)
		s.snapshot()
		before := s.dump("--schema-only")
		plan := s.inspect()
		if len(plan.Problems) > 0 {
			t.Fatalf("expected no problems, got %v", plan.Problems)
		}
		sameDump(t, "Inspect", before, s.dump("--schema-only"))
		checkPlan(t, plan)

		var mu sync.Mutex
		reported := map[string]bool{} // the actions that are done
		o := rekey.Options{Progress: func(p rekey.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p.Done {
				reported[string(p.Step)+": "+p.Action] = true
			}
		}}
		s.wantStatus("", rekey.StepExpand)
		old := s.program("old", false)
		old.probe(t)
		for i, step := range steps[:3] {
			s.runWith(o, step)
			s.wantStatus(step, steps[i+1])
			old.probe(t)
			s.verify(oldPath)
			want(t, "the reserved node numbers after "+string(step), s.nodes(), shopNodes)
			if step != rekey.StepExpand {
				s.agree(plan, 0)
			}
		}
		s.runWith(o, rekey.StepContract)
		s.wantStatus("", rekey.StepExpand)
		for _, a := range plan.Actions {
			if title := string(a.Step) + ": " + a.Title; slices.Contains(steps, a.Step) && !reported[title] {
				t.Errorf("expected progress about %q, got %v", title, reported)
			}
		}
		fresh := s.program("new", true)
		fresh.takeOver(old)
		fresh.probe(t)
		s.verify(oldPath)
		s.verifyIDs()
		s.verifyPrograms(fresh)
		want(t, "the reserved node numbers after contract", s.nodes(), shopDefaultNodes)
		must(t, migrations.Check(t.Context(), s.pool, config))
		wantDifference(t, before, s.dump("--schema-only"), shopDifference)
	})
}

// dump returns the output of pg_dump for the application's schemas.
func (j *job) dump(options ...string) string {
	j.Helper()
	u, err := url.Parse(j.db.URL)
	must(j, err)
	u.Host = "127.0.0.1:5432" // in the container
	command := append([]string{"pg_dump", "--exclude-schema=sortkey", "--exclude-schema=sortkey_internal", "--exclude-schema=before"}, options...)
	out, err := pgtest.Exec(j, j.db.Container(), "root", append(command, u.String())...)
	must(j, err)
	out = regexp.MustCompile(`(?m)^\\(un)?restrict .*\n`).ReplaceAllString(out, "")
	return strings.ReplaceAll(out, j.db.Name, "shop")
}

// dumps returns the dump of the schemas, and the sorted lines of that of the rows.
func (j *job) dumps() (schema, data string) {
	j.Helper()
	rows := strings.Split(j.dump("--data-only"), "\n")
	slices.Sort(rows)
	return j.dump("--schema-only"), strings.Join(rows, "\n")
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

// wantDifference fails the test unless the dumps of schemas differ in these statements only.
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

// sameDump fails the test unless two dumps are equal.
func sameDump(t testing.TB, what, before, after string) {
	t.Helper()
	if before != after {
		t.Errorf("%s: expected equal dumps, got the differences %q", what, difference(before, after))
	}
}

// wantDumps fails the test unless the dumps are equal to earlier ones.
func (j *job) wantDumps(what, schema, data string) {
	j.Helper()
	gotSchema, gotData := j.dumps()
	sameDump(j, what+", schema", schema, gotSchema)
	sameDump(j, what+", rows", data, gotData)
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
	"+ public.products: id uuid DEFAULT sortkey.next_uuid7() NOT NULL",
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
	"+ public.reviews: id uuid DEFAULT sortkey.next_uuid7() NOT NULL",
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
		"public.reviews.id":              "rekey_id integer -> uuid",
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
func (j *job) agree(plan *rekey.Plan, without int) {
	j.Helper()
	keys := map[string]rekey.Column{}
	for _, table := range plan.Tables {
		for _, c := range table.Columns {
			if c.To == "" {
				keys[table.Name] = c
			}
		}
	}
	quote := func(alias, column string) string { return alias + "." + pgx.Identifier{column}.Sanitize() }
	got := "SELECT 0"
	for _, table := range plan.Tables {
		for _, c := range table.Columns {
			if c.To == "" {
				got += fmt.Sprintf(" + (SELECT count(*) FROM %s x WHERE %s IS NULL)", table.Name, quote("x", c.NewName))
				continue
			}
			to := keys[c.To]
			n := j.one(fmt.Sprintf("SELECT count(*) FROM %s x LEFT JOIN %s y ON %s = %s WHERE %s IS DISTINCT FROM %s",
				table.Name, c.To, quote("y", to.Name), quote("x", c.Name), quote("x", c.NewName), quote("y", to.NewName)))
			want(j, table.Name+"."+c.Name+": rows whose keys don't refer to the same row", n, "0")
		}
	}
	want(j, "the row count without new keys", j.one(got), fmt.Sprint(without))
}

// Abort at any step restores the tables: the dumps of the schema and of the rows equal
// those from before.
func TestAbort(t *testing.T) {
	t.Parallel()
	pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		s := newShop(t, db, 2000)
		s.snapshot()
		schema, data := s.dumps()
		for _, a := range []struct {
			name    string
			steps   int
			step    rekey.Step // is interrupted after a number of reports
			reports int
		}{
			{"after expand", 1, "", 0},
			{"in the backfill", 1, rekey.StepBackfill, 5},
			{"after backfill", 2, "", 0},
			{"in validate", 2, rekey.StepValidate, 12},
			{"after validate", 3, "", 0},
		} {
			s.run(steps[:a.steps]...)
			if a.step != "" {
				if err := s.interrupt(a.step, a.reports); !errors.Is(err, context.Canceled) {
					t.Fatalf("%s: expected it to be canceled, got %v", a.name, err)
				}
				status := s.wantStatus(a.step, a.step)
				if status.Action == "" || len(status.Spec.Keys) != len(s.spec.Keys) || status.StartedAt.IsZero() || status.UpdatedAt.Before(status.StartedAt) {
					t.Errorf("%s: expected the next action, the Spec and times, got %+v", a.name, status)
				}
			}
			s.run(rekey.StepAbort)
			s.wantStatus("", rekey.StepExpand)
			s.wantDumps(a.name, schema, data)
			want(t, a.name+": the reserved node numbers", s.nodes(), "")
			s.unchanged()
		}

		// The programs go on, also with rows from programs of the new version.
		old := s.program("old", false)
		old.probe(t)
		s.run(steps[:3]...)
		fresh := s.program("new", true)
		old.probe(t)
		fresh.probe(t)
		s.run(rekey.StepAbort)
		sameDump(t, "abort", schema, s.dump("--schema-only"))
		s.verify(oldPath)
		s.verifyPrograms(old, fresh)
		old.takeOver(fresh)
		old.probe(t)
		s.verifyPrograms(old)

		// Another attempt goes the whole way.
		s.run(steps[:3]...)
		old.probe(t)
		s.run(rekey.StepContract)
		s.verify(oldPath)
		s.verifyIDs()
		fresh = s.program("newer", true)
		fresh.takeOver(old)
		fresh.probe(t)
		s.verifyPrograms(fresh)
		wantDifference(t, schema, s.dump("--schema-only"), shopDifference)
	})
}

// interrupt runs a step and cancels it after a number of reports.
func (j *job) interrupt(step rekey.Step, reports int) error {
	ctx, cancel := context.WithCancel(j.Context())
	defer cancel()
	return j.try(ctx, step, rekey.Options{Progress: func(rekey.Progress) {
		if reports--; reports == 0 {
			cancel()
		}
	}})
}

// Abort can be repeated after it was interrupted.
func TestAbortInterrupted(t *testing.T) {
	t.Parallel()
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		l := newLibrary(t, db, uuid7Library)
		schema, data := l.dumps()
		l.run(steps[:3]...)
		for reports := 1; ; reports++ {
			err := l.interrupt(rekey.StepAbort, reports)
			if err == nil {
				break
			}
			wantError(t, "abort", err, context.Canceled)
			status, err := rekey.ReadStatus(t.Context(), l.pool, rekey.Options{Config: config})
			must(t, err)
			if status.Step == "" {
				break // canceled after the last action
			}
			l.probe(oldVersion)
		}
		l.wantDumps("abort", schema, data)
	})
}

// Steps reject a wrong order and another Spec, and can be repeated.
func TestStepOrder(t *testing.T) {
	oneLibrary(t, bigintLibrary, func(t *testing.T, l *library) {
		for _, step := range []rekey.Step{rekey.StepBackfill, rekey.StepValidate, rekey.StepContract, rekey.StepAbort} {
			l.fails(step, rekey.ErrStep)
		}
		for i, step := range steps {
			for _, later := range steps[i+1:] {
				l.fails(later, rekey.ErrStep)
			}
			l.run(step)
			if step != rekey.StepContract {
				l.run(step)
				l.wantStatus(step, steps[i+1])
			}
			if step == rekey.StepExpand {
				other := *l.job
				other.spec.Keys = l.spec.Keys[:1]
				if err := other.try(t.Context(), step, rekey.Options{}); !errors.Is(err, rekey.ErrStep) && !errors.Is(err, rekey.ErrRefused) {
					t.Errorf("expected an error for another Spec, got %v", err)
				}
				l.wantStatus(rekey.StepExpand, rekey.StepBackfill)
			}
		}
		l.fails(rekey.StepContract, rekey.ErrStep)
		l.fails(rekey.StepAbort, rekey.ErrStep)
	})
}

// While a program runs a step, all steps of other programs fail with ErrBusy.
func TestBusy(t *testing.T) {
	oneLibrary(t, bigintLibrary, func(t *testing.T, l *library) {
		for _, step := range steps {
			var once sync.Once
			entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				done <- l.try(t.Context(), step, rekey.Options{Progress: func(rekey.Progress) {
					once.Do(func() { close(entered); <-leave })
				}})
			}()
			select {
			case <-entered:
			case err := <-done:
				t.Fatalf("%s: expected a call of Progress, got the end of the step: %v", step, err)
			}
			for _, other := range []rekey.Step{step, rekey.StepAbort} {
				if err := l.try(t.Context(), other, rekey.Options{}); !errors.Is(err, rekey.ErrBusy) {
					t.Errorf("%s during %s: expected %v, got %v", other, step, rekey.ErrBusy, err)
				}
			}
			close(leave)
			must(t, <-done)
		}
	})
}

// After contract, the same schema can be rekeyed to another format.
func TestTwice(t *testing.T) {
	oneLibrary(t, bigintLibrary, func(t *testing.T, l *library) {
		l.run(steps...)
		l.probe(newVersion)
		const names = "SELECT string_agg(b.title || ' by ' || a.name, ', ' ORDER BY b.title) FROM books b JOIN authors a ON a.id = author_id"
		before := l.one(names)
		snowflakes := rekey.Times{Key: rekey.KeySnowflake, Epoch: idtype.DefaultSnowflakeLayout().Epoch, Unit: time.Millisecond, Shift: 22}
		l.spec = rekey.Spec{Keys: []rekey.Key{
			{Table: "authors", Format: rekey.Sno, Node: 50, BackfillNode: 51, Times: snowflakes},
			{Table: "books", Format: rekey.UID60, Times: snowflakes},
		}}
		l.run(steps...)
		want(t, "the authors of books", l.one(names), before)
		want(t, "the types", l.one("SELECT pg_typeof(a.id) || ' ' || pg_typeof(b.id) || ' ' || pg_typeof(author_id) FROM authors a JOIN books b ON a.id = author_id LIMIT 1"), "uuid bigint uuid")
		want(t, "relations of rekey", l.one("SELECT count(*) FROM pg_class WHERE relname LIKE 'rekey%'"), "0")
	})
}

// A pool of one connection suffices, and keeps its settings. They don't change the SQL of rekey.
func TestOneConnection(t *testing.T) {
	const tables = `CREATE TABLE "ro\ws" (id serial PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now()); INSERT INTO "ro\ws" SELECT FROM generate_series(1, 1000)`
	spec := rekey.Spec{Keys: []rekey.Key{{Table: `"ro\ws"`, Format: rekey.UID60, Times: created}}}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		j.pool.SetMaxOpenConns(1)
		_, err := j.pool.ExecContext(t.Context(), "SET lock_timeout = 4321; SET standard_conforming_strings = off; SET quote_all_identifiers = on")
		must(t, err)
		j.run(steps...)
		var settings string
		must(t, j.pool.QueryRowContext(t.Context(), "SELECT current_setting('search_path') || ' ' || current_setting('lock_timeout') || ' ' || current_setting('max_parallel_workers_per_gather') || ' ' || current_setting('standard_conforming_strings')").Scan(&settings))
		want(t, "the settings", settings, `"$user", public 4321ms 2 off`)
	})
}
