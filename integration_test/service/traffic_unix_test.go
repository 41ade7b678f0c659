//go:build unix

package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/sync/errgroup"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// host is the host in the URLs of requests. The balancer replaces it.
const host = "http://shop"

// A row is a row of the service's tables, which the service also returns in JSON. Its
// item or name is unique.
type row struct {
	ID         string `json:"id,omitempty"`
	CustomerID string `json:"customer_id,omitempty"`
	Item       string `json:"item,omitempty"`
	Quantity   int    `json:"quantity,omitempty"`
	Name       string `json:"name,omitempty"`
}

func (r row) unique() string { return cmp.Or(r.Item, r.Name) }

// Traffic generates requests, and keeps the rows that the service acknowledged.
type traffic struct {
	mu        sync.Mutex
	random    *rand.Rand
	sent      map[string]row    // without ID, by item or name
	acked     map[string]row    // the same, acknowledged
	owner     map[string]string // the item or name of an acknowledged ID
	customers []string          // acknowledged IDs
	orders    []string          // acknowledged IDs
	repeats   []string          // what is wrong with the acknowledged IDs
}

func newTraffic() *traffic {
	return &traffic{random: rand.New(rand.NewPCG(1, 2)), sent: map[string]row{}, acked: map[string]row{}, owner: map[string]string{}}
}

// target generates the next request: 70 % new orders, 10 % new customers, 15 % reads of
// an order, and 5 % lists of the last second's orders.
func (l *traffic) target(tgt *vegeta.Target) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch n := l.random.IntN(100); {
	case n < 70 && len(l.customers) > 0:
		*tgt = post("/orders", l.send(row{
			CustomerID: l.customers[l.random.IntN(len(l.customers))],
			Item:       fmt.Sprintf("item %d", len(l.sent)), Quantity: 1 + l.random.IntN(9),
		}))
	case n < 80 || len(l.orders) == 0:
		*tgt = post("/customers", l.send(row{Name: fmt.Sprintf("customer %d", len(l.sent))}))
	case n < 95:
		*tgt = vegeta.Target{Method: http.MethodGet, URL: host + "/orders/" + l.orders[l.random.IntN(len(l.orders))]}
	default:
		since := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
		*tgt = vegeta.Target{Method: http.MethodGet, URL: host + "/orders?since=" + since}
	}
	return nil
}

func (l *traffic) send(r row) row {
	l.sent[r.unique()] = r
	return r
}

// post returns the request that creates a row. Its Idempotency-Key is unique per order.
func post(path string, r row) vegeta.Target {
	body, _ := json.Marshal(r) // has no type that fails
	t := vegeta.Target{Method: http.MethodPost, URL: host + path, Body: body, Header: http.Header{"Content-Type": {"application/json"}}}
	if r.Item != "" {
		t.Header.Set("Idempotency-Key", r.Item)
	}
	return t
}

// received checks a successful response.
func (l *traffic) received(method, path string, body []byte) error {
	if method == http.MethodGet && strings.Contains(path, "?") {
		var list []row
		return json.Unmarshal(body, &list)
	}
	var got row
	if err := json.Unmarshal(body, &got); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	want, ok := l.sent[got.unique()]
	if want.ID = got.ID; !ok || got != want {
		return fmt.Errorf("expected the row %+v, got %+v", want, got)
	}
	if method == http.MethodGet {
		return nil
	}
	if other, ok := l.owner[got.ID]; ok && other != got.unique() {
		l.repeats = append(l.repeats, fmt.Sprintf("%q and %q have the ID %s", other, got.unique(), got.ID))
	}
	if other, ok := l.acked[got.unique()]; ok && other != got {
		l.repeats = append(l.repeats, fmt.Sprintf("%q has the IDs %s and %s", got.unique(), other.ID, got.ID))
	}
	l.owner[got.ID], l.acked[got.unique()] = got.unique(), got
	if got.Name != "" {
		l.customers = append(l.customers, got.ID)
	} else {
		l.orders = append(l.orders, got.ID)
	}
	return nil
}

