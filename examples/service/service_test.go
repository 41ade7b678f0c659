package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

// newShop returns a shop without a database, with its routes.
func newShop() http.Handler {
	mux := http.NewServeMux()
	(&shop{log: slog.New(slog.DiscardHandler)}).routes(mux)
	return mux
}

// The server ends the request of a client that sends its body too slowly.
func TestSlowBody(t *testing.T) {
	server := newServer("", newShop())
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
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.HasSuffix(string(answer), "body: not received in time\n") {
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
		{"/orders/7", "", "", 400, `"7" is not a valid ID: want "ord_" and a decimal integer from 0 to 9223372036854775807, got no prefix` + "\n"},
		{"/orders?after=7", "", "", 400, `parameter after: "7" is not a valid ID`},
		{"/orders?since=7", "", "", 400, `parameter since: want a time such as 2026-11-22T00:00:00Z, got "7"` + "\n"},
		{"/customers", `[]`, "", 400, "body: want an object: got a JSON array\n"},
		{"/customers", `{"name": 1}`, "", 400, "body: name: got a JSON number\n"},
		{"/orders", strings.Replace(order, "brp", "BRP", 1), "", 400, `body: "BRPk4q72egf2m63l" is not a valid ID: invalid character "B" at byte 0; want 16 characters [2-9a-x]` + "\n"},
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
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.text) {
			t.Errorf("%.60s, key %.10q: want %d %q, got %d %q", test.body, test.key, test.status, test.text, w.Code, w.Body)
		}
	}
}

type broken struct{}

func (broken) Ready() error { return errors.New("failed to connect to user=shop host=10.0.0.7") }

// /readyz hides the names of users and servers, and the log has them.
func TestReason(t *testing.T) {
	var log bytes.Buffer
	ended, end := context.WithCancel(t.Context())
	end()
	w := httptest.NewRecorder()
	ready.Handler(reason{"no IDs for orders", broken{}, slog.New(slog.NewJSONHandler(&log, nil))}, ready.While(ended)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != "no IDs for orders; see the log\nready: this process is stopping: context canceled\n" {
		t.Errorf("want status 503 without details, got %d %q", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "user=shop host=10.0.0.7") {
		t.Errorf("want the details in the log, got %s", &log)
	}
}
