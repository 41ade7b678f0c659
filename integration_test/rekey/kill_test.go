//go:build unix

package rekey

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// killSources returns a source of random choices for each run of a test with kills.
func killSources(t testing.TB) (list []*rand.Rand) {
	t.Helper()
	seed := rand.Uint64N(1 << 32)
	if s := os.Getenv("SORTKEY_SEED"); s != "" {
		seed = must1(strconv.ParseUint(s, 10, 64))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("SORTKEY_SEED=%d repeats the random choices", seed)
		}
	})
	runs := pgtest.Scaled(1, 2)
	if soak {
		runs = 50
	}
	for i := range runs {
		list = append(list, rand.New(rand.NewPCG(seed, uint64(i))))
	}
	return list
}

// A stepper is a process that runs steps.
type stepper struct {
	cmd     *exec.Cmd
	reports *bufio.Scanner // a line per report
	trouble bytes.Buffer
}

// stepper starts a stepper, which ends when a step is complete.
func (k *killTest) stepper(until rekey.Step) *stepper {
	k.Helper()
	u, err := url.Parse(k.db.URL)
	must(k, err)
	u.User = url.UserPassword(k.db.Name+"_owner", "secret") // of the tables
	program, err := os.Executable()
	must(k, err)
	s := &stepper{cmd: exec.Command(program, u.String())}
	s.cmd.SysProcAttr = pgtest.Child()
	s.cmd.Env = append(os.Environ(), stepperVar+"="+string(until))
	s.cmd.Stderr = &s.trouble
	out, err := s.cmd.StdoutPipe()
	must(k, err)
	s.reports = bufio.NewScanner(out)
	must(k, s.cmd.Start())
	return s
}

// A kill test kills the stepper at random points, and starts it again until all steps are
// complete.
type killTest struct {
	*shop
	random *rand.Rand
	// server, if not nil, kills the server and starts it again.
	server func()
	kills  []string
}

// until runs the stepper until a step is complete, and kills it up to a number of times, each
// after up to a number of reports. It calls probe after each kill.
func (k *killTest) until(step rekey.Step, kills, reports int, probe func()) {
	k.Helper()
	for n := 0; ; n++ {
		s, left := k.stepper(step), math.MaxInt
		if n < kills {
			left = k.random.IntN(reports + 1)
		}
		for ; left > 0 && s.reports.Scan(); left-- {
		}
		if left > 0 { // the process has ended
			if err := s.cmd.Wait(); err != nil {
				k.Fatalf("stepper: %v: %s", err, s.trouble.String())
			}
			return
		}
		time.Sleep(time.Duration(k.random.IntN(20_000)) * time.Microsecond)
		what := "stepper"
		if k.server != nil {
			what = "server"
			if k.random.IntN(2) == 0 { // otherwise, the stepper sees the end of its connections
				what = "stepper and server"
				_ = s.cmd.Process.Kill()
			}
			k.server()
		}
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		k.kills = append(k.kills, fmt.Sprintf("%s after %q", what, s.reports.Text()))
		probe()
	}
}

// complete goes the whole way of a shop.
func (k *killTest) complete() {
	plan := k.inspect()
	k.Cleanup(func() { k.Logf("killed: %q", k.kills) })
	k.snapshot()
	old, fresh := k.program("old", 0, false), k.program("new", 1, true)
	// work runs a program during steps. If the server is killed, the program works after each
	// kill only.
	work := func(p *program, step rekey.Step, kills, reports int) {
		if k.server != nil {
			k.until(step, kills, reports, func() {
				p.connect()
				p.probe(k)
				p.conn.Close(k.Context())
			})
			return
		}
		stop := repeat(k, 5*time.Millisecond, func(int) error { return p.work(context.WithoutCancel(k.Context())) })
		k.until(step, kills, reports, func() {})
		stop()
	}
	work(old, rekey.StepValidate, 5, len(plan.Actions))
	k.wantStatus(rekey.StepValidate, rekey.StepContract)
	k.verify(oldPath)
	k.verify(newPath)
	k.agree(plan, 0)
	for _, p := range []*program{old, fresh} {
		p.connect()
		p.probe(k)
	}
	k.agree(plan, 0)
	fresh.worker = old.worker
	work(fresh, rekey.StepContract, 2, 12)
	k.wantStatus(rekey.StepContract, rekey.StepCleanup)
	work(fresh, rekey.StepUndo, 2, 6)
	k.wantStatus(rekey.StepValidate, rekey.StepContract)
	k.verify(oldPath)
	k.agree(plan, 0)
	work(fresh, rekey.StepContract, 1, 12)
	work(fresh, rekey.StepCleanup, 2, 12)
	fresh.connect()
	fresh.probe(k)
	k.verify(oldPath)
	k.verifyIDs()
	k.verifyPrograms()
}

// If a program is killed at any point of a step, repeating the step completes it. The
// programs of both versions work throughout.
func TestKill(t *testing.T) {
	for i, random := range killSources(t) {
		t.Run(fmt.Sprint("run ", i), func(t *testing.T) {
			pgtest.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
				(&killTest{shop: newShop(t, db, 1000), random: random}).complete()
			})
		})
	}
}

// The same if the server is killed, alone or together with the program.
func TestKillServer(t *testing.T) {
	t.Parallel()
	for i, random := range killSources(t) {
		t.Run(fmt.Sprint("run ", i), func(t *testing.T) {
			pgtest.OneServer(t, func(t *testing.T, db *pgtest.DB) {
				db.Exec(t, "ALTER DATABASE "+db.Name+" SET synchronous_commit = on") // otherwise, a killed server loses the last commits
				k := &killTest{shop: newShop(t, db, 1000), random: random}
				k.server = func() {
					pgtest.Stop(t, db.Container(), "KILL")
					pgtest.Start(t, db.Container())
					pgtest.Eventually(t, "the server answers", func() error {
						conn, err := pgx.Connect(t.Context(), db.URL)
						if err != nil {
							return err
						}
						return conn.Close(t.Context())
					})
					k.session = k.connect(oldVersion)
				}
				k.complete()
			})
		})
	}
}
