//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"bufio"
	"context"
	crand "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if dir := os.Getenv("FILELEASE_TEST_DIR"); dir != "" {
		create(dir)
	}
	_ = flag.Set("test.parallel", "32") // the tests mostly wait
	os.Exit(m.Run())
}

// create is the main function of another process. It claims a number and prints IDs until the
// process is killed.
func create(dir string) {
	// A process on a busy machine may lose its claim, and then waits for the next one.
	patient := idtype.SnowflakeConfig{Options: idtype.Options{MaxWait: time.Minute}}
	ids, err := nodelease.NewSnowflakeGenerator(context.Background(), brief(dir, Config{Numbers: []int{3}}), patient, nodelease.Options{})
	for ; err == nil; time.Sleep(100 * time.Microsecond) {
		var id idtype.Snowflake
		if id, err = ids.Next(); err == nil {
			fmt.Println(int64(id))
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// briefTTL is the longest TTL of brief stores. With -short, it is the shortest TTL of a Keeper.
func briefTTL() time.Duration {
	if testing.Short() {
		return time.Second
	}
	return maxTTL
}

// brief returns a store for tests that wait until a claim expires.
func brief(dir string, c Config) *Store {
	s := New(dir, c)
	s.ttl = briefTTL()
	return s
}

// crash ends the claims as the end of the process would.
func (s *Store) crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, h := range s.held {
		h.mu.Lock()
		_ = h.lock.Close()
		h.lock = nil
		h.mu.Unlock()
		delete(s.held, k)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	leasetest.TestStore(t, leasetest.Harness{
		TTL: briefTTL(),
		Open: func(_ *testing.T, lasting bool) nodelease.Store {
			s := brief(dir, Config{})
			if lasting {
				s.ttl = time.Hour
			}
			return modest{s}
		},
		Crash:  func(_ *testing.T, s nodelease.Store) { s.(modest).crash() },
		Prompt: true,
	})
}

// A modest client requests a TTL that the store grants.
type modest struct{ *Store }

func (m modest) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	r.TTL = min(r.TTL, m.ttl)
	return m.Store.Claim(ctx, p, r)
}

// A process that is killed frees its number at once. The next process creates IDs after the
// IDs of the first, even if its clock was set back.
func TestKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := exec.Command(os.Args[0], fmt.Sprintf("-test.short=%v", testing.Short()))
	child.Env = append(os.Environ(), "FILELEASE_TEST_DIR="+dir)
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	lines := bufio.NewScanner(output)
	created := map[idtype.Snowflake]bool{}
	var last idtype.Snowflake
	read := func() bool {
		if !lines.Scan() {
			return false
		}
		n, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return false // cut by the kill
		}
		last = idtype.Snowflake(n)
		created[last] = true
		return true
	}
	for len(created) < 100 {
		if !read() {
			t.Fatal("want IDs from the other process")
		}
	}
	claim := func(o nodelease.Options) (*nodelease.Generator[idtype.Snowflake], error) {
		return nodelease.NewSnowflakeGenerator(t.Context(), brief(dir, Config{Numbers: []int{3}}), idtype.SnowflakeConfig{}, o)
	}
	if g, err := claim(nodelease.Options{Wait: -1}); !errors.Is(err, nodelease.ErrPoolExhausted) {
		t.Fatalf("while the other process runs: want %v, got %v, %v", nodelease.ErrPoolExhausted, g, err)
	}
	// A suspended process keeps its number after its TTL.
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(briefTTL() * 4 / 3)
	if g, err := claim(nodelease.Options{Wait: -1}); !errors.Is(err, nodelease.ErrPoolExhausted) {
		t.Fatalf("while the other process is suspended: want %v, got %v, %v", nodelease.ErrPoolExhausted, g, err)
	}
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	for read() {
	}
	_ = child.Wait()

	back := func() time.Time { return time.Now().Add(-time.Hour) }
	if g, err := claim(nodelease.Options{Clock: back, Wait: 5 * time.Second}); !errors.Is(err, nodelease.ErrClockBehind) {
		t.Errorf("with the clock an hour back: want %v, got %v, %v", nodelease.ErrClockBehind, g, err)
	}
	g, err := claim(nodelease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for range 1000 {
		id, err := g.Next()
		if err != nil || id <= last || created[id] {
			t.Fatalf("want an ID after %v, got %v, %v", last, id, err)
		}
		last = id
	}
}

// A wall is a clock that can be set.
type wall struct{ off atomic.Int64 }

func (w *wall) now() time.Time { return time.Now().Add(time.Duration(w.off.Load())) }

// onFakeTime runs a test with synctest's fake clock.
func onFakeTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 10, 11, 12, 0, time.UTC)))
		f(t)
	})
}

