package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/nodelease/ready"
)

// -h doesn't print the URLs of the environment, which can contain passwords.
func TestHelp(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://shop:secret@localhost/shop")
	t.Setenv("LEASES_URL", "postgres://leases:secret@localhost/leases")
	var c config
	var output bytes.Buffer
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(&output)
	if err := c.parse(flags, []string{"-h"}); !errors.Is(err, flag.ErrHelp) || !strings.Contains(output.String(), "$DATABASE_URL") || strings.Contains(output.String(), "secret") {
		t.Errorf("want help without secrets, got %v, %s", err, &output)
	}
	if c.database != "postgres://shop:secret@localhost/shop" || c.leases != "postgres://leases:secret@localhost/leases" {
		t.Errorf("want the URLs of the environment, got %+v", c)
	}
	c = config{}
	if err := c.parse(flag.NewFlagSet("service", flag.ContinueOnError), []string{"-database", "postgres:///shop"}); err != nil || c.database != "postgres:///shop" {
		t.Errorf("want the URL of the flag, got %+v, %v", c, err)
	}
}

// Without a database, the service names the setting.
func TestNoDatabase(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	for _, args := range [][]string{nil, {"-migrate"}, {"-monitor"}} {
		var c config
		if err := c.parse(flag.NewFlagSet("service", flag.ContinueOnError), args); err == nil || !strings.Contains(err.Error(), "set DATABASE_URL") {
			t.Errorf("%q: want an error that names DATABASE_URL, got %v", args, err)
		}
	}
}

// newShop returns a shop without a database.
func newShop() http.Handler { return (&shop{log: slog.New(slog.DiscardHandler)}).routes() }

// A buffer is a buffer for a logger of several goroutines.
type buffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// newLog returns a logger, and the buffer with its lines.
func newLog() (*slog.Logger, *buffer) {
	var b buffer
	return slog.New(slog.NewJSONHandler(&b, nil)), &b
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("waited a minute: %s", what)
		}
	}
}

// The log has "serving" only if all addresses could be bound.
func TestBind(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	log, lines := newLog()
	err = listenAndServe(t.Context(), 0, log, newServer("localhost:0", newShop(), log), newServer(taken.Addr().String(), newShop(), log))
	if err == nil || !strings.Contains(err.Error(), taken.Addr().String()) || lines.String() != "" {
		t.Errorf("want an error about the address and no log, got %v and %s", err, lines)
	}
}

// If a server fails, the process ends: before the signal to stop, and also in the drain.
func TestFailedServer(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]bool{"serving": false, "draining": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			log, lines := newLog()
			shop, operations := newServer("localhost:0", newShop(), log), newServer("localhost:0", newShop(), log)
			ended := make(chan error, 1)
			go func() { ended <- listenAndServe(ctx, time.Hour, log, shop, operations) }()
			eventually(t, "both serve", func() bool { return strings.Count(lines.String(), `"serving"`) == 2 })
			if stop {
				cancel()
			}
			_ = shop.Close() // its Serve returns an error
			select {
			case err := <-ended:
				if !errors.Is(err, http.ErrServerClosed) {
					t.Errorf("want the error of the server, got %v", err)
				}
			case <-time.After(time.Minute):
				t.Error("want the end of both servers")
			}
		})
	}
}

// The errors of the server go to the log of the service.
func TestErrorLog(t *testing.T) {
	t.Parallel()
	log, lines := newLog()
	newServer("", nil, log).ErrorLog.Print("http: panic serving")
	if !strings.Contains(lines.String(), `"level":"WARN","msg":"http: panic serving"`) {
		t.Errorf("want a line of JSON, got %s", lines)
	}
}

// Each request has a line in the log, and a failed one has its error.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	log, lines := newLog()
	s := &shop{log: log}
	for _, err := range []error{nil, badRequest{errors.New("want a name")}, errors.New("disk full")} {
		s.handle(func(w http.ResponseWriter, _ *http.Request) error {
			if err != nil {
				return err
			}
			return replyJSON(w, http.StatusCreated, "tea")
		})(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders?secret=1", nil))
	}
	want := regexp.MustCompile(`^.*"INFO","msg":"request","method":"POST","path":"/orders","status":201,"seconds":[-0-9.e]+,"error":null}
.*"INFO","msg":"request",.*"status":400,.*"error":"want a name"}
.*"ERROR","msg":"request",.*"status":500,.*"error":"disk full"}
$`)
	if !want.MatchString(lines.String()) {
		t.Errorf("want a line per request, got %s", lines)
	}
}