// resend repeats each order without an acknowledgement, with the same Idempotency-Key,
// as a client does that doesn't know whether the order exists.
func (l *traffic) resend(t *testing.T, client *http.Client) int {
	t.Helper()
	var work errgroup.Group
	work.SetLimit(8)
	n := 0
	for _, r := range l.unacknowledged() {
		n++
		work.Go(func() error {
			target := post("/orders", r)
			request, err := target.Request()
			if err != nil {
				return err
			}
			answer, err := client.Do(request)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			body, err := io.ReadAll(answer.Body)
			if err == nil && answer.StatusCode != http.StatusCreated {
				err = fmt.Errorf("%s: %s", answer.Status, body)
			}
			if err != nil {
				return err
			}
			return l.received(http.MethodPost, "/orders", body)
		})
	}
	if err := work.Wait(); err != nil {
		t.Errorf("repeating an order without an acknowledgement: %v", err)
	}
	return n
}

func (l *traffic) unacknowledged() (orders []row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, r := range l.sent {
		if _, ok := l.acked[key]; !ok && r.Item != "" {
			orders = append(orders, r)
		}
	}
	return orders
}

// check compares the tables with the acknowledged rows. It returns the number of
// acknowledged rows, and how many of them the tables lack.
func (l *traffic) check(t *testing.T, db *pgtest.DB) (acknowledged, lost int) {
	t.Helper()
	conn := db.Conn(t, pgtest.Codec)
	stored := map[string]row{}
	keep := func(r row) {
		if before, ok := stored[r.unique()]; ok {
			t.Errorf("two rows for one request: %+v and %+v", before, r)
		}
		if want, ok := l.sent[r.unique()]; !ok || want != (row{"", r.CustomerID, r.Item, r.Quantity, r.Name}) {
			t.Errorf("expected the row %+v in the table, got %+v", want, r)
		}
		stored[r.unique()] = r
	}
	rows, err := conn.Query(t.Context(), "select 'ord_' || id, customer_id, item, quantity from orders")
	must(t, err)
	for rows.Next() {
		var r row
		var customer idtype.Sno
		must(t, rows.Scan(&r.ID, &customer, &r.Item, &r.Quantity))
		r.CustomerID = customer.String()
		keep(r)
	}
	must(t, rows.Err())
	rows, err = conn.Query(t.Context(), "select id, name from customers")
	must(t, err)
	for rows.Next() {
		var r row
		var id idtype.Sno
		must(t, rows.Scan(&id, &r.Name))
		r.ID = id.String()
		keep(r)
	}
	must(t, rows.Err())
	for key, want := range l.acked {
		if got := stored[key]; got != want {
			if lost++; lost <= 10 {
				t.Errorf("lost the acknowledged row %+v: the table has %+v", want, got)
			}
		}
	}
	for _, text := range l.repeats {
		t.Error(text)
	}
	return len(l.acked), lost
}

// A problem is a failed request.
type problem struct {
	begun, ended    time.Time
	instance, cause string
	mints           bool // the request needs an ID
}

// detail returns the detail of a reply to an error, or the reply if it has another form.
func detail(body []byte) string {
	var p struct{ Detail string }
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		return string(body)
	}
	return p.Detail
}

// causeOf returns the cause of a failed request, in a few words.
func causeOf(r *vegeta.Result) string {
	switch text := r.Error; {
	case r.Code != 0:
		text, _, _ := strings.Cut(detail(r.Body), ";") // without the advice
		return fmt.Sprintf("%d %s", r.Code, text)
	case strings.Contains(text, "Client.Timeout") || strings.Contains(text, "deadline exceeded"):
		return "no answer"
	case strings.Contains(text, "refused") || strings.Contains(text, "reset") || strings.Contains(text, "EOF") || strings.Contains(text, "broken pipe"):
		return "connection refused or broken"
	default:
		return text
	}
}
