package pglease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// A standby is a second server in the primary's container.
type standby struct {
	t  *testing.T
	db *pgtest.DB
}

// run runs a command in the container as the operating system user postgres.
func (s standby) run(command string) (string, error) {
	s.t.Helper()
	out, err := pgtest.Exec(s.t, s.db.Container(), "postgres", "sh", "-c", command)
	return strings.TrimSpace(out), err
}

func (s standby) must(command string) string {
	s.t.Helper()
	out, err := s.run(command)
	must(s.t, err)
	return out
}

// query runs a statement on the standby.
func (s standby) query(statement string) (string, error) {
	s.t.Helper()
	return s.run(fmt.Sprintf(`psql -XAtq -v ON_ERROR_STOP=1 -v VERBOSITY=verbose -p 5433 -d %s <<'END'
%s
END`, s.db.Name, statement))
}

// startStandby creates a standby that follows the primary.
func startStandby(t *testing.T, db *pgtest.DB) standby {
	t.Helper()
	s := standby{t, db}
	db.Exec(t, "CREATE ROLE follower REPLICATION LOGIN PASSWORD 'secret'")
	hba := one[string](t, db.SQL(t), "SHOW hba_file")
	s.must(fmt.Sprintf("echo 'host replication follower 127.0.0.1/32 trust' >>%s", hba))
	db.Exec(t, "SELECT pg_reload_conf()")
	pgtest.Eventually(t, "the standby is created", func() error {
		_, err := s.run("rm -rf /tmp/standby && pg_basebackup -h 127.0.0.1 -U follower -D /tmp/standby -R -c fast --no-sync && chmod 700 /tmp/standby")
		return err
	})
	s.start("")
	return s
}

// start starts the standby with additional settings. Its max_connections must not be
// lower than the primary's.
func (s standby) start(settings string) {
	s.t.Helper()
	out, err := s.run(`pg_ctl -D /tmp/standby -l /tmp/standby.log -w -o "-p 5433 -c fsync=off -c max_connections=300 ` + settings + `" start >/dev/null || { cat /tmp/standby.log; false; }`)
	if err != nil {
		s.t.Fatalf("start the standby: %s%v", out, err)
	}
}

// caughtUp waits until the standby has replayed the primary's log.
func (s standby) caughtUp() {
	s.t.Helper()
	lsn := one[string](s.t, s.db.SQL(s.t), "SELECT pg_current_wal_lsn()")
	pgtest.Eventually(s.t, "the standby has caught up", func() error {
		got, err := s.query(fmt.Sprintf("SELECT pg_last_wal_replay_lsn() >= '%s'", lsn))
		if err == nil && got != "t" {
			err = errors.New("it lags behind")
		}
		return err
	})
}

