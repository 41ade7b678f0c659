package rekey

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// A program is a client of a shop, with the privileges of an application. The programs of
// both versions run the same SQL, with another search_path. Keys are values of any
// type, as the database returns them.
type program struct {
	name   string
	shop   *shop
	worker int  // programs with the same number work on the same orders, one after the other
	fresh  bool // of the new version
	conn   *pgx.Conn
	random *rand.Rand
	ids    *idtype.SnowflakeGenerator
	n      atomic.Int32               // transactions that were started
	stalls map[string][]time.Duration // the durations of transactions, by the phase of the shop
	stop   func()
	failed []error
}

// expected has the state of each order after the transactions of programs, with the refs of the
// rows that it refers to. Programs write it in the same transactions. No table of the rekey refers
// to it.
const expected = `CREATE TABLE before.expected (ref text PRIMARY KEY, customer text, billing text, shipping text, status text NOT NULL DEFAULT 'open',
	line_count bigint NOT NULL DEFAULT 2, payment_count bigint NOT NULL DEFAULT 1, review_count bigint NOT NULL DEFAULT 0, worker integer NOT NULL, random text GENERATED ALWAYS AS (md5(ref)) STORED);
	CREATE INDEX ON before.expected (worker, random)`

// orderState reads orders as expected describes them.
const orderState = `SELECT o.ref, coalesce(c.ref, '?') AS customer, coalesce(b.ref, '?') AS billing, coalesce(s.ref, CASE WHEN o.shipping_id IS NULL THEN '' ELSE '?' END) AS shipping, o.status,
	(SELECT count(*) FROM order_lines l JOIN products p ON p.id = l.product_id WHERE l.order_id = o.id) AS lines,
	(SELECT count(*) FROM "Payments" y WHERE y."orderId" = o.id AND y.customer_id = o.customer_id) AS payments,
	(SELECT count(*) FROM reviews r JOIN products p ON p.id = r.product_id WHERE r.order_id = o.id) AS reviews
	FROM orders o LEFT JOIN customers c ON c.id = o.customer_id LEFT JOIN addresses b ON b.id = o.billing_id LEFT JOIN addresses s ON s.id = o.shipping_id`

// unexpected reads the orders that differ from what is expected. A deleted order must not exist.
const unexpected = `SELECT coalesce(string_agg(format('expected %s, got %s', e, s), '; '), '') FROM before.expected e LEFT JOIN (` + orderState + `) s ON s.ref = e.ref
	WHERE CASE WHEN e.status = 'deleted' OR s.ref IS NULL THEN e.status <> 'deleted' OR s.ref IS NOT NULL
		ELSE (e.customer, e.billing, e.shipping, e.status, e.line_count, e.payment_count, e.review_count) <> (s.customer, s.billing, s.shipping, s.status, s.lines, s.payments, s.reviews) END`

// program connects a program.
func (s *shop) program(name string, worker int, fresh bool) *program {
	s.Helper()
	seed := [32]byte{}
	copy(seed[:], name)
	n := int(s.programs.Add(1)) // below the node numbers of shopSpec
	p := &program{name: name, shop: s, worker: worker, fresh: fresh, stalls: map[string][]time.Duration{}, random: rand.New(rand.NewChaCha8(seed)),
		ids: must1(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: n / 32, Worker: n % 32}))}
	p.connect()
	return p
}

// connect opens the program's connection.
func (p *program) connect() {
	p.shop.Helper()
	path := oldPath
	if p.fresh {
		path = newPath
	}
	p.conn = p.shop.db.Conn(p.shop, pgtest.SearchPath(path), setting("role", p.shop.app))
}

// work runs one transaction, and records its duration and its error. The transaction places an
// order or changes one, and reads it.
func (p *program) work(ctx context.Context) error {
	n := p.n.Add(1)
	ref := fmt.Sprintf("%s-%d", p.name, n)
	begun := time.Now()
	err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) error {
		known, err := row(ctx, tx, "SELECT ref FROM before.expected WHERE worker = $1 AND random > md5($2) ORDER BY random LIMIT 1", p.worker, ref)
		if err == nil && n%2 == 0 {
			ref = known[0].(string)
			err = p.change(ctx, tx, ref)
		} else {
			err = p.place(ctx, tx, ref)
		}
		if err != nil {
			return err
		}
		wrong, err := row(ctx, tx, unexpected+" AND e.ref = $1", ref)
		if err == nil && wrong[0] != "" {
			err = fmt.Errorf("%s", wrong)
		}
		return err
	})
	phase, _ := p.shop.phase.Load().(string)
	p.stalls[phase] = append(p.stalls[phase], time.Since(begun))
	if err != nil {
		err = fmt.Errorf("program %s, transaction %d of order %s: %w", p.name, n, ref, err)
		p.failed = append(p.failed, err)
	}
	return err
}

