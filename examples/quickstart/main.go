// Command quickstart runs a small shop on the Postgres server of DATABASE_URL. Its tables
// use five ID types of sortkey. GORM creates rows, the plugin fills their keys, and pgx
// copies rows in and reads a time window. It works in a schema of its own, which it drops.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
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

func run(ctx context.Context, out io.Writer, url string) (err error) {
	if url == "" {
		return errors.New("DATABASE_URL is unset; set it, or run make demo, which starts a server")
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	// A schema of our own: the database may already have tables of the same names.
	name, err := idtype.NewSno(0)
	if err != nil {
		return err
	}
	schema := pgx.Identifier{"sortkey_quickstart_" + name.String()}.Sanitize()
	config.ConnConfig.RuntimeParams["search_path"] = schema
	config.AfterConnect = pgxcodec.AfterConnect // pgx encodes and decodes IDs without driver.Valuer and sql.Scanner
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	var version string
	if err := pool.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&version); err != nil {
		return err
	}
	fmt.Fprintf(out, "Database: Postgres %s\n\n", version)
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
		return err
	}
	defer func() {
		// Drop the schema even if ctx is canceled.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, dropErr := pool.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE")
		err = errors.Join(err, dropErr)
	}()

	db, err := gorm.Open(postgres.New(postgres.Config{Conn: stdlib.OpenDBFromPool(pool)}), &gorm.Config{Logger: logger.Default.LogMode(logger.Error)})
	if err != nil {
		return err
	}
	db = db.WithContext(ctx)
	generators, err := keys()
	if err != nil {
		return err
	}
	if err := db.Use(gormplugin.New(generators...)); err != nil {
		return err
	}
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
	if err := printOrders(db, out, found.Orders); err != nil {
		return err
	}
	event, err := readWindow(ctx, pool, out)
	if err != nil {
		return err
	}
	return printOthers(db, out, &found, event)
}

// readWindow copies the events of a day, and reads the events of an hour. It returns the first of
// them.
func readWindow(ctx context.Context, pool *pgxpool.Pool, out io.Writer) (first Event, err error) {
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	events, err := eventsOf(day, 10_000)
	if err != nil {
		return first, err
	}
	began := time.Now()
	if _, err := pool.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"id", "kind"},
		pgx.CopyFromSlice(len(events), func(i int) ([]any, error) { return []any{events[i].ID, events[i].Kind}, nil })); err != nil {
		return first, err
	}
	fmt.Fprintf(out, "\nCopied %d events of %s in %v.\n", len(events), day.Format(time.DateOnly), time.Since(began).Round(time.Millisecond))
	if _, err := pool.Exec(ctx, "ANALYZE events"); err != nil {
		return first, err
	}

	from, to := day.Add(3*time.Hour), day.Add(4*time.Hour)
	lo, hi, err := idtype.UID60Layout{}.Range(from, to)
	if err != nil {
		return first, err
	}
	const query = "SELECT id, kind FROM events WHERE id >= $1 AND id < $2 ORDER BY id"
	rows, err := pool.Query(ctx, query, lo, hi)
	if err != nil {
		return first, err
	}
	window, err := pgx.CollectRows(rows, pgx.RowToStructByName[Event])
	if err != nil {
		return first, err
	}
	first = window[0]
	fmt.Fprintf(out, "Read the %d events from %s to %s UTC by key range: the first is %v at %s.\nThe plan of this query:\n",
		len(window), from.Format("15:04"), to.Format("15:04"), first.ID, first.ID.Time().Format("15:04:05.000"))
	rows, err = pool.Query(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) "+query, lo, hi)
	if err != nil {
		return first, err
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, line := range plan {
		fmt.Fprintln(out, "  "+line)
	}
	return first, err
}

// printOrders prints the ID of each order as text, the value in its column, and the fields
// of the ID.
func printOrders(db *gorm.DB, out io.Writer, orders []Order) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "The orders, with Snowflake keys:\n\norder\tbigint column\tcreated (UTC)\tdatacenter\tworker\tsequence\n")
	for _, order := range orders {
		var stored string
		if err := db.Raw("SELECT id::text FROM orders WHERE id = ?", order.ID).Row().Scan(&stored); err != nil {
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
func printOthers(db *gorm.DB, out io.Writer, customer *Customer, event Event) error {
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
	fmt.Fprint(w, "\nThe other tables, with keys of other formats:\n\ntable\tkey\tID as text\tcolumn\tstored value\tcreated\n")
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
		query := fmt.Sprintf("SELECT pg_typeof(id)::text, id::text FROM %s WHERE id = ?", row.table)
		if err := db.Raw(query, row.id).Row().Scan(&column, &stored); err != nil {
			return fmt.Errorf("read %v from %s: %w", row.id, row.table, err)
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\t%s\t%s\n", row.table, row.key, row.id, column, stored, row.created.Format(time.TimeOnly))
	}
	return w.Flush()
}
