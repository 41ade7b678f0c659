package guide

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The compiler rejects the ID of an order as the ID of its customer.
func TestTypedKeysDiffer(t *testing.T) {
	for value, want := range map[string]string{
		"Order{CustomerID: Customer{}.ID}": "",
		"Order{CustomerID: Order{}.ID}":    "cannot use Order{}.ID",
		"User{ID: Document{}.ID}":          "cannot use Document{}.ID",
	} {
		out, err := build(t, "package guide\n\nvar _ = "+value+"\n")
		if (err == nil) != (want == "") || !strings.Contains(out, want) {
			t.Errorf("%s: want %q from the compiler, got %q, %v", value, want, out, err)
		}
	}
}

// build compiles this package with an additional file.
func build(t *testing.T, source string) (output string, err error) {
	t.Helper()
	directory, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file, overlay := filepath.Join(t.TempDir(), "more.go"), filepath.Join(t.TempDir(), "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(directory, "more.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{file: source, overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, ".").CombinedOutput()
	return string(out), err
}

func TestOrderIDOf(t *testing.T) {
	for _, text := range []string{"ord_779300444248735744", "779300444248735744"} {
		if id, err := OrderIDOf(text); err != nil || id.Untyped() != 779300444248735744 {
			t.Errorf("%s: got %v, %v", text, id, err)
		}
	}
	if id, err := OrderIDOf("cust_779300444248735744"); err == nil {
		t.Errorf("expected an error for another prefix, got %v", id)
	}
}
