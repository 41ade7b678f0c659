package rekey

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/migrations"
)

var update = flag.Bool("update", false, "write testdata/plan.sql")

// shop is a model of three tables: customers with identity keys that become Snos, orders with
// UUIDs that become Snowflakes, which refer to customers and have a trigger, and log, whose
// references to customers have no foreign key.
func shop(c migrations.Config) *model {
	table := func(oid int64, name string, others ...string) *relation {
		return &relation{OID: oid, Name: "public." + name, Plain: name, Schema: "public", Kind: "r", Owned: true, Rows: 1000, Owner: "shop", others: others, settable: others,
			Grants: []grant{{Privilege: "SELECT", Role: "app"}, {Privilege: "TRUNCATE", Role: "app"}}}
	}
	customers, orders, log := table(1, "customers", "name"), table(2, "orders", "created_at", "total"), table(3, "log", "at")
	add := func(r *relation, num int, c column) *column {
		c.rel, c.Num, c.Quoted, c.fresh = r, num, c.Name, "rekey_"+c.Name
		r.columns = append(r.columns, &c)
		return &c
	}
	f := formats(c)
	m := &model{role: "shop", owner: "shop", path: []string{"public"}, trustedPath: []string{"public"}, relations: []*relation{customers, orders, log}}
	customer := &key{Key: Key{Table: "customers", Format: Sno, Node: 10, BackfillNode: 11, Meta: 'c', Times: Times{Start: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}}, format: f[Sno], oldExpr: "nextval('public.customers_id_seq')"}
	order := &key{Key: Key{Table: "orders", Format: Snowflake, Node: 20, BackfillNode: 21, Times: Times{Column: "created_at"}}, n: 1, format: f[Snowflake], oldExpr: "gen_random_uuid()", times: &timeColumn{"created_at", "created_at", "timestamptz"}}
	customer.root = add(customers, 1, column1("id", "bigint", "int8", customer))
	customer.root.root, customer.root.Identity, customer.root.Sequence = true, "d", "public.customers_id_seq"
	order.root = add(orders, 1, column1("id", "uuid", "uuid", order))
	order.root.root, order.root.Default, order.root.Comment = true, "gen_random_uuid()", "The key's text"
	of := add(orders, 2, column1("customer_id", "bigint", "int8", customer))
	of.targets, of.Grants = []target{{key: customer}}, []grant{{Privilege: "SELECT", Role: "report", Column: "customer_id", Option: true}}
	of.NotNullAs, orders.Identity, orders.Owner = &notNull{Name: "of_a_customer", NoInherit: true, Comment: "Always"}, "i", "clerk"
	seen := add(log, 1, column1("customer_id", "bigint", "int8", customer))
	seen.targets = []target{{key: customer}}
	customer.columns, order.columns = []*column{customer.root, of, seen}, []*column{order.root}
	m.keys = []*key{customer, order}
	m.foreignKeys = []*foreignKey{{OID: 10, Name: "orders_customer_id_fkey", Table: 2, TableName: "public.orders", To: 1, ToName: "public.customers", Columns: []int{2}, ToColumns: []int{1}, Valid: true, Deferrable: true,
		Definition: "FOREIGN KEY (customer_id) REFERENCES public.customers(id) ON DELETE CASCADE DEFERRABLE", Comment: "A customer's orders"}}
	create := func(x index) {
		x.Name, x.Valid, x.Method, x.fresh, x.Findable = x.Plain, true, "btree", "rekey_"+x.Plain, true
		x.DefaultOps, x.DefaultCollations = []bool{true, true}, []bool{true, true}
		m.indexes, m.changed = append(m.indexes, &x), append(m.changed, &x)

	}
	create(index{OID: 20, Table: 1, Plain: "customers_pkey", Unique: true, Columns: []int{1}, Keys: []string{"id"}, Types: []string{"bigint"}, Constraint: "customers_pkey", Type: "p", Definition: "CREATE UNIQUE INDEX customers_pkey ON public.customers USING btree (id)"})
	create(index{OID: 21, Table: 2, Plain: "orders_pkey", Unique: true, Columns: []int{1}, Keys: []string{"id"}, Types: []string{"uuid"}, Constraint: "orders_pkey", Type: "p", ReplIdent: true, ConComment: "The key", Definition: "CREATE UNIQUE INDEX orders_pkey ON public.orders USING btree (id)"})
	create(index{OID: 22, Table: 2, Plain: "orders_once", Unique: true, Columns: []int{2, 3}, Keys: []string{"customer_id", "created_at"}, Types: []string{"bigint", "timestamptz"}, Constraint: "orders_once", Type: "u",
		Predicate: "", Definition: "CREATE UNIQUE INDEX orders_once ON public.orders USING btree (customer_id, created_at)"})
	create(index{OID: 23, Table: 2, Plain: "orders_open", Columns: []int{2}, Keys: []string{"customer_id"}, Types: []string{"bigint"}, Tablespace: "fast", Clustered: true, Comment: "Open ones",
		Definition: "CREATE INDEX orders_open ON public.orders USING btree (customer_id) WHERE (total > 0)"})
	m.checks = []*check{{Table: 2, Name: "of_someone", Columns: []int{2}, Definition: "CHECK ((customer_id IS NOT NULL))", Expression: "(customer_id IS NOT NULL)", Valid: true}}
	m.views = []*view{{OID: 40, Kind: "v", Name: "public.report", Plain: "report", Reads: []int64{2}, Definition: " SELECT id,\n    customer_id\n   FROM orders;", Owner: "shop", Owned: true, Comment: "A report",
		Columns: []struct{ Column, Text, Default string }{{"id", "The order", ""}, {"customer_id", "", "7"}}, Options: []string{"security_barrier=true"}, Grants: []grant{{Privilege: "SELECT", Role: "report"}}}}
	m.triggers = []*trigger{{Table: 2, Name: "touch", Function: 50, Before: true}}
	m.functions = []*function{{OID: 50, Name: "public.touch()", Plain: "touch", Source: "BEGIN NEW.total := 1; RETURN NEW; END", Owned: true}}
	return m
}

func column1(name, kind, base string, k *key) column {
	return column{Name: name, Type: kind, Base: base, NotNull: true, key: k}
}

// The plan of a rekey. After a change of the SQL, run the test with -update, and read the
// difference.
func TestPlan(t *testing.T) {
	o, err := Options{Config: migrations.Config{Schema: "sortkey"}}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, a := range shop(o.Config).actions(o) {
		fmt.Fprintf(&b, "-- %s, %s: %s\n", a.Step, a.Kind, a.Title)
		if a.Fill != nil || a.Objects != nil || a.Index != "" {
			fmt.Fprintf(&b, "-- index %q, fill %v, objects %v\n", a.Index, a.Fill, a.Objects)
		}
		b.WriteString(strings.Join(a.SQL, ";\n") + ";\n\n")
	}
	const file = "testdata/plan.sql"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(lines)) {
		if i >= len(got) || i >= len(lines) || got[i] != lines[i] {
			t.Fatalf("the plan differs from %s in line %d; run the test with -update, and read the difference", file, i+1)
		}
	}
}
