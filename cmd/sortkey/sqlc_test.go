package main

import "testing"

func TestSqlcUsage(t *testing.T) {
	checkUsage(t, "sqlc", []usageTest{
		{"", "no types: pass --types with the import path"},
		{"--gorm", "no types"},
		{"--typescript --dir key", "no types"},
		{"--types example.com/shop/key --gorm --typescript", "--gorm and --typescript: pass one of them"},
		{"--types example.com/shop-key", `--types "example.com/shop-key": want an import path that ends in the name of the package`},
		{"--types example.com/shop/type", "want an import path"},
		{"--types example.com/shop/", "want an import path"},
		{`--types a"b`, "want an import path"},
		{"--types key --bigint sno", `--bigint "sno": want snowflake, snowflake-si, uid60, spread64`},
		{"--types key orders", `unknown command "orders"`},
	})
}

func TestGoName(t *testing.T) {
	for name, want := range map[string]string{
		"orders": "Order", "order_items": "OrderItem", "OrderItems": "OrderItem", "Order Items": "OrderItem", "ORDERS": "Order",
		"api_keys": "APIKey", "urls": "URL", "http_logs": "HTTPLog", "people": "Person", "categories": "Category", "addresses": "Address", "status": "Status", "news": "News",
		"types": "Type", "func": "Func", "2fa_codes": "Table2faCode", "_": "Table", "s": "S", "": "Table", "straße": "Straße", "über_tage": "ÜberTage", "注文": "Table注文", "ids": "ID", "a__b": "AB",
	} {
		if got := goName(name, "Table", true); got != want {
			t.Errorf("goName(%q) = %s, want %s", name, got, want)
		}
	}
	if got := goName("addresses_id", "Column", false); got != "AddressesID" {
		t.Errorf("a field: got %s", got)
	}
}

// A name in use has a number, also if only the name of its key is in use.
func TestAddName(t *testing.T) {
	used := map[string]bool{}
	for _, tt := range []struct{ name, want string }{{"Type", "Type"}, {"Type", "Type2"}, {"TypeID", "TypeID2"}, {"Type", "Type3"}} {
		if got := addName(used, tt.name, "", "ID"); got != tt.want {
			t.Errorf("addName(%s) = %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSqlcPattern(t *testing.T) {
	for name, want := range map[string]string{"a_b": "a_b", "a.b": "a?b", "ä": "?", `*?\`: `\*\?\\`, "a$(": "a$("} {
		if got := sqlcPattern(name); got != want {
			t.Errorf("sqlcPattern(%q) = %q, want %q", name, got, want)
		}
	}
}
