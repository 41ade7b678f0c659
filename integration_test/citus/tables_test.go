package citus

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// Tests of one installation share a database, which takes seconds to create on three servers.
func TestTables(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		t.Run("keys", func(t *testing.T) { keys(t, c) })
		t.Run("copy", func(t *testing.T) { copies(t, c) })
		t.Run("GORM", func(t *testing.T) { graphs(t, c) })
	})
}

// Queries find, change and delete rows by keys of the base types bigint and uuid, and
// find rows of a time window, in distributed, reference and schema-sharded tables.
func keys(t *testing.T, c *pgtest.Cluster) {
	c.Exec(t, `set citus.enable_schema_based_sharding = on;
		create schema branch;
		create table branch.bigints (id bigint primary key, n integer);
		create table branch.uuids (id uuid primary key, n integer);
		create table bigints (id bigint primary key, n integer);
		select create_distributed_table('bigints', 'id');
		create table uuids (id uuid primary key, n integer);
		select create_distributed_table('uuids', 'id');
		create table bigint_rates (id bigint primary key, n integer);
		select create_reference_table('bigint_rates');
		create table uuid_rates (id uuid primary key, n integer);
		select create_reference_table('uuid_rates')`)
	const rows = 60
	check := func(server int, conn *pgx.Conn, table string) {
		format, at := "snowflake", "sortkey.snowflake_at(%s, 0, 7)"
		if strings.Contains(table, "uuid") {
			format, at = "sno", "sortkey.sno_at(%s, 0, 7)"
		}
		exec := func(want int64, statement string, args ...any) {
			t.Helper()
			if tag, err := conn.Exec(t.Context(), statement, args...); err != nil || tag.RowsAffected() != want {
				t.Errorf("server %d: %s: want %d rows, got %d, %v", server, statement, want, tag.RowsAffected(), err)
			}
		}
		exec(rows, "insert into "+table+" select "+fmt.Sprintf(at, "timestamptz '2026-11-01Z' + n * interval '1 minute'")+
			", n from generate_series(1, $1::integer) n", rows)
		ids := values[any](t, conn, "select id from "+table+" order by n")
		for i, id := range ids {
			if n := values[int](t, conn, "select n from "+table+" where id = $1", id); !slices.Equal(n, []int{i + 1}) {
				t.Errorf("server %d: %s: found %v by the key of row %d", server, table, n, i+1)
			}
		}
		if n := pgtest.Value[int](t, conn, "select count(*) from "+table+" where id = any($1)", ids[:7]); n != 7 {
			t.Errorf("server %d: %s: found %d rows by 7 keys", server, table, n)
		}
		floor := "sortkey." + format + "_floor(timestamptz '2026-11-01Z' + $%d * interval '1 minute')"
		window := fmt.Sprintf(" where id >= "+floor+" and id < "+floor, 1, 2)
		if n := values[int](t, conn, "select n from "+table+window+" order by id", 10, 13); !slices.Equal(n, []int{10, 11, 12}) {
			t.Errorf("server %d: %s: found rows %v of three minutes", server, table, n)
		}
		exec(1, "update "+table+" set n = -1 where id = $1", ids[10])
		exec(20, "update "+table+" set n = -1"+window, 40, 60)
		exec(1, "delete from "+table+" where id = $1", ids[20])
		exec(10, "delete from "+table+window, 30, 40)
		exec(rows-11, "delete from "+table)
	}
	for i, server := range servers(c) {
		conn := server.Conn(t)
		for _, table := range []string{"bigints", "uuids", "bigint_rates", "uuid_rates", "branch.bigints", "branch.uuids"} {
			check(i, conn, table)
		}
	}
	// A query by key goes to one shard.
	plan := strings.Join(values[string](t, c.Conn(t), "explain select from bigints where id = sortkey.snowflake_floor('2026-11-01Z')"), "\n")
	if !strings.Contains(plan, "Task Count: 1\n") {
		t.Errorf("want a plan with one task for a query by key, got\n%s", plan)
	}
}

