package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// Build builds the program of a package, such as ./minter, and returns its path.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	program, err := build(t.TempDir(), pkg)
	Must(t, err)
	return program
}

// BuildStatic builds the program of a package in a directory, for a container that has nothing else.
func BuildStatic(t testing.TB, dir, pkg string) {
	t.Helper()
	_, err := build(dir, pkg, "CGO_ENABLED=0", "GOOS=linux")
	Must(t, err)
}

// Command builds the command sortkey, once for all tests of a package, and returns its path.
func Command(t testing.TB) string {
	t.Helper()
	program, err := buildCommand()
	Must(t, err)
	return program
}

var buildCommand = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	// Beside the test binary: go test removes that folder even if the tests panic or are killed.
	dir, err := os.MkdirTemp(filepath.Dir(self), "command-*")
	if err != nil {
		return "", err
	}
	atEnd(func() error { return os.RemoveAll(dir) })
	return build(dir, CommandPackage)
})

// CommandPackage is the package of the command sortkey.
const CommandPackage = "github.com/sortkey/sortkey/cmd/sortkey"

func build(dir, pkg string, env ...string) (program string, err error) {
	program = filepath.Join(dir, path.Base(pkg))
	cmd := exec.Command("go", "build", "-o", program, pkg)
	cmd.Env = append(cmd.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return program, nil
}