// Whatever happens to the clock between and during the runs of a program, no ID repeats, and
// the IDs of each run come after all earlier IDs.
func TestRestarts(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		dir, r := t.TempDir(), rand.New(rand.NewPCG(3, 4))
		clock := new(wall)
		var last idtype.Snowflake
		runs, behind, attempts := 0, 0, 300
		if testing.Short() {
			attempts = 60
		}
		for range attempts {
			step := time.Duration(r.IntN(8000)-4000) * time.Millisecond
			if r.IntN(20) == 0 {
				clock.off.Store(0) // the clock is corrected
			}
			clock.off.Add(int64(step))
			store := New(dir, Config{Numbers: []int{3}})
			g, err := nodelease.NewSnowflakeGenerator(t.Context(), store, idtype.SnowflakeConfig{}, nodelease.Options{Clock: clock.now, Wait: time.Duration(r.IntN(4)) * time.Second, TTL: time.Minute})
			if err != nil {
				if !errors.Is(err, nodelease.ErrClockBehind) {
					t.Fatal(err)
				}
				behind++
				continue
			}
			runs++
			for range r.IntN(50) {
				id, err := g.Next()
				if err != nil && !errors.Is(err, idtype.ErrClockBackwards) && !errors.Is(err, idtype.ErrLeaseLost) && !errors.Is(err, idtype.ErrLeaseNotRenewed) {
					t.Fatal(err)
				}
				if err == nil && id <= last {
					t.Fatalf("want an ID after %v, got %v", last, id)
				}
				last = max(id, last)
				time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
				if r.IntN(50) == 0 {
					clock.off.Add(int64(step))
				}
			}
			if r.IntN(2) == 0 {
				store.crash()
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if runs < attempts/6 || behind < attempts/30 {
			t.Errorf("want more runs and more clocks behind, got %d and %d", runs, behind)
		}
	})
}

