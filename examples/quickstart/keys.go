package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// printOrders prints the ID of each order as text, the value in its column, and the fields
// of the ID.
func printOrders(db *gorm.DB, out io.Writer, orders []Order) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "order\tbigint column\tcreated (UTC)\tdatacenter\tworker\tsequence")
	for _, order := range orders {
		var stored string
		if err := db.Raw("SELECT CAST(id AS text) FROM orders WHERE id = ?", order.ID).Row().Scan(&stored); err != nil {
			return fmt.Errorf("read %v from orders: %w", order.ID, err)
		}
		parts, err := idtype.DefaultSnowflakeLayout().Parts(order.ID.Untyped())
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%v\t%s\t%s\t%d\t%d\t%d\n", order.ID, stored, parts.Time.Format("2006-01-02 15:04:05.000"),
			parts.Datacenter, parts.Worker, parts.Sequence)
	}
	return w.Flush()
}

// printOthers prints a row of each other table: its ID as text, and the column and the value
// that store it.
func printOthers(db *gorm.DB, out io.Writer, columnType func(table string) string, customer *Customer, event Event) error {
	line, visit := customer.Orders[0].Lines[0], customer.Visits[0]
	lineParts, err := lineLayout.Parts(line.ID.Untyped())
	if err != nil {
		return err
	}
	visitParts, err := idtype.Spread64Layout{}.Parts(visit.ID.Untyped())
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "table\tkey\tID as text\tcolumn\tstored value\tcreated")
	for _, row := range []struct {
		table, key string
		id         fmt.Stringer
		created    time.Time
	}{
		{"order_lines", "SnowflakeSI", line.ID, lineParts.Time},
		{"customers", "Sno", customer.ID, customer.ID.Time()},
		{"visits", "Spread64", visit.ID, visitParts.Time},
		{"events", "UID60", event.ID, event.ID.Time()},
	} {
		var column, stored string
		query := fmt.Sprintf("SELECT %s, CAST(id AS text) FROM %s WHERE id = ?", columnType(row.table), row.table)
		if err := db.Raw(query, row.id).Row().Scan(&column, &stored); err != nil {
			return fmt.Errorf("read %v from %s: %w", row.id, row.table, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\t%s\n", row.table, row.key, row.id, column, stored, row.created.Format(time.TimeOnly))
	}
	return w.Flush()
}
