package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"golang.org/x/sys/unix"
)

// openTerminal opens a pseudo-terminal: the side of the emulator, and that of the
// command.
func openTerminal(t *testing.T) (emulator, terminal *os.File) {
	t.Helper()
	emulator, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	pgtest.Must(t, err)
	t.Cleanup(func() { emulator.Close() })
	fd := int(emulator.Fd())
	pgtest.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	pgtest.Must(t, err)
	pgtest.Must(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	pgtest.Must(t, err)
	return emulator, terminal
}

// Progress is a line on a terminal, too, before the message of an interrupt.
func TestAuditTerminal(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		auditInstall(t, db)
		db.Exec(t, "CREATE TABLE big (id bigint PRIMARY KEY); INSERT INTO big SELECT g FROM generate_series(1, 20000) g; ANALYZE big")
		emulator, terminal := openTerminal(t)
		c := command(db, "audit", "big", "--type", "snowflake", "--rate", "1000")
		c.Stderr = terminal
		var out bytes.Buffer
		c.Stdout = &out
		pgtest.Must(t, c.Start())
		pgtest.Must(t, terminal.Close())
		var screen bytes.Buffer
		buf, interrupted := make([]byte, 4096), false
		for {
			n, err := emulator.Read(buf)
			screen.Write(buf[:n])
			if err != nil {
				break // the process has ended
			}
			if !interrupted && strings.Contains(screen.String(), "rows/s") { // a second signal would end the process at once
				interrupted = true
				pgtest.Must(t, c.Process.Signal(syscall.SIGINT))
			}
		}
		_ = c.Wait()
		lines := strings.Split(strings.ReplaceAll(screen.String(), "\r\n", "\n"), "\n")
		if code := c.ProcessState.ExitCode(); code != 130 || out.Len() > 0 || len(lines) != 3 || !strings.Contains(lines[0], " of about 20,000 rows (") ||
			lines[1] != "sortkey: interrupted" || lines[2] != "" {
			t.Errorf("code %d, output %q, screen %q", code, out.String(), lines)
		}
	})
}

// The command needs little memory for many rows, even if each one is a finding.
func TestAuditMemory(t *testing.T) {
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		auditInstall(t, db)
		rows := pgtest.Scaled(500_000, 2_000_000)
		db.Exec(t, fmt.Sprintf(`CREATE TABLE big (id bigint, created_at timestamptz);
			INSERT INTO big SELECT sortkey.snowflake_floor(timestamptz '2021-02-01Z' + g * interval '1 min') + (g %% 1024 << 12), '2030-01-01' FROM generate_series(1, %d) g;
			INSERT INTO big SELECT 583, timestamptz '2021-01-01Z' + g * interval '1 min' FROM generate_series(1, 100000) g; -- one ID
			CREATE INDEX ON big (id); ANALYZE big; SELECT sortkey.reserve_node('snowflake', 7, 'tests')`, rows))
		c := command(db, "audit", "big.id", "--type", "snowflake", "--created-at", "created_at", "-o", "json")
		r := finish(t, c)
		var a auditJSON
		pgtest.Must(t, json.Unmarshal([]byte(r.out), &a))
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
