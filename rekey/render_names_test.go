package rekey

import "testing"

func TestRename(t *testing.T) {
	names := map[string]string{"id": "rekey_id", "order_id": "rekey_order_id", `"Order"`: `"rekey_Order"`, "date": "rekey_date"}
	for in, want := range map[string]string{
		"CREATE INDEX x ON public.t USING btree (order_id, note) WHERE (order_id IS NOT NULL)": "CREATE INDEX x ON public.t USING btree (rekey_order_id, note) WHERE (rekey_order_id IS NOT NULL)",
		`((note = 'id'::text) AND ("Order" <> id))`:                                            `((note = 'id'::text) AND ("rekey_Order" <> rekey_id))`,
		"USING btree (date) WITH (date='70') WHERE (date = 1)":                                 "USING btree (rekey_date) WITH (date='70') WHERE (rekey_date = 1)",
		"(date('2026-01-01'::date) < id)":                                                      "(date('2026-01-01'::date) < rekey_id)",
		"((note = 'it''s id') AND (id IS NULL))":                                               "((note = 'it''s id') AND (rekey_id IS NULL))",
		"FOREIGN KEY (order_id) REFERENCES id.orders(id) ON DELETE SET NULL (order_id)":        "FOREIGN KEY (rekey_order_id) REFERENCES id.orders(rekey_id) ON DELETE SET NULL (rekey_order_id)",
	} {
		if got := rename(in, names); got != want {
			t.Errorf("rename(%q)\n= %q\nwant %q", in, got, want)
		}
	}
}

func TestFitsAnyKey(t *testing.T) {
	one, other := &key{}, &key{n: 1}
	keys := map[string]*key{"a": one, "b": one, "c": other}
	for expression, want := range map[string]bool{
		"(a IS NOT NULL)":                        true,
		"((a IS NULL) OR (total > 0))":           true,
		"((a <> b) AND (state = 'a > 5'::text))": true,
		"(a > 5)":                                false,
		"(a = c)":                                false,
		"(a < b)":                                false,
		"(lower(a) = 'x'::text)":                 false,
		"(total = a)":                            false,
		"((a)::text = (b)::text)":                false,
		"(a IS DISTINCT FROM b)":                 false,
		"(num_nonnulls(total, a, c) = 1)":        true,
		"(num_nulls(c) = 1)":                     true,
		"(coalesce(a, b) = 1)":                   false,
		"(total > 0)":                            true,
	} {
		if got := fitsAnyKey(expression, keys); got != want {
			t.Errorf("fitsAnyKey(%q) = %v, want %v", expression, got, want)
		}
	}
}
