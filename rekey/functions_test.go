package rekey

import (
	"fmt"
	"testing"
)

func TestText(t *testing.T) {
	for source, want := range map[string]string{
		"SELECT id FROM (orders o JOIN Shop.Customers c ON true)":    "bare [select id from orders o join shop c on true] qualified [shop.customers] calls [from]",
		`x orders; UPDATE ONLY "Orders" SET a = 1`:                   "bare [x orders update only Orders set a]",
		`INSERT INTO shop . "a""b" SELECT f(1)`:                      `bare [insert into shop select f] qualified [shop.a"b] calls [f]`,
		"EXECUTE 'TRUNCATE orders -- x'":                             "bare [truncate orders] dynamic",
		"NEW.total := 1; -- FROM a\n/* FROM b\n */ a('/* ') b ' */'": "bare [new a b] qualified [new.total] calls [a]",
	} {
		x := &text{}
		x.parse(source)
		got := fmt.Sprintf("bare %v", x.bare)
		if x.qualified != nil {
			got += fmt.Sprintf(" qualified %v", x.qualified)
		}
		if x.calls != nil {
			got += fmt.Sprintf(" calls %v", x.calls)
		}
		if x.dynamic {
			got += " dynamic"
		}
		if got != want {
			t.Errorf("parse(%q) = %s, want %s", source, got, want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for name, want := range map[string]string{"Orders": "orders", `"Orders"`: "Orders", `"a""b"`: `a"b`, `"a"""`: `a"`, `"`: ""} {
		if got := unquote(name); got != want {
			t.Errorf("unquote(%s) = %s, want %s", name, got, want)
		}
	}
}

func TestWholeRow(t *testing.T) {
	for source, want := range map[string]bool{
		"INSERT INTO history SELECT NEW.*":                     true,
		"INSERT INTO history VALUES ((OLD).*)":                 true,
		"EXECUTE 'INSERT INTO h SELECT ($1).*' USING NEW":      true,
		"INSERT INTO h SELECT * FROM orders WHERE id = NEW.id": true,
		"IF NEW.* IS DISTINCT FROM OLD.* THEN":                 false,
		"IF (NEW.*) = (OLD.*) THEN":                            false,
		"IF row(NEW.*) IS DISTINCT FROM row(OLD.*) THEN":       false,
		"x := to_jsonb(NEW.*); y := hstore(OLD.*)":             false,
		"INSERT INTO history VALUES (NEW.*)":                   true,
		"SELECT * INTO x FROM orders":                          false,
		"INSERT INTO h (a) VALUES (1); SELECT * INTO x FROM y": false,
		"x := a.b * 2; y := (a) * 3":                           false,
	} {
		if got := expandsRows(source, false, func(string) bool { return true }); got != want {
			t.Errorf("whole row in %q: %v, want %v", source, got, want)
		}
	}
}

// Statements that copy rows count if a table of them changes.
func TestCopiedRows(t *testing.T) {
	m := &model{relations: []*relation{{Name: "public.orders", Schema: "public", Plain: "orders"}}, functions: []*function{{Plain: "open_orders", Rows: true}, {Plain: "numbers"}}}
	for source, want := range map[string]bool{
		"INSERT INTO summary SELECT * FROM staging":                                     false,
		"INSERT INTO summary SELECT s.* FROM staging s; DELETE FROM orders":             false,
		"INSERT INTO summary SELECT * FROM orders":                                      true,
		"INSERT INTO summary SELECT o.*, now() FROM public.orders o":                    true,
		"INSERT INTO orders SELECT * FROM staging":                                      true,
		"INSERT INTO summary SELECT * FROM fresh":                                       true,
		"INSERT INTO summary SELECT * FROM open_orders()":                               true,
		"INSERT INTO summary SELECT * FROM numbers()":                                   false,
		"CREATE TEMP TABLE t AS SELECT * FROM orders; INSERT INTO h SELECT * FROM t":    true,
		"EXECUTE 'INSERT INTO summary SELECT * FROM ' || TG_TABLE_NAME":                 true,
		"INSERT INTO summary (a) SELECT count(*) FROM orders":                           false,
		"INSERT INTO summary (a) SELECT total * 2 FROM orders":                          false,
		"FOR r IN SELECT * FROM fresh LOOP PERFORM 1; END LOOP":                         true,
		"FOR r IN SELECT * FROM staging LOOP PERFORM 1; END LOOP; DELETE FROM orders":   false,
		"INSERT INTO summary VALUES (NEW.id); INSERT INTO summary SELECT * FROM orders": true,
	} {
		if got := expandsRows(source, true, m.changesIn(&function{Source: source}, &trigger{New: "fresh"})); got != want {
			t.Errorf("copied rows in %q: %v, want %v", source, got, want)
		}
	}
}
