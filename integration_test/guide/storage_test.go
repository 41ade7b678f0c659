package guide

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/lib/pq"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// psql runs a piece and returns the output that psql would print, without command
// tags and row counts: tables, and the errors of statements.
func psql(t *testing.T, conn *pgx.Conn, p docs.Piece) string {
	t.Helper()
	var out strings.Builder
	for _, s := range p.Statements() {
		results, err := conn.PgConn().Exec(t.Context(), s).ReadAll()
		for _, r := range results {
			out.WriteString(psqlTable(r))
		}
		var pgErr *pgconn.PgError
		if err != nil {
			if !errors.As(err, &pgErr) {
				t.Fatalf("%s: %v", p.Name, err)
			}
			fmt.Fprintf(&out, "ERROR:  %s\n", pgErr.Message)
		}
	}
	return out.String()
}

// psqlTable formats rows as psql does: headings centred, numbers right-aligned.
func psqlTable(r *pgconn.Result) string {
	if len(r.FieldDescriptions) == 0 {
		return ""
	}
	width := make([]int, len(r.FieldDescriptions))
	for i, f := range r.FieldDescriptions {
		width[i] = len(f.Name)
		for _, row := range r.Rows {
			width[i] = max(width[i], len(row[i]))
		}
	}
	var out strings.Builder
	line := func(cell func(i int) string) {
		cells := make([]string, len(width))
		for i := range cells {
			cells[i] = " " + cell(i) + " "
		}
		out.WriteString(strings.TrimRight(strings.Join(cells, "|"), " ") + "\n")
	}
	line(func(i int) string {
		name := r.FieldDescriptions[i].Name
		before := (width[i] - len(name)) / 2
		return strings.Repeat(" ", before) + name + strings.Repeat(" ", width[i]-len(name)-before)
	})
	rule := make([]string, len(width))
	for i := range rule {
		rule[i] = strings.Repeat("-", width[i]+2)
	}
	out.WriteString(strings.Join(rule, "+") + "\n")
	for _, row := range r.Rows {
		line(func(i int) string {
			switch r.FieldDescriptions[i].DataTypeOID {
			case pgtype.Int8OID, pgtype.Int4OID, pgtype.NumericOID:
				return fmt.Sprintf("%*s", width[i], row[i])
			}
			return fmt.Sprintf("%-*s", width[i], row[i])
		})
	}
	return out.String()
}

// The page shows the output of its SQL.
func TestStorage(t *testing.T) {
	migrated.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		lines(t, conn, "SET timezone = 'UTC'")
		for _, p := range docs.SQL(t, "storage", "tables", "look", "find", "view", "virtual") {
			switch {
			case p.Name == "virtual" && db.Version < "18":
			case p.Name == "virtual":
				checkVirtual(t, db, conn, p.SQL)
			default:
				want := p.Output
				if p.Name == "find" {
					want = " name\n------\n Ada\n total\n-------\n  4200\n"
				}
				if got := psql(t, conn, p); got != want {
					t.Errorf("%s: expected the output\n%sgot\n%s", p.Name, want, got)
				}
			}
		}
		// The domains and the functions refuse malformed IDs, and zero.
		for statement, want := range map[string]string{
			"INSERT INTO customers VALUES ('f47ac10b-58cc-4372-a567-0e02b2c3d479', 'a random uuid')": `value for domain sortkey.sno violates check constraint "sno_has_digits_for_bytes"`,
			"INSERT INTO orders VALUES (0, sortkey.sno_from_text('brpk4q72xwf2m63l'), NULL, 1)":      `value for domain sortkey.snowflake violates check constraint "snowflake_is_positive"`,
			"SELECT sortkey.sno_from_text('BRPK4Q72XWF2M63L')":                                       "cannot parse 'BRPK4Q72XWF2M63L' as Sno; want 16 digits [2-9a-x]",
		} {
			_, err := conn.Exec(t.Context(), statement)
			pgtest.Fails(t, err, nil, want)
		}
		has(t, "the view", lines(t, conn, "SELECT * FROM orders_readable"), "779300444248735744|2026-11-21 11:01:44.611+00|brpk4q72xwf2m63l|4200")
		if db.Version >= "19" {
			const insert = "INSERT INTO tags VALUES (%d, 'new') ON CONFLICT (name) DO SELECT RETURNING id"
			lines(t, conn, "CREATE TABLE tags (id sortkey.snowflake PRIMARY KEY, name text NOT NULL UNIQUE)")
			has(t, "a new key", lines(t, conn, fmt.Sprintf(insert, 1)), "1")
			has(t, "the key of the existing row", lines(t, conn, fmt.Sprintf(insert, 2)), "1")
		}
		lines(t, conn, "ALTER TABLE orders ADD COLUMN created_at timestamptz GENERATED ALWAYS AS (sortkey.snowflake_time(id)) STORED")
		if pgtest.Thorough() { // it takes most of the time
			sql := docs.File(t, "examples/guide/storage.sql")
			for _, s := range docs.Find(t, sql, "sizes").Statements() {
				db.Exec(t, s)
			}
			checkSizes(t, psql(t, conn, docs.Find(t, sql, "measure")))
		}
		has(t, "created_at", lines(t, conn, "SELECT created_at = sortkey.snowflake_time(id) FROM orders"), "t")
	})
}