// After a crash, a new process waits until the clock has passed the high-water mark, and after
// Close it doesn't wait.
func TestWaits(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		dir := t.TempDir()
		open := func(o nodelease.Options) (*nodelease.Keeper, *Store, error) {
			store := New(dir, Config{Numbers: []int{3}})
			k, err := nodelease.Acquire(t.Context(), store, nodelease.ForSnowflake(idtype.SnowflakeLayout{}), o)
			return k, store, err
		}
		k, store, err := open(nodelease.Options{Wait: -1})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if stats := k.Stats(); stats.Renewals < 50 || stats.Failures > 0 || k.Ready() != nil || k.Number() != 3 || stats.Skew.Round(2*time.Millisecond) != 0 {
			t.Errorf("want number 3 and renewals about once a second, got %+v, %v", stats, k.Ready())
		}
		mark := k.Until()
		store.crash()
		_ = k.Close()
		begun := time.Now()
		left := time.UnixMilli(mark).Sub(begun)
		if left < time.Second || left > 2700*time.Millisecond {
			t.Errorf("want a mark up to 2.7 s ahead, got %v", left)
		}
		k, _, err = open(nodelease.Options{})
		const pause = 550 * time.Millisecond // the longest one between attempts
		if waited := time.Since(begun); err != nil || waited < left || waited > left+pause || k.After() != mark {
			t.Fatalf("want a claim after %d within %v, got %v after %v", mark, left+pause, err, waited)
		}
		if _, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Lease: k}}); err != nil {
			t.Fatal(err)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		k, _, err = open(nodelease.Options{Wait: -1})
		if err != nil || k.After() != mark {
			t.Fatalf("after Close: want a claim after %d at once, got %v", mark, err)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// While the disk fails, Ready fails before Next. When the disk works again, the same Store
// grants the number again, even long after the Keeper has given up the release.
func TestDiskFails(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		dir := t.TempDir()
		g, err := nodelease.NewSnowflakeGenerator(t.Context(), New(dir, Config{Numbers: []int{3}}), idtype.SnowflakeConfig{}, nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		obstacle := filepath.Join(dir, "snowflake", "3.json.new")
		// A directory that isn't empty can't be replaced.
		if err := os.MkdirAll(filepath.Join(obstacle, "file"), 0o755); err != nil {
			t.Fatal(err)
		}
		warned := false
		for {
			if _, err := g.Next(); err != nil {
				break
			}
			warned = warned || g.Ready() != nil
			time.Sleep(100 * time.Millisecond)
		}
		if err := g.Ready(); !warned || err == nil || !strings.Contains(err.Error(), "3.json.new") {
			t.Errorf("want the error of the disk before the loss, got %v; %v", warned, err)
		}
		time.Sleep(time.Hour)
		if err := os.RemoveAll(obstacle); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if id, err := g.Next(); err != nil || g.Ready() != nil {
			t.Errorf("want IDs again, got %v, %v; %v", id, err, g.Ready())
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A claim whose files were deleted or replaced is lost.
func TestFilesDeleted(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"directory": func(dir string) error { return os.Rename(dir, dir+"-old") },
		"lock":      func(dir string) error { return os.Remove(filepath.Join(dir, "snowflake", "3.lock")) },
		"record":    func(dir string) error { return os.Remove(filepath.Join(dir, "snowflake", "3.json")) },
		"term": func(dir string) error {
			path := filepath.Join(dir, "snowflake", "3.json")
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, []byte(strings.Replace(string(data), `"term":1,`, `"term":2,`, 1)), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "leases")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				k, err := nodelease.Acquire(t.Context(), New(dir, Config{Numbers: []int{3}}), nodelease.ForSnowflake(idtype.SnowflakeLayout{}), nodelease.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := change(dir); err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				select {
				case <-k.Lost():
				case <-time.After(time.Minute):
				}
				if err := k.Err(); !errors.Is(err, nodelease.ErrSuperseded) || !strings.Contains(err.Error(), "deleted or replaced") || time.Since(begun) > 2*time.Second {
					t.Errorf("want %v at the next renewal, got %v after %v", nodelease.ErrSuperseded, err, time.Since(begun))
				}
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Errors name the cause and the remedy. Acquire doesn't wait for a setup that can't work.
func TestErrors(t *testing.T) {
	const valid = `{"size":1024,"layout":"snowflake: epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12","term":3,"holder":"","nonce":"","after":0,"until":1763784002700}`
	for name, test := range map[string]struct {
		numbers []int
		prepare func(dir string) error // nil: write content
		content string
		is      error
		says    string
	}{
		"valid":     {content: valid},
		"empty":     {content: "", is: nodelease.ErrMisconfigured, says: `3.json: unexpected end of JSON input`},
		"cut":       {content: valid[:40], is: nodelease.ErrMisconfigured, says: `set its "until" to a time, in Unix milliseconds, after the last ID with number 3; got "{\"size\":1024,`},
		"more":      {content: valid + "{", is: nodelease.ErrMisconfigured, says: "after top-level value"},
		"unknown":   {content: strings.Replace(valid, `"term"`, `"terms"`, 1), is: nodelease.ErrMisconfigured, says: `unknown or repeated field "terms"`},
		"case":      {content: strings.Replace(valid, `"after"`, `"UNTIL"`, 1), is: nodelease.ErrMisconfigured, says: `unknown or repeated field "UNTIL"`},
		"twice":     {content: strings.Replace(valid, `}`, `,"until":0}`, 1), is: nodelease.ErrMisconfigured, says: `unknown or repeated field "until"`},
		"null":      {content: strings.Replace(valid, `1763784002700`, `null`, 1), is: nodelease.ErrMisconfigured, says: `want a value of field "until", got null`},
		"last term": {content: strings.Replace(valid, `"term":3`, `"term":9223372036854775807`, 1), is: nodelease.ErrMisconfigured, says: "want a term from 1"},
		"missing":   {content: strings.Replace(valid, `"after":0,`, ``, 1), is: nodelease.ErrMisconfigured, says: "want 7 fields, got 6"},
		"term":      {content: strings.Replace(valid, `"term":3`, `"term":0`, 1), is: nodelease.ErrMisconfigured, says: "want a term from 1"},
		"order":     {content: strings.Replace(valid, `"after":0`, `"after":1763784002701`, 1), is: nodelease.ErrMisconfigured, says: "after <= until"},
		"number":    {content: strings.Replace(valid, `1763784002700`, `"soon"`, 1), is: nodelease.ErrMisconfigured, says: "cannot unmarshal string"},
		"size":      {content: strings.Replace(valid, `1024`, `512`, 1), is: nodelease.ErrPoolMismatch, says: "created with 512 numbers"},
		"layout":    {content: strings.Replace(valid, `2021`, `2020`, 1), is: nodelease.ErrPoolMismatch, says: "epoch 2020"},
		"ahead":     {content: strings.Replace(valid, `1763784002700`, `4102444800000`, 1), is: nodelease.ErrClockBehind, says: "the clock must advance by"},
		"none":      {numbers: []int{}, content: valid, is: nodelease.ErrMisconfigured, says: "Config.Numbers is empty; list the numbers"},
		"range":     {numbers: []int{3, 1024}, content: valid, is: nodelease.ErrMisconfigured, says: `Config.Numbers: 1024 is not a number of pool "snowflake"; want 0 to 1023`},
		"directory": {prepare: os.RemoveAll, is: nodelease.ErrMisconfigured, says: "no such file or directory; create the directory once, on a local disk"},
		"file": {prepare: func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) },
			is: nodelease.ErrMisconfigured, says: "not a directory; create the directory once"},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "snowflake", "3.json")
				prepare := test.prepare
				if prepare == nil {
					prepare = func(dir string) error {
						return errors.Join(os.Mkdir(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(test.content), 0o644))
					}
				}
				if err := prepare(dir); err != nil {
					t.Fatal(err)
				}
				if test.numbers == nil {
					test.numbers = []int{3}
				}
				begun := time.Now()
				k, err := nodelease.Acquire(t.Context(), New(dir, Config{Numbers: test.numbers}), nodelease.ForSnowflake(idtype.SnowflakeLayout{}), nodelease.Options{})
				if !errors.Is(err, test.is) || err != nil && !strings.Contains(err.Error(), test.says) || time.Since(begun) > 0 {
					t.Errorf("want %v at once with %q, got %v after %v", test.is, test.says, err, time.Since(begun))
				}
				if err == nil {
					if k.Number() != 3 || k.After() != 1763784002700 {
						t.Errorf("want number 3 after 1763784002700, got %d after %d", k.Number(), k.After())
					}
					_ = k.Close()
				}
			})
		})
	}
	if err := explain(&fs.PathError{Op: "open", Path: "/leases", Err: syscall.EROFS}); !errors.Is(err, nodelease.ErrMisconfigured) || !strings.Contains(err.Error(), "filelease: open /leases: read-only file system; let the program's user") {
		t.Errorf("got %v", err)
	}
	if err := explain(syscall.ENOSPC); err != syscall.ENOSPC {
		t.Errorf("a full disk can be emptied: got %v", err)
	}
}

