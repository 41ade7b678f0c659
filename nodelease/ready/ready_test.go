package ready_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
	"github.com/sortkey/sortkey/nodelease/ready"
)

// All generators and the Keeper are Checkers.
var _ = []ready.Checker{
	(*idtype.SnowflakeGenerator)(nil), (*idtype.SnowflakeSIGenerator)(nil), (*idtype.UID60Generator)(nil), (*idtype.Spread64Generator)(nil),
	(*idtype.SnoGenerator)(nil), (*nodelease.Generator[idtype.Snowflake])(nil), (*nodelease.Keeper)(nil),
}

type check struct{ err error }

func (c check) Ready() error { return c.err }

// The status depends on all checks, and the body lists each reason in one line.
func TestHandler(t *testing.T) {
	fine, late, lost := check{}, check{errors.New("the clock is behind")}, check{errors.Join(errors.New("lease lost"), errors.New("store is down"))}
	for _, test := range []struct {
		method string
		checks []ready.Checker
		status int
		body   string
	}{
		{"GET", nil, 200, "ok\n"},
		{"GET", []ready.Checker{fine, fine}, 200, "ok\n"},
		{"HEAD", []ready.Checker{fine}, 200, "ok\n"},
		{"GET", []ready.Checker{fine, late}, 503, "the clock is behind\n"},
		{"HEAD", []ready.Checker{late, fine}, 503, "the clock is behind\n"},
		{"GET", []ready.Checker{late, fine, lost}, 503, "the clock is behind\nlease lost; store is down\n"},
		{"POST", []ready.Checker{fine}, 405, "method not allowed; want GET or HEAD\n"},
	} {
		w := httptest.NewRecorder()
		ready.Handler(test.checks...).ServeHTTP(w, httptest.NewRequest(test.method, "/readyz", nil))
		if w.Code != test.status || w.Body.String() != test.body {
			t.Errorf("%s with %v: want %d %q, got %d %q", test.method, test.checks, test.status, test.body, w.Code, w.Body)
		}
		if h := w.Header(); h.Get("Content-Type") != "text/plain; charset=utf-8" ||
			(h.Get("Cache-Control") == "no-store") != (w.Code != 405) || (h.Get("Allow") == "GET, HEAD") != (w.Code == 405) {
			t.Errorf("%s with %v: got header %v", test.method, test.checks, h)
		}
	}
	// A server sends no body with the response to HEAD.
	server := httptest.NewServer(ready.Handler(late))
	defer server.Close()
	r, err := http.Head(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != 503 || r.ContentLength > int64(len("the clock is behind\n")) {
		t.Errorf("got %+v", r)
	}
}

// Readiness ends when shutdown begins.
func TestWhile(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	c := ready.While(ctx)
	if err := c.Ready(); err != nil {
		t.Errorf("before the shutdown: %v", err)
	}
	errStop := errors.New("terminated")
	stop(errStop)
	if err := c.Ready(); !errors.Is(err, errStop) || !strings.Contains(err.Error(), "this process is stopping") {
		t.Errorf("after the shutdown began: want %v, got %v", errStop, err)
	}
}

func ExampleWhile() {
	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext(context.Background(), syscall.SIGTERM)
	handler := ready.Handler(ready.While(ctx))
	probe := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	probe()
	stop() // the signal
	probe()
	// Output:
	// 200 ok
	// 503 ready: this process is stopping: context canceled
}

func ExampleHandler() {
	ids, err := nodelease.NewSpread64Generator(context.Background(), &leasetest.Store{}, idtype.Spread64Config{Cluster: 3}, nodelease.Options{})
	if err != nil {
		panic(err)
	}
	handler := ready.Handler(ids)
	probe := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/readyz", nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	probe()
	ids.Close()
	probe()
	// Output:
	// 200 ok
	// 503 nodelease: number 0 of pool "spread64-3": closed
}
