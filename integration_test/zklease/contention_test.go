package zklease

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	crand "crypto/rand"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

// TestMain runs the tests, or one of the processes of testContention.
func TestMain(m *testing.M) {
	if task := os.Getenv(contenderTask); task != "" {
		if err := contend(task); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	pgtest.MainParallel(m, 32)
}

// contenderTask is the environment variable with the task of a process, as JSON.
const contenderTask = "ZKLEASE_TEST_CONTENDER"

// A task tells a process of testContention what to claim.
type task struct {
	Server, Root string
	Shared       bool // with the Java program
	Size         int
	Wait         time.Duration
}

func (t task) pool() nodelease.Pool {
	if t.Shared {
		return nodelease.ForSpread64(3)
	}
	return nodelease.Pool{Name: "contended", Size: t.Size, Layout: "made up"}
}

// A claimed number is the answer of a process.
type claimed struct {
	Number int
	Took   time.Duration
}

// contend claims a number for each line of its input, releases it at the next line, and
// writes a line after each.
func contend(data string) error {
	var t task
	if err := json.Unmarshal([]byte(data), &t); err != nil {
		return err
	}
	p := t.pool()
	s, err := zklease.Connect([]string{t.Server}, zklease.Config{SessionTimeout: lasting, Roots: map[string]string{p.Name: t.Root}})
	if err != nil {
		return err
	}
	defer s.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		begun := time.Now()
		k, err := nodelease.Acquire(context.Background(), s, p, nodelease.Options{Wait: t.Wait})
		if err != nil {
			return err
		}
		// The release sets the high-water mark back to the time of the claim.
		if err := k.Attach(p.Layout, begun.UnixMilli); err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(claimed{k.Number(), time.Since(begun)}); err != nil {
			return err
		}
		lines.Scan()
		if err := k.Close(); err != nil {
			return err
		}
		fmt.Println()
	}
	return lines.Err()
}

// A contender is one of the processes.
type contender struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

// tell writes a line to the process.
func (c contender) tell(t testing.TB) {
	t.Helper()
	_, err := fmt.Fprintln(c.in)
	must(t, err)
}

// hear reads a line of the process.
func (c contender) hear(t testing.TB) []byte {
	t.Helper()
	if !c.out.Scan() {
		t.Fatal("a process has ended; its error is above")
	}
	return c.out.Bytes()
}

// gentle returns a command that gives way to the servers: each of 50 busy processes can have
// the same share of the CPU as all containers together.
func gentle(program string) *exec.Cmd {
	if nice, err := exec.LookPath("nice"); err == nil {
		return exec.Command(nice, "-n", "19", program)
	}
	return exec.Command(program)
}

// testContention shows that transactions alone are enough for 50 processes that claim numbers
// at the same moment, without a lock: in a pool of 50 numbers, each gets one in a single call
// of the store, whether the numbers are new or were used. In a pool that the Java program may
// share, a call can fail for two seconds, so they retry.
func testContention(t *testing.T, server *zktest.Server) {
	const processes = 50
	for name, task := range map[string]task{
		"own pool":    {Size: processes, Wait: -1},
		"shared pool": {Shared: true, Size: 64},
	} {
		t.Run(name, func(t *testing.T) {
			task.Server, task.Root = server.Address, "/contention/"+crand.Text()
			data, err := json.Marshal(task)
			must(t, err)
			var all []contender
			for range processes {
				cmd := gentle(os.Args[0])
				cmd.Env = append(os.Environ(), contenderTask+"="+string(data))
				cmd.Stderr = os.Stderr
				in, err := cmd.StdinPipe()
				must(t, err)
				out, err := cmd.StdoutPipe()
				must(t, err)
				must(t, cmd.Start())
				all = append(all, contender{in, bufio.NewScanner(out)})
				t.Cleanup(func() {
					in.Close()
					if err := cmd.Wait(); err != nil && !t.Failed() {
						t.Error(err)
					}
				})
			}
			for _, round := range []string{"new numbers", "used numbers", "used numbers"} {
				begun := time.Now()
				for _, c := range all {
					c.tell(t)
				}
				var took []time.Duration
				taken := map[int]bool{}
				for _, c := range all {
					var got claimed
					must(t, json.Unmarshal(c.hear(t), &got))
					if taken[got.Number] || got.Number >= task.pool().Size {
						t.Errorf("%s: number %d was granted twice, or is out of range", round, got.Number)
					}
					taken[got.Number] = true
					took = append(took, got.Took)
				}
				slices.Sort(took)
				t.Logf("%s: %d claims in %v, median %v, slowest %v", round, processes, time.Since(begun).Round(time.Millisecond),
					took[processes/2].Round(time.Millisecond), took[processes-1].Round(time.Millisecond))
				for _, c := range all {
					c.tell(t)
				}
				for _, c := range all {
					c.hear(t)
				}
			}
		})
	}
}
