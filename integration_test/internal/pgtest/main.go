package pgtest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/testcontainers/testcontainers-go/log"
)

// process holds the work to do after the tests of the package. It is a package variable
// because package testing offers no other way to share servers between tests.
var process struct {
	sync.Mutex
	endings []func() error // run in reverse order
	notRun  []string       // tests that were not run, each with the reason
}

// atEnd registers f to run after the tests of the package. If the process dies earlier,
// f doesn't run.
func atEnd(f func() error) {
	process.Lock()
	defer process.Unlock()
	process.endings = append(process.endings, f)
}

// Main runs the tests of a package and ends the process. It is the body of a
// TestMain:
//
//	func TestMain(m *testing.M) { pgtest.Main(m, TestInsert, TestCopy) }
//
// With -short and without -run, only the listed tests run. List the tests that fail first if
// the covered package is broken.
func Main(m *testing.M, short ...func(*testing.T)) {
	if session := os.Getenv(watchdogVar); session != "" {
		os.Exit(watch(session))
	}
	selectShort(short)
	log.SetDefault(log.NewNoopLogger()) // testcontainers logs a dozen lines per container
	status := m.Run()
	for _, end := range slices.Backward(process.endings) {
		if err := end(); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			status = max(status, 1)
		}
	}
	os.Exit(max(status, reportNotRun()))
}

// MainParallel is [Main] with up to n parallel tests, for tests that mostly wait.
func MainParallel(m *testing.M, n int, short ...func(*testing.T)) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(n))
	Main(m, short...)
}

// selectShort sets -run to the tests, if -short is set and -run isn't.
func selectShort(tests []func(*testing.T)) {
	flag.Parse()
	if !testing.Short() || flag.Lookup("test.run").Value.String() != "" {
		return
	}
	names := make([]string, len(tests))
	for i, test := range tests {
		name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name() // such as example.com/pkg.TestInsert
		names[i] = name[strings.LastIndex(name, ".")+1:]
	}
	_ = flag.Set("test.run", "^("+strings.Join(names, "|")+")$")
}

// NeedsContainers ends the test and lists it as not run if Docker isn't available.
func NeedsContainers(t testing.TB) {
	t.Helper()
	if _, err := docker(); err != nil {
		notRun(t, fmt.Errorf("it needs containers, but %w", err))
	}
}

// NeedsProgram ends the test and lists it as not run if this machine doesn't have a program.
func NeedsProgram(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		notRun(t, fmt.Errorf("it needs %s: %w", name, err))
	}
}

// oneLine returns an error's text on one line, since "make test" sorts the lines.
func oneLine(err error) string {
	return strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
}

// notRun skips a test and adds it to the list of tests that were not run.
func notRun(t testing.TB, reason error) {
	t.Helper()
	process.Lock()
	process.notRun = append(process.notRun, t.Name()+": "+oneLine(reason)+"\n")
	process.Unlock()
	t.Skip("not run:", reason)
}

// reportNotRun lists the tests that were not run, and returns the exit status of the
// process.
func reportNotRun() int {
	if len(process.notRun) == 0 {
		return 0
	}
	list := strings.Join(process.notRun, "")
	fmt.Printf("pgtest: not run:\n%s", list)
	// "go test ./..." doesn't show the output of packages whose tests pass.
	if name := os.Getenv("TESTS_NOT_RUN"); name != "" {
		if err := appendTo(name, list); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest:", err)
			return 1
		}
	}
	if os.Getenv("CI") == "true" {
		fmt.Println("pgtest: tests were not run, which is a failure with CI=true; provide what they need")
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

// progress returns a writer for progress messages, because "go test" shows a package's
// output only at its end. The writer is the file that TESTS_PROGRESS names, or else the
// terminal, if there is one.
func progress() io.WriteCloser {
	name := cmp.Or(os.Getenv(progressVar), "/dev/tty")
	f, err := openAppend(name)
	if err != nil {
		return struct {
			io.Writer
			io.Closer
		}{io.Discard, io.NopCloser(nil)}
	}
	return f
}
