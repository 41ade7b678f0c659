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

// open stands for sql.Open with the driver that the program uses.
func open() *sql.DB {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// It is done as often as one likes, and by several processes at once.
func ExampleUp() {
	ctx := context.Background()
	db := open()
	defer db.Close()
	if err := migrations.Up(ctx, db, migrations.Config{}); err != nil {
		log.Fatal(err)
	}
	var id int64
	var minted time.Time
	err := db.QueryRowContext(ctx, "SELECT id, sortkey.snowflake_time(id) FROM sortkey.next_snowflake(31, 31) id").Scan(&id, &minted)
	fmt.Println(id, minted, err)
}

// An epoch of one's own, a base clock for SnowflakeSI, and another schema: the
// same Config in all processes, and with all functions.
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

// A process that starts looks whether the database is fit for it.
func ExampleCheck() {
	db := open()
	defer db.Close()
	err := migrations.Check(context.Background(), db, migrations.Config{})
	switch {
	case errors.Is(err, migrations.ErrNotInstalled), errors.Is(err, migrations.ErrOutdated):
		log.Fatal("run the migrations first: ", err)
	case errors.Is(err, migrations.ErrUnreservedNode):
		log.Print(err) // nothing else is wrong, so a process may start
	case err != nil:
		log.Fatal(err)
	}
}

// Files for a migration tool of one's own, here goose.
func ExampleGoose() {
	files, err := migrations.Goose(migrations.Config{})
	if err != nil {
		log.Fatal(err)
	}
	names, err := fs.Glob(files, "*.sql")
	fmt.Println(names[:2], err)
	// Output: [00001_schema.sql 00002_snowflake.sql] <nil>
}

// The files that a project keeps beside its own. When there is a version with
// more migrations, the same adds these.
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

// For psql, in one file.
func ExampleSQL() {
	text, err := migrations.SQL(migrations.Config{Schema: "ids"})
	fmt.Println(strings.Contains(text, "CREATE FUNCTION ids.next_snowflake("), err)
	// Output: true <nil>
}

func ExampleList() {
	list, err := migrations.List(migrations.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range list[:2] { // and more, in this order
		fmt.Println(m.Version, m.Name, strings.Contains(m.Up, "CREATE"), strings.Contains(m.Down, "DROP"))
	}
	// Output:
	// 1 schema true true
	// 2 snowflake true true
}

// Every hour or so, from one process or several.
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
