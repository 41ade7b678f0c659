package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// A connection string sets a parameter itself, or in options, as in libpq.
func TestGiven(t *testing.T) {
	for _, c := range []struct{ own, options, want string }{
		{"", "", ""},
		{"a, b", "-c search_path=c", "a, b"},
		{"", "-c search_path=a", "a"},
		{"", "-csearch_path=a,b -c role=c", "a,b"},
		{"", `-c work_mem=4MB --SEARCH_PATH="$user",\ public\\`, `"$user", public\`},
		{"", "-c other.search_path=a --my_search_path=b -c work_mem=1", ""},
	} {
		params := map[string]string{"search_path": c.own, "options": c.options}
		if got := given(params, "search_path"); got != c.want {
			t.Errorf("%q: got %q, want %q", params, got, c.want)
		}
	}
}

// Only an error that a pooler could have about startup parameters leads to a second attempt.
func TestRefused(t *testing.T) {
	for code, want := range map[string]bool{"08P01": true, "0A000": true, "28P01": false, "3D000": false} {
		if err := fmt.Errorf("connect: %w", &pgconn.PgError{Code: code}); refused(err) != want {
			t.Errorf("code %s: want %t", code, want)
		}
	}
	if refused(errors.New("connection refused")) || refused(nil) {
		t.Error("an error that is not of a server: want false")
	}
}