// A claim whose caller has given up is released, so that other Stores get the number.
func TestCanceledClaim(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		dir := t.TempDir()
		p := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		request := func() nodelease.Request {
			now := time.Now().UnixMilli()
			return nodelease.Request{Holder: crand.Text(), TTL: time.Minute, Now: now, Until: now}
		}
		store, other := New(dir, Config{Numbers: []int{3}}), New(dir, Config{Numbers: []int{3}})
		available := func(term int64) {
			t.Helper()
			c, err := other.Claim(t.Context(), p, request())
			if err != nil || c.Term != term || c.After != 0 {
				t.Fatalf("want term %d after time 0, got %+v, %v", term, c, err)
			}
			if err := other.Release(t.Context(), p, c, c.After); err != nil {
				t.Fatal(err)
			}
		}

		// Term 1 is granted too late, so it is released in the background.
		if c, err := store.Claim(endsAfter(t, 2), p, request()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "no answer in time") {
			t.Fatalf("want %v, got %+v, %v", context.Canceled, c, err)
		}
		synctest.Wait() // for the release
		available(2)

		// While another process chooses a number, a claim waits until its context ends.
		lock, err := tryLock(store.path(p, "pool"+lockSuffix))
		if err != nil || lock == nil {
			t.Fatalf("want the lock of the pool, got %v, %v", lock, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if c, err := store.Claim(ctx, p, request()); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Fatalf("want %v after 1s, got %+v, %v after %v", context.DeadlineExceeded, c, err, time.Since(begun))
		}
		synctest.Wait() // for the end of the claim
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		available(3)
		runtime.KeepAlive(store) // or the collector would close its files
	})
}

