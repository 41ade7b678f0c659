package rekey

import (
	"context"
	"errors"
	"fmt"
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

// The way of a shop, from the first step to the last and back from each step, by a role that owns
// the tables and has no other privileges. Programs of both versions work between the steps.
func TestSteps(t *testing.T) {
	t.Parallel()
	pgtest.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		s := newShop(t, db, 2000)
		s.snapshot()
		s.wantOwner()
		before := s.dump()
		plan := s.inspect()
		want(t, "problems", lines(plan.Problems), "")
		s.wantDump("Inspect", before)
		s.wantStatus("", rekey.StepExpand)
		// abort repeats abort after it was interrupted, until it is complete.
		abort := func(interrupted func()) {
			for reports := 1; s.status().Step != ""; reports++ {
				if err := s.interrupt(rekey.StepAbort, reports); err != nil {
					wantError(t, "abort", err, context.Canceled)
				}
				interrupted()
			}
		}
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
				wantError(t, a.name, s.interrupt(a.step, a.reports), context.Canceled)
				status := s.wantStatus(a.step, a.step)
				if status.Action == "" || len(status.Spec.Keys) != len(s.spec.Keys) || status.StartedAt.IsZero() || status.UpdatedAt.Before(status.StartedAt) {
					t.Errorf("%s: expected the next action, the Spec and times, got %+v", a.name, status)
				}
			}
			if a.steps < 3 {
				s.run(rekey.StepAbort)
			}
			abort(func() {})
			s.wantStatus("", rekey.StepExpand)
			s.wantDump(a.name, before) // no trigger of the application has changed a row
			want(t, a.name+": the reserved node numbers", s.nodes(), "")
		}

		old := s.program("old", 0, false)
		old.probe(t)
		reported := map[string]bool{} // the actions that are done
		o := rekey.Options{Progress: func(p rekey.Progress) {
			if p.Done {
				reported[string(p.Step)+": "+p.Action] = true
			}
		}}
		// forward runs the first three steps.
		forward := func() {
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
		}
		forward()
		s.wantPrivileges()
		fresh := s.program("new", 1, true)
		fresh.probe(t)
		abort(func() { old.probe(t) })
		s.wantDifference("abort", before, nil)
		s.verify(oldPath)
		s.verifyPrograms()

		// To undo contract and to do it again loses nothing that programs have written in between.
		forward()
		s.runWith(o, rekey.StepContract)
		s.wantStatus(rekey.StepContract, rekey.StepCleanup)
		fresh = s.program("contracted", 1, true)
		fresh.probe(t)
		s.verify(oldPath)
		for reports := 1; s.status().Next != rekey.StepContract; reports += 3 {
			if err := s.interrupt(rekey.StepUndo, reports); err != nil {
				wantError(t, "undo", err, context.Canceled)
				fresh.probe(t)
			}
		}
		s.runWith(o, rekey.StepContract, rekey.StepUndo)
		s.wantStatus(rekey.StepValidate, rekey.StepContract)
		s.wantPrivileges()
		s.agree(plan, 0)
		old = s.program("undone", 2, false)
		old.probe(t)
		fresh.probe(t)
		s.verify(oldPath)
		s.verifyPrograms()
		abort(func() { old.probe(t) })
		s.wantDifference("undo and abort", before, nil)
		s.verify(oldPath)
		s.verifyPrograms()

		forward()
		for reports := 1; s.status().Next != rekey.StepCleanup; reports += 6 {
			if err := s.interrupt(rekey.StepContract, reports); err != nil {
				wantError(t, "contract", err, context.Canceled)
				if reports > 20 { // some tables have other keys than others
					must(t, s.try(t.Context(), rekey.StepUndo, rekey.Options{}))
					old.probe(t)
					s.agree(plan, 0)
					s.runWith(o, rekey.StepContract)
				}
			}
		}
		for reports := 1; s.status().Step != ""; reports += 6 {
			if err := s.interrupt(rekey.StepCleanup, reports); err != nil {
				wantError(t, "cleanup", err, context.Canceled)
				fresh.probe(t)
			}
		}
		s.wantStatus("", rekey.StepExpand)
		for _, a := range plan.Actions {
			if done := reported[string(a.Step)+": "+a.Title]; a.Title == "" || len(a.SQL) == 0 || !done && a.Step != rekey.StepAbort && a.Step != rekey.StepCleanup {
				t.Errorf("expected a title, SQL and progress about %s: %q", a.Step, a.Title)
			}
		}
		// What rekey doesn't carry over, the notes restore.
		restored := 0
		for _, n := range plan.Notes {
			if statement, ok := strings.CutPrefix(n.Remedy, "after cleanup, run "); ok {
				_, err := s.pool.ExecContext(t.Context(), statement)
				must(t, err)
				restored++
			}
		}
		want(t, "the statements of notes", restored, 3)
		fresh = s.program("newer", 0, true)
		fresh.probe(t)
		s.verify(oldPath)
		s.verifyIDs()
		s.verifyPrograms()
		want(t, "the reserved node numbers after cleanup", s.nodes(), shopDefaultNodes)
		must(t, migrations.Check(t.Context(), s.pool, config))
		// The sequences of the keys, with their privileges, are gone.
		list := shopDifference
		for _, statement := range statements(before.schema) {
			if keySequence.MatchString(statement) {
				list = append(list, "- "+statement)
			}
		}
		s.wantDifference("cleanup", before, list)
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

