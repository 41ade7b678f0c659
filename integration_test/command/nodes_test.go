package command_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// claim claims a node number, as a program does, by default for so long that no renewal
// comes during a test.
func claim(t *testing.T, db *pgtest.DB, pool nodelease.Pool, o nodelease.Options) *nodelease.Keeper {
	t.Helper()
	o.TTL = cmp.Or(o.TTL, 10*time.Minute)
	k, err := nodelease.Acquire(t.Context(), pglease.New(db.SQL(t), pglease.Config{}), pool, o)
	pgtest.Must(t, err)
	t.Cleanup(func() { _ = k.Close() })
	return k
}

// snowflakes is the pool of the default layout.
var snowflakes = nodelease.ForSnowflake(idtype.SnowflakeLayout{})

// The lists show held, reserved and used numbers, and a holder whose clock is ahead.
func TestNodesList(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		wantSame(t, must(t, db, "nodes list"), "") // without pools
		claim(t, db, snowflakes, nodelease.Options{Holder: "orders 1"})
		ahead := claim(t, db, snowflakes, nodelease.Options{Holder: "orders 2", Clock: func() time.Time { return time.Now().Add(time.Hour) }})
		ids, err := nodelease.NewSnowflakeGenerator(t.Context(), pglease.New(db.SQL(t), pglease.Config{}), idtype.SnowflakeConfig{}, nodelease.Options{})
		pgtest.Must(t, err)
		_, err = ids.Next()
		pgtest.Must(t, err)
		pgtest.Must(t, ids.Close())
		time.Sleep(100 * time.Millisecond) // the clock passes the mark
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop'), sortkey.reserve_node('spread64', 1023, 'imports')")
		db.Exec(t, "UPDATE sortkey.node_pool SET fenced_until = '2999-01-02 03:04:05Z'")

		const fence = `2999-01-02 03:04:05\.000 UTC`
		wantMatch(t, must(t, db, "nodes list"),
			`^POOL SIZE HELD RESERVED FREE AHEAD FENCE LAYOUT$`,
			`^snowflake 1024 2 1 1021 0 `+fence+` snowflake: epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12$`,
			`^spread64-15 0 1 0 \(not used yet\)$`)
		pools := objects(t, must(t, db, "nodes list -o json"))
		if len(pools) != 2 {
			t.Fatalf("got %d pools, want 2", len(pools))
		}
		wantFields(t, pools[0], `{"held": 2, "free": 1021, "fenced_until": "2999-01-02T03:04:05Z"}`)
		wantFields(t, pools[1], `{"size": null}`)
		findings := pools[0]["findings"].([]any)
		if len(findings) != 2 || findings[0].(map[string]any)["id"] != "pool-fenced" || findings[1].(map[string]any)["id"] != "mark-ahead" || pools[1]["findings"] == nil {
			t.Errorf("got findings %v", findings)
		}
		wantMatch(t, must(t, db, "nodes list"), `^ problem pool snowflake: fenced: .* \[pool-fenced\]$`, `^ warning number 1 of pool snowflake: high-water mark 1h\d+m\d+s ahead .* \[mark-ahead\]$`, `^ → correct the clock of orders 2$`)
		abroad := command(t, db, "nodes list -o json")
		abroad.Env = append(abroad.Env, "TZ=Asia/Kolkata")
		wantParts(t, finish(t, abroad).out, `"2999-01-02T03:04:05Z"`)

		const stamp = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC`
		out := must(t, db, "nodes list snowflake")
		wantMatch(t, out,
			`^POOL NUMBER STATE HOLDER CLAIMED EXPIRES MARK MARK AHEAD TERM NOTE$`,
			`^snowflake 0 held orders 1 (now|\d+ seconds? ago) \d+ minutes from now `+stamp+` \+\d+m\d+s 1$`,
			`^snowflake 1 held orders 2 (now|\d+ seconds? ago) \d+ minutes from now `+stamp+` \+1h\d+m\d+s 1$`,
			`^snowflake 2 free `+stamp+` -[\d.]+m?s 1$`,
			`^snowflake 1023 reserved 0 defaults of shop$`)
		wantSame(t, strings.Count(out, "\n"), 5)
		wantMatch(t, must(t, db, "nodes list spread64"), `^spread64-15 63 reserved 0 imports$`)

		numbers := objects(t, must(t, db, "nodes list --all --output json"))
		if len(numbers) != 5 {
			t.Fatalf("got %d numbers, want 5", len(numbers))
		}
		n := numbers[1]
		wantFields(t, n, `{"holder": "orders 2", "state": "held", "ttl_seconds": 600, "note": null, "term": 1}`)
		wantFields(t, numbers[2], `{"state": "free", "ttl_seconds": null, "expires_at": null}`)
		if ahead := n["mark_ahead_seconds"].(float64); ahead < 3600 || ahead > 4200 {
			t.Errorf("got a mark %v s ahead, want an hour and up to a TTL", ahead)
		}
		mark, err := time.Parse(time.RFC3339, n["mark"].(string))
		if err != nil || mark.UnixMilli() != ahead.Until() {
			t.Errorf("got mark %v, %v; the holder has %v", mark, err, time.UnixMilli(ahead.Until()))
		}

		// A holder that was killed: the number is free, but the holder could still renew.
		db.Exec(t, "UPDATE sortkey.node_lease SET expires_at = clock_timestamp() - interval '2 minutes' WHERE number = 0")
		wantMatch(t, must(t, db, "nodes list snowflake"), `^snowflake 0 free orders 1 (now|\d+ seconds? ago) 2 minutes ago `)

		// Rows that another tool has changed don't stop the lists.
		db.Exec(t, "UPDATE sortkey.node_lease SET claimed_at = NULL, expires_at = 'infinity', ttl = NULL, mark = 9223372036854775806 WHERE number = 0")
		db.Exec(t, "UPDATE sortkey.node_lease SET claimed_at = '-infinity', expires_at = NULL WHERE number = 1")
		wantMatch(t, must(t, db, "nodes list snowflake"), `^snowflake 0 held orders 1 infinity infinity infinity 1$`, `^snowflake 1 free orders 2 -infinity .* UTC `)
		wantMatch(t, must(t, db, "nodes list snowflake 0"), `^snowflake 0 held orders 1 infinity infinity infinity 1$`, `^in IDs: datacenter 0, worker 0$`)
		must(t, db, "nodes list snowflake 1")
		wantFields(t, objects(t, must(t, db, "nodes list snowflake -o json"))[0], `{"expires_at": "infinity", "mark": "infinity", "claimed_at": null, "mark_ahead_seconds": null}`)
		sortkey(t, db, "doctor")
	})
}

// List prints the holder, the fields in IDs and the defaults of a number.
func TestNodesShow(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(1023)); CREATE TABLE u (id bigint DEFAULT sortkey.next_spread64(162))`)
		wantMatch(t, must(t, db, "nodes list snowflake 1023"), // before the first claim
			`^snowflake 1023 free 0$`, `^in IDs: datacenter 31, worker 31$`, `^used by column public\.t\.id, default sortkey\.next_snowflake\(1023\)$`)
		claim(t, db, snowflakes, nodelease.Options{Holder: "orders 1"})
		claim(t, db, nodelease.ForSpread64(2), nodelease.Options{})
		claim(t, db, nodelease.Pool{Name: "own", Size: 3, Layout: "of a program"}, nodelease.Options{})
		db.Exec(t, "SELECT sortkey.reserve_node('spread64', 162, 'imports')")

		wantMatch(t, must(t, db, "nodes list snowflake 0"),
			`^snowflake 0 held orders 1 (now|\d+ seconds? ago) \d+ minutes from now .* UTC \+\d+m\d+s 1$`, `^in IDs: datacenter 0, worker 0$`)
		for _, args := range []string{"spread64 162", "spread64-2 10"} {
			got := objects(t, must(t, db, "nodes list -o json "+args))[0]
			wantFields(t, got, `{"pool": "spread64-2", "number": 10, "state": "reserved", "note": "imports"}`)
			wantFields(t, got["fields"].(map[string]any), `{"generator": 10, "cluster": 2}`)
			if defaults := got["defaults"].([]any); len(defaults) != 1 || defaults[0].(map[string]any)["name"] != "public.u.id" {
				t.Errorf("list %s: got the defaults %v", args, defaults)
			}
		}
		db.Exec(t, `CREATE TABLE p (id bigint DEFAULT sortkey.next_snowflake(7)) PARTITION BY RANGE (id);
			DO $$ BEGIN FOR i IN 1..11 LOOP EXECUTE format('CREATE TABLE p%s PARTITION OF p FOR VALUES FROM (%1$s) TO (%s)', i, i + 1); END LOOP; END $$`)
		if out := must(t, db, "nodes list snowflake 7"); strings.Count(out, "default sortkey") != 10 || !strings.Contains(out, "\n(and 2 more)\n") {
			t.Errorf("with 12 defaults: got\n%s", out)
		}
		if out := must(t, db, "nodes list own 2"); strings.Contains(out, "in IDs") || !strings.Contains(out, "own   ") {
			t.Errorf("a pool of another layout: got\n%s", out)
		}
		for args, want := range map[string]string{
			"snowflake 1024": "number 1024 of pool snowflake is out of range; want 0 to 1023",
			"sno 70000":      `node number "70000": want 0 to 65535`,
			"other 1":        `pool "other" doesn't exist; the pools are own, snowflake, spread64-2`,
			"snowflake -1":   "put -- before negative numbers",
		} {
			wantFailure(t, sortkey(t, db, "nodes list "+args), 2, want)
		}
	})
}

