package rekey

import (
	"slices"
	"testing"
)

func TestUses(t *testing.T) {
	for source, want := range map[string][]string{
		"SELECT * FROM orders o JOIN Shop.Customers c ON true, lines":  {"orders", "shop.customers", "lines"},
		`UPDATE ONLY "Orders" SET orders = 1`:                          {"Orders"},
		"INSERT INTO shop . \"a\"\"b\" VALUES (1)":                     {`shop.a"b`},
		"x orders.id%TYPE; y orders%ROWTYPE; z shop.orders%ROWTYPE":    {"orders", "orders", "shop.orders"},
		"EXECUTE 'TRUNCATE orders'; EXECUTE format('COPY %I', x)":      {"orders", "x"},
		"NEW.orders := orders.total; -- FROM a\n/* FROM b\n */ RETURN": nil,
		"MERGE INTO orders USING lines ON true":                        {"orders", "lines"},
		"SELECT id, orders FROM x":                                     {"orders", "x"}, // as in FROM y, orders
	} {
		f := &function{Source: source}
		if got, _ := f.uses(); !slices.Equal(got, want) {
			t.Errorf("uses(%q) = %q, want %q", source, got, want)
		}
	}
}
