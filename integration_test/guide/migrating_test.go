package guide

import (
	"bytes"
	"database/sql"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/metrics"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// gooseFile returns a goose provider with one migration.
func gooseFile(t *testing.T, pool *sql.DB, text string) *goose.Provider {
	t.Helper()
	p, err := goose.NewProvider(goose.DialectPostgres, pool, fstest.MapFS{"00001_orders.sql": {Data: []byte(text)}})
	must(t, err)
	return p
}

// as returns a pool whose connections run as a role.
func as(t *testing.T, db *pgtest.DB, role string) *sql.DB {
	t.Helper()
	return db.SQL(t, pgtest.Login(role))
}

// migratingGrants checks the grants of docs/security.md with an installation whose owner
// doesn't own the database.
func migratingGrants(t *testing.T, db *pgtest.DB, owner, app string) {
	t.Helper()
	ctx := t.Context()
	grant := func(role string) {
		p := docs.One(t, "security", role)
		p.SQL = regexp.MustCompile(`TO (app|monitoring);`).ReplaceAllString(p.SQL, "TO "+app+";")
		p.Run(t, db)
	}
	pgtest.Fails(t, guide.Verify(ctx, as(t, db, app)), nil, "GRANT USAGE") // a role without rights
	grant("program")
	leases := as(t, db, app)
	must(t, guide.Verify(ctx, leases))
	store, numbers := pglease.New(leases, pglease.Config{}), nodelease.ForSnowflake(idtype.SnowflakeLayout{})
	now := time.Now().UnixMilli()
	request := nodelease.Request{Holder: "test", TTL: time.Minute, Now: now, Until: now}
	c, err := store.Claim(ctx, numbers, request)
	must(t, err)
	c, err = store.Renew(ctx, numbers, c, request)
	must(t, err)
	must(t, store.Release(ctx, numbers, c, now))
	rights := func(monitoring bool) {
		t.Helper()
		for statement, allowed := range map[string]bool{
			"SELECT sortkey.next_snowflake()":                      true,
			"SELECT * FROM sortkey.node_status":                    monitoring,
			"SELECT sortkey.next_snowflake(1)":                     false,
			"SELECT sortkey.next_spread64()":                       false,
			"SELECT sortkey.reserve_node('snowflake', 1, 'mine')":  false,
			"UPDATE sortkey.node_lease SET mark = 0":               false,
			"SELECT setval('sortkey_internal.snowflake_clock', 1)": false,
		} {
			if _, err := leases.ExecContext(ctx, statement); (err == nil) != allowed {
				t.Errorf("%s: expected allowed to be %t, got %v", statement, allowed, err)
			}
		}
	}
	rights(false)

	// The warnings of metrics.Database have the statements to run.
	warning := func() string {
		t.Helper()
		var log bytes.Buffer
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics.NewCollector(metrics.Database("shop", leases, metrics.DatabaseOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), Timeout: time.Minute})))
		families, err := registry.Gather()
		must(t, err)
		for _, f := range families {
			if up := f.GetMetric()[0].GetGauge().GetValue() == 1; f.GetName() == "sortkey_database_up" && up != (log.Len() == 0) {
				t.Errorf("sortkey_database_up is %t, with the log %s", up, &log)
			}
		}
		return log.String()
	}
	untrusted := warning()
	trust := regexp.MustCompile(`run ((GRANT|ALTER DATABASE) [A-Za-z0-9_ ]+(, SET FALSE)?), or`).FindStringSubmatch(untrusted)
	if trust == nil || !strings.Contains(trust[1], owner) {
		t.Fatalf("expected a warning with the statement that states trust in %s, got %s", owner, untrusted)
	}
	pgtest.Fails(t, migrations.CheckDefaults(ctx, leases, migrations.Config{}), migrations.ErrUntrusted, trust[0])
	db.Exec(t, trust[1])
	if denied := warning(); !strings.Contains(denied, "run GRANT USAGE ON SCHEMA sortkey TO "+app+"; GRANT SELECT ON sortkey.node_pool, sortkey.node_status, sortkey.partition_log TO "+app) {
		t.Errorf("expected a warning with the grants, got %s", denied)
	}
	grant("monitoring")
	if log := warning(); log != "" {
		t.Errorf("expected no warning, got %s", log)
	}
	rights(true)
	db.Exec(t, "ALTER DATABASE "+db.Name+" OWNER TO CURRENT_USER") // drop the roles afterwards
}