// Reserve without a number chooses one that nobody uses, also in concurrent commands.
func TestNodesReserve(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(), other bigint DEFAULT sortkey.next_snowflake(1023));
			SELECT sortkey.reserve_node('snowflake', 1022, 'imports')`)
		out := must(t, db, "nodes reserve snowflake")
		statement := fmt.Sprintf("ALTER DATABASE %s SET sortkey.node = 1021;", db.Name)
		wantSame(t, out, fmt.Sprintf("Reserved number 1021 of pool snowflake: defaults of %s\nIf the number is for column defaults, and no program has it, pass it to them: DEFAULT sortkey.next_snowflake(1021)\nFor defaults without a number, run this statement and reconnect:\n\n  %s\n", db.Name, statement))
		db.Exec(t, statement)
		db.Exec(t, "INSERT INTO t (other) VALUES (1)") // in a new session
		wantSame(t, pgtest.Value[int](t, db.Conn(t), "SELECT sortkey.snowflake_node(id) FROM t"), 1021)

		var ends []func() result
		for range 8 {
			ends = append(ends, start(t, command(t, db, "nodes reserve spread64 --note site -o json")))
		}
		var numbers []int
		for _, end := range ends {
			r := end()
			if r.code != 0 {
				t.Fatalf("code %d: %s", r.code, r.errs)
			}
			v := objects(t, r.out)[0]
			numbers = append(numbers, int(v["number"].(float64)))
			wantFields(t, v, fmt.Sprintf(`{"default": "sortkey.next_spread64(%[2]v)", "setting": "ALTER DATABASE %[1]s SET sortkey.node = %[2]v", "note": "site", "pool": "spread64", "already": false}`, db.Name, v["number"]))
		}
		slices.Sort(numbers)
		wantSame(t, numbers, []int{1016, 1017, 1018, 1019, 1020, 1021, 1022, 1023})
		wantSame(t, pgtest.Value[int](t, db.Conn(t), "SELECT count(*)::int FROM sortkey.node_status WHERE pool ~ '^spread64' AND reserved = 'site'"), 8)

		// A note can't forge a row.
		must(t, db, "nodes reserve sno 7 --note", "x\x1b[2K\nsno  8  held")
		if out := must(t, db, "nodes list sno"); !strings.Contains(out, `x\u001b[2K\nsno  8  held`) || strings.Count(out, "\n") != 2 {
			t.Errorf("got\n%s", out)
		}
	})
}

// Reserve takes a number neither from a holder nor from another reservation. Numbers and
// pools that no format has are errors.
func TestNodesReserveOfOthers(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		for args, want := range map[string]string{
			"snowflake 1024":  "number 1024 of pool snowflake is out of range; want 0 to 1023",
			"spread64 1024":   "number 1024 of pool spread64 is out of range; want 0 to 1023",
			"spread64-3 64":   "number 64 of pool spread64-3 is out of range; want 0 to 63",
			"snowflake_si 30": `pool "snowflake_si" doesn't exist; want snowflake, snowflake-si, spread64, spread64-0 to spread64-15, sno, or the pool of a program`,
			"snowflakes 3":    `pool "snowflakes" doesn't exist; want snowflake,`,
			"spread64-16 3":   `pool "spread64-16" doesn't exist; want snowflake,`,
			"snowflake -1":    "put -- before negative numbers",
		} {
			wantFailure(t, sortkey(t, db, "nodes reserve "+args), 2, want, "--help for the usage")
		}
		must(t, db, "nodes reserve snowflake-si 3")

		// A reservation of an older installation.
		db.Exec(t, "INSERT INTO sortkey.node_lease (pool, number, reserved) VALUES ('snowflake', 1024, 'x')")
		out := must(t, db, "nodes list snowflake 1024")
		wantMatch(t, out, `^snowflake 1024 reserved 0 x$`, `^in IDs: out of range; want 0 to 1023$`)
		must(t, db, "nodes release snowflake 1024")

		pool := nodelease.Pool{Name: "own", Size: 2, Layout: "of a program"}
		wantFailure(t, sortkey(t, db, "nodes reserve snowflake-si"), 2, `pool "snowflake-si" doesn't exist yet, and its size is unknown: pass a NUMBER`)
		k := claim(t, db, pool, nodelease.Options{Holder: "orders 1"})
		wantFailure(t, sortkey(t, db, "nodes reserve own 0 --note mine"), 2, `number 0 of pool own is held by "orders 1" until `, "or stop the holder")
		db.Exec(t, "SELECT sortkey.reserve_node('own', 0, 'mine', while_held => true)")
		wantMatch(t, must(t, db, "nodes list own"), `^own 0 held orders 1 .* mine$`)
		pgtest.Must(t, k.Close())
		// The server's clock must be a second past the high-water mark, which is ahead by the TTL.
		wantFailure(t, sortkey(t, db, "nodes reserve own 0 --note mine"), 2, "number 0 of pool own may have been used until 2", "UTC; run the command again", "choose another number")
		db.Exec(t, "UPDATE sortkey.node_lease SET mark = mark - 3600000 WHERE pool = 'own' AND number = 0")
		must(t, db, "nodes reserve own 0 --note mine")
		wantFailure(t, sortkey(t, db, "nodes reserve own 0 --note yours"), 2, `sortkey: number 0 of pool own is reserved for "mine"; choose another number, or omit the number for a free one; or, if nothing uses this one any more, run sortkey nodes release own 0`)
		wantSame(t, must(t, db, "nodes reserve own 0 --note mine"), "Number 0 of pool own was reserved already: mine\n")
		wantFields(t, objects(t, must(t, db, "nodes reserve own 0 --note mine -o json"))[0], `{"number": 0, "note": "mine", "already": true}`)
		wantParts(t, must(t, db, "nodes reserve snowflake-si 3"), "Number 3 of pool snowflake-si was reserved already: defaults of ")

		wantSame(t, must(t, db, "nodes reserve own --note last"), "Reserved number 1 of pool own: last\n")
		wantFailure(t, sortkey(t, db, "nodes reserve own"), 2, "pool own has no free number among its 2 numbers")
		wantFailure(t, sortkey(t, db, "nodes reserve own 2"), 2, "number 2 of pool own is out of range; want 0 to 1")
	})
}

