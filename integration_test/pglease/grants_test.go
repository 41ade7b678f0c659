package pglease

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// The pools that a role may create, and the values that it may store.

// grants are the privileges that the documentation of pglease lists.
const grants = `GRANT USAGE ON SCHEMA sortkey TO %[1]s;
	GRANT EXECUTE ON FUNCTION sortkey.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint, bigint) TO %[1]s;
	GRANT EXECUTE ON FUNCTION sortkey.renew_node(text, integer, bigint, text, bigint, bigint, bigint, bigint, text, text[]) TO %[1]s;
	GRANT EXECUTE ON FUNCTION sortkey.release_node(text, integer, bigint, text, bigint, text[]) TO %[1]s;`

// role creates a role with these privileges, and returns its name and its connections.
func role(t *testing.T, db *pgtest.DB, prefix string) (string, *sql.DB) {
	t.Helper()
	name := db.NewRole(t, prefix, pgtest.LoginPassword)
	db.Exec(t, fmt.Sprintf(grants, name))
	return name, db.SQL(t, pgtest.Login(name))
}

// si is a layout with 256 machines.
var si = idtype.SnowflakeSILayout{BaseClock: time.UnixMilli(1_700_000_000_000), MachineBits: 8, IndexBits: 5}

// defaultPools returns the pools of all formats but SnowflakeSI.
func defaultPools(l idtype.SnowflakeLayout) []nodelease.Pool {
	pools := []nodelease.Pool{nodelease.ForSnowflake(l), nodelease.ForSno()}
	for cluster := range 16 {
		pools = append(pools, nodelease.ForSpread64(cluster))
	}
	return pools
}

// A program creates the default pools of the installation, and no others.
func TestCreatePool(t *testing.T) {
	t.Parallel()
	installed.Each(t, func(t *testing.T, db *pgtest.DB) {
		ctx, owner := t.Context(), store(t, db)
		admin := db.SQL(t)
		_, app := role(t, db, "app")
		program := pglease.New(app, pglease.Config{})
		names := func() int { return one[int](t, admin, "SELECT count(*) FROM sortkey.node_pool") }

		// A default name with another size or layout, before the pool exists.
		snowflake := nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
		other := idtype.SnowflakeLayout{Epoch: time.UnixMilli(1_600_000_000_000)}
		for _, p := range []nodelease.Pool{
			nodelease.ForSnowflake(other),
			{Name: "snowflake", Size: 512, Layout: snowflake.Layout},
			{Name: "spread64-3", Size: 64, Layout: "spread64: cluster 4"},
			{Name: "sno", Size: 1, Layout: "sno: partitions"},
		} {
			for _, s := range []*pglease.Store{program, owner} {
				_, err := s.Claim(ctx, p, ask("a", lasting))
				wrong(t, err, nodelease.ErrPoolMismatch, "SK001", p.Layout, fmt.Sprint(p.Size))
				if p.Name == "snowflake" {
					wrong(t, err, nil, snowflake.Layout, "1024")
				}
			}
			wrong(t, execute(ctx, admin, "SELECT sortkey.create_node_pool($1, $2, $3)", p.Name, p.Size, p.Layout), nil, "SK001")
		}
		// Other names, some with the layout of a format.
		custom := small(5)
		for _, p := range []nodelease.Pool{
			custom, {Name: "mine", Size: 1024, Layout: snowflake.Layout}, {Name: "spread64-16", Size: 64, Layout: "spread64: cluster 16"},
			{Name: "spread64-03", Size: 64, Layout: "spread64: cluster 03"}, {Name: "spread64", Size: 1024, Layout: "x"},
			{Name: "plain", Size: 1},
			// This installation has no SnowflakeSI.
			nodelease.ForSnowflakeSI(si),
			nodelease.ForSnoRanges(idtype.SnoPartition{'A', '0'}, 4),
		} {
			_, err := program.Claim(ctx, p, ask("a", lasting))
			statement := fmt.Sprintf("SELECT sortkey.create_node_pool('%s', %d, '%s')", p.Name, p.Size, strings.ReplaceAll(p.Layout, "'", "''"))
			wrong(t, err, nodelease.ErrMisconfigured, "42704", "pool "+p.Name+" doesn't exist", "as the owner of schema", statement)
			if server := (*pgconn.PgError)(nil); !errors.As(err, &server) || !strings.Contains(server.Hint, statement) {
				t.Errorf("want a hint with %s, got %v", statement, err)
			}
			wrong(t, execute(ctx, app, statement), nil, "42501", "create_node_pool")
		}
		if n := names(); n != 0 {
			t.Errorf("want no pools, got %d", n)
		}

		pools := defaultPools(idtype.SnowflakeLayout{})
		for _, p := range pools {
			claim(t, program, p, ask("a", lasting))
		}
		if n := names(); n != len(pools) {
			t.Errorf("want %d pools, got %d", len(pools), n)
		}

		// The owner creates another pool with the statement of the error. A second call does nothing.
		_, err := program.Claim(ctx, custom, ask("a", lasting))
		_, statement, _ := strings.Cut(err.Error(), ", run ")
		statement, _, _ = strings.Cut(statement, ": "+nodelease.ErrMisconfigured.Error())
		for range 2 {
			must(t, execute(ctx, admin, statement))
		}
		claim(t, program, custom, ask("a", lasting))
		custom.Size++
		_, err = program.Claim(ctx, custom, ask("b", lasting))
		wrong(t, err, nodelease.ErrPoolMismatch, "5 numbers", "6 numbers")
		for _, arguments := range []string{"NULL, 1, 'x'", "'X', 1, 'x'", "'x', 0, 'x'", "'x', 65537, 'x'", "'x', 1, NULL", "'x', 1, repeat('x', 1001)", "'x', NULL, 'x'"} {
			if err := execute(ctx, admin, "SELECT sortkey.create_node_pool("+arguments+")"); err == nil || !strings.Contains(err.Error(), "22023") {
				t.Errorf("create_node_pool(%s): want SQLSTATE 22023, got %v", arguments, err)
			}
		}
	})
}