// The SQL of docs/migrating.md and docs/coming-from.md works.
func TestMigratingSQL(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, conn := t.Context(), db.SQL(t), db.Conn(t)
		owner, app := db.NewRole(t, "owner", pgtest.LoginPassword), db.NewRole(t, "app", pgtest.LoginPassword)
		roles := strings.NewReplacer("shop_owner", owner, "shop_app", app, "DATABASE shop", "DATABASE "+db.Name)
		all := docs.SQL(t, "migrating", "role", "parameter", "checks")
		for _, p := range append(all, docs.SQL(t, "coming-from", "goose", "identity", "backfill")...) {
			p.SQL = roles.Replace(p.SQL)
			switch p.Name {
			case "role":
				if err := guide.Install(ctx, as(t, db, owner)); err == nil {
					t.Error("Install: expected an error for a role without rights, got none")
				}
				p.Run(t, db)
				must(t, guide.Install(ctx, as(t, db, owner)))
			case "parameter":
				set := "ALTER ROLE " + owner + " SET sortkey.node = 1021"
				_, err := as(t, db, owner).ExecContext(ctx, set)
				pgtest.Fails(t, err, nil, "permission denied")
				p.Run(t, db)
				_, err = as(t, db, owner).ExecContext(ctx, set)
				must(t, err)
				db.Exec(t, fmt.Sprintf("SELECT sortkey.reserve_node('snowflake', 1021, 'defaults'); ALTER DATABASE %s SET sortkey.node = 1021", db.Name))
				conn = db.Conn(t)
				migratingGrants(t, db, owner, app)
			case "goose":
				moves(t, db, p.SQL, "orders", "bigserial")
			case "identity":
				moves(t, db, p.SQL, "invoices", "bigint GENERATED ALWAYS AS IDENTITY")
			case "checks":
				checks(t, db, p.SQL)
			case "backfill":
				db.Exec(t, "CREATE TABLE documents (id uuid PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT '2026-11-01 00:00:00.001Z'); INSERT INTO documents SELECT gen_random_uuid() FROM generate_series(1, 10)")
				p.Run(t, db)
				has(t, p.Name, lines(t, conn, `SELECT min(sortkey.sno_time(key)) = '2026-11-01Z', max(sortkey.sno_time(key)) = '2026-11-01Z',
					count(DISTINCT key), min(sortkey.sno_node(key)), (array_agg(id ORDER BY id) = array_agg(id ORDER BY key)) FROM documents`), "t|t|10|65535|t")
			default:
				t.Errorf("no test runs %s", p.Name)
			}
		}
		// Down fails while a column uses a domain, and works afterwards.
		// A superuser doesn't trust the owner of the installation.
		pgtest.Fails(t, migrations.Down(ctx, pool, migrations.Config{}), migrations.ErrUntrusted)
		db.Exec(t, "CREATE TABLE used (id sortkey.sno)")
		pgtest.Fails(t, migrations.Down(ctx, as(t, db, owner), migrations.Config{}), nil, "used")
		must(t, guide.Verify(ctx, pool))
		db.Exec(t, "DROP TABLE used")
		must(t, migrations.Down(ctx, as(t, db, owner), migrations.Config{}))
		pgtest.Fails(t, guide.Verify(ctx, pool), migrations.ErrNotInstalled)
	})
}