// GORM creates, reads and deletes graphs whose keys the program generates, in
// colocated tables.
func graphs(t *testing.T, c *pgtest.Cluster) {
	c.Exec(t, `create table authors (id bigint primary key, name text);
		select create_distributed_table('authors', 'id');
		create table books (author_id bigint references authors, id bigint, title text, primary key (author_id, id));
		select create_distributed_table('books', 'author_id', colocate_with => 'authors')`)
	gen := idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}))
	for i, server := range servers(c) {
		db := server.GORM(t, nil)
		must(t, db.Use(gormplugin.New(gormplugin.For(gen))))
		graphs := []author{
			{Name: "a", Books: []book{{Title: "a1"}, {Title: "a2"}, {Title: "a3"}}},
			{Name: "b", Books: []book{{Title: "b1"}}},
			{Name: "c"},
		}
		must(t, db.Create(&graphs).Error)
		for _, want := range graphs {
			var got author
			must(t, db.Preload("Books", func(tx *gorm.DB) *gorm.DB { return tx.Order("id") }).Take(&got, want.ID).Error)
			if got.ID != want.ID || got.Name != want.Name || !slices.Equal(got.Books, want.Books) {
				t.Errorf("server %d: created %+v, read %+v", i, want, got)
			}
		}
		a := graphs[0]
		must(t, db.Model(&a.Books[1]).Update("title", "new").Error)
		must(t, db.Delete(&a.Books[2]).Error)
		titles := []string{}
		must(t, db.Model(&book{}).Where("author_id = ?", a.ID).Order("id").Pluck("title", &titles).Error)
		if want := []string{"a1", "new"}; !slices.Equal(titles, want) {
			t.Errorf("server %d: got the titles %q, want %q", i, titles, want)
		}
		var n int64
		must(t, db.Model(&author{}).Where("id IN ?", []idtype.SnowflakeOf[author]{graphs[0].ID, graphs[2].ID}).Count(&n).Error)
		if n != 2 {
			t.Errorf("server %d: found %d of 2 authors", i, n)
		}

		// A program can also set the keys itself.
		id, err := gen.Next()
		must(t, err)
		must(t, db.Create(&plainAuthor{ID: id, Name: "plain"}).Error)
		must(t, db.Take(&plainAuthor{}, id).Error)
	}
}

type author struct {
	ID    idtype.SnowflakeOf[author]
	Name  string
	Books []book
}

// The primary key of a distributed table contains the distribution column.
type book struct {
	AuthorID idtype.SnowflakeOf[author] `gorm:"primaryKey;autoIncrement:false"`
	ID       idtype.SnowflakeOf[book]   `gorm:"primaryKey;idgen"`
	Title    string
}

type plainAuthor struct {
	ID   idtype.Snowflake
	Name string
}

func (plainAuthor) TableName() string { return "authors" }

// COPY writes IDs that the program generates to the tables of keys, and queries find each of them.
func copies(t *testing.T, c *pgtest.Cluster) {
	snowflakes := idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}))
	partition := idtype.SnoPartitionFrom(3)
	snos := idtype.Must(idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition}))
	for _, server := range servers(c) {
		conn := server.Conn(t, pgtest.Codec)
		copied(t, conn, "bigints", snowflakes)
		copied(t, conn, "uuids", snos)
	}
}

// copied copies new IDs to a table, and looks them up.
func copied[T comparable](t *testing.T, conn *pgx.Conn, table string, gen idtype.Generator[T]) {
	t.Helper()
	ids := make([]T, 5000)
	_, err := gen.Fill(t.Context(), ids)
	must(t, err)
	n, err := conn.CopyFrom(t.Context(), pgx.Identifier{table}, []string{"id"}, pgx.CopyFromSlice(len(ids), func(i int) ([]any, error) { return []any{ids[i]}, nil }))
	must(t, err)
	if n != int64(len(ids)) {
		t.Errorf("%s: copied %d rows, want %d", table, n, len(ids))
	}
	for _, id := range ids[:50] {
		if got := values[T](t, conn, "select id from "+table+" where id = $1", id); len(got) != 1 || got[0] != id {
			t.Errorf("%s: looked up %v, found %v", table, id, got)
		}
	}
	if n := pgtest.Value[int](t, conn, "select count(*) from "+table+" where id = any($1)", ids); n != len(ids) {
		t.Errorf("%s: found %d of %d keys", table, n, len(ids))
	}
}