// checkVirtual runs the statements that add a virtual column created_at, for each format.
func checkVirtual(t *testing.T, db *pgtest.DB, conn *pgx.Conn, statements string) {
	t.Helper()
	for _, f := range []struct{ name, column, call string }{
		{"snowflake", "bigint", "next_snowflake(1021)"}, {"uid60", "bigint", "next_uid60()"}, {"spread64", "bigint", "next_spread64(1021)"},
		{"sno", "uuid", "next_sno(1021)"}, {"uuid7", "uuid", "next_uuid7()"},
	} {
		sql := strings.NewReplacer("snowflake_time(bigint)", f.name+"_time("+f.column+")", "bigint PRIMARY KEY", f.column+" PRIMARY KEY DEFAULT sortkey."+f.call).Replace(statements)
		lines(t, conn, "DROP TABLE IF EXISTS payments;"+sql)
		type Payment struct {
			Amount    int64
			CreatedAt time.Time `gorm:"->;-:migration"`
		}
		g := db.GORM(t, nil)
		must(t, g.Create(&Payment{Amount: 1}).Error)
		has(t, f.name, lines(t, conn, fmt.Sprintf("SELECT created_at = sortkey.%s_time(id), created_at > now() - interval '1 hour' FROM payments", f.name)), "t|t")
		var p Payment
		must(t, g.First(&p, "amount = 1").Error)
		if p.CreatedAt.IsZero() {
			t.Errorf("%s: GORM didn't read created_at", f.name)
		}
	}
}

// checkSizes compares the sizes of tables with the table on the page. They may differ by a byte
// between versions of Postgres.
func checkSizes(t *testing.T, measured string) {
	t.Helper()
	page, found := docs.Page(t, "storage"), 0
	for line := range strings.Lines(measured) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		key := map[string]string{
			"by_sequence": "`bigserial`", "by_snowflake": "`Snowflake`", "by_spread64": "`Spread64`", "by_sno": "`Sno`", "by_uuid7": "UUIDv7",
			"by_random_uuid": "random `uuid`", "by_sno_text": "`Sno` as text", "by_random_uuid_text": "random `uuid` as text",
		}[strings.TrimSpace(cells[0])]
		if key == "" {
			continue // the head of the table
		}
		found++
		row := regexp.MustCompile(`(?m)^\| ` + key + ` \| (\d+) \| (\d+) \|$`).FindStringSubmatch(page)
		if row == nil {
			t.Errorf("docs/storage.md has no sizes of %s", key)
			continue
		}
		for i, want := range row[1:] {
			if got := strings.TrimSpace(cells[i+1]); math.Abs(number(t, got)-number(t, want)) > 1 {
				t.Errorf("%s: expected sizes near %v as in the page, got\n%s", key, row[1:], measured)
			}
		}
	}
	if found != 8 {
		t.Fatalf("expected 8 tables, got\n%s", measured)
	}
}