// A dump is the output of pg_dump for the application's schemas.
type dump struct {
	schema string
	rows   []string // sorted lines
}

func (j *job) dump() dump {
	j.Helper()
	run := func(part string) string {
		out, err := pgtest.Exec(j, j.db.Container(), "root", "pg_dump", part, "--exclude-schema=sortkey", "--exclude-schema=sortkey_internal", "--exclude-schema=before", j.db.URLFromContainers(j))
		must(j, err)
		return strings.ReplaceAll(restrict.ReplaceAllString(out, ""), j.db.Name, "shop")
	}
	rows := slices.DeleteFunc(strings.Split(run("--data-only"), "\n"), func(row string) bool {
		return strings.Contains(row, "pg_catalog.setval(") // a trial takes values of sequences
	})
	slices.Sort(rows)
	return dump{run("--schema-only"), rows}
}

// keySequence finds the sequences of the keys of a shop.
var keySequence = regexp.MustCompile(`public\.(customers|addresses|categories|orders|reviews)_id_seq`)

var (
	restrict = regexp.MustCompile(`(?m)^\\(un)?restrict .*\n`) // has a random key
	comments = regexp.MustCompile(`(?m)^--.*\n`)
	spaces   = regexp.MustCompile(`\s+`)
	// Before version 16, pg_dump uses ALTER TABLE.
	sequenceOwner = regexp.MustCompile(`^ALTER TABLE (\S+_seq) OWNER`)
	createTable   = regexp.MustCompile(`^CREATE TABLE (\S+) \((.*)\)$`)
)

// statements returns the statements of a dump of schemas. Each column of a table is a
// statement of its own, because the new columns are the last ones of a table.
func statements(schema string) (list []string) {
	for s := range strings.SplitSeq(comments.ReplaceAllString(schema, ""), ";\n") {
		body := strings.TrimSpace(spaces.ReplaceAllString(strings.ReplaceAll(s, ",\n", "\x00"), " "))
		body = sequenceOwner.ReplaceAllString(body, "ALTER SEQUENCE $1 OWNER")
		table := createTable.FindStringSubmatch(body)
		if table == nil {
			list = append(list, strings.ReplaceAll(body, "\x00", ", "))
			continue
		}
		for column := range strings.SplitSeq(table[2], "\x00") {
			list = append(list, table[1]+": "+strings.TrimSpace(column))
		}
	}
	return list
}

