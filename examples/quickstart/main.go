// Command quickstart keeps a small shop in Postgres: its tables have the five
// kinds of key that sortkey offers, GORM creates rows whose keys fill
// themselves, and pgx copies rows in and reads a window of time back.
//
// It uses the database of DATABASE_URL, in a schema of its own that it removes
// at the end. Without DATABASE_URL it shows what it can on SQLite.
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

// events is how many events are copied in.
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
	fmt.Fprintf(out, "On %s.\n\n", s.server)

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
	fmt.Fprintf(out, "Created %s with %d orders, %d lines and %d visits: one db.Create, all keys and foreign keys filled.\n",
		found.Name, len(found.Orders), len(found.Orders[0].Lines)+len(found.Orders[1].Lines), len(found.Visits))

	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	rows, err := yesterday(day, events)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.insertEvents(ctx, rows); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s %d events of %s in %v.\n", s.inserted, len(rows), day.Format(time.DateOnly), time.Since(began).Round(time.Millisecond))

	from, to := day.Add(3*time.Hour), day.Add(4*time.Hour)
	window, plan, err := s.between(ctx, from, to)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Read back the %d of %s to %s UTC by their keys alone; the first is %v of %s, the last %v of %s.\n\n",
		len(window), from.Format("15:04"), to.Format("15:04"), window[0].ID, clock(window[0].ID.Time()),
		window[len(window)-1].ID, clock(window[len(window)-1].ID.Time()))

	if err := printKeys(db, out, s.columnType, customer, window[0]); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe plan of the query by time:\n")
	for _, line := range plan {
		fmt.Fprintln(out, "  "+line)
	}
	if s.leftOut != "" {
		fmt.Fprintf(out, "\n%s\n", s.leftOut)
	}
	return nil
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