// Column values, as psql shows them, convert to texts.
func TestStorageColumns(t *testing.T) {
	visit, customer, err := guide.FromColumns("-3795148059624996843", "6272706b-3471-3732-7877-66326d36336c")
	if err != nil || visit != "cb54ecf2840a0015" || customer != "brpk4q72xwf2m63l" {
		t.Errorf("got %s and %s, %v", visit, customer, err)
	}
	if _, _, err := guide.FromColumns("1", "f47ac10b-58cc-4372-a567-0e02b2c3d479"); err == nil {
		t.Error("FromColumns: expected an error for a random uuid, got none")
	}
}

// A struct that embeds a typed key needs no registration, and has the JSON of the key.
func TestStorageEmbedded(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t, pgtest.Codec)
		type paymentID struct {
			idtype.SnowflakeOf[guide.Order]
		}
		want := []paymentID{{1}, {779300444248735744}}
		var first paymentID
		var all []paymentID
		err := conn.QueryRow(t.Context(), "SELECT ($1::bigint[])[1], $1::bigint[]", want).Scan(&first, &all)
		if err != nil || first != want[0] || !slices.Equal(all, want) {
			t.Errorf("expected %v, got %v and %v, %v", want, first, all, err)
		}
		if b, err := json.Marshal(want[1]); err != nil || string(b) != `"ord_779300444248735744"` {
			t.Errorf("got %s, %v", b, err)
		}
	})
}

// The columns of other types store the values that the page describes.
func TestStorageExports(t *testing.T) {
	t.Parallel()
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE exports (subject sortkey.sno_as_text PRIMARY KEY, raw bytea NOT NULL, parent sortkey.sno, orders bigint[])")
		g := db.GORM(t, nil)
		first, second := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63m"))
		rows := []guide.Export{
			{Subject: sqltypes.TextOf(first), Raw: sqltypes.SnoBytesOf(first)},
			{Subject: sqltypes.TextOf(second), Raw: sqltypes.SnoBytesOf(second), Parent: sqltypes.OptionalOf(first), Orders: sqltypes.Array[guide.OrderID]{1, 2}},
		}
		must(t, g.Create(&rows).Error)
		var read []guide.Export
		if err := g.Order("subject").Find(&read).Error; err != nil || !reflect.DeepEqual(read, rows) {
			t.Errorf("got %v, %v", read, err)
		}
		var stored string
		err := g.Raw(`SELECT string_agg(concat_ws(' ', subject, octet_length(raw), coalesce(parent::text, 'NULL'), coalesce(orders::text, 'NULL')), ', ' ORDER BY subject) FROM exports`).Row().Scan(&stored)
		if want := "brpk4q72xwf2m63l 10 NULL NULL, brpk4q72xwf2m63m 10 6272706b-3471-3732-7877-66326d36336c {1,2}"; err != nil || stored != want {
			t.Errorf("got %s, %v", stored, err)
		}
		var found []guide.Export
		if err := g.Find(&found, "? = ANY (orders)", guide.OrderID(2)).Error; err != nil || len(found) != 1 {
			t.Errorf("rows with an order in the array: got %v, %v", found, err)
		}
		// With this collation texts sort as IDs do: see TestParityCollation in integration_test/migrations.
		var collation string
		err = g.Raw(`SELECT collname FROM pg_attribute JOIN pg_collation c ON c.oid = attcollation
			WHERE attrelid = 'exports'::regclass AND attname = 'subject'`).Row().Scan(&collation)
		if err != nil || collation != "C" {
			t.Errorf("expected the collation C, got %s, %v", collation, err)
		}
	})
}

// A role that reads the view needs no right to the schema of its functions.
func TestStorageViewRole(t *testing.T) {
	t.Parallel()
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		docs.One(t, "storage", "tables").Run(t, db)
		docs.One(t, "storage", "view").Run(t, db)
		role := db.NewRole(t, "report", "")
		db.Exec(t, "GRANT SELECT ON orders_readable TO "+role)
		conn := db.Conn(t)
		lines(t, conn, "SET ROLE "+role)
		has(t, "the view", lines(t, conn, "SELECT customer, pg_typeof(id)::text FROM orders_readable"), "brpk4q72xwf2m63l|text")
		if _, err := conn.Exec(t.Context(), "SELECT sortkey.snowflake_time(1)"); err == nil {
			t.Error("expected the role to have no right to the schema, but its call succeeded")
		}
	})
}

// A tap is a connection that records all bytes written to it.
type tap struct {
	net.Conn
	mu   *sync.Mutex
	sent *bytes.Buffer
}

func (c tap) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.sent.Write(b)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// A wire dials connections, and records all bytes that are sent.
type wire struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (w *wire) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return tap{conn, &w.mu, &w.sent}, err
}

func (w *wire) Dial(network, address string) (net.Conn, error) {
	return w.DialContext(context.Background(), network, address)
}

func (w *wire) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return w.DialContext(ctx, network, address)
}

// form returns the names of the forms that were sent since the last call.
func (w *wire) form(forms map[string]string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for name, bytes := range forms {
		if strings.Contains(w.sent.String(), bytes) {
			found = append(found, name)
		}
	}
	w.sent.Reset()
	return strings.Join(found, ",")
}

// Clients send parameters in the forms that the page names.
func TestStorageWire(t *testing.T) {
	forms := map[string]map[string]string{
		"Snowflake": {"8 bytes": "\x0a\xd0\xa0\xb5\x7d\x00\x00\x00", "text": "\x00779300444248735744", "literal": "'779300444248735744'"},
		"Sno":       {"16 bytes": "\x00\x00\x00\x10brpk4q72xwf2m63l", "text": "\x246272706b-3471-3732-7877-66326d36336c", "literal": "'6272706b-3471-3732-7877-66326d36336c'"},
	}
	b, err := idtype.Must(idtype.ParseSnowflake("779300444248735744")).AppendBinary(nil)
	must(t, err)
	forms["Snowflake"]["8 bytes"], forms["Snowflake"]["text"] = "\x00\x00\x00\x08"+string(b), "\x00\x00\x00\x12779300444248735744"
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		check := func(name string, w *wire, row func(query string, arg any) interface{ Scan(...any) error }) {
			t.Helper()
			want := [2]string{"8 bytes", "16 bytes"}
			switch name {
			case "exec", "lib/pq":
				want = [2]string{"text", "text"}
			case "simple protocol":
				want = [2]string{"literal", "literal"}
			}
			var snowflake idtype.Snowflake
			var sno idtype.Sno
			for i, v := range []struct {
				format, query string
				id            any
				read          any
			}{
				{"Snowflake", "SELECT $1::bigint", idtype.Must(idtype.ParseSnowflake("779300444248735744")), &snowflake},
				{"Sno", "SELECT $1::uuid", idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), &sno},
			} {
				w.form(nil)
				if err := row(v.query, v.id).Scan(v.read); err != nil {
					t.Fatalf("%s, %s: %v", name, v.format, err)
				}
				if got := w.form(forms[v.format]); got != want[i] {
					t.Errorf("%s, %s: expected %s as in the page, got %q", name, v.format, want[i], got)
				}
			}
			if snowflake != 779300444248735744 || sno.String() != "brpk4q72xwf2m63l" {
				t.Errorf("%s: got %v and %v", name, snowflake, sno)
			}
		}
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			w := &wire{}
			conn := db.Conn(t, pgtest.Codec, pgtest.Mode(mode), pgtest.Config(func(c *pgx.ConnConfig) { c.DialFunc = w.DialContext }))
			check(mode.String(), w, func(query string, arg any) interface{ Scan(...any) error } {
				return conn.QueryRow(t.Context(), query, arg)
			})
		})
		connector, err := pq.NewConnector(db.URL)
		must(t, err)
		w := &wire{}
		connector.Dialer(w)
		pool := sql.OpenDB(connector)
		defer pool.Close()
		check("lib/pq", w, func(query string, arg any) interface{ Scan(...any) error } {
			return pool.QueryRowContext(t.Context(), query, arg)
		})
	})
}
