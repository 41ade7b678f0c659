//go:build unix

package service

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

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
	tea, at := c.create(t, "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 2}`, "key")
	if at != "/orders/"+tea.ID || tea != (row{ID: tea.ID, CustomerID: ada.ID, Item: "tea", Quantity: 2}) {
		t.Errorf("unexpected order %+v at %s", tea, at)
	}
	if again, _ := c.create(t, "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 2}`, "key"); again != tea {
		t.Errorf("expected the same order for the same Idempotency-Key, got %+v and %+v", tea, again)
	}
	if answer, text := c.send(t, "POST", "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 3}`, "key"); answer.StatusCode != 422 || !strings.Contains(text, "Idempotency-Key") {
		t.Errorf("expected status 422 for another order with the same Idempotency-Key, got %s: %s", answer.Status, text)
	}
	bob, _ := c.create(t, "/customers", `{"name": "Bob"}`, "")
	coffee, _ := c.create(t, "/orders", `{"customer_id": "`+bob.ID+`", "item": "coffee", "quantity": 1}`, "key") // another customer's key
	if coffee != (row{ID: coffee.ID, CustomerID: bob.ID, Item: "coffee", Quantity: 1}) {
		t.Errorf("expected an order of Bob, got %+v", coffee)
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
		"/orders":                          {tea, coffee, cups},
		"/orders?after=" + tea.ID:          {coffee, cups},
		"/orders?after=" + cups.ID:         {},
		"/orders?since=" + ago(time.Hour):  {tea, coffee, cups},
		"/orders?since=" + ago(-time.Hour): {},
		"/customers/" + ada.ID + "/orders": {cups, tea},
		"/customers/" + bob.ID + "/orders": {coffee},
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
		{"GET", "/nothing", "", 404, "no such path"},
		{"POST", "/orders", `{"customer_id": "` + ada.ID + `", "item": "tea", "quantity": 2, "id": "ord_1"}`, 400, `unknown field "id"`},
		{"POST", "/orders", `{"customer_id": "` + tea.ID + `"}`, 400, tea.ID},
		{"POST", "/orders", `{"customer_id": "` + ada.ID + `", "item": "tea"}`, 400, "quantity"},
		{"POST", "/orders", `{"customer_id": "` + otherCustomer + `", "item": "tea", "quantity": 1}`, 400, "no customer"},
		{"POST", "/customers", `{}`, 400, "name"},
		{"POST", "/customers", `{"name": "A\u0000"}`, 400, "name: want UTF-8 without NUL"},
		{"POST", "/customers", "{\"name\": \"\xff\"}", 400, "body: want UTF-8"},
		{"DELETE", "/orders", "", 405, "other methods"},
		{"GET", "/healthz", "", 404, "no such path"},
		{"GET", "/readyz", "", 404, "no such path"},
		{"GET", "/metrics", "", 404, "no such path"},
	} {
		answer, text := c.send(t, wrong.method, wrong.path, wrong.body, "")
		if answer.StatusCode != wrong.status || !strings.Contains(text, wrong.text) {
			t.Errorf("%s %s: expected status %d and %q, got %d %s", wrong.method, wrong.path, wrong.status, wrong.text, answer.StatusCode, text)
		}
	}
	for path, want := range map[string]string{"/healthz": "", "/metrics": `sortkey_ready{generator="orders"} 1`} {
		if text, err := i.get(path, time.Minute); err != nil || !strings.Contains(text, want) || strings.Contains(text, "sortkey_database") {
			t.Errorf("%s: expected %q, and no metrics of the database, got %v, %s", path, want, err, text)
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

// Each kind of process runs with a role that has only the grants of docs/security.md: an instance,
// which has no metrics of the database, and the monitor, which has no others.
func TestRoles(t *testing.T) {
	t.Parallel()
	program := pgtest.Build(t, servicePackage)
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		var deploys errgroup.Group
		for range 3 { // one migrates, and the others wait
			deploys.Go(func() error { return migrates(t, program, db) })
		}
		must(t, deploys.Wait())
		if files := pgtest.Value[[]string](t, db.Conn(t), "select array_agg(file order by file) from shop_changes"); !slices.Equal(files, []string{"sql/0001_shop.sql"}) {
			t.Errorf("expected each file to run once, got %q", files)
		}
		shop, monitoring := db.NewRole(t, "shop", pgtest.LoginPassword), db.NewRole(t, "monitoring", pgtest.LoginPassword)
		db.Exec(t, strings.NewReplacer("SHOP", shop, "MONITORING", monitoring).Replace(`
			grant usage on schema sortkey to SHOP, MONITORING;
			grant execute on function sortkey.claim_node, sortkey.renew_node, sortkey.release_node to SHOP;
			grant select, insert on customers, orders to SHOP;
			grant select on sortkey.node_pool, sortkey.node_status, sortkey.partition_log to MONITORING`))
		as := func(role string, flags ...string) *instance {
			u, err := url.Parse(db.URL)
			must(t, err)
			u.User = url.UserPassword(role, "secret") // of LoginPassword
			i := newInstance(t, role, append([]string{program, "-drain", "0", "-database", u.String()}, flags...)...)
			i.start(t)
			return i
		}
		i, monitor := as(shop), as(monitoring, "-monitor")
		for _, p := range []struct {
			*instance
			has, hasNot string
		}{
			{i, `sortkey_lease_held{generator="orders"} 1`, "sortkey_database"},
			{monitor, `sortkey_database_up{database="shop"} 1`, "sortkey_lease"},
		} {
			p.awaitReady(t)
			text, err := p.get("/metrics", time.Minute)
			if err != nil || !strings.Contains(text, p.has) || strings.Contains(text, p.hasNot) {
				t.Errorf("expected %s and no %s, got %v, %s", p.has, p.hasNot, err, text)
			}
		}
		ada, _ := client{i}.create(t, "/customers", `{"name": "Ada"}`, "")
		client{i}.create(t, "/orders", `{"customer_id": "`+ada.ID+`", "item": "tea", "quantity": 2}`, "key")
		for _, p := range []*instance{i, monitor} {
			p.signal(t, syscall.SIGTERM)
			if err := p.ends(t); err != nil || strings.Contains(p.log.last(1<<20), `"WARN"`) {
				t.Errorf("expected an end without an error and no warnings, got %v, %s", err, p.log.last(1<<20))
			}
		}
	})
}

// A client sends requests to an instance.
type client struct{ *instance }

// send sends a request and returns the response with its body, or with the detail of an error.
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
	if answer.StatusCode >= 400 {
		if form := answer.Header.Get("Content-Type"); form != "application/problem+json" {
			t.Errorf("%s %s: expected a problem in JSON, got %s: %s", method, path, form, text)
		}
		return answer, detail(text)
	}
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