// The default pools follow the layouts of the installation.
func TestDefaultPools(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		l := idtype.SnowflakeLayout{Epoch: time.UnixMilli(1_600_000_000_000), DatacenterBits: 3, WorkerBits: 5, SequenceBits: 14}
		must(t, migrations.Up(t.Context(), db.SQL(t), migrations.Config{Snowflake: l, SnowflakeSI: si}))
		_, app := role(t, db, "app")
		program := pglease.New(app, pglease.Config{})
		for _, p := range append(defaultPools(l), nodelease.ForSnowflakeSI(si)) {
			claim(t, program, p, ask("a", lasting))
		}
		_, err := program.Claim(t.Context(), nodelease.ForSnowflake(idtype.SnowflakeLayout{}), ask("b", lasting))
		wrong(t, err, nodelease.ErrPoolMismatch, "256 numbers", "1024 numbers")
		// Each number that defaults can use is in the pool that claims use.
		for format, numbers := range map[string][]int{"snowflake": {0, 255}, "snowflake_si": {0, 255}, "spread64": {0, 1023}, "sno": {0, 65535}} {
			for _, n := range numbers {
				if !one[bool](t, db.SQL(t), "SELECT count(*) = 1 AND bool_and(l.pool IS NOT NULL) FROM sortkey_internal.node_pools($1, $2) p LEFT JOIN sortkey.node_status l USING (pool, number)", format, n) {
					t.Errorf("%s %d: want one number of a pool", format, n)
				}
			}
		}
	})
}

// A program with claims can't stop the defaults of the database with a pool in which their
// number isn't reserved.
func TestClaimsLeaveDefaults(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		_, app := role(t, db, "app")
		program, p := pglease.New(app, pglease.Config{}), nodelease.ForSnowflake(idtype.DefaultSnowflakeLayout())
		refused := func(name string) {
			t.Helper()
			p := p
			p.Name = name
			_, err := program.Claim(t.Context(), p, ask("a", lasting))
			wrong(t, err, nodelease.ErrMisconfigured, "create_node_pool")
		}
		claim(t, program, p, ask("a", lasting))
		refused("early")
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1023, 'defaults'); ALTER DATABASE "+db.Name+" SET sortkey.node = 1023")
		refused("late")
		must(t, execute(t.Context(), db.SQL(t), "SELECT sortkey.next_snowflake()")) // in a new session
	})
}

// If the installation's owner is no superuser, its members create pools by claims, and other
// roles don't.
func TestOwnerCreatesPools(t *testing.T) {
	t.Parallel()
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		owner := db.NewRole(t, "owner", pgtest.LoginPassword)
		db.Exec(t, "GRANT CREATE ON DATABASE "+db.Name+" TO "+owner)
		must(t, migrations.Up(t.Context(), db.SQL(t, pgtest.Login(owner)), migrations.Config{}))
		member, members := role(t, db, "member")
		db.Exec(t, fmt.Sprintf("GRANT %s TO %s", owner, member))
		_, others := role(t, db, "other")

		p := small(5)
		_, err := pglease.New(others, pglease.Config{}).Claim(t.Context(), p, ask("a", lasting))
		wrong(t, err, nodelease.ErrMisconfigured, "create_node_pool")
		for i, pool := range []*sql.DB{members, db.SQL(t, pgtest.Login(owner)), db.SQL(t)} {
			p.Name = fmt.Sprint("small-", i)
			claim(t, pglease.New(pool, pglease.Config{}), p, ask("a", lasting))
			claim(t, pglease.New(others, pglease.Config{}), p, ask("b", lasting))
		}
	})
}

