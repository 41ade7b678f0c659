package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
)

// Build builds the program of a package, such as ./minter, and returns its path.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	program, err := build(t.TempDir(), pkg)
	Must(t, err)
	return program
}

// BuildCommand builds the command sortkey for all tests of a package, in its TestMain before
// [Main], which removes the program, and returns the path.
func BuildCommand() string {
	if os.Getenv(watchdogVar) != "" {
		return "" // the watchdog runs no tests
	}
	dir, err := os.MkdirTemp("", "sortkey")
	if err != nil {
		panic(err)
	}
	atEnd(func() error { return os.RemoveAll(dir) })
	program, err := build(dir, "github.com/sortkey/sortkey/cmd/sortkey")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return program
}

func build(dir, pkg string) (program string, err error) {
	program = filepath.Join(dir, path.Base(pkg))
	if out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
