package insertbench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
)

// perTurn is the number of rows that a client inserts in a turn, one by one. A turn
// takes some milliseconds.
const perTurn = 40

// A source creates the primary keys of single rows: this process sends them, or the
// server creates and returns them.
type source struct {
	figures.Key
	returned func() any // returns a new variable for a key from the server; nil if this process creates the keys
	clients  int        // maximum of clients that don't exceed the format's cap; 0 means no limit
}

var sources = []source{
	{Key: yardstick, returned: func() any { return new(int64) }}, // against itself, to show the noise
	{Key: figures.Key{Name: "gen_random_uuid", Column: "uuid default gen_random_uuid()"}, returned: func() any { return new([16]byte) }},
	{Key: figures.UUIDv7, returned: func() any { return new([16]byte) }},
	{Key: nextSnowflake, returned: func() any { return new(idtype.Snowflake) }},
	{Key: byFunction("next_snowflake_si", "bigint", "()"), returned: func() any { return new(idtype.SnowflakeSI) }},
	{Key: byFunction("next_uid60", "bigint", "()"), returned: func() any { return new(idtype.UID60) }},
	{Key: byFunction("next_spread64", "bigint", "()"), returned: func() any { return new(idtype.Spread64) }, clients: 1},
	{Key: nextSno, returned: func() any { return new(idtype.Sno) }},
	{Key: nextUUID7, returned: func() any { return new(idtype.UUID) }},
}

// BenchmarkDefault inserts one row per statement, like an application, from one
// connection and from 8 at once. Besides the time, which is mostly the
// round trip, it measures the CPU time of the server and the write-ahead log. It doesn't
// measure the disk: commits don't wait for it.
func BenchmarkDefault(b *testing.B) {
	all := slices.Clone(sources)
	for _, k := range []figures.Key{
		figures.Snowflake(b, idtype.Options{}), figures.Sno(b, idtype.Options{}), figures.UUID(b, idtype.Options{}), figures.GoogleV4, figures.GoogleV7,
	} {
		all = append(all, source{Key: k})
	}
	oneByOne(b, pgx.QueryExecModeCacheStatement, all, 1, 8)
}

// BenchmarkDefaultUnprepared does the same with the keys of the server and without
// prepared statements, so that the server plans each statement.
func BenchmarkDefaultUnprepared(b *testing.B) {
	oneByOne(b, pgx.QueryExecModeSimpleProtocol, sources, 1)
}

// oneByOne runs a benchmark per number of connections and key.
func oneByOne(b *testing.B, mode pgx.QueryExecMode, all []source, connections ...int) {
	b.Helper()
	s := newServer(b)
	for _, clients := range connections {
		for _, k := range all {
			if k.clients != 0 && clients > k.clients {
				continue
			}
			b.Run(fmt.Sprintf("clients=%d/key=%s", clients, k.Name), func(b *testing.B) {
				s.Needs(b, k.Key)
				b.Cleanup(func() { s.drop(b) })
				s.drop(b)
				// New sessions: the sessions of other keys have cached plans for other tables.
				conns := make([]*pgx.Conn, clients)
				for i := range conns {
					conns[i] = s.Connect(b)
					if _, err := conns[i].Exec(b.Context(), "set synchronous_commit = off"); err != nil {
						b.Fatal(err)
					}
				}
				d := figures.Duel{Operations: clients * perTurn, Unit: "row", Meters: []figures.Meter{s.WALMeter(b)}}
				if cpu, ok := s.CPUMeter(b.Context(), conns); ok {
					d.Meters = append(d.Meters, cpu)
				} else {
					b.Log("no CPU time of the server: it isn't on Linux, or the role can't read its files")
				}
				each := d.Run(b, s.rowByRow(b, conns, mode, "yardstick", sources[0]), s.rowByRow(b, conns, mode, "subject", k))
				b.ReportMetric(float64(time.Second)/each, "rows/s")
			})
		}
	}
}

// rowByRow creates a table and returns a side that inserts into it.
func (s server) rowByRow(b *testing.B, conns []*pgx.Conn, mode pgx.QueryExecMode, table string, k source) figures.Side {
	b.Helper()
	s.Exec(b, fmt.Sprintf("create table %s (id %s primary key, n int not null) with (autovacuum_enabled = off)", table, k.Column))

	// Check that the row has the key that insert returns.
	id, err := k.insert(b.Context(), conns[0], mode, table, -1)
	if err != nil {
		b.Fatal(err)
	}
	var same bool
	if err := conns[0].QueryRow(b.Context(), "select id = $1 from "+table+" where n = -1", id).Scan(&same); err != nil || !same {
		b.Fatalf("%s: the inserted row doesn't have the returned key %v: %v", k.Name, id, err)
	}
	return figures.Side{Run: func() error {
		var g errgroup.Group
		for _, conn := range conns {
			g.Go(func() error {
				for i := range perTurn {
					if _, err := k.insert(b.Context(), conn, mode, table, i); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return g.Wait()
	}}
}

// insert inserts a row and returns its key.
func (k source) insert(ctx context.Context, conn *pgx.Conn, mode pgx.QueryExecMode, table string, n int) (id any, err error) {
	if k.returned != nil {
		id = k.returned()
		return id, conn.QueryRow(ctx, "insert into "+table+" (n) values ($1) returning id", mode, n).Scan(id)
	}
	if id, err = k.Next(); err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, "insert into "+table+" (id, n) values ($1, $2)", mode, id, n)
	return id, err
}