// moves runs a migration of the page, which changes the key of a table, and reverts it.
func moves(t *testing.T, db *pgtest.DB, text, table, key string) {
	t.Helper()
	conn := db.Conn(t)
	db.Exec(t, fmt.Sprintf("CREATE TABLE %[1]s (id %[2]s PRIMARY KEY, total bigint); INSERT INTO %[1]s (total) VALUES (1), (2)", table, key))
	migration := gooseFile(t, db.SQL(t), text)
	_, err := migration.Up(t.Context())
	must(t, err)
	insert := "INSERT INTO " + table + " (total) VALUES (3) RETURNING id"
	has(t, "up", lines(t, conn, insert+" > 1000000000000000, sortkey.snowflake_node(id)"), "t|1021")
	if table == "orders" {
		_, err = conn.Exec(t.Context(), "INSERT INTO orders VALUES (-1)")
		pgtest.Fails(t, err, nil, "23514") // check_violation
	}
	has(t, "old rows", lines(t, conn, "SELECT count(*) FROM "+table+" WHERE id <= 2"), "2")
	_, err = migration.Down(t.Context())
	must(t, err)
	has(t, "down", lines(t, conn, insert), "3")
}

// checks compares the CHECK constraints of the page with the domains, value by value.
func checks(t *testing.T, db *pgtest.DB, add string) {
	t.Helper()
	ctx, pool := t.Context(), db.SQL(t)
	db.Exec(t, `CREATE TABLE events (snowflake bigint, snowflake_si bigint, uid60 bigint, spread64 bigint, sno uuid, sno_as_text text COLLATE "C");`+add)
	numbers := []string{"0", "1", "-1", "1023", "1024", "65535", "65536", "-65536", "64512", "9007199254740991", "9007199254740992", "1152921504606846975",
		"1152921504606846976", "9223372036854775807", "-9223372036854775808", "-9223372036854775807"}
	for _, c := range []struct {
		column, base string
		values       []string
	}{
		{"snowflake", "bigint", numbers},
		{"snowflake_si", "bigint", numbers},
		{"uid60", "bigint", numbers},
		{"spread64", "bigint", numbers},
		{"sno", "uuid", []string{"32323232-3232-3232-3232-323232323232", "32323232-3232-3232-3232-323232323233", "6272706b-3471-3732-7877-66326d36336c", "78787878-7878-7878-7878-787878787878",
			"f47ac10b-58cc-4372-a567-0e02b2c3d479", "00000000-0000-0000-0000-000000000000", "32323232-3232-3232-3232-323232323231", "79323232-3232-3232-3232-323232323232", "32323232-3232-3a32-3232-323232323232"}},
		{"sno_as_text", "text", []string{"2222222222222222", "2222222222222223", "brpk4q72xwf2m63l", "brpk4q72xwf2m63", "brpk4q72xwf2m63l2", "Brpk4q72xwf2m63l", "brpk4q72 wf2m63l", "", "brpk4q72xwf2m6é"}},
	} {
		for _, v := range c.values {
			_, byDomain := pool.ExecContext(ctx, fmt.Sprintf("SELECT $1::text::sortkey.%s", c.column), v)
			_, byCheck := pool.ExecContext(ctx, fmt.Sprintf("INSERT INTO events (%s) SELECT $1::text::%s", c.column, c.base), v)
			if (byDomain == nil) != (byCheck == nil) {
				t.Errorf("%s %s: expected equal results, got %v from the domain and %v from the CHECK", c.column, v, byDomain, byCheck)
			}
		}
	}
}