// A call that gets the lock of the pool after its context has ended changes nothing: a later
// call of the holder has the claim.
func TestLateCall(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		p := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		store := New(t.TempDir(), Config{Numbers: []int{3}})
		now := time.Now().UnixMilli()
		r := nodelease.Request{Holder: crand.Text(), TTL: time.Minute, Now: now, Until: now + 1000}
		c, err := store.Claim(t.Context(), p, r)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := store.Claim(endsAfter(t, 1), p, r); !errors.Is(err, context.Canceled) {
			t.Fatalf("want %v, got %+v, %v", context.Canceled, c, err)
		}
		synctest.Wait()
		if got, err := store.Renew(t.Context(), p, c, r); err != nil || got.Term != 1 {
			t.Errorf("want a renewal in term 1, got %+v, %v", got, err)
		}
	})
}

// An ending is a context that ends with its last successful check.
type ending struct {
	context.Context
	checks atomic.Int32 // left
	done   chan struct{}
}

func endsAfter(t *testing.T, checks int32) *ending {
	e := &ending{Context: t.Context(), done: make(chan struct{})}
	e.checks.Store(checks)
	return e
}

func (e *ending) Err() error {
	switch left := e.checks.Add(-1); {
	case left < 0:
		return context.Canceled
	case left == 0:
		close(e.done)
	}
	return nil
}

func (e *ending) Done() <-chan struct{} { return e.done }

// Each process of a machine gets another number, and the store keeps no number from the
// processes of other pools.
func TestNumbers(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		dir := t.TempDir()
		p := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		p.Reserved = []int{4}
		taken := map[int]bool{}
		for range 2 {
			k, err := nodelease.Acquire(t.Context(), New(dir, Config{Numbers: []int{4, 5, 900}}), p, nodelease.Options{Wait: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			taken[k.Number()] = true
		}
		if !taken[5] || !taken[900] {
			t.Errorf("want numbers 5 and 900, got %v", taken)
		}
		var busy *nodelease.BusyError
		if _, err := nodelease.Acquire(t.Context(), New(dir, Config{Numbers: []int{4, 5, 900}}), p, nodelease.Options{Wait: -1}); !errors.As(err, &busy) || busy.Held != 2 || busy.Reserved != 1 || busy.Ahead != 0 {
			t.Errorf("want 2 held and 1 reserved, got %v", err)
		}
		g, err := nodelease.NewSpread64Generator(t.Context(), New(dir, Config{Numbers: []int{5}}), idtype.Spread64Config{Cluster: 3}, nodelease.Options{Wait: -1})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if g.Keeper().Number() != 5 {
			t.Errorf("want number 5, got %d", g.Keeper().Number())
		}
	})
}

