package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/rekey"
)

// A file with a second object would be read in part.
func TestReadSpec(t *testing.T) {
	file := filepath.Join(t.TempDir(), "spec.json")
	for text, want := range map[string]string{
		`{"keys": [{"table": "orders"}]} ` + "\n": "",
		`{"keys": []}`:                             "no keys; name a table in keys",
		`{"keys": []} {"keys": []}`:                "want one object, got more text after it",
		`{"keys": []}}`:                            "want one object, got more text after it",
		`{"keys": [], "references": [], "key": 1}`: `unknown field "key"`,
		`{"keys": [`:                               "unexpected EOF",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := readSpec(&rekey.Spec{})(nil, []string{file})
		var usage *cli.UsageError
		if want == "" && err == nil {
			continue
		}
		if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), file+": "+want+"; ") {
			t.Errorf("%s: want %q, got %v", text, want, err)
		}
	}
}

func TestFilled(t *testing.T) {
	for _, c := range []struct {
		progress rekey.Progress
		want     string
	}{
		{rekey.Progress{Rows: 1000, Total: 9000, Rate: 1999.9, Left: 4 * time.Second}, "1,000 of about 9,000 rows, 1,999 rows/s, 4s left"},
		{rekey.Progress{Rows: 0, Total: 9000}, "0 of about 9,000 rows"},
		{rekey.Progress{Rows: 9000, Total: 9000, Rate: 5}, "9,000 of about 9,000 rows, 5 rows/s"},
	} {
		if got := filled(c.progress); got != c.want {
			t.Errorf("expected %q, got %q", c.want, got)
		}
	}
}