// A standby grants nothing. If it is promoted without the last claims and renewals, it
// still renews the claims that it knows. It grants numbers only after the lost claims
// have expired, and the new claims start after the high-water marks of the lost ones.
func TestFailover(t *testing.T) {
	t.Parallel()
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		const ttl, longest = 10 * time.Second, 10 * time.Minute
		s, p := up(t, db), small(5)
		known := claim(t, s, p, ask("known", longest))
		behind := claim(t, s, p, ask("behind", longest))
		renewed := func(c nodelease.Claim, nonce string) nodelease.Claim {
			r := ask(c.Holder, longest)
			r.Nonce = nonce
			c, err := s.Renew(t.Context(), p, c, r)
			must(t, err)
			return c
		}
		behind = renewed(behind, "first")
		replica := startStandby(t, db)
		replica.caughtUp()
		if got, err := replica.query("SELECT problem FROM sortkey.database_problems"); err != nil || got != "" {
			t.Errorf("expected a standby to be no copy, got %q, %v", got, err)
		}

		call := func(p nodelease.Pool, holder string, now int64) string {
			return fmt.Sprintf("SELECT concat_ws('|', number, term, after, ahead_count, lowest_mark) FROM sortkey.claim_node('%s', %d, '%s', '{}', '%s', %d, %d, %d)",
				p.Name, p.Size, strings.ReplaceAll(p.Layout, "'", "''"), holder, ttl.Milliseconds(), now, now+ttl.Milliseconds())
		}
		renew := func(c nodelease.Claim) string {
			return fmt.Sprintf("SELECT renewed FROM sortkey.renew_node('%s', %d, %d, '%s', %d, %d)", p.Name, c.Number, c.Term, c.Holder, longest.Milliseconds(), c.Until+1000)
		}
		release := fmt.Sprintf("SELECT sortkey.release_node('%s', %d, %d, '%s', %d)", p.Name, known.Number, known.Term, known.Holder, known.After)
		unused := p
		unused.Name = "unused"
		for _, statement := range []string{call(p, "new", time.Now().UnixMilli()), call(p, "known", time.Now().UnixMilli()),
			call(unused, "new", time.Now().UnixMilli()), renew(known), release, "SELECT sortkey.reserve_node('small', 3, 'x')"} {
			_, err := replica.query(statement)
			wrong(t, err, nil, "25006")
		}

		// Stop replication, claim a number on the primary, and promote the standby.
		replica.must("pg_ctl -D /tmp/standby -m fast -w stop >/dev/null")
		lost := claim(t, s, p, ask("lost", longest))
		behind = renewed(behind, "second")
		replica.start("-c primary_conninfo=")
		replica.must("pg_ctl -D /tmp/standby -w promote >/dev/null")
		if got, err := replica.query("SELECT count(*) FROM sortkey.node_lease WHERE holder = 'lost'"); err != nil || got != "0" {
			t.Fatalf("expected the standby to lack the claim, got %s, %v", got, err)
		}

		expect := func(statement string, want string) {
			t.Helper()
			if got, err := replica.query(statement); err != nil || got != want {
				t.Errorf("%s: expected %s, got %s, %v", statement, want, got, err)
			}
		}
		// The promoted server says so until somebody confirms that it continues alone.
		const promoted = "SELECT split_part(problem, ':', 1) FROM sortkey.database_problems"
		expect(promoted, "continues after a promotion or a recovery (timeline 00000002, before 00000001)")
		expect("SELECT sortkey.confirm_original()", "")
		expect(promoted, "")
		// The wait is the longest TTL in the pool, not the requested TTL.
		begin := time.Now().UnixMilli() - 1000 // the server's clock may differ a little
		got, err := replica.query(call(p, "new", begin))
		must(t, err)
		var ahead int
		var fence int64
		if _, err := fmt.Sscanf(got, "%d|%d", &ahead, &fence); err != nil || ahead != 3 || fence < begin+longest.Milliseconds() || fence > begin+longest.Milliseconds()+longest.Milliseconds() {
			t.Fatalf("expected 3 free numbers after %v, got %s, %v", longest, got, err)
		}
		expect(renew(known), "t")
		expect(renew(lost), "f")
		// The standby lacks the last renewal of a claim. Its holder also knows the one before.
		for _, c := range []struct{ nonces, want string }{{"{second}", "f"}, {`{second,"",first}`, "t"}, {"{second,first}", "f"}} {
			expect(fmt.Sprintf("SELECT renewed FROM sortkey.renew_node('%s', %d, %d, '%s', %d, %d, nonce => 'third', nonces => '%s')",
				p.Name, behind.Number, behind.Term, behind.Holder, longest.Milliseconds(), behind.Until+1000, c.nonces), c.want)
		}
		expect(call(p, "new", fence), fmt.Sprintf("3|%d", fence))
		// A repeated call is treated like a new claim, and has to wait.
		expect(call(p, "known", time.Now().UnixMilli()), fmt.Sprintf("4|%d", fence))
		// The new claim has the number and the term of the lost claim, but another holder,
		// and starts after the lost claim's range.
		if fence <= lost.Until {
			t.Errorf("expected the lost claim to end before %d, got %d", fence, lost.Until)
		}
		expect(call(p, "new", fence+1), fmt.Sprintf("%d|%d|%d", lost.Number, lost.Term, fence))
		expect(renew(lost), "f")
		// A new pool needs no wait.
		expect(call(unused, "new", begin), "0|1|0")

		// If the old primary continues, too, the promoted server is a copy with numbers of its own.
		numbers := one[string](t, db.SQL(t), "SELECT sortkey.reserve_for_copy('replica', 2)")
		wrong(t, execute(t.Context(), db.SQL(t), "SELECT sortkey.confirm_copy($1)", numbers), nil, "a copy of itself")
		expect("SELECT sortkey.confirm_copy('"+strings.ReplaceAll(numbers, "'", "''")+"')", "")
		expect("SELECT of_original FROM sortkey.node_pool WHERE name = 'small'", one[string](t, db.SQL(t), "SELECT int4multirange(int4range(0, 5)) - range_agg(int4range(number, number + 1)) FROM sortkey.node_lease WHERE pool = 'small' AND reserved = 'replica'"))
		must(t, execute(t.Context(), db.SQL(t), "SELECT sortkey.confirm_copy($1, snapshot => true)", numbers))
	})
}

