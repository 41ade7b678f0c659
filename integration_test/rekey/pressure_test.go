package rekey

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/rekey"
)

// shell runs a command in the container of a server as the operating system user postgres.
func shell(t testing.TB, db *pgtest.DB, command string) {
	t.Helper()
	out, err := pgtest.Exec(t, db.Container(), "postgres", "sh", "-c", command)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The backfill waits for a standby that is further behind than MaxLag, waits while more WAL than
// MaxUnarchived isn't archived, and slows down while autovacuum is behind.
func TestPressure(t *testing.T) {
	t.Parallel()
	const rows = 20_000
	pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		must(t, migrations.Up(t.Context(), pool, config))
		db.Exec(t, fmt.Sprintf(events, rows)+"; ANALYZE events")
		conn := db.Conn(t)
		shell(t, db, "echo 'host replication follower 127.0.0.1/32 trust' >>"+pgtest.Value[string](t, conn, "SHOW hba_file"))
		db.Exec(t, "CREATE ROLE follower REPLICATION LOGIN")
		db.Exec(t, "ALTER SYSTEM SET autovacuum_naptime = '1h'")
		db.Exec(t, "SELECT pg_reload_conf()")
		pgtest.Eventually(t, "the standby is created", func() error {
			_, err := pgtest.Exec(t, db.Container(), "postgres", "sh", "-c", "rm -rf /tmp/standby && pg_basebackup -h 127.0.0.1 -U follower -D /tmp/standby -R -c fast --no-sync && chmod 700 /tmp/standby")
			return err
		})
		shell(t, db, `pg_ctl -D /tmp/standby -l /tmp/standby.log -w -o "-p 5433 -c fsync=off -c max_connections=300 -c cluster_name=follower" start >/dev/null || { cat /tmp/standby.log; false; }`)
		status := pgtest.Value[string](t, conn, "SHOW data_directory") + "/pg_wal/archive_status"

		for _, c := range []struct {
			name          string
			options       rekey.Options
			begin, relief string // commands
			want          string
			waits         bool
		}{
			{"a standby", rekey.Options{MaxLag: 2 * time.Second, MaxDead: -1}, "psql -XAtq -p 5433 -c 'SELECT pg_wal_replay_pause()' postgres", "psql -XAtq -p 5433 -c 'SELECT pg_wal_replay_resume()' postgres", "replica follower is ", true},
			{"the archive", rekey.Options{MaxUnarchived: 40 << 20, MaxLag: -1, MaxDead: -1}, "for n in 1 2 3; do touch " + status + "/00000009000000000000000$n.ready; done", "rm " + status + "/00000009*", "the archive of the WAL is ", true},
			{"autovacuum", rekey.Options{MaxDead: 1000}, "true", "true", "slow, since autovacuum is behind: public.events has ", false},
		} {
			t.Run(c.name, func(t *testing.T) {
				mustRun(t, pool, eventsSpec(), rekey.Options{}, rekey.StepExpand)
				shell(t, db, c.begin)
				var waiting []string
				var before, after int64 // rows done while the backfill waits
				o := c.options
				o.Pause = 0.93
				o.Progress = func(p rekey.Progress) {
					if p.Waiting == "" {
						return
					}
					waiting = append(waiting, p.Waiting)
					switch len(waiting) {
					case 1:
						before = p.Rows
					case 2:
						after = p.Rows
						shell(t, db, c.relief)
					}
				}
				mustRun(t, pool, eventsSpec(), o, rekey.StepBackfill)
				got := ""
				if len(waiting) > 0 {
					got = waiting[0]
				}
				if !strings.HasPrefix(got, c.want) {
					t.Errorf("expected %q, got %q", c.want, waiting)
				}
				if c.waits && (len(waiting) < 2 || before != after) {
					t.Errorf("expected the backfill to wait, got %d rows and then %d, and %q", before, after, waiting)
				}
				mustRun(t, pool, eventsSpec(), rekey.Options{}, rekey.StepAbort)
				db.Exec(t, "VACUUM FULL events")
				time.Sleep(1100 * time.Millisecond) // until its node numbers can be reserved
			})
		}
		shell(t, db, "pg_ctl -D /tmp/standby -m immediate stop")
	})
}
