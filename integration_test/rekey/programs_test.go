package rekey

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	p.conn = p.shop.db.Conn(p.shop, pgtest.SearchPath(path), setting("role", p.shop.app), pgtest.Codec)
}

// takeOver makes the program responsible for the orders of another one.
func (p *program) takeOver(other *program) { maps.Copy(p.orders, other.orders) }

// work runs one transaction, and records its duration and its error.
func (p *program) work(ctx context.Context) error {
	n := p.n.Add(1)
	ref := fmt.Sprintf("%s-%d", p.name, n)
	begun := time.Now()
	var state order
	err := pgx.BeginFunc(ctx, p.conn, func(tx pgx.Tx) (err error) {
		if len(p.orders) > 0 && n%2 == 0 {
			known := slices.Sorted(maps.Keys(p.orders))
			ref = known[p.random.IntN(len(known))]
			kinds := []func(context.Context, pgx.Tx, string, order) (order, error){p.read, p.rewrite, p.change, p.reassign, p.remove, p.review}
			if p.orders[ref] == deleted {
				kinds = kinds[:2]
			}
			state, err = kinds[p.random.IntN(len(kinds))](ctx, tx, ref, p.orders[ref])
			return err
		}
		state, err = p.place(ctx, tx, ref)
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

// plain returns a key as the database returns it.
func plain(key any) any {
	switch k := key.(type) {
	case idtype.Snowflake:
		return k.Int64()
	case idtype.Sno:
		return [16]byte(k.UUID())
	}
	return key
}

// place inserts an order with a customer, two addresses, two lines and a payment. The database
// creates the keys, except for those of payments, which have no default, and of every other row
// of a program of the new version.
func (p *program) place(ctx context.Context, tx pgx.Tx, ref string) (order, error) {
	o := order{customer: "c-" + ref, billing: "b-" + ref, shipping: "s-" + ref, status: "open", lines: 2, payments: 1}
	var err error
	get := func(sql string, args ...any) (value any) {
		if err != nil {
			return nil
		}
		var list []any
		if list, err = row(ctx, tx, sql, args...); err == nil {
			value = list[0]
		}
		return value
	}
	insert := func(table, columns string, args ...any) any {
		var key any
		switch {
		case table == `"Payments"` && p.fresh:
			key = must1(p.snos.Next())
		case table == `"Payments"`:
			key = get("SELECT " + ulid("(extract(epoch FROM clock_timestamp()) * 1000)::bigint", "random()"))
		case table != "order_lines" && p.fresh && p.random.IntN(2) == 1:
			key = must1(p.ids.Next())
		}
		if key != nil {
			columns, args = columns+", id", append(args, key)
		}
		values := "$1"
		for i := range args[1:] {
			values += fmt.Sprintf(", $%d", i+2)
		}
		got := get(fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s) RETURNING id", table, columns, values), args...)
		if err == nil && key != nil && got != plain(key) {
			err = fmt.Errorf("expected the key %v of %s, got %v", key, table, got)
		}
		return got
	}
	customer := insert("customers", "ref, email", o.customer, ref+"@example.org")
	billing := insert("addresses", "ref, customer_id, city", o.billing, customer, "city of "+ref)
	shipping := insert("addresses", "ref, customer_id, city", o.shipping, customer, "city of "+ref)
	id := insert("orders", "ref, customer_id, billing_id, shipping_id", ref, customer, billing, shipping)
	for line := range o.lines {
		product := get("SELECT id FROM products WHERE ref = $1", fmt.Sprintf("p%d", 1+p.random.IntN(10)))
		insert("order_lines", "order_id, line_no, product_id, quantity, price", id, line+1, product, 2, "1.5")
	}
	insert(`"Payments"`, `ref, "orderId", customer_id, amount`, "y-"+ref, id, customer, 3)
	return o, err
}

// change swaps the addresses of an order, or ships it, or removes one address.
func (p *program) change(ctx context.Context, tx pgx.Tx, ref string, o order) (order, error) {
	old, err := row(ctx, tx, "SELECT id, billing_id, shipping_id FROM orders WHERE ref = $1 FOR UPDATE", ref)
	if err != nil {
		return o, err
	}
	switch {
	case o.shipping == "":
		o.shipping = o.billing
		_, err = row(ctx, tx, "UPDATE orders SET shipping_id = $2 WHERE id = $1 RETURNING id", old[0], old[1])
	case o.status == "open" && p.random.IntN(2) == 0:
		o.shipping = ""
		_, err = row(ctx, tx, "UPDATE orders SET shipping_id = NULL WHERE id = $1 RETURNING id", old[0])
	default:
		o.billing, o.shipping, o.status = o.shipping, o.billing, "shipped"
		_, err = row(ctx, tx, "UPDATE orders SET billing_id = $2, shipping_id = $3, status = 'shipped' WHERE id = $1 RETURNING id", old[0], old[2], old[1])
	}
	return o, err
}

// reassign gives an order and its payments to another customer.
func (p *program) reassign(ctx context.Context, tx pgx.Tx, ref string, o order) (order, error) {
	other := "c1"
	if o.customer == other {
		other = "c2"
	}
	old, err := row(ctx, tx, "SELECT o.id, c.id FROM orders o, customers c WHERE o.ref = $1 AND c.ref = $2 FOR UPDATE OF o", ref, other)
	if err != nil {
		return o, err
	}
	if _, err = row(ctx, tx, "UPDATE orders SET customer_id = $2 WHERE id = $1 RETURNING id", old...); err != nil {
		return o, err
	}
	o.customer = other
	_, err = tx.Exec(ctx, `UPDATE "Payments" y SET customer_id = o.customer_id FROM orders o WHERE o.id = y."orderId" AND o.id = $1`, old[0])
	return o, err
}

// remove deletes an order. Its lines are deleted in cascade.
func (p *program) remove(ctx context.Context, tx pgx.Tx, ref string, o order) (order, error) {
	old, err := row(ctx, tx, "SELECT id FROM orders WHERE ref = $1", ref)
	if err != nil {
		return o, err
	}
	id := old[0]
	for _, sql := range []string{
		`DELETE FROM "Payments" y USING orders o WHERE o.id = y."orderId" AND o.id = $1`,
		"UPDATE reviews SET order_id = NULL WHERE order_id = $1",
		"DELETE FROM orders WHERE id = $1",
	} {
		if _, err := tx.Exec(ctx, sql, id); err != nil {
			return o, fmt.Errorf("%w in %s", err, sql)
		}
	}
	_, err = row(ctx, tx, "SELECT 1 WHERE NOT EXISTS (SELECT FROM order_lines WHERE order_id = $1)", id)
	return deleted, err
}

// review inserts a review of an order, twice.
func (p *program) review(ctx context.Context, tx pgx.Tx, ref string, o order) (order, error) {
	if o.reviews > 0 {
		return o, nil
	}
	o.reviews = 1
	for i := range 2 {
		tag, err := tx.Exec(ctx, `INSERT INTO reviews (ref, product_id, customer_id, order_id, stars)
			SELECT 'r-' || o.ref, l.product_id, o.customer_id, o.id, 4 FROM orders o JOIN order_lines l ON l.order_id = o.id AND l.line_no = 1 WHERE o.ref = $1
			ON CONFLICT DO NOTHING`, ref)
		if err != nil {
			return o, err
		}
		if tag.RowsAffected() != int64(1-i) {
			return o, fmt.Errorf("expected %d inserted reviews of order %s, got %d", 1-i, ref, tag.RowsAffected())
		}
	}
	return o, nil
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

// read compares an order with its acknowledged state.
func (p *program) read(ctx context.Context, tx pgx.Tx, ref string, o order) (order, error) {
	_, got, err := scanOrder(tx.QueryRow(ctx, orderState+" WHERE o.ref = $1", ref))
	if o == deleted && err == pgx.ErrNoRows {
		return o, nil
	}
	if err == nil && got != o {
		err = fmt.Errorf("expected order %s to be %+v, got %+v", ref, o, got)
	}
	return o, err
}

// rewrite changes references of an order of the first fill and restores them.
func (p *program) rewrite(ctx context.Context, tx pgx.Tx, _ string, o order) (order, error) {
	old, err := row(ctx, tx, "SELECT id, customer_id, billing_id, shipping_id FROM orders WHERE ref = $1 FOR UPDATE", fmt.Sprintf("o%d", 1+p.random.IntN(20)))
	if err != nil {
		return o, err
	}
	if _, err := row(ctx, tx, "UPDATE orders SET customer_id = (SELECT id FROM customers WHERE ref = 'c3'), billing_id = (SELECT id FROM addresses WHERE ref = 'a5') WHERE id = $1 RETURNING id", old[0]); err != nil {
		return o, err
	}
	_, err = row(ctx, tx, "UPDATE orders SET customer_id = $2, billing_id = $3, shipping_id = $4 WHERE id = $1 RETURNING id", old...)
	return o, err
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
