package shop

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/idtest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// The IDs of a golden file are the same in every run.
func TestGolden(t *testing.T) {
	db := open(t, idtest.Sequence[idtype.Snowflake]())
	orders := []Order{{Total: 4200}, {Total: 990}}
	if err := db.Create(&orders).Error; err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(orders)
	const want = `[{"id":"ord_1","total":4200},{"id":"ord_2","total":990}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// open opens an empty database in memory.
func open(t *testing.T, ids idtype.Generator[idtype.Snowflake]) *gorm.DB {
	t.Helper()
	db, err := Open(sqlite.Open(":memory:"), ids)
	if err == nil {
		err = db.AutoMigrate(&Order{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// The test moves the clock, and IDs have its time.
func TestOrdersOf(t *testing.T) {
	monday := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	clock := idtest.NewClock(monday.Add(23 * time.Hour))
	ids, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Clock: clock.Now}})
	if err != nil {
		t.Fatal(err)
	}
	db := open(t, ids)
	for total := range int64(3) { // at 23:00 on Monday, and at 00:00 and 01:00 on Tuesday
		if err := db.Create(&Order{Total: total}).Error; err != nil {
			t.Fatal(err)
		}
		clock.Add(time.Hour)
	}
	orders, err := OrdersOf(db, monday.AddDate(0, 0, 1))
	if err != nil || len(orders) != 2 || orders[0].Total != 1 {
		t.Errorf("got %v, %v, want the last two orders", orders, err)
	}
}

// In a bubble of testing/synctest, a generator follows the bubble's time. With a Clock it
// shares no sequence with generators outside of the bubble. A bubble begins in the year 2000,
// and Snowflakes in 2021.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)))
		ids, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Clock: time.Now}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour) // takes no real time
		id, err := ids.Next()
		if created := idtype.DefaultSnowflakeLayout().Time(id); err != nil || created.Day() != 3 {
			t.Errorf("created %v, %v, want the time of the bubble, %v", created, err, time.Now())
		}
	})
}

// A store in memory takes the place of Postgres. Two instances share it here, so they claim
// different node numbers.
func TestClaims(t *testing.T) {
	store := new(leasetest.Store)
	claimed := map[int]bool{}
	for range 2 {
		ids, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer ids.Close()
		claimed[ids.Keeper().Number()] = true
	}
	if len(claimed) != 2 {
		t.Errorf("claimed %v, want two numbers", claimed)
	}
}

// With Postgres, each test rolls its transaction back.
func TestInsert(t *testing.T) {
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		t.Skip("set DATABASE_URL to a Postgres server")
	}
	pool, err := Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "CREATE TEMP TABLE orders (id bigint PRIMARY KEY, total bigint NOT NULL) ON COMMIT DROP"); err != nil {
		t.Fatal(err)
	}
	if err := Insert(t.Context(), tx, idtest.Sequence[idtype.SnowflakeOf[Order]](), []Order{{Total: 4200}, {Total: 990}}); err != nil {
		t.Fatal(err)
	}
	rows, _ := tx.Query(t.Context(), "SELECT id, total FROM orders WHERE id = any($1)", []idtype.SnowflakeOf[Order]{2, 3})
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Order])
	if err != nil || len(orders) != 1 || orders[0] != (Order{ID: 2, Total: 990}) {
		t.Errorf("got %v, %v, want the order ord_2", orders, err)
	}
	if _, err := idtype.Parse[idtype.SnowflakeOf[Order]]("2"); !errors.Is(err, idtype.ErrSyntax) {
		t.Errorf("text without the prefix: got %v, want %v", err, idtype.ErrSyntax)
	}
}