// After the timeline is changed by hand, as after a restore, Acquire waits for the
// fence and then gets a number.
func TestFence(t *testing.T) {
	t.Parallel()
	installed.OneReused(t, func(t *testing.T, db *pgtest.DB) {
		ctx, s, p := t.Context(), store(t, db), small(2)
		must(t, s.Release(ctx, p, claim(t, s, p, ask("a", 2*time.Second)), 0))
		db.Exec(t, "UPDATE sortkey.node_pool SET timeline = ''")
		begin := time.Now()
		r := ask("b", time.Second)
		var busy *nodelease.BusyError
		if _, err := s.Claim(ctx, p, r); !errors.Is(err, nodelease.ErrClockBehind) || !errors.As(err, &busy) || busy.Ahead != 2 {
			t.Fatalf("expected two numbers ahead, got %v", err)
		}
		k, err := nodelease.Acquire(ctx, s, p, nodelease.Options{})
		must(t, err)
		if took := time.Since(begin); took < 1900*time.Millisecond {
			t.Errorf("expected to wait for 2 s, got a number after %v", took)
		}
		if fence := r.Now + busy.RetryAfter.Milliseconds() - 1; k.After() != fence {
			t.Errorf("expected a claim after %d, got %d", fence, k.After())
		}
		must(t, k.Close())
		// The fence applies once.
		k, err = nodelease.Acquire(ctx, s, p, nodelease.Options{Wait: -1})
		must(t, err)
		must(t, k.Close())
		if got := one[string](t, db.SQL(t), "SELECT timeline FROM sortkey.node_pool"); !strings.HasPrefix(got, "00000001 ") {
			t.Errorf("expected timeline 00000001 and the database, got %s", got)
		}
		// A number can't be reserved before the fence either.
		db.Exec(t, "UPDATE sortkey.node_pool SET timeline = '00000000'; UPDATE sortkey.node_lease SET mark = 0")
		for range 2 {
			// reserve_node detects the new timeline itself, without a claim before it.
			wrong(t, execute(ctx, db.SQL(t), "SELECT sortkey.reserve_node('small', 1, 'x')"), nil, "55006", "may be in use for another")
			_, err = s.Claim(ctx, p, ask("c", time.Second))
			wrong(t, err, nodelease.ErrClockBehind)
		}
	})
}

// Generators keep their numbers over a failover to a standby that lacks their last renewals, and
// create no ID twice. They create none from the end of their last claim at the old server until
// their first renewal at the promoted one.
func TestFailoverOfGenerators(t *testing.T) {
	t.Parallel()
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		host := db.DirectHost(t)
		ttl := pgtest.Scaled(9*time.Second, 30*time.Second)
		lag := ttl * 11 / 30 // a third of the TTL passes between renewals
		up(t, db)
		replica := startStandby(t, db)
		config, err := pgx.ParseConfig(db.URL)
		must(t, err)
		var moved atomic.Bool
		clients := stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
			if moved.Load() {
				c.Host, c.Port = host, 5433
			}
			return nil
		}))
		defer clients.Close()

		const generators = 8
		ctx, cancel := context.WithCancel(t.Context())
		var ids [generators]*nodelease.Generator[idtype.Snowflake]
		var created [generators][]idtype.Snowflake
		var gaps [generators]time.Duration // the longest time between two IDs
		var creating sync.WaitGroup
		defer creating.Wait()
		defer cancel()
		for i := range ids {
			ids[i], err = nodelease.NewSnowflakeGenerator(ctx, pglease.New(clients, pglease.Config{}), idtype.SnowflakeConfig{Options: idtype.Options{MaxWait: -1}}, nodelease.Options{TTL: ttl, Wait: time.Minute})
			must(t, err)
			defer ids[i].Close()
			creating.Go(func() {
				for last := time.Now(); ctx.Err() == nil; time.Sleep(time.Millisecond) {
					id, err := ids[i].Next()
					if err == nil {
						created[i] = append(created[i], id)
						gaps[i], last = max(gaps[i], time.Since(last)), time.Now()
					}
				}
			})
		}
		replica.caughtUp()

		// Stop replication, and the primary after the lag.
		replica.must("pg_ctl -D /tmp/standby -m fast -w stop >/dev/null")
		time.Sleep(lag)
		stored := one[string](t, db.SQL(t), "SELECT string_agg(nonce, ' ' ORDER BY number) FROM sortkey.node_lease")
		down := time.Now()
		moved.Store(true)
		db.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
		replica.start("-c primary_conninfo= -c listen_addresses=*")
		replica.must("pg_ctl -D /tmp/standby -w promote >/dev/null")
		if got, err := replica.query("SELECT string_agg(nonce, ' ' ORDER BY number) FROM sortkey.node_lease"); err != nil || got == stored {
			t.Fatalf("expected the standby to lack the last renewals, got %s, %v", got, err)
		}
		out := time.Since(down)
		var renewals [generators]uint64
		for i, g := range ids {
			renewals[i] = g.Stats().Renewals
		}
		for i, g := range ids {
			pgtest.Eventually(t, "the claim is renewed at the promoted server", func() error {
				if stats := g.Stats(); stats.Renewals == renewals[i] && stats.Losses == 0 {
					return fmt.Errorf("generator %d: no renewal: %w", i, stats.Claim.LastFailure)
				}
				return g.Ready()
			})
		}
		time.Sleep(ttl / 10)
		cancel()
		creating.Wait()

		seen := map[idtype.Snowflake]bool{}
		for i, g := range ids {
			if stats := g.Stats(); stats.Losses > 0 {
				t.Errorf("generator %d: expected no lost claim, got %+v", i, stats)
			}
			for _, id := range created[i] {
				if seen[id] {
					t.Fatalf("ID %v was created twice", id)
				}
				seen[id] = true
			}
		}
		t.Logf("TTL %v, lag %v, without a server for %v: %d IDs, longest times without one: %v", ttl, lag, out, len(seen), gaps)
	})
}
