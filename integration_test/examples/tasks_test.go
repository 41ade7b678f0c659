package examples

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The requests in docs/service.md have the answers of the page, but for the IDs.
func TestServicePage(t *testing.T) {
	program := pgtest.Build(t, "github.com/sortkey/sortkey/examples/tasks")
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		port, err := pgtest.FreePort()
		must(t, err)
		address := net.JoinHostPort("localhost", port)
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+db.URL, "ADDR="+address)
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test kills it
		pgtest.Eventually(t, "the service listens", func() error {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				conn.Close()
			}
			return err
		})

		page, err := os.ReadFile("../../docs/service.md")
		must(t, err)
		calls := regexp.MustCompile(`(?m)^\$ curl (?:-d '(.*)' )?localhost:8080(/.*)\n(.*)$`).FindAllStringSubmatch(string(page), -1)
		if len(calls) != 4 {
			t.Fatalf("want 4 requests in the page, got %q", calls)
		}
		id := regexp.MustCompile(`(user|task)_[0-9a-z]{26}`)
		ours := map[string]string{} // the ID of this run for an ID of the page
		for _, c := range calls {
			replace := func(text string) string {
				return id.ReplaceAllStringFunc(text, func(s string) string { return ours[s] })
			}
			method := http.MethodGet
			if c[1] != "" {
				method = http.MethodPost
			}
			r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+replace(c[2]), strings.NewReader(c[1]))
			must(t, err)
			answer, err := http.DefaultClient.Do(r)
			must(t, err)
			body, err := io.ReadAll(answer.Body)
			must(t, err)
			answer.Body.Close()
			got := strings.TrimSpace(string(body))
			if found := id.FindString(c[3]); method == http.MethodPost {
				ours[found] = id.FindString(got)
			}
			if want := replace(c[3]); got != want {
				t.Errorf("%s: want the answer\n%s\ngot\n%s", fmt.Sprint(c[1], " ", c[2]), want, got)
			}
		}
	})
}