// A claim that was released unused counts, although it leaves no high-water mark.
func TestNodesUnused(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		ids, err := nodelease.NewSnowflakeGenerator(t.Context(), pglease.New(db.SQL(t), pglease.Config{}), idtype.SnowflakeConfig{}, nodelease.Options{})
		pgtest.Must(t, err)
		pgtest.Must(t, ids.Close())
		wantMatch(t, must(t, db, "nodes list snowflake 0"), `^snowflake 0 free 1$`)
		wantMatch(t, must(t, db, "nodes list snowflake"), `^snowflake 0 free 1$`)
	})
}

// Release cancels a reservation, and takes a number away from its holder with --force.
func TestNodesRelease(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `CREATE TABLE t (id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(1023));
			SELECT sortkey.reserve_node('snowflake', n, 'defaults of shop') FROM generate_series(1021, 1023) n`)
		wantFailure(t, sortkey(t, db, "nodes release snowflake 1023"), 2,
			"number 1023 of pool snowflake is reserved, and may be used by column public.t.id (default sortkey.next_snowflake(1023)); first change the default, and end the sessions")
		wantFailure(t, sortkey(t, db, "nodes release snowflake 1023 --force"), 2, "number 1023 of pool snowflake is reserved, and may be used by")
		db.Exec(t, "DROP TABLE t")
		wantMatch(t, must(t, db, "nodes release snowflake 1023"),
			`^Released number 1023 of pool snowflake: defaults of shop. Programs can claim it after its high-water mark, .* UTC\.$`,
			`^Sessions that have used the number can still use it until they end\.$`)
		wantFailure(t, sortkey(t, db, "nodes release snowflake 1023"), 2, "number 1023 of pool snowflake is free already")
		got := objects(t, must(t, db, "nodes release snowflake 1022 -o json"))[0]
		wantFields(t, got, `{"released": "reservation", "note": "defaults of shop", "holder": null}`)
		if got["mark"] == nil {
			t.Errorf("no mark in %v", got)
		}

		k := claim(t, db, snowflakes, nodelease.Options{Holder: "orders 1", TTL: 10 * time.Second})
		wantFailure(t, sortkey(t, db, "nodes release snowflake 0"), 2, `number 0 of pool snowflake is held by "orders 1" (until `, "pass --force")
		wantMatch(t, must(t, db, "nodes release snowflake 0 --force"), `^Took number 0 of pool snowflake away from orders 1. Programs can claim it after`)
		select {
		case <-k.Lost():
		case <-time.After(time.Minute):
			t.Error("the holder has not lost the claim")
		}
	})
}

