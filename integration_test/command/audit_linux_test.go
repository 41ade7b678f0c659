package command_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The command needs little memory for many rows, even if each one is a finding.
func TestAuditMemory(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		rows := pgtest.Scaled(500_000, 2_000_000)
		db.Exec(t, fmt.Sprintf(`CREATE TABLE big (id bigint, created_at timestamptz);
			INSERT INTO big SELECT sortkey.snowflake_floor(timestamptz '2021-02-01Z' + g * interval '1 min') + (g %% 1024 << 12), '2030-01-01' FROM generate_series(1, %d) g;
			INSERT INTO big SELECT 583, timestamptz '2021-01-01Z' + g * interval '1 min' FROM generate_series(1, 100000) g; -- one ID
			CREATE INDEX ON big (id); ANALYZE big; SELECT sortkey.reserve_node('snowflake', 7, 'tests')`, rows))
		c := command(t, db, "audit big.id --type snowflake --created-at created_at -o json")
		a := parseAudit(t, finish(t, c))
		if a.Rows != int64(rows)+100_000 || len(a.counts()) < 3 {
			t.Errorf("got %d rows and %q", a.Rows, a.counts())
		}
		usage := c.ProcessState.SysUsage().(*syscall.Rusage)
		t.Logf("%d rows: %d KB", a.Rows, usage.Maxrss)
		if usage.Maxrss > 100<<10 { // in KB
			t.Errorf("%d rows: the largest resident set is %d KB, want at most 100 MB", a.Rows, usage.Maxrss)
		}
	})
}
