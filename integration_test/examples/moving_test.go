package examples

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/examples/moving/after"
	"github.com/sortkey/sortkey/examples/moving/before"
	"github.com/sortkey/sortkey/examples/moving/bigint"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

// These tests follow the steps of docs/moving-a-model.md and docs/rekey.md in order.

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
		wantRows(t, conn, "look", "customers id integer  nextval('customers_id_seq'::regclass)", "orders customer_id integer  <nil>", "orders id bigint a <nil>")
		docs.One(t, "moving-a-model", "integer").Run(t, db)
		docs.One(t, "moving-a-model", "identity").Run(t, db)
		wantRows(t, conn, "look", "customers id bigint  nextval('customers_id_seq'::regclass)", "orders customer_id bigint  <nil>", "orders id bigint d <nil>")

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
		window := gormplugin.CreatedBetween("", began.Add(-time.Minute), time.Time{})
		must(t, new.Model(&bigint.Customer{}).Scopes(window).Pluck("name", &names).Error)
		if !slices.Equal(names, []string{"Bob"}) {
			t.Errorf("customers in the time window: %q", names)
		}

		// A new table refers to old and new rows.
		docs.One(t, "moving-a-model", "refunds").Run(t, db)
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

		docs.One(t, "moving-a-model", "cleanup").Run(t, db)
		wantRows(t, conn, "look", "customers id bigint  <nil>", "orders customer_id bigint  <nil>", "orders id bigint  <nil>")
		must(t, new.Create(&bigint.Customer{Name: "Dora", Orders: []bigint.Order{{Total: 6}}}).Error)
		if err := old.Create(&before.Customer{Name: "Ed"}).Error; err == nil {
			t.Error("the old version still creates rows after the cleanup")
		}
	})
}

// TestMovingByAutoMigrate moves the tables of gorm.Model by AutoMigrate alone.
func TestMovingByAutoMigrate(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		old := db.GORM(t, nil)
		must(t, old.AutoMigrate(&before.Customer{}, &before.Order{}))
		conn := db.Conn(t)
		columns := []string{"customers id bigint  nextval('customers_id_seq'::regclass)", "orders customer_id bigint  <nil>", "orders id bigint  nextval('orders_id_seq'::regclass)"}
		wantRows(t, conn, "look", columns...)
		must(t, old.Create(&before.Customer{Name: "Ada", Orders: []before.Order{{}}}).Error)

		new := db.GORM(t, nil)
		must(t, bigint.Open(new, 1))
		must(t, new.AutoMigrate(&bigint.Customer{}, &bigint.Order{}, &bigint.Refund{}))
		wantRows(t, conn, "look", columns...)
		bob := bigint.Customer{Name: "Bob", Orders: []bigint.Order{{}}}
		must(t, new.Create(&bob).Error)
		must(t, new.Create(&bigint.Refund{OrderID: bob.Orders[0].ID}).Error)
		must(t, old.Create(&before.Customer{Name: "Cora", Orders: []before.Order{{}}}).Error)
	})
}

// TestReplacingKeys replaces the keys of customers while the old and the new version of a
// program run side by side, as docs/rekey.md describes.
func TestReplacingKeys(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		must(t, migrations.Up(t.Context(), pool, migrations.Config{}))
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

		text, err := os.ReadFile("../../examples/moving/customers.json")
		must(t, err)
		var spec rekey.Spec
		must(t, json.Unmarshal(text, &spec))
		spec.References = nil // this database has no table logins
		must(t, rekey.Expand(t.Context(), pool, spec, rekey.Options{}))
		must(t, old.Create(&before.Customer{Name: "1500", Orders: []before.Order{{Total: 1500}}}).Error)
		must(t, rekey.Backfill(t.Context(), pool, rekey.Options{}))
		must(t, rekey.Validate(t.Context(), pool, rekey.Options{}))

		statements := pgtest.NewRecorder()
		changed := db.GORM(t, &gorm.Config{Logger: statements}, pgtest.Codec, pgtest.Config(func(c *pgx.ConnConfig) {
			c.RuntimeParams["search_path"] = "rekeyed,public"
		}))
		must(t, after.Open(changed, idtype.SnoPartitionFrom(9), 1))
		eve := after.Customer{Name: "1501", Orders: []after.Order{{Total: 1501}}}
		must(t, changed.Create(&eve).Error)
		// Each version finds the rows of the other one, and changes them.
		var seen before.Customer
		must(t, old.Preload("Orders").First(&seen, "name = '1501'").Error)
		if len(seen.Orders) != 1 || seen.Orders[0].CustomerID != seen.ID || seen.ID <= customers[1499].ID {
			t.Errorf("the old version found %+v", seen)
		}
		seen.Orders = nil
		must(t, old.Model(&before.Order{}).Where("customer_id = ?", seen.ID).Update("customer_id", customers[0].ID).Error)
		must(t, changed.Model(&after.Order{}).Where("total = 1501").Update("customer_id", eve.ID).Error)
		must(t, rekey.Contract(t.Context(), pool, rekey.Options{}))
		must(t, rekey.Cleanup(t.Context(), pool, rekey.Options{}))

		// The programs of the new version continue, and AutoMigrate has nothing to change.
		must(t, changed.Create(&after.Customer{Name: "1502", Orders: []after.Order{{Total: 1502}}}).Error)
		must(t, changed.AutoMigrate(&after.Customer{}, &after.Order{}))
		for _, s := range append(statements.With("ALTER"), statements.With("CREATE")...) {
			t.Errorf("AutoMigrate issued %s", s)
		}
		var found []after.Customer
		must(t, changed.Unscoped().Preload("Orders").Order("id").Find(&found).Error)
		if len(found) != len(customers)+3 {
			t.Fatalf("found %d customers, want %d", len(found), len(customers)+3)
		}
		for i, c := range found {
			if i < len(customers) {
				if i > 0 && c.CreatedAt.Before(found[i-1].CreatedAt) {
					t.Fatalf("customer %+v sorts before %+v", found[i-1], c)
				}
				if d := c.CreatedAt.Sub(c.ID.Time()).Abs(); d > 4*time.Millisecond {
					t.Fatalf("the time of %v differs by %v from created_at %v", c.ID, d, c.CreatedAt)
				}
			}
			if c.ID.Untyped().Meta() != 'c' || len(c.Orders) != 1 || fmt.Sprint(c.Orders[0].Total) != c.Name || c.Orders[0].CustomerID != c.ID {
				t.Fatalf("customer %+v lost its order", c)
			}
		}
		unknown := idtype.SnoOf[after.Customer](idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")).WithMeta('c'))
		if err := changed.Create(&after.Order{CustomerID: unknown}).Error; err == nil || !strings.Contains(err.Error(), "fk_customers_orders") {
			t.Errorf("create an order with an unknown customer: got %v", err)
		}
		wantRows(t, db.Conn(t), "references", "orders fk_customers_orders FOREIGN KEY (customer_id) REFERENCES customers(id)")
	})
}

// wantRows compares the result of a query of docs/moving-a-model.md, sorted, with want.
func wantRows(t *testing.T, conn *pgx.Conn, name string, want ...string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), docs.One(t, "moving-a-model", name).SQL)
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
