package guide

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// A site is a separate server, with its own settings, in the container of a shared
// server. It uses the programs that are installed there.
type site struct {
	t      *testing.T
	db     *pgtest.DB
	number int // 1 or 2
}

// run runs a shell command in the container as the user postgres.
func (s site) run(command string) (string, error) {
	s.t.Helper()
	out, err := pgtest.Exec(s.t, s.db.Container(), "postgres", "sh", "-c", command)
	return strings.TrimSpace(out), err
}

func (s site) port() int { return 5440 + s.number }

// start creates and starts the server, and runs a file of SQL in its database shop.
func (s site) start(file string) {
	s.t.Helper()
	_, err := s.run(fmt.Sprintf(`rm -rf /tmp/site%[1]d && initdb -D /tmp/site%[1]d -A trust --no-sync >/dev/null &&
		pg_ctl -D /tmp/site%[1]d -l /tmp/site%[1]d.log -w -o "-p %[2]d -k /tmp -c listen_addresses=127.0.0.1 -c wal_level=logical -c fsync=off" start >/dev/null &&
		createdb -h 127.0.0.1 -p %[2]d shop && psql -XAtq -v ON_ERROR_STOP=1 -h 127.0.0.1 -p %[2]d -d shop -f %[3]s`, s.number, s.port(), file))
	must(s.t, err)
}

// stop shuts the server down immediately and removes its files.
func (s site) stop() error {
	_, err := s.run(fmt.Sprintf("pg_ctl -D /tmp/site%[1]d -m immediate -w stop >/dev/null; rm -rf /tmp/site%[1]d /tmp/site%[1]d.log", s.number))
	return err
}

func (s site) query(statements string) (string, error) {
	s.t.Helper()
	return s.run(fmt.Sprintf("psql -XAtq -v ON_ERROR_STOP=1 -h 127.0.0.1 -p %d -d shop <<'END'\n%s\nEND", s.port(), statements))
}

func (s site) must(statements string) string {
	s.t.Helper()
	out, err := s.query(statements)
	must(s.t, err)
	return out
}

// piece runs a piece of the page. The page shows site 1; for site 2, piece swaps
// the numbers.
func (s site) piece(p docs.Piece) error {
	s.t.Helper()
	text := p.SQL
	if s.number == 2 {
		text = strings.NewReplacer("63", "95", "31 = 1", "31 = 2",
			"site_1_from_site_2", "site_2_from_site_1", "of_site_1", "of_site_2", "of_site_2", "of_site_1").Replace(text)
	}
	other := site{number: 3 - s.number}
	_, err := s.query(strings.ReplaceAll(text, "host=site-2 dbname=shop user=replicator", fmt.Sprintf("host=127.0.0.1 port=%d dbname=shop user=postgres", other.port())))
	return err
}

