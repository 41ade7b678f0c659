package rekey

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// The backfill waits for a subscriber that is further behind than MaxLag, also if it doesn't
// answer. A subscriber has the rows of the publisher again after the steps that the guide lists.
func TestSubscriber(t *testing.T) {
	t.Parallel()
	pgtest.OnePair(t, func(t *testing.T, db, subscriber *pgtest.DB, link *pgtest.Link) {
		const tables = "CREATE TABLE customers (id bigint PRIMARY KEY, name text UNIQUE); CREATE TABLE orders (n integer PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers); CREATE TABLE notes (n integer PRIMARY KEY);"
		j := install(t, db, events(5000)+tables+"INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 50) i; INSERT INTO orders SELECT i, 1 + i % 50 FROM generate_series(1, 200) i; CREATE PUBLICATION shop FOR TABLE customers, orders, notes", eventsSpec)
		j.do("ALTER SYSTEM SET wal_sender_timeout = 0") // keep the subscriber that doesn't answer
		j.do("SELECT pg_reload_conf()")
		subscriber.Exec(t, tables)
		subscriber.Exec(t, fmt.Sprintf("CREATE SUBSCRIPTION shop CONNECTION '%s' PUBLICATION shop", link.URL(t, db)))
		defer subscriber.Exec(t, "DROP SUBSCRIPTION shop")
		conn, there := db.Conn(t), subscriber.Conn(t)
		equal := func() error {
			const rows = "SELECT string_agg((c.id, c.name)::text, ' ' ORDER BY c.name) || (SELECT string_agg((o.n, o.customer_id)::text, ' ' ORDER BY n) FROM orders o) || (SELECT string_agg(n.n::text, ' ' ORDER BY n.n) FROM notes n) FROM customers c"
			want := pgtest.Value[*string](t, conn, rows)
			got := pgtest.Value[*string](t, there, rows)
			if got == nil || want == nil || *got != *want {
				return fmt.Errorf("expected the rows of the publisher, %v, got %v", want, got)
			}
			return nil
		}
		j.do("INSERT INTO notes VALUES (1)")
		pgtest.Eventually(t, "the subscriber has the rows", equal)

		// The subscriber waits for a lock on its table.
		j.run(rekey.StepExpand)
		lock, err := there.Begin(t.Context())
		must(t, err)
		defer lock.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // if the test fails; otherwise the transaction has ended
		_, err = lock.Exec(t.Context(), "LOCK TABLE notes IN ACCESS EXCLUSIVE MODE")
		must(t, err)
		j.do("INSERT INTO notes VALUES (3)")
		var waiting string
		j.runWith(rekey.Options{MaxLag: 500 * time.Millisecond, Progress: func(p rekey.Progress) {
			switch {
			case waiting != "":
			case p.Waiting != "":
				waiting = p.Waiting
				must(t, lock.Rollback(t.Context()))
			default: // the backfill has five batches or more, and looks at the subscriber once per second
				time.Sleep(500 * time.Millisecond)
			}
		}}, rekey.StepBackfill)
		if !strings.HasPrefix(waiting, "replica shop is ") || !strings.HasSuffix(waiting, "s behind") {
			t.Fatalf("expected the backfill to wait for the subscriber, got %q", waiting)
		}
		j.run(rekey.StepValidate, rekey.StepContract, rekey.StepCleanup)

		j.spec = customersSpec(rekey.Sno)
		j.spec.Keys[0].OldKey = "1000"
		plan := j.inspect()
		if len(plan.Problems) != 1 {
			t.Fatalf("expected one problem, got %v", plan.Problems)
		}
		remedy, _, _ := strings.Cut(strings.TrimPrefix(plan.Problems[0].Remedy, "run "), ";")
		j.do(remedy)
		subscriber.Exec(t, "ALTER SUBSCRIPTION shop REFRESH PUBLICATION")
		j.run(steps[:3]...)
		j.do("ALTER PUBLICATION shop ADD TABLE customers")
		j.fails(rekey.StepContract, rekey.ErrInconsistent, "publication shop publishes public.customers")
		j.do("ALTER PUBLICATION shop DROP TABLE customers; INSERT INTO notes VALUES (2)")
		j.run(rekey.StepContract)
		j.do("ALTER PUBLICATION shop ADD TABLE customers")
		j.fails(rekey.StepCleanup, rekey.ErrInconsistent, "publication shop publishes public.customers")
		j.do("ALTER PUBLICATION shop DROP TABLE customers")
		j.run(rekey.StepCleanup)

		subscriber.Exec(t, "TRUNCATE customers, orders; ALTER TABLE orders DROP CONSTRAINT orders_customer_id_fkey; ALTER TABLE customers ALTER id TYPE uuid USING NULL; ALTER TABLE orders ALTER customer_id TYPE uuid USING NULL; ALTER TABLE orders ADD FOREIGN KEY (customer_id) REFERENCES customers")
		j.do("ALTER PUBLICATION shop ADD TABLE customers, orders")
		subscriber.Exec(t, "ALTER SUBSCRIPTION shop REFRESH PUBLICATION")
		j.do("INSERT INTO customers (id, name) VALUES (sortkey.next_sno(5), 'another'); INSERT INTO orders (n, customer_id) SELECT 201, id FROM customers WHERE name = 'another'; UPDATE orders SET n = 900 WHERE n = 9")
		pgtest.Eventually(t, "the subscriber has the new keys", func() error {
			err := equal()
			if n := pgtest.Value[int](t, there, "SELECT count(*) FROM orders JOIN customers c ON c.id = customer_id"); err == nil && n != 201 {
				err = fmt.Errorf("expected 201 orders of customers, got %d", n)
			}
			return err
		})
	})
}
