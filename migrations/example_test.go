package migrations_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// open opens the database with the program's driver.
func open() *sql.DB {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// Up is idempotent, and several processes can call it at once.
func ExampleUp() {
	ctx := context.Background()
	db := open()
	defer db.Close()
	if err := migrations.Up(ctx, db, migrations.Config{}); err != nil {
		log.Fatal(err)
	}
	var id int64
	var created time.Time
	err := db.QueryRowContext(ctx, "SELECT id, sortkey.snowflake_time(id) FROM sortkey.next_snowflake(1023) id").Scan(&id, &created)
	fmt.Println(id, created, err)
}

// Choose an epoch, a base clock for SnowflakeSI, and a schema. Use the same Config
// in all processes, and with all functions.
func ExampleConfig() {
	config := migrations.Config{
		Schema:      "ids",
		Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12},
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
	}
	fmt.Println(config.Validate())

	config.Schema = "My IDs"
	fmt.Println(config.Validate() != nil)
	// Output:
	// <nil>
	// true
}

// Check the database when a process starts.
func ExampleCheck() {
	db := open()
	defer db.Close()
	err := migrations.Check(context.Background(), db, migrations.Config{})
	switch {
	case errors.Is(err, migrations.ErrNotInstalled), errors.Is(err, migrations.ErrOutdated):
		log.Fatal("run the migrations first: ", err)
	case err != nil:
		log.Fatal(err)
	}
	if err := migrations.CheckDefaults(context.Background(), db, migrations.Config{}); err != nil {
		log.Print("warning: ", err)
	}
}

// Get the files for your own migration tool, here goose.
func ExampleGoose() {
	files, err := migrations.Goose(migrations.Config{})
	if err != nil {
		log.Fatal(err)
	}
	names, err := fs.Glob(files, "*.sql")
	fmt.Println(names[:2], err)
	// Output: [00001_schema.sql 00002_nodes.sql] <nil>
}

// Keep the files in the project. After an upgrade of this package, the same code
// adds the files of new migrations.
func ExampleWriteNew() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)

	files, err := migrations.GolangMigrate(migrations.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := migrations.WriteNew(folder, files); err != nil {
		log.Fatal(err)
	}
	written, err := os.ReadDir(folder)
	for _, file := range written[:2] {
		fmt.Println(file.Name())
	}
	fmt.Println(err)
	// Output:
	// 000001_schema.down.sql
	// 000001_schema.up.sql
	// <nil>
}

// Get one file for psql.
func ExampleSQL() {
	text, err := migrations.SQL(migrations.Config{Schema: "ids"})
	fmt.Println(strings.Contains(text, "CREATE FUNCTION ids.next_snowflake()"), err)
	// Output: true <nil>
}

func ExampleList() {
	list, err := migrations.List(migrations.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range list[:2] { // the first two, in order
		fmt.Println(m.Version, m.Name, strings.Contains(m.Up, "CREATE"), strings.Contains(m.Down, "DROP"))
	}
	// Output:
	// 1 schema true true
	// 2 nodes true true
}

// Run the maintenance every hour or so, in one process or several.
func ExampleMaintainPartitions() {
	db := open()
	defer db.Close()
	steps, err := migrations.MaintainPartitions(context.Background(), db, migrations.Config{}, migrations.PartitionOptions{})
	for _, step := range steps {
		fmt.Println(step.Action, step.Partition, step.Err)
	}
	if err != nil {
		log.Print(err)
	}
}