// Two servers that write the same table replicate to each other with the SQL of
// the page: with origin = none, and with row filters, which also work on Postgres 15.
func TestSites(t *testing.T) {
	t.Parallel()
	pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
		text, err := migrations.SQL(migrations.Config{})
		must(t, err)
		must(t, db.Container().CopyToContainer(t.Context(), []byte(text), "/tmp/sortkey.sql", 0o644))
		sites := []site{{t, db, 1}, {t, db, 2}}
		for _, s := range sites {
			s.start("/tmp/sortkey.sql")
		}
		defer func() {
			for _, s := range sites {
				if t.Failed() {
					log, _ := s.run(fmt.Sprintf("tail -30 /tmp/site%d.log", s.number))
					t.Log(log)
				}
				if err := s.stop(); err != nil {
					t.Error(err)
				}
			}
		}()
		both := func(names ...string) {
			t.Helper()
			for _, name := range names {
				for _, s := range sites {
					if err := s.piece(docs.One(t, "scaling-out", name)); err != nil {
						t.Fatalf("[%s] at site %d: %v", name, s.number, err)
					}
				}
			}
		}
		total := 0
		// exchange inserts rows at both sites and waits until both have all rows, three
		// times. A row that returned to its site would stop replication with a duplicate
		// key.
		exchange := func() {
			t.Helper()
			for range 3 {
				for _, s := range sites {
					s.must("INSERT INTO orders (total) SELECT generate_series(1, 100)")
				}
				total += 200
				for _, s := range sites {
					pgtest.Eventually(t, fmt.Sprintf("site %d has all rows", s.number), func() error {
						if got := s.must("SELECT count(*) FROM orders"); got != fmt.Sprint(total) {
							return fmt.Errorf("got %s of %d rows", got, total)
						}
						return nil
					})
				}
			}
			for _, s := range sites {
				want := fmt.Sprintf("1|31|%d\n2|31|%[1]d", total/2)
				if got := s.must("SELECT (p).datacenter, (p).worker, count(*) FROM (SELECT sortkey.snowflake_parts(id) p FROM orders) q GROUP BY 1, 2 ORDER BY 1"); got != want {
					t.Errorf("site %d: got %s, want %s", s.number, got, want)
				}
				if got := s.must("SELECT sum(apply_error_count) FROM pg_stat_subscription_stats"); got != "0" {
					t.Errorf("site %d: expected no replication errors, got %s", s.number, got)
				}
			}
		}
		both("site", "site-table")
		if db.Version == "15" {
			if err := sites[0].piece(docs.One(t, "scaling-out", "subscribe")); err == nil || !strings.Contains(err.Error(), `unrecognized subscription parameter: "origin"`) {
				t.Errorf("expected Postgres 15 to reject origin, got %v", err)
			}
		} else {
			both("publish-all", "subscribe")
			exchange()
			// Site 1 updates a row that site 2 created.
			sites[0].must("UPDATE orders SET total = -1 WHERE id = (SELECT max(id) FROM orders WHERE (id >> 17) & 31 = 2)")
			pgtest.Eventually(t, "the change reaches site 2", func() error {
				if sites[1].must("SELECT count(*) FROM orders WHERE total = -1") != "1" {
					return errors.New("it hasn't arrived")
				}
				return nil
			})
			for _, s := range sites {
				s.must(fmt.Sprintf("DROP SUBSCRIPTION site_%d_from_site_%d", s.number, 3-s.number))
			}
			for _, s := range sites {
				s.must(fmt.Sprintf("DROP PUBLICATION orders_of_site_%d", s.number))
			}
		}
		both("publish-own", "subscribe-own")
		exchange()
		sites[0].must("DELETE FROM orders WHERE id = (SELECT max(id) FROM orders WHERE (id >> 17) & 31 = 1)")
		total--
		pgtest.Eventually(t, "the deletion reaches site 2", func() error {
			if got := sites[1].must("SELECT count(*) FROM orders"); got != fmt.Sprint(total) {
				return fmt.Errorf("site 2 has %s rows, want %d", got, total)
			}
			return nil
		})
		// TRUNCATE isn't published: a row that is inserted after it arrives, and site 2 keeps its other rows.
		sites[0].must("TRUNCATE orders")
		sites[0].must("INSERT INTO orders (total) VALUES (-2)")
		pgtest.Eventually(t, "a row of site 1 reaches site 2", func() error {
			if got := sites[1].must("SELECT count(*) FROM orders WHERE total = -2"); got != "1" {
				return fmt.Errorf("got %s such rows", got)
			}
			return nil
		})
		if got := sites[1].must("SELECT count(*) FROM orders"); got != fmt.Sprint(total+1) {
			t.Errorf("expected site 2 to keep its %d rows, got %s", total+1, got)
		}

		// Site 2 fails, and site 1 continues alone.
		must(t, sites[1].stop())
		must(t, sites[0].piece(docs.One(t, "scaling-out", "promote").Replace("site_3_from_site_1", "site_1_from_site_2")))
		if got := sites[0].must("INSERT INTO orders (total) VALUES (1) RETURNING (sortkey.snowflake_parts(id)).datacenter"); got != "3" {
			t.Errorf("expected an ID of datacenter 3, got %s", got)
		}
		sites = sites[:1]
		docs.SQL(t, "scaling-out", "site", "site-table", "publish-all", "subscribe", "publish-own", "subscribe-own", "promote",
			"nodes", "tables", "rows", "lock-timeout", "tenants", "new-worker") // the last six run in package citus
	})
}

