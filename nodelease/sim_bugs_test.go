package nodelease_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plantedBugs are changes of this package, and of the rules that all stores share, that the
// simulation must find.
var plantedBugs = []struct{ name, file, old, new string }{
	{"trust window 1 ms too long", "call.go", "return ttl - ttl/10 }", "return ttl - ttl/10 + time.Millisecond }"},
	{"trust window from the answer on", "renew.go", "k.trusted = sent.Add(window(c.TTL))", "k.trusted = time.Now().Add(window(c.TTL))"},
	{"range extended before the store has the mark", "renew.go", "	r.Nonce = nonce\n", "	r.Nonce = nonce\n	if k.Err() == nil { k.until.Store(r.Until) }\n"},
	{"a lost claim still in use", "keeper.go", "	k.until.Store(math.MinInt64)\n	return true", "	_ = math.MinInt64\n	return true"},
	{"a refused renewal repeated", "renew.go", "case errors.Is(failure, ErrSuperseded):", "case false:"},
	{"release with the mark of the start", "renew.go", "highWaterMark = max(minted(), k.after)", "highWaterMark = k.after"},
	{"one nonce for all renewals", "renew.go", "	nonce := crand.Text()\n", "	_ = crand.Text\n	nonce := k.holder\n"},
	{"nonce ignored", "internal/stores/record.go", "if !c.Knows(m.Nonce) {", "if false {"},
	{"term and holder ignored", "internal/stores/record.go", "if !m.Of(c) {", "c.Nonce = m.Nonce\n	if false {"},
	{"renewal doesn't write the mark", "leasetest/memory.go", "	n.Record, n.expires, n.ttl = m,", "	if r.Nonce != \"\" { defer func() { n.Until = n.After + 1 }() }\n	n.Record, n.expires, n.ttl = m,"},
	{"mark lowered to the clock of a claim", "leasetest/memory.go", "case max(n.Until, s.fencedUntil()) >= r.Now:", "case func() bool { n.Until = min(n.Until, r.Now-1); return s.fencedUntil() >= r.Now }():"},
	{"no fence after lost writes", "leasetest/memory.go", "fence.After(s.fence) {", "fence.Before(s.fence) {"},
	{"claim after the mark of the last claim", "internal/stores/record.go", "Holder: r.Holder, After: m.Until,", "Holder: r.Holder, After: m.After,"},
}

// The simulation finds each planted bug. It compiles the package once per bug, so it runs
// only with a number of seeds, as in make soak; each run checks that the bugs still apply.
func TestPlantedBugs(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for i, bug := range plantedBugs {
		source, err := os.ReadFile(bug.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), bug.old); n != 1 {
			t.Errorf("%s: want %q once in %s, got %d", bug.name, bug.old, bug.file, n)
			continue
		}
		if !strings.Contains(os.Getenv(simulationsVariable), "-") {
			continue
		}
		t.Run(bug.name, func(t *testing.T) {
			dir := t.TempDir()
			changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "test")
			files := must(json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, bug.file): changed}}))
			if err := os.WriteFile(changed, []byte(strings.Replace(string(source), bug.old, bug.new, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(overlay, files, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
				t.Fatalf("compile: %v\n%s", err, out)
			}
			run := exec.CommandContext(t.Context(), binary, "-test.run", "^TestSimulation$", "-test.timeout", "5m")
			run.Env = append(os.Environ(), fmt.Sprintf("%s=1-%d", simulationsVariable, 1000+i))
			out, err := run.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "replay: ") {
				t.Fatalf("want the simulation to fail, got %v\n%s", err, out)
			}
			lines := strings.SplitN(string(out), "\n", 3)
			t.Log(strings.TrimSpace(lines[0]), strings.TrimSpace(lines[min(1, len(lines)-1)]))
		})
	}
}
