package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/examples/moving/before"
	"github.com/sortkey/sortkey/examples/moving/between"
	"github.com/sortkey/sortkey/examples/moving/bigint"
	"github.com/sortkey/sortkey/examples/moving/uuid"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// These tests follow the steps of docs/moving-a-model.md in order.

// TestMovingToBigint checks that rows and foreign keys stay when the keys of new
// rows come from a generator instead of a sequence.
func TestMovingToBigint(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		// A serial key and an identity key, the two kinds on the page.
		db.Exec(t, `CREATE TABLE customers (id serial PRIMARY KEY, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name text);
			CREATE INDEX idx_customers_deleted_at ON customers (deleted_at);
			CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
				customer_id integer CONSTRAINT fk_customers_orders REFERENCES customers, total bigint)`)
		old := db.GORM(t, nil)
		ada := before.Customer{Name: "Ada", Orders: []before.Order{{Total: 1}, {Total: 2}}}
		must(t, old.Create(&ada).Error)

		conn := db.Conn(t)
		wantRows(t, conn, "look.sql", "customers id integer  nextval('customers_id_seq'::regclass)", "orders customer_id integer  <nil>", "orders id bigint a <nil>")
		runFile(t, conn, "integer.sql")
		runFile(t, conn, "identity.sql")
		wantRows(t, conn, "look.sql", "customers id bigint  nextval('customers_id_seq'::regclass)", "orders customer_id bigint  <nil>", "orders id bigint d <nil>")

		old = db.GORM(t, nil) // the old connections have cached plans for the old types

		// AutoMigrate of the new version changes nothing, and the new version reads all old rows.
		statements := pgtest.NewRecorder()
		new := db.GORM(t, &gorm.Config{Logger: statements}, pgtest.Codec)
		must(t, bigint.Open(new, 1))
		must(t, new.AutoMigrate(&bigint.Customer{}, &bigint.Order{}))
		for _, s := range append(statements.With("ALTER"), statements.With("CREATE")...) {
			t.Errorf("AutoMigrate issued %s", s)
		}
		var found bigint.Customer
		must(t, new.Preload("Orders").First(&found).Error)
		if found.Name != "Ada" || found.ID.Int64() != int64(ada.ID) || len(found.Orders) != 2 || found.Orders[1].CustomerID != found.ID {
			t.Errorf("found %+v", found)
		}

		// Both versions write, and read each other's rows.
		began := time.Now()
		bob := bigint.Customer{Name: "Bob", Orders: []bigint.Order{{Total: 3}}}
		must(t, new.Create(&bob).Error)
		must(t, new.Create(&bigint.Order{CustomerID: found.ID, Total: 4}).Error)
		must(t, old.Create(&before.Order{CustomerID: uint(bob.ID), Total: 5}).Error)
		must(t, old.Create(&before.Customer{Name: "Cora"}).Error)
		var readByOld []before.Customer
		must(t, old.Preload("Orders").Order("id").Find(&readByOld).Error)
		var readByNew []bigint.Customer
		must(t, new.Preload("Orders").Scopes(gormplugin.PageAfter("", idtype.Snowflake(0))).Find(&readByNew).Error)
		var byOld, byNew []string
		for _, c := range readByOld {
			byOld = append(byOld, fmt.Sprint(c.ID, c.Name, c.Orders))
		}
		for _, c := range readByNew {
			byNew = append(byNew, fmt.Sprint(c.ID.Int64(), c.Name, c.Orders))
		}
		if len(byOld) != 3 || !slices.Equal(byOld, byNew) || readByNew[0].Name != "Ada" || readByNew[2].Name != "Bob" || len(readByNew[2].Orders) != 2 {
			t.Errorf("the old version reads %q, the new one %q", byOld, byNew)
		}
		var names []string
		window := gormplugin.MintedBetween(idtype.DefaultSnowflakeLayout(), "", began.Add(-time.Minute), time.Time{})
		must(t, new.Model(&bigint.Customer{}).Scopes(window).Pluck("name", &names).Error)
		if !slices.Equal(names, []string{"Bob"}) {
			t.Errorf("customers in the time window: %q", names)
		}

		// A new table refers to old and new rows.
		runFile(t, conn, "refunds.sql")
		must(t, new.AutoMigrate(&bigint.Refund{}))
		for _, s := range statements.With("ALTER") {
			// AutoMigrate adds the foreign keys a second time, under its own names.
			if !strings.Contains(s, "FOREIGN KEY") {
				t.Errorf("AutoMigrate issued %s", s)
			}
		}
		first := bigint.Refund{OrderID: idtype.SnowflakeOf[bigint.Order](ada.Orders[0].ID)}
		must(t, new.Create(&first).Error)
		second := bigint.Refund{OrderID: bob.Orders[0].ID, ReplacesID: &first.ID}
		must(t, new.Create(&second).Error)
		var refund bigint.Refund
		must(t, new.Joins("Order").Joins("Replaces").First(&refund, second.ID).Error)
		if refund.Order.Total != 3 || refund.Replaces == nil || refund.Replaces.ID != first.ID {
			t.Errorf("found %+v", refund)
		}

		runFile(t, conn, "cleanup.sql")
		wantRows(t, conn, "look.sql", "customers id bigint  <nil>", "orders customer_id bigint  <nil>", "orders id bigint  <nil>")
		must(t, new.Create(&bigint.Customer{Name: "Dora", Orders: []bigint.Order{{Total: 6}}}).Error)
		if err := old.Create(&before.Customer{Name: "Ed"}).Error; err == nil {
			t.Error("the old version still creates rows after the cleanup")
		}
	})
}

