//go:build unix

package service

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.MainParallel(m, 4) }

// must is pgtest.Must.
var must = pgtest.Must

// servicePackage is the import path of the service.
const servicePackage = "github.com/sortkey/sortkey/examples/service"

// migrate creates the tables of the service.
func migrate(t *testing.T, program string, db *pgtest.DB) {
	t.Helper()
	must(t, migrates(t, program, db))
}

// migrates is migrate for any goroutine.
func migrates(t *testing.T, program string, db *pgtest.DB) error {
	if out, err := exec.CommandContext(t.Context(), program, "-migrate", "-database", db.URL).CombinedOutput(); err != nil {
		return fmt.Errorf("service -migrate: %w\n%s", err, out)
	}
	return nil
}

// An instance is a process of the service, which a test can end and start again.
type instance struct {
	name       string
	address    string   // for clients
	port       int      // for operators
	operations string   // the address of the port
	command    []string // the program and its flags
	log        lockedBuffer
	ready      atomic.Bool // set by a balancer

	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	status error         // once exited is closed
}

// newInstance returns an instance without a process.
func newInstance(t *testing.T, name string, command ...string) *instance {
	t.Helper()
	clients, err := pgtest.FreePort()
	must(t, err)
	operators, err := pgtest.FreePort()
	must(t, err)
	port, err := strconv.Atoi(operators)
	must(t, err)
	i := &instance{name: name, address: net.JoinHostPort("127.0.0.1", clients), port: port, operations: net.JoinHostPort("127.0.0.1", operators)}
	i.command = append(command, "-listen", i.address, "-operations", ":"+operators) // also for Prometheus in a container
	t.Cleanup(func() {
		if i.cmd != nil {
			_ = i.cmd.Process.Kill()
			<-i.exited
		}
		if t.Failed() {
			t.Logf("the last lines of the log of instance %s:\n%s", i.name, i.log.last(4000))
		}
	})
	return i
}

// start starts a process, which isn't ready yet.
func (i *instance) start(t testing.TB) {
	t.Helper()
	cmd, exited := exec.Command(i.command[0], i.command[1:]...), make(chan struct{})
	cmd.Env = []string{"TZ=UTC"} // no settings from this process
	cmd.SysProcAttr = pgtest.Child()
	cmd.Stdout, cmd.Stderr = &i.log, &i.log
	must(t, cmd.Start())
	i.cmd, i.exited = cmd, exited
	go func() {
		i.status = cmd.Wait()
		close(exited)
	}()
}

// signal sends a signal to the process.
func (i *instance) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	must(t, i.cmd.Process.Signal(s))
}

// ends waits for the end of the process and returns its status.
func (i *instance) ends(t testing.TB) error {
	t.Helper()
	select {
	case <-i.exited:
		return i.status
	case <-time.After(time.Minute):
		t.Fatalf("instance %s didn't end within a minute", i.name)
		return nil
	}
}

// awaitReady waits until the instance is ready.
func (i *instance) awaitReady(t testing.TB) {
	t.Helper()
	pgtest.Eventually(t, "instance "+i.name+" is ready", func() error {
		select {
		case <-i.exited:
			t.Fatalf("instance %s ended: %v\n%s", i.name, i.status, i.log.last(2000))
		default:
		}
		_, err := i.get("/readyz", time.Second)
		return err
	})
}

// get returns the body of a page for operators.
func (i *instance) get(path string, limit time.Duration) (string, error) {
	client := http.Client{Timeout: limit, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + i.operations + path)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

// A lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

// last returns the last n bytes.
func (b *lockedBuffer) last(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.data.Bytes()
	return string(all[max(0, len(all)-n):])
}

// appendReport appends text to the file that SORTKEY_REPORT names.
func appendReport(t *testing.T, text string) {
	t.Helper()
	name := os.Getenv("SORTKEY_REPORT")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, err)
	must(t, f.Close())
}
