package rekey

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	fresh  bool // of the new version
	conn   *pgx.Conn
	random *rand.Rand
	ids    *idtype.SnowflakeGenerator
	snos   *idtype.SnoGenerator
	orders map[string]order // the acknowledged state of each order by its ref
	n      atomic.Int32     // transactions that were started
	stalls []stall          // one per transaction
	failed []error
}

// A stall is the duration of a transaction, and what the shop did meanwhile.
type stall struct {
	took  time.Duration
	phase any
}

// An order is the expected state of an order, with the refs of the rows that it refers to.
type order struct {
	customer, billing, shipping, status string
	lines, payments, reviews            int
}

// deleted is the expected state of an order that was deleted.
var deleted = order{status: "deleted"}

// program connects a program.
func (s *shop) program(name string, fresh bool) *program {
	s.Helper()
	seed := [32]byte{}
	copy(seed[:], name)
	n := int(s.programs.Add(1)) // below the node numbers of shopSpec
	p := &program{name: name, shop: s, fresh: fresh, orders: map[string]order{}, random: rand.New(rand.NewChaCha8(seed)),
		ids:  must1(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: n / 32, Worker: n % 32})),
		snos: must1(idtype.NewSnoGenerator(idtype.SnoConfig{}))}
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

// takeOver makes the program responsible for the orders of another one.
func (p *program) takeOver(other *program) { maps.Copy(p.orders, other.orders) }

// work runs one transaction, and records its duration and its error. The transaction places an
// order or changes one, and reads it.
func (p *program) work(ctx context.Context) error {
	n := p.n.Add(1)
	ref := fmt.Sprintf("%s-%d", p.name, n)
	begun := time.Now()
	var state order
	err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) (err error) {
		if len(p.orders) > 0 && n%2 == 0 {
			known := slices.Sorted(maps.Keys(p.orders))
			ref = known[p.random.IntN(len(known))]
			state, err = p.change(ctx, tx, ref, p.orders[ref])
		} else {
			state, err = p.place(ctx, tx, ref)
		}
		if err != nil {
			return err
		}
		_, got, err := scanOrder(tx.QueryRow(ctx, orderState+" WHERE o.ref = $1", ref))
		if state == deleted && err == pgx.ErrNoRows {
			return nil
		}
		if err == nil && got != state {
			err = fmt.Errorf("expected %+v, got %+v", state, got)
		}
		return err
	})
	p.stalls = append(p.stalls, stall{time.Since(begun), p.shop.phase.Load()})
	if err != nil {
		err = fmt.Errorf("program %s, transaction %d of order %s: %w", p.name, n, ref, err)
		p.failed = append(p.failed, err)
		return err
	}
	p.orders[ref] = state
	return nil
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
// creates the keys, except for those of payments, which have no default, and of every other row
// of a program of the new version.
func (p *program) place(ctx context.Context, tx pgx.Tx, ref string) (order, error) {
	o := order{customer: "c-" + ref, billing: "b-" + ref, shipping: "s-" + ref, status: "open", lines: 2, payments: 1}
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
		payment = fmt.Sprintf("'%v'", must1(p.snos.Next()).UUID())
	}
	customer := insert(key(), "customers", "ref, email", "$1, $2", o.customer, ref+"@example.org")
	billing := insert(key(), "addresses", "ref, customer_id, city", "$1, $2, $3", o.billing, customer, "city of "+ref)
	shipping := insert(key(), "addresses", "ref, customer_id, city", "$1, $2, $3", o.shipping, customer, "city of "+ref)
	id := insert(key(), "orders", "ref, customer_id, billing_id, shipping_id", "$1, $2, $3, $4", ref, customer, billing, shipping)
	for line := range o.lines {
		product := fmt.Sprintf("p%d", 1+p.random.IntN(10))
		insert("DEFAULT", "order_lines", "order_id, line_no, product_id, quantity, price", "$1, $2, (SELECT id FROM products WHERE ref = $3), 2, 1.5", id, line+1, product)
	}
	insert(payment, `"Payments"`, `ref, "orderId", customer_id, amount`, "$1, $2, $3, 3", "y-"+ref, id, customer)
	return o, err
}

// A change is a transaction that changes an order, or rows that refer to it.
type change struct {
	can  func(o order) bool // nil: always
	read string             // returns the keys that the other statements use; $1 is the ref of the order, and $2 that of another customer
	do   []statement
	then func(o *order, other string) // changes the expected state
}

// A statement is SQL with the row count that it must have. -1: any.
type statement struct {
	sql  string
	rows int64
}