// After a TTL without a renewal, the same Store grants the number again.
func TestUnclaimedBySameStore(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		p := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		store := New(t.TempDir(), Config{Numbers: []int{3}})
		claim := func(holder string) (nodelease.Claim, error) {
			now := time.Now().UnixMilli()
			return store.Claim(t.Context(), p, nodelease.Request{Holder: holder, TTL: time.Minute, Now: now, Until: now})
		}
		if _, err := claim("first"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(maxTTL - time.Millisecond)
		if _, err := claim("second"); !errors.Is(err, nodelease.ErrPoolExhausted) {
			t.Errorf("before the end: want %v, got %v", nodelease.ErrPoolExhausted, err)
		}
		time.Sleep(2 * time.Millisecond)
		if c, err := claim("second"); err != nil || c.Number != 3 || c.Term != 2 {
			t.Errorf("after the end: want term 2 of number 3, got %+v, %v", c, err)
		}
		runtime.KeepAlive(store)
	})
}

// A claim that isn't renewed ends after ten TTLs, also for other Stores: its holder may not
// have received it.
func TestUnclaimed(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		dir := t.TempDir()
		p := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		store, other := New(dir, Config{Numbers: []int{3}}), New(dir, Config{Numbers: []int{3}})
		request := func(holder string) nodelease.Request {
			now := time.Now().UnixMilli()
			return nodelease.Request{Holder: holder, TTL: time.Minute, Now: now, Until: now}
		}
		c, err := store.Claim(t.Context(), p, request("shop-3, process 1 first"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := store.Renew(t.Context(), p, c, request("shop-3, process 1 first")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(abandoned*maxTTL - time.Millisecond)
		if _, err := other.Claim(t.Context(), p, request("second")); !errors.Is(err, nodelease.ErrPoolExhausted) || !strings.Contains(err.Error(), `number 3 is held by another process or Store of this machine, "shop-3, process 1": `) {
			t.Errorf("before the end: want %v with the holder, got %v", nodelease.ErrPoolExhausted, err)
		}
		time.Sleep(2 * time.Millisecond)
		if _, err := store.Renew(t.Context(), p, c, request("shop-3, process 1 first")); !errors.Is(err, nodelease.ErrSuperseded) {
			t.Errorf("a late renewal: want %v, got %v", nodelease.ErrSuperseded, err)
		}
		if c, err := other.Claim(t.Context(), p, request("second")); err != nil || c.Number != 3 || c.Term != 2 {
			t.Errorf("after the end: want term 2 of number 3, got %+v, %v", c, err)
		}
		runtime.KeepAlive(store)
	})
}

// An invalid file makes only its own number unusable.
func TestInvalidFile(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		dir := t.TempDir()
		p := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
		claim := func(numbers ...int) (*nodelease.Keeper, error) {
			k, err := nodelease.Acquire(t.Context(), New(dir, Config{Numbers: numbers}), p, nodelease.Options{Wait: -1})
			if err == nil {
				t.Cleanup(func() { _ = k.Close() })
			}
			return k, err
		}
		for _, n := range []int{7, 8} {
			k, err := claim(n)
			if err != nil {
				t.Fatal(err)
			}
			_ = k.Close()
		}
		time.Sleep(maxTTL)
		for _, n := range []int{0, 5} {
			if err := os.WriteFile(filepath.Join(dir, "snowflake", strconv.Itoa(n)+".json"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []int{7, 8} {
			if k, err := claim(5, 7, 8); err != nil || k.Number() != want {
				t.Fatalf("want number %d, got %v, %v", want, k, err)
			}
		}
		if _, err := claim(5, 7, 8); !errors.Is(err, nodelease.ErrPoolExhausted) || !strings.Contains(err.Error(), "5.json: unexpected end of JSON input") {
			t.Errorf("while the others are held: want %v and the reason for 5.json, got %v", nodelease.ErrPoolExhausted, err)
		}
		if _, err := claim(5); !errors.Is(err, nodelease.ErrMisconfigured) || !strings.Contains(err.Error(), "5.json: unexpected end of JSON input") {
			t.Errorf("without another number: want %v of 5.json, got %v", nodelease.ErrMisconfigured, err)
		}
	})
}