// No call leaves a high-water mark that is more than a day and the TTL ahead.
func TestMarksAhead(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx := t.Context()
		admin := db.SQL(t)
		_, app := role(t, db, "app")
		s, p := pglease.New(app, pglease.Config{}), nodelease.ForSpread64(1)
		at := func(holder string, ahead, maxSkew time.Duration) nodelease.Request {
			r := ask(holder, lasting)
			r.Now, r.Until, r.MaxSkew = r.Now+ahead.Milliseconds(), r.Until+ahead.Milliseconds(), maxSkew
			return r
		}
		const day = 24 * time.Hour
		held := claim(t, s, p, at("held", 0, 0))
		for _, ahead := range []time.Duration{25 * time.Hour, 80 * 365 * day} {
			for _, maxSkew := range []time.Duration{0, day, 48 * time.Hour, 1 << 62} {
				r := at("ahead", ahead, maxSkew)
				_, err := s.Claim(ctx, p, r)
				local := time.UnixMilli(r.Now).UTC().Format("2006-01-02T15:04:05.000Z")
				wrong(t, err, nodelease.ErrClockSkew, local, "24h0m0s after the server's clock", "no MaxSkew raises this limit")
				_, err = s.Renew(ctx, p, held, r)
				wrong(t, err, nodelease.ErrClockSkew, local, "24h0m0s after the server's clock", "no MaxSkew raises this limit", fmt.Sprint("renew number ", held.Number))
			}
		}
		_, err := s.Claim(ctx, p, at("behind", -72*time.Hour, 48*time.Hour))
		wrong(t, err, nodelease.ErrClockSkew, "behind the store's", "want at most 48h0m0s")
		long := at("long", 0, 0)
		long.Until += 2 * day.Milliseconds() // a right clock, but the end of the claim is far ahead
		_, err = s.Claim(ctx, p, long)
		wrong(t, err, nodelease.ErrClockSkew, "more than its TTL and 24h0m0s")

		const last = "253402300799999" // the last millisecond of the year 9999
		for _, call := range []string{
			"claim_node('spread64-1', 64, 'spread64: cluster 1', '{}', 'x', 60000, 1, " + last + ", %s)",
			"claim_node('spread64-1', 64, 'spread64: cluster 1', '{}', 'x', 60000, " + last + ", " + last + ", %s)",
			fmt.Sprintf("renew_node('spread64-1', %d, 1, 'held', 60000, %s, NULL, %%s)", held.Number, last),
			fmt.Sprintf("renew_node('spread64-1', %d, 1, 'held', 60000, %s, %[2]s, %%s)", held.Number, last),
		} {
			for _, maxSkew := range []string{"NULL", "9223372036854775807"} {
				call := fmt.Sprintf(call, maxSkew)
				if !one[bool](t, app, "SELECT skewed FROM sortkey."+call) {
					t.Errorf("%s: want skewed", call)
				}
			}
		}
		must(t, execute(ctx, app, fmt.Sprintf("SELECT sortkey.release_node('spread64-1', %d, 1, 'held', %s)", held.Number, last)))
		if mark := one[int64](t, admin, "SELECT mark FROM sortkey.node_lease WHERE number = $1", held.Number); mark != held.Until {
			t.Errorf("after the release: want a high-water mark of %d, got %d", held.Until, mark)
		}
		if n := one[int](t, admin, "SELECT count(*) FROM sortkey.node_lease WHERE mark > $1", held.Until); n != 0 {
			t.Errorf("want no further high-water marks, got %d", n)
		}

		// Clocks that differ by less work without MaxSkew. So does a clock that is far behind, which leaves no mark ahead.
		for i, ahead := range []time.Duration{23 * time.Hour, time.Hour, -time.Hour, -25 * time.Hour, -20 * 365 * day} {
			c := claim(t, s, p, at(fmt.Sprint("clock ", i), ahead, 0))
			_, err := s.Renew(ctx, p, c, at("", ahead, 0))
			must(t, err)
		}
	})
}