// A shard moves while sessions insert rows, with IDs of the default and of the program.
// The table has each acknowledged row once.
func TestMove(t *testing.T) {
	generating(t, func(t *testing.T, c *pgtest.Cluster) {
		c.Exec(t, `set citus.shard_count = 2;
			create table orders (id bigint primary key default sortkey.next_snowflake(), writer integer);
			select create_distributed_table('orders', 'id')`)
		gen := idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}))
		var (
			wg            sync.WaitGroup
			moving, moved atomic.Bool
			acked         [6][]int64 // the IDs of the rows of each session
			meanwhile     [6]int     // the number of rows during the move
		)
		for w := range acked {
			server := servers(c)[w/2]
			conn := server.Conn(t)
			wg.Go(func() {
				for !moved.Load() {
					var id int64
					var err error
					if w%2 == 0 {
						err = conn.QueryRow(t.Context(), "insert into orders (writer) values ($1) returning id", w).Scan(&id)
					} else {
						var key idtype.Snowflake
						if key, err = gen.Next(); err == nil {
							id = int64(key)
							_, err = conn.Exec(t.Context(), "insert into orders values ($1, $2)", id, w)
						}
					}
					if err != nil {
						t.Errorf("session %d: after %d rows: %v", w, len(acked[w]), err)
						return
					}
					acked[w] = append(acked[w], id)
					if moving.Load() {
						meanwhile[w]++
					}
				}
			})
		}
		conn := c.Conn(t)
		pgtest.Eventually(t, "all sessions have inserted", func() error {
			if n := pgtest.Value[int](t, conn, "select count(distinct writer) from orders"); n < len(acked) {
				return fmt.Errorf("%d sessions", n)
			}
			return nil
		})
		moving.Store(true)
		tag, err := conn.Exec(t.Context(), `select citus_move_shard_placement(p.shardid, p.nodename, p.nodeport, n.nodename, n.nodeport)
			from (select * from pg_dist_shard_placement where shardid = (select min(shardid) from pg_dist_shard where logicalrelid = 'orders'::regclass)) p
				join pg_dist_node n on n.nodename <> p.nodename and n.shouldhaveshards`)
		moving.Store(false)
		moved.Store(true)
		wg.Wait()
		must(t, err)
		if tag.RowsAffected() != 1 {
			t.Fatalf("moved %d shards, want 1", tag.RowsAffected())
		}
		if n := pgtest.Value[int](t, conn, "select count(distinct nodename) from pg_dist_shard_placement join pg_dist_shard using (shardid) where logicalrelid = 'orders'::regclass"); n != 1 {
			t.Errorf("the shards are on %d workers, want both on one", n)
		}

		all := slices.Concat(acked[:]...)
		slices.Sort(all)
		rows := values[int64](t, conn, "select id from orders order by id")
		if !slices.Equal(rows, all) {
			t.Errorf("the sessions inserted %d rows, the table has %d, %d of them distinct", len(all), len(rows), len(slices.Compact(slices.Clone(rows))))
		}
		if n := slices.Compact(slices.Clone(all)); len(n) != len(all) {
			t.Errorf("%d of %d IDs repeat", len(all)-len(n), len(all))
		}
		if slices.Min(meanwhile[:]) == 0 {
			t.Errorf("during the move the sessions inserted %d rows, want some of each", meanwhile)
		}
		t.Logf("%d rows, of them %d during the move", len(all), meanwhile)
	})
}

// A worker joins, and the shards are rebalanced, while ten sessions insert rows, with IDs of the
// default and of claimed numbers. No session gets an error, and the table has each acknowledged
// row once. The new worker then generates IDs with a number of its own.
func TestNewWorker(t *testing.T) {
	installed(t, func(t *testing.T, c *pgtest.Cluster) {
		joins, host := c.Workers[1], c.Host(t, 1)
		group := pgtest.Value[int](t, joins.Conn(t), "select groupid from pg_dist_local_group")
		c.Exec(t, fmt.Sprintf("select citus_remove_node('%s', 5432)", host))
		c.Workers = c.Workers[:1]
		setNodes(t, c)
		prepare(t, c)
		c.Exec(t, `set citus.shard_count = 4;
			create table orders (id bigint primary key default sortkey.next_snowflake(), writer integer);
			select create_distributed_table('orders', 'id')`)
		shards := func() int {
			t.Helper()
			return pgtest.Value[int](t, c.Conn(t), "select count(*) from pg_dist_shard_placement join pg_dist_shard using (shardid) where logicalrelid = 'orders'::regclass and nodename = '"+host+"'")
		}

		var (
			writing sync.WaitGroup
			done    atomic.Bool
			acked   [10][]int64       // the IDs of the rows of each session
			longest [10]time.Duration // between two rows
		)
		for w := range acked {
			conn := servers(c)[w%2].Conn(t)
			next := func() (any, error) { return nil, nil }
			if w >= 6 {
				g, err := nodelease.NewSnowflakeGenerator(t.Context(), pglease.New(c.SQL(t), pglease.Config{}), idtype.SnowflakeConfig{}, nodelease.Options{Wait: time.Minute})
				must(t, err)
				defer g.Close()
				next = func() (any, error) { return g.Next() }
			}
			writing.Go(func() {
				for last := time.Now(); !done.Load(); last = time.Now() {
					given, err := next()
					var id int64
					switch {
					case err != nil:
					case given == nil:
						err = conn.QueryRow(t.Context(), "insert into orders (writer) values ($1) returning id", w).Scan(&id)
					default:
						err = conn.QueryRow(t.Context(), "insert into orders values ($1, $2) returning id", given, w).Scan(&id)
					}
					if err != nil {
						t.Errorf("session %d: after %d rows: %v", w, len(acked[w]), err)
						return
					}
					acked[w] = append(acked[w], id)
					longest[w] = max(longest[w], time.Since(last))
				}
			})
		}
		pgtest.Eventually(t, "all sessions have inserted", func() error {
			if n := pgtest.Value[int](t, c.Conn(t), "select count(distinct writer) from orders"); n < len(acked) {
				return fmt.Errorf("%d sessions", n)
			}
			return nil
		})
		for _, s := range docs.One(t, "scaling-out", "new-worker").Replace("DATABASE shop", "DATABASE "+c.Name, "worker-3", host, "node_3", fmt.Sprint("node_", group+1)).Statements() {
			_, err := c.Conn(t).Exec(t.Context(), s)
			must(t, err)
		}
		done.Store(true)
		writing.Wait()

		if n := shards(); n != 2 {
			t.Errorf("want 2 of 4 shards on the new worker, got %d", n)
		}
		all := slices.Concat(acked[:]...)
		slices.Sort(all)
		rows := values[int64](t, c.Conn(t), "select id from orders order by id")
		if !slices.Equal(rows, all) {
			t.Errorf("the sessions inserted %d rows, the table has %d, %d of them distinct", len(all), len(rows), len(slices.Compact(slices.Clone(rows))))
		}
		if n := slices.Compact(slices.Clone(all)); len(n) != len(all) {
			t.Errorf("%d of %d IDs repeat", len(all)-len(n), len(all))
		}
		t.Logf("%d rows; the longest times between two rows: %v", len(all), longest)
		if node := pgtest.Value[int](t, joins.Conn(t), "insert into orders default values returning sortkey.snowflake_node(id)"); node != 1020 {
			t.Errorf("want number 1020 of the new worker, got %d", node)
		}
	})
}