var changes = []change{{
	// Swaps the addresses.
	can:  func(o order) bool { return o.shipping != "" },
	read: "SELECT id, billing_id, shipping_id FROM orders WHERE ref = $1 FOR UPDATE",
	do:   []statement{{"UPDATE orders SET billing_id = $3, shipping_id = $2, status = 'shipped' WHERE id = $1", 1}},
	then: func(o *order, _ string) { o.billing, o.shipping, o.status = o.shipping, o.billing, "shipped" },
}, {
	can:  func(o order) bool { return o.shipping != "" && o.status == "open" },
	read: "SELECT id FROM orders WHERE ref = $1 FOR UPDATE",
	do:   []statement{{"UPDATE orders SET shipping_id = NULL WHERE id = $1", 1}},
	then: func(o *order, _ string) { o.shipping = "" },
}, {
	can:  func(o order) bool { return o.shipping == "" },
	read: "SELECT id, billing_id FROM orders WHERE ref = $1 FOR UPDATE",
	do:   []statement{{"UPDATE orders SET shipping_id = $2 WHERE id = $1", 1}},
	then: func(o *order, _ string) { o.shipping = o.billing },
}, {
	// Gives the order and its payment to another customer.
	read: "SELECT o.id, c.id FROM orders o, customers c WHERE o.ref = $1 AND c.ref = $2 FOR UPDATE OF o",
	do: []statement{
		{"UPDATE orders SET customer_id = $2 WHERE id = $1", 1},
		{`UPDATE "Payments" y SET customer_id = o.customer_id FROM orders o WHERE o.id = y."orderId" AND o.id = $1`, 1},
	},
	then: func(o *order, other string) { o.customer = other },
}, {
	// Deletes the order. Its lines are deleted in cascade.
	read: "SELECT id FROM orders WHERE ref = $1",
	do: []statement{
		{`DELETE FROM "Payments" y USING orders o WHERE o.id = y."orderId" AND o.id = $1`, 1},
		{"UPDATE reviews SET order_id = NULL WHERE order_id = $1", -1},
		{"DELETE FROM orders WHERE id = $1", 1},
		{"SELECT FROM order_lines WHERE order_id = $1", 0},
	},
	then: func(o *order, _ string) { *o = deleted },
}, {
	// Inserts a review, twice.
	can:  func(o order) bool { return o.reviews == 0 },
	read: "SELECT l.product_id, o.customer_id, o.id, o.ref FROM orders o JOIN order_lines l ON l.order_id = o.id AND l.line_no = 1 WHERE o.ref = $1",
	do:   []statement{{insertReview, 1}, {insertReview, 0}},
	then: func(o *order, _ string) { o.reviews = 1 },
}}

const insertReview = "INSERT INTO reviews (ref, product_id, customer_id, order_id, stars) VALUES ('r-' || $4::text, $1, $2, $3, 4) ON CONFLICT DO NOTHING"

// rewrite changes references of an order of the first fill and restores them.
var rewrite = change{
	read: "SELECT id, customer_id, billing_id, shipping_id FROM orders WHERE ref = $1 FOR UPDATE",
	do: []statement{
		{"UPDATE orders SET customer_id = (SELECT id FROM customers WHERE ref = 'c3'), billing_id = (SELECT id FROM addresses WHERE ref = 'a5') WHERE id = $1", 1},
		{"UPDATE orders SET customer_id = $2, billing_id = $3, shipping_id = $4 WHERE id = $1", 1},
	},
}

// change changes an order, or another one of the first fill, and returns the expected state.
func (p *program) change(ctx context.Context, tx pgx.Tx, ref string, o order) (order, error) {
	c := changes[p.random.IntN(len(changes))]
	if o == deleted || c.can != nil && !c.can(o) || p.random.IntN(6) == 0 {
		c, ref = rewrite, fmt.Sprintf("o%d", 1+p.random.IntN(loadWatched))
	}
	other := "c1"
	if o.customer == other {
		other = "c2"
	}
	keys, err := row(ctx, tx, c.read, used(c.read, []any{ref, other})...)
	if err != nil {
		return o, err
	}
	for _, s := range c.do {
		tag, err := tx.Exec(ctx, s.sql, used(s.sql, keys)...)
		if err == nil && s.rows >= 0 && tag.RowsAffected() != s.rows {
			err = fmt.Errorf("expected %d rows, got %d", s.rows, tag.RowsAffected())
		}
		if err != nil {
			return o, fmt.Errorf("%w from %s with %v", err, s.sql, keys)
		}
	}
	if c.then != nil {
		c.then(&o, other)
	}
	return o, nil
}

// used returns the arguments for which a statement has placeholders.
func used(sql string, args []any) []any {
	for !strings.Contains(sql, fmt.Sprintf("$%d", len(args))) {
		args = args[:len(args)-1]
	}
	return args
}

// orderState reads an order as the type order describes it.
const orderState = `SELECT o.ref, coalesce(c.ref, '?'), coalesce(b.ref, '?'), coalesce(s.ref, CASE WHEN o.shipping_id IS NULL THEN '' ELSE '?' END), o.status,
	(SELECT count(*) FROM order_lines l JOIN products p ON p.id = l.product_id WHERE l.order_id = o.id),
	(SELECT count(*) FROM "Payments" y WHERE y."orderId" = o.id AND y.customer_id = o.customer_id),
	(SELECT count(*) FROM reviews r JOIN products p ON p.id = r.product_id WHERE r.order_id = o.id)
	FROM orders o LEFT JOIN customers c ON c.id = o.customer_id LEFT JOIN addresses b ON b.id = o.billing_id LEFT JOIN addresses s ON s.id = o.shipping_id`

func scanOrder(row pgx.Row) (ref string, o order, err error) {
	err = row.Scan(&ref, &o.customer, &o.billing, &o.shipping, &o.status, &o.lines, &o.payments, &o.reviews)
	return ref, o, err
}

// verifyPrograms fails the test unless all orders have the states that the programs know.
// It returns the number of orders.
func (s *shop) verifyPrograms(programs ...*program) int {
	s.Helper()
	want := map[string]order{}
	for _, p := range programs {
		maps.Copy(want, p.orders)
	}
	rows, err := s.at(oldPath).conn.Query(s.Context(), orderState)
	must(s, err)
	defer rows.Close()
	got := map[string]order{}
	for rows.Next() {
		ref, o, err := scanOrder(rows)
		must(s, err)
		got[ref] = o
	}
	must(s, rows.Err())
	var lost []string
	for ref, o := range want {
		if state, ok := got[ref]; ok != (o != deleted) || ok && state != o {
			lost = append(lost, fmt.Sprintf("order %s: expected %+v, got %+v", ref, o, state))
		}
	}
	if len(lost) > 0 {
		s.Errorf("%d orders differ from their acknowledged states, such as %q", len(lost), lost[:min(len(lost), 10)])
	}
	return len(want)
}