// Release rejects a reservation that a setting of any role may use. --force is for
// claims only.
func TestNodesReleaseOfSetting(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		_, role := asRole(t, db)
		db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 5, 'x'), sortkey.reserve_node('spread64', 5, 'x'), sortkey.reserve_node('sno', 6, 'x')")
		reset := "RESET sortkey.node"
		for _, target := range []string{"DATABASE " + db.Name, "ROLE " + role + " IN DATABASE " + db.Name, "ROLE " + role} {
			db.Exec(t, "ALTER "+target+" SET sortkey.node = 5")
			for _, args := range []string{"snowflake 5", "snowflake 5 --force", "spread64 5", "spread64-5 0 --force"} {
				r := sortkey(t, db, "nodes release "+args)
				wantFailure(t, r, 2, "is reserved, and may be used by the setting sortkey.node; first run ALTER "+target+" "+reset+", and end the sessions")
			}
			db.Exec(t, "ALTER "+target+" "+reset)
		}
		db.Exec(t, "ALTER DATABASE "+db.Name+" SET sortkey.node = 5")
		must(t, db, "nodes release sno 6")
		db.Exec(t, "ALTER DATABASE "+db.Name+" "+reset)
		db.Exec(t, "CREATE TABLE t (id bigint DEFAULT sortkey.next_snowflake(1 + pg_backend_pid() % 2))")
		wantFailure(t, sortkey(t, db, "nodes release snowflake 5"), 2, "may be used by column public.t.id (default sortkey.next_snowflake((1 + (pg_backend_pid() % 2)))), whose number is no literal; first pass a literal in that default")
		must(t, db, "nodes release spread64 5") // of another format
		db.Exec(t, "DROP TABLE t")
		must(t, db, "nodes release snowflake 5")
	})
}