// Sites never claim the same number, although their databases don't know of each
// other.
func TestSitePool(t *testing.T) {
	t.Parallel()
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		store := pglease.New(db.SQL(t), pglease.Config{})
		pool := guide.SitePool(3)
		for i := range 32 {
			k, err := nodelease.Acquire(t.Context(), store, pool, nodelease.Options{Wait: -1})
			must(t, err)
			defer k.Close()
			if k.Number() != 3<<5|i {
				t.Errorf("expected number %d, got %d", 3<<5|i, k.Number())
			}
		}
		var busy *nodelease.BusyError
		if _, err := nodelease.Acquire(t.Context(), store, pool, nodelease.Options{Wait: -1}); !errors.As(err, &busy) || busy.Held != 32 || busy.Reserved != 1024-32 {
			t.Errorf("expected a pool of 32 numbers, all held, got %v", err)
		}

		// After a failover, programs of two sites claim in the same database.
		db.Exec(t, "TRUNCATE sortkey.node_lease, sortkey.node_pool")
		for _, site := range []int{1, 3} {
			k, err := nodelease.Acquire(t.Context(), store, guide.SitePool(site), nodelease.Options{})
			must(t, err)
			defer k.Close()
			if k.Number() != site<<5 {
				t.Errorf("site %d: expected number %d, got %d", site, site<<5, k.Number())
			}
			g, err := guide.SiteIDs(t.Context(), store, site)
			must(t, err)
			defer g.Close()
			id, err := g.Next()
			must(t, err)
			if p, err := idtype.DefaultSnowflakeLayout().Parts(id); err != nil || p.Datacenter != site {
				t.Errorf("site %d: got an ID of %+v, %v", site, p, err)
			}
		}
	})
}

// ShardOf returns the shard of the generator that created an ID.
func TestShards(t *testing.T) {
	gens, err := guide.ShardGenerators(7)
	must(t, err)
	for want, gen := range gens {
		id, err := gen.Next()
		must(t, err)
		if shard, err := guide.ShardOf(id); err != nil || shard != want {
			t.Errorf("expected shard %d, got %d, %v", want, shard, err)
		}
	}
	if _, err := guide.ShardOf(-1); err == nil {
		t.Error("ShardOf(-1): expected an error, got none")
	}
}

// A remainder spreads keys badly. ByHash and the hash partitions of Postgres spread
// them evenly. The page shows the figures of the first case.
func TestSpread(t *testing.T) {
	page := docs.Page(t, "scaling-out")
	every := func(d time.Duration) (ids []idtype.Snowflake) {
		for i := range 8000 {
			id, err := idtype.DefaultSnowflakeLayout().Compose(idtype.SnowflakeParts{Time: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * d), Worker: 3})
			must(t, err)
			ids = append(ids, id)
		}
		return ids
	}
	for i, c := range []struct {
		title string
		every time.Duration
		n     int
	}{
		{"one per millisecond, 8 shards", time.Millisecond, 8},
		{"one per millisecond, 10 shards", time.Millisecond, 10},
		{"one per second, 10 shards", time.Second, 10},
	} {
		remainder, hash := make([]int, c.n), make([]int, c.n)
		for _, id := range every(c.every) {
			remainder[guide.ByRemainder(id, c.n)]++
			shard, err := guide.ByHash(id, c.n)
			must(t, err)
			hash[shard]++
		}
		if got := slices.Max(remainder); got < 1600 || i == 0 && remainder[0] != 8000 {
			t.Errorf("%s: expected remainders of few shards, got %v", c.title, remainder)
		}
		if want := fmt.Sprintf("each shard gets %d to %d", slices.Min(hash), slices.Max(hash)); i == 0 && !strings.Contains(page, want) {
			t.Errorf("the page doesn't contain %q", want)
		}
		if mean := 8000 / c.n; slices.Min(hash) < mean*9/10 || slices.Max(hash) > mean*11/10 {
			t.Errorf("%s: expected all shards within 10 %% of %d, got %v", c.title, mean, hash)
		}
	}
	if _, err := guide.ByHash(-1, 8); err == nil {
		t.Error("ByHash(-1): expected an error, got none")
	}

	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE carts (id bigint PRIMARY KEY, items integer NOT NULL) PARTITION BY HASH (id)")
		for i := range 4 {
			db.Exec(t, fmt.Sprintf("CREATE TABLE carts_%[1]d PARTITION OF carts FOR VALUES WITH (MODULUS 4, REMAINDER %[1]d)", i))
		}
		var values []string
		for _, id := range every(time.Second) {
			values = append(values, fmt.Sprintf("(%d, 1)", id))
		}
		db.Exec(t, "INSERT INTO carts VALUES "+strings.Join(values, ","))
		has(t, "partitions", lines(t, db.Conn(t), "SELECT tableoid::regclass, count(*) BETWEEN 1800 AND 2200 FROM carts GROUP BY tableoid ORDER BY 1"),
			"carts_0|t", "carts_1|t", "carts_2|t", "carts_3|t")
	})
}
