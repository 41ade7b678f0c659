package rekey

import "testing"

func TestNamedAfter(t *testing.T) {
	for _, x := range []struct {
		column, table string
		want          bool
	}{
		{"customer_id", "customers", true},
		{"customer", "customers", true},
		{"customerId", "Customers", true},
		{"customerid", "customer", true},
		{"CustomerID", "Customer", true},
		{"billing_customer_id", "customers", true},
		{"customer_ids", "customers", true},
		{"customer_uuid", "customers", true},
		{"user_id", "auth_user", true},
		{"category_id", "categories", true},
		{"box_id", "boxes", true},
		{"OrderLineId", "order_lines", true},
		{"id", "customers", false},
		{"order_id", "customers", false},
		{"sort_order", "orders", false},
		{"customers", "customers", true},
		{"number_of_customers", "customers", false},
		{"paid", "customers", false},
		{"customer_name", "customers", false},
		{"subcustomer_id", "customers", false},
	} {
		if got := namedAfter(x.column, x.table); got != x.want {
			t.Errorf("namedAfter(%q, %q): expected %t, got %t", x.column, x.table, x.want, got)
		}
	}
}

func TestSplitColumn(t *testing.T) {
	for in, want := range map[string][2]string{
		"orders.customer_id":       {"orders", "customer_id"},
		`shop."Orders"."Customer"`: {`shop."Orders"`, "Customer"},
		`"a.b"."c.d"`:              {`"a.b"`, "c.d"},
		"shop.orders.Customer_ID":  {"shop.orders", "customer_id"},
		"customer_id":              {},
		"":                         {},
		`orders."x""y"`:            {"orders", `x"y`},
		`orders."x"y"`:             {},
	} {
		if table, column := splitColumn(in); table != want[0] || column != want[1] {
			t.Errorf("splitColumn(%q): expected %q, got %q and %q", in, want, table, column)
		}
	}
}