// TestMovingByAutoMigrate moves the tables of gorm.Model by AutoMigrate alone.
func TestMovingByAutoMigrate(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		old := db.GORM(t, nil)
		must(t, old.AutoMigrate(&before.Customer{}, &before.Order{}))
		conn := db.Conn(t)
		columns := []string{"customers id bigint  nextval('customers_id_seq'::regclass)", "orders customer_id bigint  <nil>", "orders id bigint  nextval('orders_id_seq'::regclass)"}
		wantRows(t, conn, "look.sql", columns...)
		must(t, old.Create(&before.Customer{Name: "Ada", Orders: []before.Order{{}}}).Error)

		new := db.GORM(t, nil)
		must(t, bigint.Open(new, 1))
		must(t, new.AutoMigrate(&bigint.Customer{}, &bigint.Order{}, &bigint.Refund{}))
		wantRows(t, conn, "look.sql", columns...)
		bob := bigint.Customer{Name: "Bob", Orders: []bigint.Order{{}}}
		must(t, new.Create(&bob).Error)
		must(t, new.Create(&bigint.Refund{OrderID: bob.Orders[0].ID}).Error)
		must(t, old.Create(&before.Customer{Name: "Cora", Orders: []before.Order{{}}}).Error)
	})
}

// TestMovingToUUID gives customers a uuid key beside the old one, and moves their
// orders to it.
func TestMovingToUUID(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		old := db.GORM(t, &gorm.Config{Logger: logger.Discard})
		must(t, old.AutoMigrate(&before.Customer{}, &before.Order{}))
		began := time.Now().Truncate(time.Second).Add(-24 * time.Hour)
		customers := make([]before.Customer, 1500)
		for i := range customers {
			// Two customers per second, in an order that differs from their IDs.
			customers[i].CreatedAt = began.Add(time.Duration((i*7%1500)/2) * time.Second)
			customers[i].Name = fmt.Sprint(i)
			customers[i].Orders = []before.Order{{Total: int64(i)}}
		}
		must(t, old.CreateInBatches(&customers, 500).Error)
		must(t, old.Delete(&customers[3]).Error)

		conn := db.Conn(t)
		runFile(t, conn, "add.sql")
		gen, err := idtype.NewSnoGenerator(idtype.SnoConfig{})
		must(t, err)
		between.CustomerIDs = idtype.SnoGeneratorOf[between.Customer](gen)
		both := db.GORM(t, &gorm.Config{Logger: logger.Discard}, pgtest.Codec)
		late := between.Customer{Name: "late"}
		must(t, both.Create(&late).Error)
		if late.ID == 0 || late.NewID.ID.Meta() != 'c' {
			t.Fatalf("created %+v", late)
		}

		wantRows(t, conn, "references.sql", "orders fk_customers_orders FOREIGN KEY (customer_id) REFERENCES customers(id)")

		// Before the backfill, the switch and the check fail and change nothing.
		if err := tryFile(t, conn, "switch.sql"); err == nil || !strings.Contains(err.Error(), "null") {
			t.Errorf("switch before the backfill: got %v", err)
		}
		if err := tryFile(t, conn, "check.sql"); err == nil || !strings.Contains(err.Error(), "is violated by some row") {
			t.Errorf("check before the backfill: got %v", err)
		}
		db.Exec(t, "ALTER TABLE customers DROP CONSTRAINT customers_new_id_not_null")
		must(t, old.Model(&before.Order{}).Where("customer_id = ?", late.ID).Count(new(int64)).Error)

		must(t, between.Backfill(both))
		must(t, between.Backfill(both)) // a second call finds no rows
		runFile(t, conn, "fill.sql")
		var filled int64
		must(t, both.Table("orders").Where("new_customer_id IS NOT NULL").Count(&filled).Error)
		if filled != int64(len(customers)) {
			t.Errorf("orders with the new key of their customer: %d, want %d", filled, len(customers))
		}
		// Save of a customer that was read before the backfill keeps the new key.
		unaware := between.Customer{Name: customers[0].Name}
		unaware.Model = customers[0].Model
		must(t, both.Save(&unaware).Error)
		must(t, old.Create(&before.Order{CustomerID: customers[0].ID, Total: 0}).Error)
		must(t, both.Create(&between.Customer{Name: "later"}).Error)
		type key struct {
			NewID     idtype.Sno
			CreatedAt time.Time
		}
		var keys []key
		must(t, both.Unscoped().Model(&between.Customer{}).Order("new_id").Find(&keys).Error)
		if len(keys) != len(customers)+2 {
			t.Errorf("%d customers, want %d", len(keys), len(customers)+2)
		}
		for i, k := range keys {
			if i > 0 && k.CreatedAt.Before(keys[i-1].CreatedAt) || k.NewID.Meta() != 'c' {
				t.Fatalf("key %+v sorts before %+v", keys[i-1], k)
			}
			if d := k.CreatedAt.Sub(k.NewID.Time()).Abs(); i < len(customers) && d > 4*time.Millisecond {
				t.Fatalf("the time of %v differs by %v from created_at %v", k.NewID, d, k.CreatedAt)
			}
		}

		runFile(t, conn, "check.sql")
		var scans []string
		locked := db.Conn(t, pgtest.Config(func(c *pgx.ConnConfig) {
			c.RuntimeParams["client_min_messages"] = "debug1"
			c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
				if scan.MatchString(n.Message) {
					scans = append(scans, n.Message)
				}
			}
		}))
		// No statement scans a table while it is locked.
		b, err := os.ReadFile("../../examples/moving/switch.sql")
		must(t, err)
		_, update, _ := strings.Cut(string(b), "UPDATE ")
		update, _, _ = strings.Cut(update, ";")
		rows, err := conn.Query(t.Context(), "EXPLAIN UPDATE "+update)
		must(t, err)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		if strings.Contains(strings.Join(plan, "\n"), "Seq Scan on orders") {
			t.Errorf("the switch scans orders:\n%s", strings.Join(plan, "\n"))
		}
		runFile(t, locked, "switch.sql")
		if want := []string{
			`existing constraints on column "customers.id" are sufficient to prove that it does not contain nulls`,
			`validating foreign key constraint "fk_customers_orders"`, // after the COMMIT
		}; !slices.Equal(scans, want) {
			t.Errorf("scans during the switch: %q, want %q", scans, want)
		}
		statements := pgtest.NewRecorder()
		changed := db.GORM(t, &gorm.Config{Logger: statements}, pgtest.Codec)
		must(t, uuid.Open(changed, idtype.SnoPartitionFrom(9), 1))
		must(t, changed.AutoMigrate(&uuid.Customer{}, &uuid.Order{}))
		for _, s := range append(statements.With("ALTER"), statements.With("CREATE")...) {
			t.Errorf("AutoMigrate issued %s", s)
		}
		var found []uuid.Customer
		must(t, changed.Unscoped().Preload("Orders").Order("id").Find(&found).Error)
		if len(found) != len(keys) {
			t.Fatalf("found %d customers, want %d", len(found), len(keys))
		}
		for i, c := range found {
			if c.ID.Untyped() != keys[i].NewID {
				t.Fatalf("customer %v has key %v, want %v", c.Name, c.ID, keys[i].NewID)
			}
			if strings.HasPrefix(c.Name, "late") {
				continue
			}
			if c.Name == "0" && len(c.Orders) == 2 {
				c.Orders = c.Orders[:1] // the order created after the backfill
			}
			if len(c.Orders) != 1 || fmt.Sprint(c.Orders[0].Total) != c.Name || c.Orders[0].CustomerID != c.ID {
				t.Fatalf("customer %+v lost its order", c)
			}
		}
		create := func(name string) {
			t.Helper()
			changed := db.GORM(t, &gorm.Config{Logger: logger.Discard}, pgtest.Codec)
			must(t, uuid.Open(changed, idtype.SnoPartitionFrom(10), 2))
			eve := uuid.Customer{Name: name, Orders: []uuid.Order{{Total: 7}}}
			must(t, changed.Create(&eve).Error)
			var back uuid.Customer
			must(t, changed.Preload("Orders").First(&back, eve.ID).Error)
			if back.ID.Meta() != 'c' || !reflect.DeepEqual(back.Orders, eve.Orders) {
				t.Errorf("created %+v, found %+v", eve, back)
			}
		}
		create("Eve")
		unknown := idtype.SnoOf[uuid.Customer](idtype.MustParseSno("brpk4q72xwf2m63l").WithMeta('c'))
		if err := changed.Create(&uuid.Order{CustomerID: unknown}).Error; err == nil || !strings.Contains(err.Error(), "fk_customers_orders") {
			t.Errorf("create an order with an unknown customer: got %v", err)
		}
		runFile(t, conn, "remove.sql")
		create("Fay")
		wantRows(t, conn, "references.sql", "orders fk_customers_orders FOREIGN KEY (customer_id) REFERENCES customers(id)")
	})
}

