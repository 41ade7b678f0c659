package rekey

import (
	"fmt"
	"strings"
	"testing"
)

// A name counts wherever it stands in a text.
func TestNames(t *testing.T) {
	for source, want := range map[string]bool{
		"SELECT id FROM (Orders o JOIN x ON true)": true,
		`UPDATE ONLY "orders" SET a = 1`:           true,
		"EXECUTE 'TRUNCATE orders'":                true,
		"-- orders":                                true,
		"RAISE DEBUG '/* a'; UPDATE orders SET total = 1; RAISE DEBUG 'b */'": true,
		"NEW.orders := 1":                   true,
		"SELECT 1 FROM orders_2, my_orders": false,
		"SELECT 1 FROM shop.orders":         true,
	} {
		if got := (&function{Source: source}).names("orders"); got != want {
			t.Errorf("orders in %q: %v, want %v", source, got, want)
		}
	}
	if !(&function{Source: `FROM "Order Lines"`}).names("Order Lines") {
		t.Error("want a name with a space")
	}
}

// A table is named without its schema, unless all of its names have one.
func TestUses(t *testing.T) {
	m := &model{relations: []*relation{{Name: "shop.orders", Schema: "shop", Plain: "orders"}}}
	for source, want := range map[string]string{
		"UPDATE orders SET a = 1":                                "[{shop.orders true}]",
		"UPDATE shop.orders SET a = 1":                           "[{shop.orders false}]",
		`UPDATE "shop"."orders" SET a = 1`:                       "[{shop.orders false}]",
		"UPDATE shop.orders SET a = (SELECT max(b) FROM orders)": "[{shop.orders true}]",
		"UPDATE other SET a = 1":                                 "[]",
		`PERFORM 1 FROM "orders" WHERE id = NEW.id`:              "[{shop.orders true}]",
		"DECLARE x orders.id%TYPE; BEGIN x := NEW.order_id; END": "[{shop.orders true}]",
	} {
		if got := fmt.Sprint(m.uses(&function{Source: source})); got != want {
			t.Errorf("uses of %q: %s, want %s", source, got, want)
		}
	}
	if got := fmt.Sprint(m.uses(&function{Source: "UPDATE orders", Path: true})); got != "[{shop.orders false}]" {
		t.Errorf("with a search_path: %s", got)
	}
}

func TestUnquote(t *testing.T) {
	for name, want := range map[string]string{"Orders": "orders", `"Orders"`: "Orders", `"a""b"`: `a"b`, `"a"""`: `a"`, `"`: ""} {
		if got := unquote(name); got != want {
			t.Errorf("unquote(%s) = %s, want %s", name, got, want)
		}
	}
}

// Statements that copy all columns count, in a text that names a table that changes.
func TestExpands(t *testing.T) {
	m := &model{relations: []*relation{{Name: "public.orders", Schema: "public", Plain: "orders"}}, functions: []*function{{Plain: "open_orders", Rows: true}, {Plain: "numbers"}}}
	for source, want := range map[string]bool{
		"INSERT INTO history SELECT NEW.*":                              true,
		"INSERT INTO history VALUES ((OLD).*)":                          true,
		"EXECUTE 'INSERT INTO h SELECT ($1).*' USING NEW":               true,
		"INSERT INTO history VALUES (NEW.*)":                            true,
		"IF NEW IS DISTINCT FROM OLD THEN":                              false,
		"x := to_jsonb(NEW)":                                            false,
		"INSERT INTO h SELECT * FROM orders WHERE id = NEW.id":          true,
		"SELECT * INTO x FROM orders":                                   false,
		"x := a.b * 2; y := (a) * 3; PERFORM FROM orders":               false,
		"IF NEW.code ~ '^a.*' THEN PERFORM count(*) FROM orders":        false,
		"INSERT INTO summary SELECT * FROM staging":                     false,
		"INSERT INTO summary SELECT o.*, now() FROM public.orders o":    true,
		"INSERT INTO summary SELECT now(), o.* FROM public.orders o":    true,
		"INSERT INTO orders SELECT * FROM staging":                      true,
		"INSERT INTO summary SELECT * FROM fresh":                       true,
		"INSERT INTO summary SELECT * FROM open_orders()":               true,
		"INSERT INTO summary SELECT * FROM numbers()":                   false,
		"EXECUTE 'INSERT INTO summary SELECT * FROM ' || TG_TABLE_NAME": true,
		"INSERT INTO summary (a) SELECT count(*) FROM orders":           false,
		"INSERT INTO summary (a) SELECT total * 2 FROM orders":          false,
		"FOR r IN SELECT * FROM fresh LOOP PERFORM 1; END LOOP":         true,
		strings.ToLower("CREATE TEMP TABLE t AS SELECT * FROM orders"):  true,
	} {
		if got := m.expands(&function{Source: source}, &trigger{New: "fresh"}); got != want {
			t.Errorf("all columns in %q: %v, want %v", source, got, want)
		}
	}
}