// probe runs transactions of all kinds, and fails the test on an error.
func (p *program) probe(t testing.TB) {
	t.Helper()
	for range 12 {
		must(t, p.work(t.Context()))
	}
}

// row returns the only row.
func row(ctx context.Context, tx pgx.Tx, sql string, args ...any) ([]any, error) {
	rows, _ := tx.Query(ctx, sql, args...) // CollectExactlyOneRow returns the error
	list, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return nil, fmt.Errorf("%w from %s with %v", err, sql, args)
	}
	return list, nil
}

// place inserts an order with a customer, two addresses, two lines and a payment. The database
// creates the keys, except for the keys of payments, which have no default, and of every other row
// of a program of the new version.
func (p *program) place(ctx context.Context, tx pgx.Tx, ref string) error {
	var err error
	insert := func(key, table, columns, values string, args ...any) (id any) {
		if err != nil {
			return nil
		}
		sql := fmt.Sprintf("INSERT INTO %s (id, %s) VALUES (%s, %s) RETURNING id, id::text", table, columns, key, values)
		list, failed := row(ctx, tx, sql, args...)
		if err = failed; err != nil {
			return nil
		}
		if text := fmt.Sprintf("'%s'", list[1]); key[0] == '\'' && text != key {
			err = fmt.Errorf("expected the key %s, got %s, from %s", key, text, sql)
		}
		return list[0]
	}
	key := func() string {
		if p.fresh && p.random.IntN(2) == 1 {
			return fmt.Sprintf("'%v'", must1(p.ids.Next()))
		}
		return "DEFAULT"
	}
	payment := ulidNow
	if p.fresh {
		payment = fmt.Sprintf("'%v'", must1(snos.Next()).UUID())
	}
	customer := insert(key(), "customers", "ref, email", "$1, $2", "c-"+ref, ref+"@example.org")
	billing := insert(key(), "addresses", "ref, customer_id, city", "$1, $2, $3", "b-"+ref, customer, "city of "+ref)
	shipping := insert(key(), "addresses", "ref, customer_id, city", "$1, $2, $3", "s-"+ref, customer, "city of "+ref)
	id := insert(key(), "orders", "ref, customer_id, billing_id, shipping_id", "$1, $2, $3, $4", ref, customer, billing, shipping)
	for line := range 2 {
		product := fmt.Sprintf("p%d", 1+p.random.IntN(10))
		insert("DEFAULT", "order_lines", "order_id, line_no, product_id, quantity, price", "$1, $2, (SELECT id FROM products WHERE ref = $3), 2, 1.5", id, line+1, product)
	}
	insert(payment, `"Payments"`, `ref, "orderId", customer_id, amount`, "$1, $2, $3, 3", "y-"+ref, id, customer)
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO before.expected (ref, customer, billing, shipping, worker) VALUES ($1, 'c-' || $1, 'b-' || $1, 's-' || $1, $2)", ref, p.worker)
	}
	return err
}

// A change is a transaction that changes an order, or rows that refer to it.
type change struct {
	read   string // returns the keys that the other statements use, if it is possible; $1 is the ref of the order
	do     []statement
	expect string // is set in before.expected
}

// A statement is SQL with the row count that it must have. -1: any.
type statement struct {
	sql  string
	rows int64
}

const insertReview = "INSERT INTO reviews (ref, product_id, customer_id, order_id, stars) VALUES ('r-' || $4::text, $1, $2, $3, 4) ON CONFLICT DO NOTHING"