// Errors of the database that a retry can resolve have status 503, and no SQLSTATE is too
// short.
func TestStatusOfDatabaseErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"25006": 503, "40001": 503, "40P01": 503, "08006": 503, "53300": 503, "57P01": 503,
		"23503": 400, "23505": 500, "25001": 500, "42P01": 500, "": 500, "5": 500, "4": 500,
	} {
		w := httptest.NewRecorder()
		fail(w, fmt.Errorf("insert: %w", &pgconn.PgError{Code: code}))
		if w.Code != want || (w.Header().Get("Retry-After") != "") != (want == 503) {
			t.Errorf("SQLSTATE %q: want status %d, got %d, Retry-After %q", code, want, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

// Metrics and probes aren't on the port of clients.
func TestOperations(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for path, want := range map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 503} {
		get := httptest.NewRequest(http.MethodGet, path, nil)
		public, private := httptest.NewRecorder(), httptest.NewRecorder()
		newShop().ServeHTTP(public, get)
		operations([]ready.Checker{ready.While(ended)}).ServeHTTP(private, get)
		if public.Code != 404 || private.Code != want {
			t.Errorf("%s: want status 404 for clients and %d for operators, got %d and %d", path, want, public.Code, private.Code)
		}
	}
}

// All errors have the same form, also those for which no route exists.
func TestNoRoute(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method, path  string
		status        int
		allow, detail string
	}{
		{"GET", "/", 404, "", "no such path"},
		{"POST", "/orders/1/items", 404, "", "no such path"},
		{"DELETE", "/orders", 405, "GET, HEAD, POST", "the path has other methods; see the header Allow"},
		{"PUT", "/orders/1", 405, "GET, HEAD", "the path has other methods; see the header Allow"},
		{"GET", "/customers", 405, "POST", "the path has other methods; see the header Allow"},
		{"GET", "/orders/1", 400, "", `"1" is not a valid ID: want "ord_" and a decimal integer from 0 to 9223372036854775807, got no prefix`},
	} {
		w := httptest.NewRecorder()
		newShop().ServeHTTP(w, httptest.NewRequest(test.method, test.path, nil))
		status, detail := problem(t, w)
		if status != test.status || detail != test.detail || w.Header().Get("Allow") != test.allow {
			t.Errorf("%s %s: want %d %q, Allow %q, got %d %q, Allow %q", test.method, test.path, test.status, test.detail, test.allow, status, detail, w.Header().Get("Allow"))
		}
	}
}

// problem returns the status and the detail of a reply to an error.
func problem(t *testing.T, w *httptest.ResponseRecorder) (int, string) {
	t.Helper()
	var p struct {
		Title, Detail string
		Status        int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Title != http.StatusText(w.Code) || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("want a problem in JSON, got %v, status %d, %v, %s", err, w.Code, w.Header(), w.Body)
	}
	return w.Code, p.Detail
}

// The server ends the request of a client that sends its body too slowly.
func TestSlowBody(t *testing.T) {
	server := newServer("", newShop(), slog.New(slog.DiscardHandler))
	if server.ReadHeaderTimeout == 0 || server.ReadTimeout == 0 || server.WriteTimeout <= requestTimeout || server.IdleTimeout == 0 || server.MaxHeaderBytes == 0 {
		t.Errorf("want all limits, got %+v", server)
	}
	server.ReadTimeout = 100 * time.Millisecond
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := fmt.Fprint(client, "POST /customers HTTP/1.1\r\nHost: shop\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	_ = client.SetReadDeadline(time.Now().Add(time.Minute))
	answer, err := io.ReadAll(client) // until the server closes the connection
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), `"detail":"body: not received in time"`) {
		t.Errorf("want status 408, got %v, %q", err, answer)
	}
}

// Answers to wrong input name no Go types. Input that Postgres can't store is the error of the
// client.
func TestWrongInput(t *testing.T) {
	const order = `{"customer_id": "brpk4q72egf2m63l", "item": "tea", "quantity": 2}`
	for _, test := range []struct {
		path, body, key string
		status          int
		text            string
	}{
		{"/customers", `{"name": "A\u0000"}`, "", 400, `name: want UTF-8 without NUL characters, got "A\x00"`},
		{"/customers", "{\"name\": \"\xff\"}", "", 400, "body: want UTF-8"},
		{"/customers", `{"name": "A"} {}`, "", 400, "body: invalid character"},
		{"/orders/7", "", "", 400, `"7" is not a valid ID: want "ord_" and a decimal integer from 0 to 9223372036854775807, got no prefix`},
		{"/orders?after=7", "", "", 400, `parameter after: "7" is not a valid ID`},
		{"/orders?since=7", "", "", 400, `parameter since: want a time such as 2026-11-22T00:00:00Z, got "7"`},
		{"/customers", `{"name": "A", "id": "brpk4q72egf2m63l"}`, "", 400, `body: unknown field "id"`},
		{"/orders", strings.Replace(order, "quantity", "quantities", 1), "", 400, `body: unknown field "quantities"`},
		{"/customers", `[]`, "", 400, "body: want an object: got a JSON array"},
		{"/customers", `{"name": 1}`, "", 400, "body: name: got a JSON number"},
		{"/orders", strings.Replace(order, "brp", "BRP", 1), "", 400, `body: "BRPk4q72egf2m63l" is not a valid ID: invalid character "B" at byte 0; want 16 characters [2-9a-x]`},
		{"/customers", `{"name": "` + strings.Repeat("A", maxBody) + `"}`, "", 413, "body: want at most 65536 bytes"},
		{"/orders", strings.Replace(order, "tea", `\u0000`, 1), "", 400, "item: want UTF-8"},
		{"/orders", order, "\xff", 400, `Idempotency-Key: want UTF-8 without NUL characters, got "\xff"`},
		{"/orders", order, strings.Repeat("k", maxKey+1), 400, "Idempotency-Key: want at most 255 bytes, got 256"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, test.path, strings.NewReader(test.body))
		r.Header.Set("Idempotency-Key", test.key)
		if test.body == "" {
			r.Method = http.MethodGet
		}
		newShop().ServeHTTP(w, r)
		if status, detail := problem(t, w); status != test.status || !strings.Contains(detail, test.text) {
			t.Errorf("%.60s, key %.10q: want %d %q, got %d %q", test.body, test.key, test.status, test.text, status, detail)
		}
	}
}