// scan matches the debug messages of statements that scan or rewrite a table, or
// that skip the scan because of a constraint.
var scan = regexp.MustCompile("^(verifying|rewriting|validating|existing constraints)")

// TestMovingFromUUID moves uuid keys that the program generated, so the old column
// has no default.
func TestMovingFromUUID(t *testing.T) { movingFrom(t, "uuid", "uuid DEFAULT gen_random_uuid()") }

// TestMovingFromIdentity moves an identity key: the column keeps its NOT NULL until
// the switch drops the identity.
func TestMovingFromIdentity(t *testing.T) {
	movingFrom(t, "bigint", "bigint GENERATED ALWAYS AS IDENTITY")
}

func movingFrom(t *testing.T, column, key string) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, fmt.Sprintf(`CREATE TABLE customers (id %s PRIMARY KEY, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name text);
			CREATE TABLE orders (id bigint PRIMARY KEY, customer_id %s NOT NULL CONSTRAINT fk_customers_orders REFERENCES customers, total bigint);
			INSERT INTO customers (name) VALUES ('Ada');
			INSERT INTO orders SELECT 1, id, 7 FROM customers`, key, column))
		if column == "uuid" {
			db.Exec(t, "ALTER TABLE customers ALTER COLUMN id DROP DEFAULT")
		}
		conn := db.Conn(t)
		runFile(t, conn, "add.sql")
		id := idtype.MustParseSno("brpk4q72xwf2m63l").WithMeta('c')
		_, err := conn.Exec(t.Context(), "UPDATE customers SET new_id = $1", id.UUID().String())
		must(t, err)
		runFile(t, conn, "check.sql")
		runFile(t, conn, "switch.sql")
		g := db.GORM(t, nil, pgtest.Codec)
		must(t, uuid.Open(g, idtype.SnoPartitionFrom(9), 1))
		must(t, g.Create(&uuid.Customer{Name: "Bob", Orders: []uuid.Order{{Total: 8}}}).Error)
		var found uuid.Customer
		must(t, g.Preload("Orders").First(&found, id).Error)
		if found.Name != "Ada" || len(found.Orders) != 1 || found.Orders[0].Total != 7 {
			t.Errorf("found %+v", found)
		}
	})
}

// runFile runs the statements of a file one at a time on one connection, as psql
// does.
func runFile(t *testing.T, conn *pgx.Conn, name string) {
	t.Helper()
	must(t, tryFile(t, conn, name))
}

func tryFile(t *testing.T, conn *pgx.Conn, name string) error {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../examples/moving", name))
	must(t, err)
	for _, statement := range strings.Split(string(b), ";") {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			_, rollback := conn.Exec(t.Context(), "ROLLBACK")
			must(t, rollback)
			return fmt.Errorf("%s: %w", strings.TrimSpace(statement), err)
		}
	}
	return nil
}

// wantRows compares the result of a file's query, sorted, with want.
func wantRows(t *testing.T, conn *pgx.Conn, name string, want ...string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../examples/moving", name))
	must(t, err)
	rows, err := conn.Query(t.Context(), string(b))
	must(t, err)
	got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		return strings.TrimSpace(fmt.Sprintln(values...)), err
	})
	must(t, err)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s returned %q, want %q", name, got, want)
	}
}

// must is pgtest.Must.
var must = pgtest.Must
