// Command quickstart runs a small shop on Postgres. Its tables use five ID
// types of sortkey. GORM creates rows, the plugin fills their keys, and pgx
// copies rows in and reads a time window.
//
// It connects to DATABASE_URL, works in a schema of its own, and drops the schema
// at the end. Without DATABASE_URL it runs on SQLite and omits pgx.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Getenv("DATABASE_URL")); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		stop()
		os.Exit(1)
	}
}

// events is the number of events to insert.
const events = 10_000

func run(ctx context.Context, out io.Writer, url string) (err error) {
	s, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}()
	db := s.db.WithContext(ctx)
	fmt.Fprintf(out, "Database: %s\n\n", s.server)

	if err := db.AutoMigrate(&Customer{}, &Order{}, &OrderLine{}, &Visit{}, &Event{}); err != nil {
		return err
	}

	customer := ada()
	if err := db.Create(customer).Error; err != nil {
		return err
	}
	var found Customer
	if err := db.Preload("Orders.Lines").Preload("Visits").First(&found, "id = ?", customer.ID).Error; err != nil {
		return err
	}
	fmt.Fprintf(out, "Created %s with %d orders, %d lines and %d visits: one db.Create filled all keys and foreign keys.\n\n",
		found.Name, len(found.Orders), len(found.Orders[0].Lines)+len(found.Orders[1].Lines), len(found.Visits))
	fmt.Fprint(out, "The orders, with Snowflake keys:\n\n")
	if err := printOrders(db, out, found.Orders); err != nil {
		return err
	}

	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	rows, err := yesterday(day, events)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.insertEvents(ctx, rows); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s %d events of %s in %v.\n", s.inserted, len(rows), day.Format(time.DateOnly), time.Since(began).Round(time.Millisecond))

	from, to := day.Add(3*time.Hour), day.Add(4*time.Hour)
	window, plan, err := s.between(ctx, from, to)
	if err != nil {
		return err
	}
	first := window[0]
	fmt.Fprintf(out, "Read the %d events from %s to %s UTC by key range: the first is %v at %s.\nThe plan of this query:\n",
		len(window), from.Format("15:04"), to.Format("15:04"), first.ID, first.ID.Time().Format("15:04:05.000"))
	for _, line := range plan {
		fmt.Fprintln(out, "  "+line)
	}
	fmt.Fprint(out, "\nThe other tables, with keys of other formats:\n\n")
	if err := printOthers(db, out, s.columnType, customer, first); err != nil {
		return err
	}
	if s.leftOut != "" {
		fmt.Fprintf(out, "\n%s\n", s.leftOut)
	}
	return nil
}
