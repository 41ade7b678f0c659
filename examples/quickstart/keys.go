package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// printKeys prints one row of each table: its ID as text, the stored value, and
// the fields of the ID.
func printKeys(db *gorm.DB, out io.Writer, columnType func(table string) string, customer *Customer, event Event) error {
	order := customer.Orders[0]
	line, visit := order.Lines[0], customer.Visits[0]

	orderParts, err := idtype.DefaultSnowflakeLayout().Parts(order.ID.Untyped())
	if err != nil {
		return err
	}
	lineParts, err := lineLayout.Parts(line.ID.Untyped())
	if err != nil {
		return err
	}
	visitParts, err := idtype.Spread64Layout{}.Parts(visit.ID.Untyped())
	if err != nil {
		return err
	}

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "table\tkey\tID as text\tcolumn type\tstored value\tcreated (UTC)\tother fields")
	for _, row := range []struct {
		table, key string
		id         fmt.Stringer
		minted     time.Time
		parts      string
	}{
		{"customers", "Sno", customer.ID, customer.ID.Time(),
			fmt.Sprintf("meta %q, partition %d, sequence %d", customer.ID.Untyped().Meta(), customer.ID.Untyped().Partition().Uint16(), customer.ID.Untyped().Sequence())},
		{"orders", "Snowflake", order.ID, orderParts.Time,
			fmt.Sprintf("datacenter %d, worker %d, sequence %d", orderParts.Datacenter, orderParts.Worker, orderParts.Sequence)},
		{"order_lines", "SnowflakeSI", line.ID, lineParts.Time,
			fmt.Sprintf("machine %d, index %d", lineParts.Machine, lineParts.Index)},
		{"visits", "Spread64", visit.ID, visitParts.Time,
			fmt.Sprintf("sequence %d, generator %d, cluster %d", visitParts.Sequence, visitParts.Generator, visitParts.Cluster)},
		{"events", "UID60", event.ID, event.ID.Time(),
			fmt.Sprintf("sequence %d, random %d", event.ID.Untyped().Sequence(), event.ID.Untyped().Random())},
	} {
		var column, stored string
		query := fmt.Sprintf("SELECT %s, CAST(id AS text) FROM %s WHERE id = ?", columnType(row.table), row.table)
		if err := db.Raw(query, row.id).Row().Scan(&column, &stored); err != nil {
			return fmt.Errorf("read %v from %s: %w", row.id, row.table, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\t%s\t%s\n", row.table, row.key, row.id, column, stored,
			row.minted.Format("2006-01-02 15:04:05.000"), row.parts)
	}
	return w.Flush()
}