// Keys of all formats spread evenly over 32 shards, whether a program creates them in a
// burst or one per second.
func TestSpread(t *testing.T) {
	pgtest.Citus(t, func(t *testing.T, c *pgtest.Cluster) {
		c.Exec(t, `create table bigints (id bigint primary key);
			select create_distributed_table('bigints', 'id', shard_count => 32);
			create table uuids (id uuid primary key);
			select create_distributed_table('uuids', 'id', shard_count => 32)`)
		clock := func(step time.Duration) idtype.Options {
			now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
			return idtype.Options{Clock: func() time.Time { now = now.Add(step); return now }}
		}
		partition := idtype.SnoPartitionFrom(3)
		for _, rate := range []struct {
			name string
			step time.Duration // between two readings of the clock
		}{{"burst", 100 * time.Microsecond}, {"slow", time.Second}} {
			o := clock(rate.step)
			snowflakes := idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3, Options: o}))
			sis := idtype.Must(idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: idtype.SnowflakeSILayout{BaseClock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, Machine: 3, Options: o}))
			uids := idtype.Must(idtype.NewUID60Generator(idtype.UID60Config{Clock: o.Clock, MaxWait: o.MaxWait}))
			spreads := idtype.Must(idtype.NewSpread64Generator(idtype.Spread64Config{Generator: 3, Options: o}))
			snos := idtype.Must(idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition, Options: o}))
			spreadOver(t, c, rate.name+" of Snowflakes", "bigints", snowflakes)
			spreadOver(t, c, rate.name+" of SnowflakeSIs", "bigints", sis)
			spreadOver(t, c, rate.name+" of UID60s", "bigints", uids)
			spreadOver(t, c, rate.name+" of Spread64s", "bigints", spreads)
			spreadOver(t, c, rate.name+" of Snos", "uuids", snos)
		}
	})
}

// spreadOver checks that 100,000 new keys spread over the shards of an empty table.
func spreadOver[T any](t *testing.T, c *pgtest.Cluster, what, table string, gen idtype.Generator[T]) {
	t.Helper()
	const keys, shards = 100_000, 32
	ids := make([]T, keys)
	for i := range ids {
		var err error
		ids[i], err = gen.Next()
		must(t, err)
	}
	conn := c.Conn(t, pgtest.Codec)
	c.Exec(t, "truncate "+table)
	_, err := conn.CopyFrom(t.Context(), pgx.Identifier{table}, []string{"id"}, pgx.CopyFromSlice(keys, func(i int) ([]any, error) { return []any{ids[i]}, nil }))
	must(t, err)
	counts := values[int](t, conn, "select result::integer from run_command_on_shards($1, 'select count(*) from %s') order by 1", table)
	if len(counts) != shards || counts[0] < keys/shards*9/10 || counts[shards-1] > keys/shards*11/10 {
		t.Errorf("%s: want 32 shards with %d keys ± 10 %%, got %d", what, keys/shards, counts)
	}
}
