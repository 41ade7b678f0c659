package guide

import (
	"context"
	"database/sql"
	"log/slog"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// Install applies the migrations. A deploy calls it before the new processes
// start.
func Install(ctx context.Context, db *sql.DB) error {
	return migrations.Up(ctx, db, migrations.Config{})
}

// Verify checks the database. Each process calls it when it starts.
func Verify(ctx context.Context, db *sql.DB) error {
	if err := migrations.Check(ctx, db, migrations.Config{}); err != nil {
		return err
	}
	if err := migrations.CheckDefaults(ctx, db, migrations.Config{}); err != nil {
		slog.Warn("defaults of columns need attention", "error", err)
	}
	return nil
}

// ShopKeys is the Config of an installation with its own schema, epoch and base
// clock. Migrations, checks and generators all use this value.
var ShopKeys = migrations.Config{
	Schema:      "keys",
	Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
	SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
}

// TwitterLayout is the layout of Twitter, and the default of bwmarrin/snowflake.
// Node 37 there is datacenter 1, worker 5 here.
var TwitterLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1288834974657), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}

// NodeLayout is TwitterLayout with the node as one number, 0 to 1023.
var NodeLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1288834974657), WorkerBits: 10, SequenceBits: 12}

// DiscordLayout is the layout of Discord: its worker is the datacenter here, its
// process the worker.
var DiscordLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1420070400000), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12}

// InstagramLayout has 8192 logical shards, each with 1024 IDs per millisecond.
var InstagramLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(1314220021721), DatacenterBits: 13, SequenceBits: 10}

// MastodonLayout reads the times of Mastodon. Its last 16 bits aren't a counter.
var MastodonLayout = idtype.SnowflakeLayout{Epoch: time.UnixMilli(0), SequenceBits: 16}

// A Tweet has old keys from bwmarrin/snowflake, and new ones from this library.
type Tweet struct {
	ID   idtype.SnowflakeOf[Tweet]
	Text string
}

// IDLayout returns the layout of the keys.
func (Tweet) IDLayout() idtype.SnowflakeLayout { return NodeLayout }

// ContinueNode returns a generator that takes over a node number from another
// library. It begins after newest, the largest ID in the table.
func ContinueNode(newest idtype.Snowflake, node int) (*idtype.SnowflakeGenerator, error) {
	return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{
		Layout: NodeLayout, Worker: node,
		Options: idtype.Options{NotBefore: NodeLayout.Time(newest)},
	})
}
