package pgtest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/testcontainers/testcontainers-go/log"
)

// process is what has to be dealt with when the tests of the package have
// ended. It is a variable because the testing package hands its tests nothing
// through which they could share a server.
var process struct {
	sync.Mutex
	endings []func() error // in the order in which things were started
	notRun  []string       // tests that lacked something, each with the reason
}

// atEnd has f called when the tests of the package have ended. If the process
// dies before that, f is never called.
func atEnd(f func() error) {
	process.Lock()
	defer process.Unlock()
	process.endings = append(process.endings, f)
}

// Main runs the tests of a package and ends the process. It is the body of a
// TestMain:
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
func Main(m *testing.M) {
	if session := os.Getenv(watchdogVar); session != "" {
		os.Exit(watch(session))
	}
	log.SetDefault(log.NewNoopLogger()) // it is testcontainers' own: a dozen lines for each container
	status := m.Run()
	for _, end := range slices.Backward(process.endings) {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			status = max(status, 1)
		}
	}
	os.Exit(max(status, reportNotRun()))
}

// MainParallel is [Main] with n tests running at a time, for tests that wait more
// than they compute.
func MainParallel(m *testing.M, n int) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(n))
	Main(m)
}

// NeedsContainers is called by a test that can't do with a database alone.
// Without Docker the test ends here, to be listed as not run.
func NeedsContainers(t testing.TB) {
	t.Helper()
	if _, err := docker(); err != nil {
		notRun(t, fmt.Errorf("it needs containers, but %w", err))
	}
}

// oneLine returns an error's text on one line, since "make test" sorts the lines.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
}

// notRun ends a test that lacks something, and doesn't forget it.
func notRun(t testing.TB, reason error) {
	t.Helper()
	process.Lock()
	process.notRun = append(process.notRun, t.Name()+": "+oneLine(reason)+"\n")
	process.Unlock()
	t.Skip("not run:", reason)
}

// reportNotRun lists the tests that weren't, and gives the process's exit status.
func reportNotRun() int {
	if len(process.notRun) == 0 {
		return 0
	}
	list := strings.Join(process.notRun, "")
	fmt.Printf("pgtest: not run:\n%s", list)
	// "go test ./..." keeps to itself what a package prints whose tests pass.
	if name := os.Getenv("TESTS_NOT_RUN"); name != "" {
		if err := appendTo(name, list); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
	}
	if Thorough() {
		fmt.Println("pgtest: expected all tests to run, since CI=true; give them what they lack")
		return 1
	}
	return 0
}

func appendTo(name, text string) error {
	f, err := openAppend(name)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func openAppend(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
}

// progress returns a writer for what somebody who waits for the tests wants to
// see at once: "go test" shows a package's output at its end. It is the file that
// TESTS_PROGRESS names, or else the terminal, if there is one.
func progress() io.WriteCloser {
	name := cmp.Or(os.Getenv("TESTS_PROGRESS"), "/dev/tty")
	f, err := openAppend(name)
	if err != nil {
		return struct {
			io.Writer
			io.Closer
		}{io.Discard, io.NopCloser(nil)}
	}
	return f
}
