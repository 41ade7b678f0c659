package guide

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// Install is what a deploy runs before the new processes start.
func Install(ctx context.Context, db *sql.DB) error {
	return migrations.Up(ctx, db, migrations.Config{})
}

// Verify is what each process calls when it starts.
func Verify(ctx context.Context, db *sql.DB) error {
	return migrations.Check(ctx, db, migrations.Config{})
}

// ShopKeys is the Config of an installation with a schema, an epoch and a base
// clock of its own. All that install, check or mint take it from here.
var ShopKeys = migrations.Config{
	Schema:      "keys",
	Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
	SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
}

// WriteFiles writes the migrations beside those of the program, as in
// WriteFiles("db"), for the tool that runs them all. Call it again after an
// update of this package: migrations that are there stay as they are.
func WriteFiles(folder string) error {
	goose, err := migrations.Goose(migrations.Config{}) // or Tern, or GolangMigrate
	if err != nil {
		return err
	}
	if err := migrations.WriteNew(filepath.Join(folder, "sortkey"), goose); err != nil {
		return err
	}
	psql, err := migrations.SQL(migrations.Config{}) // for none of them
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "sortkey.sql"), []byte(psql), 0o644)
}

// TwitterLayout reads what Twitter minted, and bwmarrin/snowflake by default.
// Node 37 there is datacenter 1, worker 5 here.
var TwitterLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1288834974657), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}

// NodeLayout is the same with the node as one number, 0 to 1023.
var NodeLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1288834974657), WorkerBits: 10, SequenceBits: 12}

// DiscordLayout has Discord's worker as its datacenter, and the process as its
// worker.
var DiscordLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1420070400000), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}

// InstagramLayout has 8192 logical shards, and 1024 IDs a millisecond in each.
var InstagramLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1314220021721), DatacenterBits: 13, SequenceBits: 10}

// ContinueNode mints where another library did, with the node number that it had.
// It begins after the largest ID in the table.
func ContinueNode(newest idtype.Snowflake, node int) (*idtype.SnowflakeGenerator, error) {
	return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{
		Layout: NodeLayout, Worker: node,
		Options: idtype.Options{NotBefore: NodeLayout.Time(newest)},
	})
}