// difference returns the elements that only one of the lists has, after a - or +, sorted.
func difference(before, after []string) (list []string) {
	counts := map[string]int{}
	for _, s := range before {
		counts[s]--
	}
	for _, s := range after {
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

// wantDifference fails the test unless list has exactly the statements in which the schemas differ
// from an earlier dump. If list is empty, the statements must have the same order, too.
// wantDifference returns the new dump.
func (j *job) wantDifference(what string, before dump, list []string) dump {
	j.Helper()
	after := j.dump()
	for _, s := range difference(list, difference(statements(before.schema), statements(after.schema))) {
		j.Errorf("%s: expected the statements after a - as differences, got the statements after a +: %s", what, s)
	}
	want(j, what+": equal schemas", before.schema == after.schema, len(list) == 0)
	return after
}

// wantDump fails the test unless the dump is equal to an earlier one.
func (j *job) wantDump(what string, before dump) {
	j.Helper()
	after := j.wantDifference(what, before, nil)
	want(j, what+": the rows that differ", fmt.Sprint(difference(before.rows, after.rows)), "[]")
}

// shopDifference is the difference of the dumps of a shop before expand and after
// cleanup: the types of keys and references, and defaults instead of sequences.
var shopDifference = []string{
	"- public.customers: id bigint NOT NULL",
	"+ public.customers: id bigint DEFAULT sortkey.next_snowflake(1000) NOT NULL",
	"- public.addresses: id integer NOT NULL",
	"+ public.addresses: id bigint DEFAULT sortkey.next_snowflake(1002) NOT NULL",
	"- public.categories: id smallint NOT NULL",
	"+ public.categories: id bigint DEFAULT sortkey.next_uid60() NOT NULL",
	"- public.categories: parent_id smallint",
	"+ public.categories: parent_id bigint",
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
	`- billing."Payments": id text NOT NULL COLLATE pg_catalog."C"`,
	`+ billing."Payments": id uuid NOT NULL`,
	"- public.reviews: id integer NOT NULL",
	"+ public.reviews: id uuid DEFAULT sortkey.next_uuid7() NOT NULL",
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

// agree fails the test unless the plan has the columns of both versions, all references refer to
// the same row by both keys, and all rows except for a number of rows that aren't backfilled have
// new keys.
func (j *job) agree(plan *rekey.Plan, without int) {
	j.Helper()
	keys := map[string]rekey.Column{}
	var columns []string
	for _, table := range plan.Tables {
		for _, c := range table.Columns {
			columns = append(columns, strings.Join([]string{table.Name, c.Name, c.OldType, c.NewName, c.NewType}, "|"))
			if c.To == "" {
				keys[table.Name] = c
			}
		}
	}
	const pairs = `SELECT format('%I.%I', nspname, relname), o.attname, format_type(o.atttypid, o.atttypmod), n.attname, format_type(n.atttypid, n.atttypmod)
		FROM pg_attribute n JOIN pg_attribute o ON o.attrelid = n.attrelid AND n.attname = 'rekey_' || o.attname
		JOIN pg_class c ON c.oid = n.attrelid AND relkind = 'r' JOIN pg_namespace s ON s.oid = relnamespace`
	want(j, "columns of the plan or of the catalog alone", fmt.Sprint(difference(columns, j.list(pairs))), "[]")
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

// Steps reject a wrong order and another Spec, and can be repeated. While a program runs a step,
// all steps of other programs fail with ErrBusy. A step whose lock is held for longer than
// LockWait fails with ErrLocked, and programs of both versions work.
func TestStepErrors(t *testing.T) {
	oneLibrary(t, bigintLibrary, func(t *testing.T, l *library) {
		l.fails(rekey.StepAbort, rekey.ErrStep)
		for i, step := range steps {
			for _, later := range steps[i+1:] {
				l.fails(later, rekey.ErrStep)
			}
			if step != rekey.StepBackfill {
				l.locked(step)
			}
			l.busy(step)
			if step == rekey.StepCleanup {
				break
			}
			if step == rekey.StepContract {
				l.fails(rekey.StepAbort, rekey.ErrStep)
				l.fails(rekey.StepBackfill, rekey.ErrStep)
				l.fails(rekey.StepValidate, rekey.ErrStep)
				l.probe(newVersion)
				continue
			}
			l.run(step)
			l.wantStatus(step, steps[i+1])
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
		l.fails(rekey.StepUndo, rekey.ErrStep)
		l.fails(rekey.StepAbort, rekey.ErrStep)
		l.probe(newVersion)

		// The same tables can be rekeyed to another format.
		const names = "SELECT string_agg(b.title || ' by ' || a.name, ', ' ORDER BY b.title) FROM books b JOIN authors a ON a.id = author_id"
		before := l.one(names)
		snowflakes := rekey.Times{SQL: "sortkey.snowflake_time(id)"}
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

// locked tries a step while another session holds a lock.
func (l *library) locked(step rekey.Step) {
	l.Helper()
	holder := l.hold("INSERT INTO books (title, author_id) SELECT 'held by " + string(step) + "', id FROM authors WHERE name = 'author 1'")
	expected, limit := rekey.ErrLocked, time.Hour
	if step == rekey.StepValidate {
		// CREATE INDEX CONCURRENTLY waits for the transaction without blocking others.
		expected, limit = context.DeadlineExceeded, 3*time.Second
	}
	ctx, cancel := context.WithTimeout(l.Context(), limit)
	defer cancel()
	wantError(l, string(step), l.try(ctx, step, rekey.Options{LockTimeout: 50 * time.Millisecond, LockWait: 500 * time.Millisecond}), expected)
	l.probe(map[bool]string{true: newVersion, false: oldVersion}[step == rekey.StepCleanup])
	holder.do("ROLLBACK")
	// After a deadline, the server ends the session a little later.
	pgtest.Eventually(l, "the session of "+string(step)+" has ended", func() error {
		if n := l.one("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); n != "0" {
			return fmt.Errorf("%s advisory locks are held", n)
		}
		return nil
	})
}

// busy runs a step, and tries others meanwhile.
func (l *library) busy(step rekey.Step) {
	l.Helper()
	var once sync.Once
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.try(l.Context(), step, rekey.Options{Progress: func(rekey.Progress) {
			once.Do(func() { close(entered); <-leave })
		}})
	}()
	select {
	case <-entered:
	case err := <-done:
		l.Fatalf("%s: expected a call of Progress, got the end of the step: %v", step, err)
	}
	l.fails(step, rekey.ErrBusy)
	l.fails(rekey.StepAbort, rekey.ErrBusy)
	close(leave)
	must(l, <-done)
}

// A backfill after the backfill gives new keys to rows that were written without the triggers.
func TestBackfillAgain(t *testing.T) {
	oneLibrary(t, bigintLibrary, func(t *testing.T, l *library) {
		l.run(rekey.StepExpand, rekey.StepBackfill)
		l.do("BEGIN; ALTER TABLE authors DISABLE TRIGGER USER; INSERT INTO authors (id, name) VALUES (5001, 'unseen'); COMMIT")
		l.fails(rekey.StepValidate, rekey.ErrInconsistent)
		l.run(rekey.StepBackfill, rekey.StepValidate, rekey.StepBackfill)
		l.wantStatus(rekey.StepValidate, rekey.StepContract)
		l.run(rekey.StepContract, rekey.StepCleanup)
		want(t, "authors with a new key", l.one("SELECT count(*) FROM authors WHERE name = 'unseen' AND id > 5001"), "1")
	})
}

// The IDs of a backfill after the backfill come after all others, so that none exists already.
func TestBackfillAgainAfterOthers(t *testing.T) {
	const tables = `CREATE TABLE lists (id bigserial PRIMARY KEY, name text, created_at timestamptz NOT NULL DEFAULT '2024-01-01'); INSERT INTO lists (name) SELECT 'first' FROM generate_series(1, 10);
		CREATE TABLE tasks (id bigserial PRIMARY KEY, name text, created_at timestamptz NOT NULL DEFAULT '2024-01-01'); INSERT INTO tasks (name) SELECT 'first' FROM generate_series(1, 10)`
	spec := rekey.Spec{Keys: []rekey.Key{
		{Table: "lists", Format: rekey.Snowflake, Node: 1, BackfillNode: 2, Times: created},
		{Table: "tasks", Format: rekey.Sno, Node: 1, BackfillNode: 2, Times: started},
	}}
	oneJob(t, tables, spec, func(t *testing.T, j *job) {
		j.run(rekey.StepExpand, rekey.StepBackfill)
		for i := range 2 {
			for _, table := range []string{"lists", "tasks"} {
				j.do(fmt.Sprintf("BEGIN; ALTER TABLE %s DISABLE TRIGGER USER; INSERT INTO %[1]s (name) SELECT 'again' FROM generate_series(1, 3); COMMIT", table))
			}
			j.run(rekey.StepBackfill)
			for _, table := range []string{"lists", "tasks"} {
				want(t, "new keys of "+table, j.one("SELECT count(DISTINCT rekey_id) FROM "+table), fmt.Sprint(13+3*i))
				want(t, "whether the new keys of "+table+" have the order of the old ones", j.one("SELECT string_agg(id::text, ' ' ORDER BY rekey_id) = string_agg(id::text, ' ' ORDER BY id) FROM "+table), "t")
			}
		}
		j.run(rekey.StepValidate)
		j.run(rekey.StepContract, rekey.StepCleanup)
	})
}
