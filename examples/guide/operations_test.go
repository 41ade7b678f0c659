package guide_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A probe is a probe of kubernetes.yaml.
type probe struct {
	path   string
	period time.Duration
	limit  time.Duration // until a failing probe has an effect
}

func probes(t *testing.T) map[string]probe {
	t.Helper()
	text, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]probe{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)Probe:\n  httpGet: \{path: (/\w+), port: 8081\}.*(?:\n  periodSeconds: (\d+)\n  failureThreshold: (\d+))?$`).FindAllStringSubmatch(string(text), -1) {
		seconds, _ := strconv.Atoi(m[3])
		threshold, _ := strconv.Atoi(m[4])
		period := time.Duration(seconds) * time.Second
		found[m[1]] = probe{m[2], period, period * time.Duration(threshold)}
	}
	return found
}

// The manifests of the page are valid YAML, and a pod has time for each step of its shutdown.
func TestManifests(t *testing.T) {
	text, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]map[string]any{}
	for _, piece := range regexp.MustCompile(`(?m)^# \[\w+\]\n`).Split(string(text), -1)[1:] {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(piece), &object); err != nil {
			t.Errorf("%v in:\n%s", err, piece)
		}
		if kind, ok := object["kind"].(string); ok {
			kinds[kind], _ = object["spec"].(map[string]any)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("got %d kinds, want Job, Deployment and CronJob", len(kinds))
	}
	pod := kinds["Deployment"]["template"].(map[string]any)["spec"].(map[string]any)
	const closing, requests, noticing = 5, 20, 5
	if grace := pod["terminationGracePeriodSeconds"]; grace.(int) < noticing+requests+closing {
		t.Errorf("a grace period of %v s is too short", grace)
	}
}

// The probes of the page fit the handlers, and the default TTL.
func TestProbes(t *testing.T) {
	ids := minting(t)
	mux := http.NewServeMux()
	ctx, stop := context.WithCancel(t.Context())
	guide.Probes(ctx, mux, ids)
	all := probes(t)
	want := func(code map[string]int) {
		t.Helper()
		for name, want := range code {
			response := httptest.NewRecorder()
			mux.ServeHTTP(response, httptest.NewRequest(http.MethodGet, all[name].path, nil))
			if response.Code != want {
				t.Errorf("%s probe: got status %d, want %d", name, response.Code, want)
			}
		}
	}
	want(map[string]int{"startup": 200, "readiness": 200, "liveness": 200})
	stop()
	want(map[string]int{"readiness": 503, "liveness": 200})
	if err := ids.Close(); err != nil {
		t.Fatal(err)
	}
	want(map[string]int{"startup": 503, "readiness": 503, "liveness": 200})

	// A claim takes up to Options.Wait, which is twice the TTL, and half a TTL more if the
	// store doesn't answer. Calls fail a third of the TTL after the handler first does.
	const ttl = 30 * time.Second
	if limit := all["startup"].limit; limit < 2*ttl+ttl/2 {
		t.Errorf("the startup probe fails after %v; want at least %v", limit, 2*ttl+ttl/2)
	}
	if limit := all["readiness"].limit; limit == 0 || limit > ttl/3 {
		t.Errorf("the readiness probe fails after %v; want at most %v", limit, ttl/3)
	}
}

// The next process with an ordinal never repeats an ID, and another one can't have its
// number.
func TestOrdinalIDs(t *testing.T) {
	t.Setenv("POD_INDEX", "37")
	dir := t.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	ids, err := guide.OrdinalIDs(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	last, err := ids.Next()
	if err != nil {
		t.Fatal(err)
	}
	if p, err := idtype.DefaultSnowflakeLayout().Parts(last); err != nil || p.Datacenter != 1 || p.Worker != 5 {
		t.Errorf("got %+v, %v, want datacenter 1 and worker 5", p, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := guide.OrdinalIDs(ctx, dir, quiet); !errors.Is(err, nodelease.ErrPoolExhausted) {
		t.Errorf("a second claim: got %v, want %v", err, nodelease.ErrPoolExhausted)
	}
	if err := ids.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := guide.OrdinalIDs(t.Context(), dir, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if id, err := next.Next(); err != nil || id <= last {
		t.Errorf("the next process: got %v, %v, want an ID after %v", id, err, last)
	}
	t.Setenv("POD_INDEX", "")
	if _, err := guide.OrdinalIDs(t.Context(), dir, quiet); !errors.Is(err, idtype.ErrNode) {
		t.Errorf("without an ordinal: got %v, want %v", err, idtype.ErrNode)
	}
}
