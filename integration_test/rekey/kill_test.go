//go:build unix

package rekey

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
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

// killSeeds is the number of seeds of each test with kills.
func killSeeds() int {
	if soak {
		return 50
	}
	return pgtest.Scaled(1, 2)
}

// seed returns the seed of the first run.
func seed(t testing.TB) uint64 {
	t.Helper()
	first := rand.Uint64N(1 << 32)
	if s := os.Getenv("SORTKEY_SEED"); s != "" {
		var err error
		first, err = strconv.ParseUint(s, 10, 64)
		must(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("SORTKEY_SEED=%d repeats the random choices", first)
		}
	})
	return first
}

// A stepper is a process that runs runStepper.
type stepper struct {
	cmd     *exec.Cmd
	reports chan string // closed when the process ends
	trouble bytes.Buffer
	exited  chan error
}

// start starts a stepper.
func start(t testing.TB, database string, until rekey.Step) *stepper {
	t.Helper()
	program, err := os.Executable()
	must(t, err)
	s := &stepper{cmd: exec.Command(program, database), reports: make(chan string, 10_000), exited: make(chan error, 1)}
	s.cmd.SysProcAttr = pgtest.Child()
	s.cmd.Env = append(os.Environ(), stepperVar+"="+string(until))
	s.cmd.Stderr = &s.trouble
	out, err := s.cmd.StdoutPipe()
	must(t, err)
	must(t, s.cmd.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			s.reports <- lines.Text()
		}
		s.exited <- s.cmd.Wait()
		close(s.reports)
	}()
	return s
}

// after waits for a number of reports and a duration. It reports whether the process
// still runs, and the last report.
func (s *stepper) after(reports int, d time.Duration) (last string, running bool) {
	for range reports {
		line, ok := <-s.reports
		if !ok {
			return last, false
		}
		last = line
	}
	time.Sleep(d)
	return last, true
}

// kill kills the process and waits for its end.
func (s *stepper) kill() {
	_ = s.cmd.Process.Kill()
	for range s.reports {
	}
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

// until runs the stepper until a step is complete, and kills it up to a number of times.
// It calls probe after each kill.
func (k *killTest) until(step rekey.Step, kills, reports int, probe func()) {
	k.Helper()
	u, err := url.Parse(k.db.URL)
	must(k, err)
	u.User = url.UserPassword(k.db.Name+"_owner", "secret") // of the tables
	for range kills {
		s := start(k, u.String(), step)
		last, running := s.after(k.random.IntN(reports+1), time.Duration(k.random.IntN(20_000))*time.Microsecond)
		if !running {
			k.ended(s)
			return
		}
		what := "stepper"
		if k.server != nil {
			if k.random.IntN(2) == 0 {
				k.server() // the stepper sees the end of its connections
				what = "server"
			} else {
				s.kill()
				k.server()
				what = "stepper and server"
			}
		}
		s.kill()
		k.kills = append(k.kills, fmt.Sprintf("%s after %q", what, last))
		probe()
	}
	s := start(k, u.String(), step)
	for range s.reports {
	}
	k.ended(s)
}

// ended fails the test unless the stepper has ended without an error.
func (k *killTest) ended(s *stepper) {
	k.Helper()
	select {
	case err := <-s.exited:
		if err != nil {
			k.Fatalf("stepper: %v: %s", err, s.trouble.String())
		}
	case <-time.After(time.Minute):
		k.Fatal("the stepper didn't end")
	}
}

// complete goes the whole way of a shop.
func (k *killTest) complete() {
	plan := k.inspect()
	k.Cleanup(func() { k.Logf("killed: %q", k.kills) })
	k.snapshot()
	old, fresh := k.program("old", false), k.program("new", true)
	// work runs a program during steps. If the server is killed, the program works after each
	// kill only.
	work := func(p *program, step rekey.Step, kills, reports int) {
		if k.server != nil {
			k.until(step, kills, reports, func() {
				p.connect(k.shop)
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
		p.connect(k.shop)
		p.probe(k)
	}
	k.agree(plan, 0)
	fresh.takeOver(old)
	work(fresh, rekey.StepContract, 3, 2)
	fresh.connect(k.shop)
	fresh.probe(k)
	k.verify(oldPath)
	k.verifyIDs()
	k.verifyPrograms(fresh)
}

// If a program is killed at any point of a step, repeating the step completes it. The
// programs of both versions work throughout.
func TestKill(t *testing.T) {
	first := seed(t)
	for i := range killSeeds() {
		t.Run(fmt.Sprint("seed ", i), func(t *testing.T) {
			t.Parallel()
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
				k := &killTest{shop: newShop(t, db, 1000), random: rand.New(rand.NewPCG(first, uint64(i)))}
				k.complete()
			})
		})
	}
}

// The same if the server is killed, alone or together with the program.
func TestKillServer(t *testing.T) {
	t.Parallel()
	first := seed(t)
	pgtest.OneServer(t, func(t *testing.T, server *pgtest.DB) {
		for i := range killSeeds() {
			t.Run(fmt.Sprint("seed ", i), func(t *testing.T) {
				name := fmt.Sprintf("%s_seed_%d", server.Name, i)
				server.Exec(t, "CREATE DATABASE "+name+" TEMPLATE template0")
				// Otherwise, a killed server loses the last commits.
				server.Exec(t, "ALTER DATABASE "+name+" SET synchronous_commit = on")
				u, err := url.Parse(server.URL)
				must(t, err)
				u.Path = "/" + name
				db := &pgtest.DB{Name: name, URL: u.String(), Version: server.Version}
				k := &killTest{shop: newShop(t, db, 1000), random: rand.New(rand.NewPCG(first, uint64(i)))}
				k.server = func() {
					k.own = nil
					pgtest.Stop(t, server.Container(), "KILL")
					pgtest.Start(t, server.Container())
					pgtest.Eventually(t, "the server answers", func() error {
						conn, err := pgx.Connect(t.Context(), db.URL)
						if err != nil {
							return err
						}
						return conn.Close(t.Context())
					})
				}
				k.complete()
			})
		}
	})
}
