package pgxcodec_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// TestExamples runs the examples that need a Postgres server. They create tables, so
// they run only if the integration tests ask for it, on every Postgres version, and not
// whenever DATABASE_URL is set.
func TestExamples(t *testing.T) {
	if os.Getenv("RUN_EXAMPLES") == "" {
		t.Skip("runs in the integration tests, with RUN_EXAMPLES=1 and DATABASE_URL set to a scratch database")
	}
	for name, c := range map[string]struct {
		run  func()
		want string
	}{
		"pgxpool":          {Example_pgxpool, "true\n"},
		"databaseSQL":      {Example_databaseSQL, "true true [779300444248735744]\n"},
		"copy":             {Example_copy, "10000 rows\n"},
		"keysetPagination": {Example_keysetPagination, "20 20 10\n"},
		"timeWindow":       {Example_timeWindow, "60 orders between 12:00 and 13:00\n"},
		"ownType":          {Example_typedKeys, "true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := output(t, c.run); got != c.want {
				t.Errorf("printed %q, want %q", got, c.want)
			}
		})
	}
}

// output returns the text that f prints.
func output(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = stdout
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	printed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}

// A pool whose connections have the codec.
func Example_pgxpool() {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.AfterConnect = pgxcodec.AfterConnect
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	if _, err := pool.Exec(ctx, "CREATE TABLE customers (id uuid PRIMARY KEY, name text NOT NULL)"); err != nil {
		log.Fatal(err)
	}
	ada, err := idtype.NewSno('c')
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "INSERT INTO customers VALUES ($1, $2)", ada, "Ada"); err != nil {
		log.Fatal(err)
	}
	rows, err := pool.Query(ctx, "SELECT id FROM customers WHERE id = ANY($1)", []idtype.Sno{ada})
	if err != nil {
		log.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[idtype.Sno])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ids) == 1 && ids[0] == ada)
	// Prints: true
}

// A database/sql pool over pgx. With the codec, slices can be arguments. Scanning into
// a slice takes a registered pgtype.Map.
func Example_databaseSQL() {
	config, err := pgx.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(pgxcodec.AfterConnect))
	defer db.Close()

	types := pgtype.NewMap()
	pgxcodec.Register(types)

	id, none := idtype.Snowflake(779300444248735744), (*idtype.Snowflake)(nil)
	var found bool
	var parent sqltypes.Optional[idtype.Snowflake]
	var all []idtype.Snowflake
	err = db.QueryRow("SELECT $1 = ANY($2::bigint[]), $3::bigint, $2::bigint[]", id, []idtype.Snowflake{id}, none).
		Scan(&found, &parent, types.SQLScanner(&all))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found, parent.IsZero(), all)
	// Prints: true true [779300444248735744]
}

// COPY is the fastest way to insert many rows. Fill generates their keys.
func Example_copy() {
	ctx := context.Background()
	conn := connect(ctx, "CREATE TABLE events (id bigint PRIMARY KEY, kind text NOT NULL)")
	defer conn.Close(ctx)

	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3})
	if err != nil {
		log.Fatal(err)
	}
	ids := make([]idtype.Snowflake, 10_000)
	if _, err := gen.Fill(ctx, ids); err != nil {
		log.Fatal(err)
	}
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"id", "kind"},
		pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) { return []any{ids[i], "visit"}, nil }))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "rows")
	// Prints: 10000 rows
}

// Each page begins after the last ID of the previous page. The first page begins after
// the zero ID, which sorts before every generated ID.
func Example_keysetPagination() {
	ctx := context.Background()
	conn := connect(ctx, "CREATE TABLE posts (id uuid PRIMARY KEY)")
	defer conn.Close(ctx)
	for range 50 {
		id, err := idtype.NewSno(0)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "INSERT INTO posts VALUES ($1)", id); err != nil {
			log.Fatal(err)
		}
	}

	var sizes []any
	var last idtype.Sno
	for {
		rows, err := conn.Query(ctx, "SELECT id FROM posts WHERE id > $1 ORDER BY id LIMIT 20", last)
		if err != nil {
			log.Fatal(err)
		}
		page, err := pgx.CollectRows(rows, pgx.RowTo[idtype.Sno])
		if err != nil {
			log.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		sizes = append(sizes, len(page))
		last = page[len(page)-1]
	}
	fmt.Println(sizes...)
	// Prints: 20 20 10
}

// A time window is a range of keys, so the query uses the primary key's index.
func Example_timeWindow() {
	ctx := context.Background()
	conn := connect(ctx, "CREATE TABLE orders (id bigint PRIMARY KEY)")
	defer conn.Close(ctx)
	layout := idtype.DefaultSnowflakeLayout()
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for minute := range 180 { // from 11:00 to 14:00
		id, err := layout.Compose(idtype.SnowflakeParts{Time: noon.Add(time.Duration(minute-60) * time.Minute), Worker: 3})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := conn.Exec(ctx, "INSERT INTO orders VALUES ($1)", id); err != nil {
			log.Fatal(err)
		}
	}

	lo, hi, err := layout.Range(noon, noon.Add(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	var n int
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM orders WHERE id >= $1 AND id < $2", lo, hi).Scan(&n); err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "orders between 12:00 and 13:00")
	// Prints: 60 orders between 12:00 and 13:00
}

// An Order is a model of typed keys.
type Order struct{}

// Typed keys need no registration.
func Example_typedKeys() {
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.AfterConnect = pgxcodec.AfterConnect
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3})
	if err != nil {
		log.Fatal(err)
	}
	id, err := idtype.GeneratorOf[idtype.SnowflakeOf[Order]](gen).Next()
	if err != nil {
		log.Fatal(err)
	}
	var back []idtype.SnowflakeOf[Order]
	if err := pool.QueryRow(ctx, "SELECT $1::bigint[]", []idtype.SnowflakeOf[Order]{id}).Scan(&back); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(back) == 1 && back[0] == id)
	// Prints: true
}

// connect opens a connection with the codec and creates a table.
func connect(ctx context.Context, createTable string) *pgx.Conn {
	conn, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if err := pgxcodec.AfterConnect(ctx, conn); err != nil {
		log.Fatal(err)
	}
	if _, err := conn.Exec(ctx, createTable); err != nil {
		log.Fatal(err)
	}
	return conn
}

// A pool that caches the database's domains instead of querying them on each
// connection.
func ExampleLoader() {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	var loader pgxcodec.Loader // for as long as the pool
	config.AfterConnect = loader.AfterConnect
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	// After a migration that creates domains:
	loader.Forget()
	pool.Reset()
}
