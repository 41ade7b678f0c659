// Package linked shows which third-party packages a program links with each package.
package linked

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/linked.txt")

// shipped are the modules that users import or install.
var shipped = []string{".", "metrics", "nodelease/zklease", "rekey", "cmd/sortkey"}

const module = "github.com/sortkey/sortkey"

// list runs go list in a module of the workspace.
func list(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = filepath.Join(root, dir)
	// The same packages on every machine.
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s in %s: %v\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return strings.Fields(string(out))
}

// TestLinked compares the packages with testdata/linked.txt. If a change is intended, run
//
//	go test ./linked -update
func TestLinked(t *testing.T) {
	var got strings.Builder
	for _, dir := range shipped {
		for _, p := range list(t, dir, "./...") {
			if isInternal(p) {
				continue // users can't import it
			}
			fmt.Fprintln(&got, strings.Replace(p, module, "sortkey", 1))
			packages := list(t, dir, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", p)
			slices.Sort(packages)
			for _, d := range packages {
				if !strings.HasPrefix(d+"/", module+"/") && !isInternal(d) {
					fmt.Fprintln(&got, "\t"+d)
				}
			}
		}
	}
	const file = "testdata/linked.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the packages link other third-party packages than %s lists:\n%s", file, got.String())
	}
}

// Only the command links rekey.
func TestRekey(t *testing.T) {
	for _, dir := range shipped {
		for _, p := range list(t, dir, "-deps", "./...") {
			if strings.HasPrefix(p, module+"/rekey") && dir != "rekey" && dir != "cmd/sortkey" {
				t.Errorf("module %s links %s", dir, p)
			}
		}
	}
}

func isInternal(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }
