//go:build unix

package rekey

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
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

// A stepper is a process of the program stepper.
type stepper struct {
	cmd     *exec.Cmd
	reports chan string // closed when the process ends
	trouble bytes.Buffer
	exited  chan error
}

// start starts a stepper.
func start(t testing.TB, program string, args ...string) *stepper {
	t.Helper()
	s := &stepper{cmd: exec.Command(program, args...), reports: make(chan string, 10_000), exited: make(chan error, 1)}
	s.cmd.SysProcAttr = pgtest.Child()
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
	t       *testing.T
	program string
	random  *rand.Rand
	spec    string // a file
	// server, if not nil, kills the server and starts it again.
	server func()
	kills  []string
	old    *program
	fresh  *program
}

// until runs the stepper until a step is complete, and kills it up to a number of times.
// It calls probe after each kill.
func (k *killTest) until(step rekey.Step, kills, reports int, probe func()) {
	k.t.Helper()
	u, err := url.Parse(k.URL)
	must(k.t, err)
	u.User = url.UserPassword(k.Name+"_owner", "secret") // of the tables
	for range kills {
		s := start(k.t, k.program, "-database", u.String(), "-spec", k.spec, "-until", string(step))
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
	s := start(k.t, k.program, "-database", u.String(), "-spec", k.spec, "-until", string(step))
	for range s.reports {
	}
	k.ended(s)
}

// ended fails the test unless the stepper has ended without an error.
func (k *killTest) ended(s *stepper) {
	k.t.Helper()
	select {
	case err := <-s.exited:
		if err != nil {
			k.t.Fatalf("stepper: %v: %s", err, s.trouble.String())
		}
	case <-time.After(time.Minute):
		k.t.Fatal("the stepper didn't end")
	}
}

// run goes the whole way of a shop.
func (k *killTest) run() {
	t := k.t
	plan, err := rekey.Inspect(t.Context(), k.owner, shopSpec(), rekey.Options{Config: config})
	must(t, err)
	text, err := json.Marshal(shopSpec())
	must(t, err)
	k.spec = filepath.Join(t.TempDir(), "spec.json")
	must(t, os.WriteFile(k.spec, text, 0o600))
	t.Cleanup(func() { t.Logf("killed: %q", k.kills) })
	k.snapshot(t)
	k.old = k.shop.program(t, "old", false)
	k.fresh = k.shop.program(t, "new", true)
	// work runs a program during a step, unless the server is killed.
	work := func(p *program, step func()) {
		if k.server != nil {
			step()
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := p.work(t.Context()); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
		defer func() {
			cancel()
			wg.Wait()
			if err := errors.Join(p.failed...); err != nil {
				t.Error(err)
			}
		}()
		step()
	}
	probe := func(p *program) {
		if k.server == nil {
			return // it works all the time
		}
		p.connect(t, k.shop)
		p.probe(t)
		p.conn.Close(t.Context())
	}
	work(k.old, func() { k.until(rekey.StepValidate, 5, len(plan.Actions), func() { probe(k.old) }) })
	wantStatus(t, k.owner, rekey.StepValidate, rekey.StepContract)
	k.verify(t, oldPath)
	k.verify(t, newPath)
	agree(t, k.Conn(t), plan, 0)
	for _, p := range []*program{k.old, k.fresh} {
		p.connect(t, k.shop)
		p.probe(t)
	}
	agree(t, k.Conn(t), plan, 0)
	k.fresh.takeOver(k.old)
	work(k.fresh, func() { k.until(rekey.StepContract, 3, 2, func() { probe(k.fresh) }) })
	k.fresh.connect(t, k.shop)
	k.fresh.probe(t)
	k.verify(t, oldPath)
	k.verifyIDs(t)
	k.verifyPrograms(t, k.fresh)
}

// If a program is killed at any point of a step, repeating the step completes it. The
// programs of both versions work throughout.
func TestKill(t *testing.T) {
	program, first := pgtest.Build(t, "./stepper"), seed(t)
	for i := range killSeeds() {
		t.Run(fmt.Sprint("seed ", i), func(t *testing.T) {
			t.Parallel()
			pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
				k := &killTest{shop: newShop(t, db, 1000), t: t, program: program, random: rand.New(rand.NewPCG(first, uint64(i)))}
				k.run()
			})
		})
	}
}

// The same if the server is killed, alone or together with the program.
func TestKillServer(t *testing.T) {
	t.Parallel()
	program, first := pgtest.Build(t, "./stepper"), seed(t)
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
				k := &killTest{shop: newShop(t, db, 1000), t: t, program: program, random: rand.New(rand.NewPCG(first, uint64(i)))}
				k.server = func() {
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
				k.run()
			})
		}
	})
}