// ShopKeys installs another schema and epoch. Programs with other settings are
// rejected there.
func TestShopKeys(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		must(t, migrations.Up(ctx, pool, guide.ShopKeys))
		must(t, migrations.Check(ctx, pool, guide.ShopKeys))
		has(t, "times", lines(t, db.Conn(t), "SELECT keys.snowflake_time(0) = '2026-01-01Z', keys.snowflake_si_time(0) = '2026-01-01Z'"), "t|t")
		pgtest.Fails(t, guide.Verify(ctx, pool), migrations.ErrNotInstalled) // in the default schema
		other := guide.ShopKeys
		other.Snowflake = idtype.SnowflakeLayout{}
		pgtest.Fails(t, migrations.Check(ctx, pool, other), migrations.ErrLayout)
		pgtest.Fails(t, migrations.Up(ctx, pool, other), migrations.ErrLayout)
		_, err := guide.ClaimIDs(ctx, pglease.New(pool, pglease.Config{Schema: "keys"}), nil) // with another epoch
		pgtest.Fails(t, err, nodelease.ErrPoolMismatch)
		ids, err := nodelease.NewSnowflakeGenerator(ctx, pglease.New(pool, pglease.Config{Schema: "keys"}), idtype.SnowflakeConfig{Layout: guide.ShopKeys.Snowflake}, nodelease.Options{})
		must(t, err)
		must(t, ids.Close())
	})
}

// The page's layouts decode and continue the IDs of other snowflake libraries.
func TestLayoutsOfOthers(t *testing.T) {
	for _, c := range []struct {
		source string
		layout idtype.SnowflakeLayout
		id     idtype.Snowflake
		want   idtype.SnowflakeParts
	}{
		{"Twitter", guide.TwitterLayout, 1541815603606036480, idtype.SnowflakeParts{Time: time.Date(2022, 6, 28, 16, 7, 40, 105e6, time.UTC), Datacenter: 11, Worker: 26}},
		// bwmarrin/snowflake 0.3.0, NewNode(37), the second Generate of a millisecond.
		{"bwmarrin", guide.TwitterLayout, 2124415908347793409, idtype.SnowflakeParts{Time: time.UnixMilli(1795335196946).UTC(), Datacenter: 1, Worker: 5, Sequence: 1}},
		{"bwmarrin", guide.NodeLayout, 2124415908347793409, idtype.SnowflakeParts{Time: time.UnixMilli(1795335196946).UTC(), Worker: 37, Sequence: 1}},
		// The example of Discord's own documentation.
		{"Discord", guide.DiscordLayout, 175928847299117063, idtype.SnowflakeParts{Time: time.UnixMilli(1462015105796).UTC(), Datacenter: 1, Sequence: 7}},
		// Computed as in Instagram's article: shard 1341, sequence 5001 % 1024.
		{"Instagram", guide.InstagramLayout, 87654321<<23 | 1341<<10 | 5001%1024,
			idtype.SnowflakeParts{Time: time.UnixMilli(1314220021721 + 87654321).UTC(), Datacenter: 1341, Sequence: 905}},
		// The example of a status in Mastodon's documentation, of 03:48:33.901.
		{"Mastodon", guide.MastodonLayout, 103270115826048975, idtype.SnowflakeParts{Time: time.Date(2019, 12, 8, 3, 48, 33, 849e6, time.UTC), Sequence: 40911}},
	} {
		got, err := c.layout.Parts(c.id)
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v, want %+v", c.source, got, err, c.want)
		}
		if back, err := c.layout.Compose(got); err != nil || back != c.id {
			t.Errorf("%s: composed %v, %v, want %v", c.source, back, err, c.id)
		}
	}
	if got := idtype.SnowflakeOf[guide.Tweet](2124415908347793409).Time(); !got.Equal(time.UnixMilli(1795335196946)) {
		t.Errorf("a key of a model with IDLayout has the time %v", got)
	}
	// ContinueNode starts after the newest ID, with the same node.
	newest, err := guide.NodeLayout.Compose(idtype.SnowflakeParts{Time: time.Now().Add(500 * time.Millisecond), Worker: 1023, Sequence: 4095})
	must(t, err)
	gen, err := guide.ContinueNode(newest, 37)
	must(t, err)
	id, err := gen.Next()
	must(t, err)
	if p, err := guide.NodeLayout.Parts(id); err != nil || p.Worker != 37 || id <= newest {
		t.Errorf("expected an ID of worker 37 after %v, got %+v, %v", newest, p, err)
	}
}
