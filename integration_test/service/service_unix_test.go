//go:build unix

package service

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/integration_test/internal/zktest"
)

// An instance serves its routes, and ends in the right order, with each store of node
// numbers.
func TestService(t *testing.T) {
	t.Parallel()
	program := pgtest.Build(t, servicePackage)
	t.Run("Postgres", func(t *testing.T) {
		pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
			serves(t, db, program)
			if held := pgtest.Value[int](t, db.Conn(t), "select count(*) from sortkey.node_status where state = 'held'"); held > 0 {
				t.Errorf("expected the service to release its node numbers, but %d are held", held)
			}
		})
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		pgtest.OneContainer(t, func(t *testing.T, db *pgtest.DB) {
			serves(t, db, program, "-zookeeper", zktest.Run(t).Address)
		})
	})
}

func serves(t *testing.T, db *pgtest.DB, program string, flags ...string) {
	t.Helper()
	i := newInstance(t, "1", append([]string{program, "-database", db.URL, "-drain", "1s"}, flags...)...)
	i.start(t)
	if err := i.ends(t); err == nil || !strings.Contains(i.log.last(1000), "run Up") {
		t.Errorf("expected the service to reject a database without the schema, got %v: %s", err, i.log.last(1000))
	}
	migrate(t, program, db)
	migrate(t, program, db) // changes nothing
	i.start(t)
	i.awaitReady(t)
	c := client{i}

	ada, at := c.create(t, "/customers", `{"name": "Ada"}`, "")
	if at != "/customers/"+ada.ID+"/orders" || ada.Name != "Ada" {
		t.Errorf("unexpected customer %+v at %s", ada, at)
	}
	tea, at := c.create(t, "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 2, "id": "ord_1"}`, "key")
	if at != "/orders/"+tea.ID || tea.ID == "ord_1" || tea != (row{ID: tea.ID, CustomerID: ada.ID, Item: "tea", Quantity: 2}) {
		t.Errorf("unexpected order %+v at %s", tea, at)
	}
	if again, _ := c.create(t, "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 2}`, "key"); again != tea {
		t.Errorf("expected the same order for the same Idempotency-Key, got %+v and %+v", tea, again)
	}
	if answer, text := c.send(t, "POST", "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 3}`, "key"); answer.StatusCode != 400 || !strings.Contains(text, "Idempotency-Key") {
		t.Errorf("expected status 400 for another order with the same Idempotency-Key, got %s: %s", answer.Status, text)
	}
	for key, text := range map[string]string{"\xff": "want UTF-8", strings.Repeat("k", 5000): "want at most 255 bytes"} {
		if answer, got := c.send(t, "POST", "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 3}`, key); answer.StatusCode != 400 || !strings.Contains(got, text) {
			t.Errorf("expected status 400 and %q for the Idempotency-Key %.10q, got %s: %s", text, key, answer.Status, got)
		}
	}
	cups, _ := c.create(t, "/orders", `{"customer_id": "`+ada.ID+`", "item": "cups", "quantity": 4}`, "")
	if got := read[row](t, c, "/orders/"+tea.ID); got != tea {
		t.Errorf("expected %+v, got %+v", tea, got)
	}
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	for path, want := range map[string][]row{
		"/orders":                          {tea, cups},
		"/orders?after=" + tea.ID:          {cups},
		"/orders?after=" + cups.ID:         {},
		"/orders?since=" + ago(time.Hour):  {tea, cups},
		"/orders?since=" + ago(-time.Hour): {},
		"/customers/" + ada.ID + "/orders": {cups, tea},
	} {
		if got := read[[]row](t, c, path); !slices.Equal(got, want) {
			t.Errorf("%s: expected %+v, got %+v", path, want, got)
		}
	}

	otherCustomer := ada.ID[:len(ada.ID)-1] + "2"
	if otherCustomer == ada.ID {
		otherCustomer = ada.ID[:len(ada.ID)-1] + "3"
	}
	for _, wrong := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"GET", "/orders/1", "", 400, `"1"`},
		{"GET", "/orders/" + ada.ID, "", 400, ada.ID},
		{"GET", "/orders/ord_1", "", 404, "not found"},
		{"GET", "/customers/ord_1/orders", "", 400, "ord_1"},
		{"GET", "/orders?after=1", "", 400, "parameter after"},
		{"GET", "/orders?since=yesterday", "", 400, "parameter since"},
		{"GET", "/orders?since=1900-01-01T00:00:00Z", "", 200, "tea"},
		{"GET", "/orders?since=2300-01-01T00:00:00Z", "", 200, "[]"},
		{"GET", "/nothing", "", 404, ""},
		{"POST", "/orders", `{"customer_id": "` + tea.ID + `"}`, 400, tea.ID},
		{"POST", "/orders", `{"customer_id": "` + ada.ID + `", "item": "tea"}`, 400, "quantity"},
		{"POST", "/orders", `{"customer_id": "` + otherCustomer + `", "item": "tea", "quantity": 1}`, 400, "no customer"},
		{"POST", "/customers", `{}`, 400, "name"},
		{"POST", "/customers", `{"name": "A\u0000"}`, 400, "name: want UTF-8 without NUL"},
		{"POST", "/customers", "{\"name\": \"\xff\"}", 400, "body: want UTF-8"},
		{"DELETE", "/orders", "", 405, ""},
		{"GET", "/healthz", "", 200, ""},
		{"GET", "/metrics", "", 200, "sortkey_"},
	} {
		answer, text := c.send(t, wrong.method, wrong.path, wrong.body, "")
		if answer.StatusCode != wrong.status || !strings.Contains(text, wrong.text) {
			t.Errorf("%s %s: expected status %d and %q, got %d %s", wrong.method, wrong.path, wrong.status, wrong.text, answer.StatusCode, text)
		}
	}

	i.signal(t, syscall.SIGTERM)
	pgtest.Eventually(t, "the instance isn't ready", func() error {
		if _, err := i.get("/readyz", time.Minute); err == nil || !strings.Contains(err.Error(), "503") {
			return err
		}
		return nil
	})
	c.create(t, "/customers", `{"name": "Last"}`, "") // until the load balancer knows
	if err := i.ends(t); err != nil {
		t.Errorf("expected the service to end without an error, got %v", err)
	}
}

// A client sends requests to an instance.
type client struct{ *instance }

// send sends a request and returns the response with its body.
func (c client) send(t *testing.T, method, path, body, key string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.address+path, strings.NewReader(body))
	must(t, err)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer, string(text)
}

// create creates a row and returns it with its location.
func (c client) create(t *testing.T, path, body, key string) (r row, location string) {
	t.Helper()
	answer, text := c.send(t, http.MethodPost, path, body, key)
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("POST %s %s: %s: %s", path, body, answer.Status, text)
	}
	must(t, json.Unmarshal([]byte(text), &r))
	return r, answer.Header.Get("Location")
}

func read[T any](t *testing.T, c client, path string) (v T) {
	t.Helper()
	answer, text := c.send(t, http.MethodGet, path, "", "")
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s", path, answer.Status, text)
	}
	must(t, json.Unmarshal([]byte(text), &v))
	return v
}