var changes = []change{{
	read:   "SELECT id, billing_id, shipping_id FROM orders WHERE ref = $1 AND shipping_id IS NOT NULL FOR UPDATE",
	do:     []statement{{"UPDATE orders SET billing_id = $3, shipping_id = $2, status = 'shipped' WHERE id = $1", 1}},
	expect: "billing = shipping, shipping = billing, status = 'shipped'",
}, {
	read:   "SELECT id FROM orders WHERE ref = $1 AND shipping_id IS NOT NULL AND status = 'open' FOR UPDATE",
	do:     []statement{{"UPDATE orders SET shipping_id = NULL WHERE id = $1", 1}},
	expect: "shipping = ''",
}, {
	read:   "SELECT id, billing_id FROM orders WHERE ref = $1 AND shipping_id IS NULL FOR UPDATE",
	do:     []statement{{"UPDATE orders SET shipping_id = $2 WHERE id = $1", 1}},
	expect: "shipping = billing",
}, {
	// Gives the order and its payment to another customer.
	read: "SELECT o.id, c.id FROM orders o, customers c, before.expected e WHERE o.ref = $1 AND e.ref = $1 AND c.ref = CASE e.customer WHEN 'c1' THEN 'c2' ELSE 'c1' END FOR UPDATE OF o",
	do: []statement{
		{"UPDATE orders SET customer_id = $2 WHERE id = $1", 1},
		{`UPDATE "Payments" y SET customer_id = o.customer_id FROM orders o WHERE o.id = y."orderId" AND o.id = $1`, 1},
	},
	expect: "customer = CASE customer WHEN 'c1' THEN 'c2' ELSE 'c1' END",
}, {
	// Deletes the order. Its lines are deleted in cascade.
	read: "SELECT id FROM orders WHERE ref = $1",
	do: []statement{
		{`DELETE FROM "Payments" y USING orders o WHERE o.id = y."orderId" AND o.id = $1`, 1},
		{"UPDATE reviews SET order_id = NULL WHERE order_id = $1", -1},
		{"DELETE FROM orders WHERE id = $1", 1},
		{"SELECT FROM order_lines WHERE order_id = $1", 0},
	},
	expect: "status = 'deleted'",
}, {
	// Inserts a review, twice.
	read: `SELECT l.product_id, o.customer_id, o.id, o.ref FROM orders o JOIN order_lines l ON l.order_id = o.id AND l.line_no = 1 JOIN before.expected e ON e.ref = o.ref
		WHERE o.ref = $1 AND e.review_count = 0`,
	do:     []statement{{insertReview, 1}, {insertReview, 0}},
	expect: "review_count = 1",
}}

// rewrite changes references of an order of the first fill and restores them.
var rewrite = change{
	read: "SELECT id, customer_id, billing_id, shipping_id FROM orders WHERE ref = $1 FOR UPDATE",
	do: []statement{
		{"UPDATE orders SET customer_id = (SELECT id FROM customers WHERE ref = 'c3'), billing_id = (SELECT id FROM addresses WHERE ref = 'a5') WHERE id = $1", 1},
		{"UPDATE orders SET customer_id = $2, billing_id = $3, shipping_id = $4 WHERE id = $1", 1},
	},
	expect: "ref = ref",
}

// change changes an order, or another one of the first fill.
func (p *program) change(ctx context.Context, tx pgx.Tx, ref string) error {
	c := changes[p.random.IntN(len(changes))]
	keys, err := row(ctx, tx, c.read, ref)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && p.random.IntN(6) == 0 {
		c, ref = rewrite, fmt.Sprintf("o%d", 1+p.random.IntN(loadWatched))
		keys, err = row(ctx, tx, c.read, ref)
	}
	if err != nil {
		return err
	}
	for _, s := range c.do {
		args := keys // those for which the statement has placeholders
		for !strings.Contains(s.sql, fmt.Sprintf("$%d", len(args))) {
			args = args[:len(args)-1]
		}
		tag, err := tx.Exec(ctx, s.sql, args...)
		if err == nil && s.rows >= 0 && tag.RowsAffected() != s.rows {
			err = fmt.Errorf("expected %d rows, got %d", s.rows, tag.RowsAffected())
		}
		if err != nil {
			return fmt.Errorf("%w from %s with %v", err, s.sql, keys)
		}
	}
	_, err = tx.Exec(ctx, "UPDATE before.expected SET "+c.expect+" WHERE ref = $1", ref)
	return err
}

// verifyPrograms fails the test unless all orders of programs have the expected states. It
// returns the number of orders.
func (s *shop) verifyPrograms() int {
	s.Helper()
	conn := s.connect(oldPath)
	want(s, "orders in another state", conn.one(unexpected), "")
	return must1(strconv.Atoi(conn.one("SELECT count(*) FROM before.expected")))
}
