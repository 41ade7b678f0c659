// Package promtest runs Prometheus for tests, in a container that scrapes the test
// process or its children.
package promtest

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// A Server is a Prometheus server.
type Server struct {
	url       string
	container testcontainers.Container
}

// The server scrapes its targets once per second.
const config = `global:
  scrape_interval: 1s
  evaluation_interval: 1s
rule_files: [/rules/alerts.yaml]
scrape_configs:
  - job_name: test
    static_configs: [{targets: [%s]}]
`

// Run starts a server for one test, and removes it when the test ends. It scrapes
// /metrics of programs on this machine that listen on all interfaces, on the given
// ports. The files are rules and their tests. The first is the file of the server's own
// rules, which must have the name alerts.yaml. The container has the files in /rules.
func Run(t testing.TB, ports []int, files ...string) *Server {
	t.Helper()
	image := pgtest.DebianImage(t, "prometheus", "trixie", "prometheus")
	var targets []string
	for _, port := range ports {
		targets = append(targets, strconv.Quote(net.JoinHostPort("host.docker.internal", strconv.Itoa(port))))
	}
	copies := []testcontainers.ContainerFile{{
		Reader: strings.NewReader(fmt.Sprintf(config, strings.Join(targets, ", "))), ContainerFilePath: "/prometheus.yml", FileMode: 0o644,
	}}
	for _, file := range files {
		copies = append(copies, testcontainers.ContainerFile{HostFilePath: file, ContainerFilePath: "/rules/" + filepath.Base(file), FileMode: 0o644})
	}
	const port = "9090/tcp"
	s := &Server{container: pgtest.Container(t, image,
		testcontainers.WithFiles(copies...),
		testcontainers.WithEntrypoint("prometheus", "--config.file=/prometheus.yml", "--storage.tsdb.path=/tmp/prometheus"),
		testcontainers.WithExposedPorts(port),
		testcontainers.WithHostConfigModifier(func(c *container.HostConfig) { c.ExtraHosts = []string{"host.docker.internal:host-gateway"} }),
		testcontainers.WithWaitStrategy(wait.ForHTTP("/-/ready").WithPort(port)),
	)}
	var err error
	if s.url, err = s.container.PortEndpoint(t.Context(), port, "http"); err != nil {
		t.Fatal(err)
	}
	return s
}

// Promtool runs promtool in the container, in the directory /rules.
func (s *Server) Promtool(t testing.TB, args string) {
	t.Helper()
	if out, err := pgtest.Exec(t, s.container, "root", "sh", "-c", "cd /rules && promtool "+args); err != nil {
		t.Errorf("promtool %s: %v\n%s", args, err, out)
	}
}

// get decodes the data of a response of the HTTP API.
func (s *Server) get(t testing.TB, path string, query url.Values, data any) error {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return nil
}

// Query returns the values of an instant query, except NaN.
func (s *Server) Query(t testing.TB, expression string) ([]float64, error) {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := s.get(t, "query", url.Values{"query": {expression}}, &data); err != nil {
		return nil, err
	}
	var values []float64
	for _, r := range data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		if !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values, nil
}

// CheckRules reports an error for each rule that the server can't evaluate, and if it
// has no rules.
func (s *Server) CheckRules(t testing.TB) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := s.get(t, "rules", nil, &data); err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			rules++
			if r.Health != "ok" {
				t.Errorf("rule %s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	if rules == 0 {
		t.Error("the server has no rules")
	}
}

// CheckDashboard reports an error for each query of a Grafana dashboard that returns no
// data.
func (s *Server) CheckDashboard(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "15s", "$instance", ".*")
	queries := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries++
			expression := variables.Replace(target.Expr)
			values, err := s.Query(t, expression)
			if err == nil && len(values) == 0 {
				err = fmt.Errorf("no data")
			}
			if err != nil {
				t.Errorf("dashboard, %s: %v\nin %s", p.Title, err, expression)
			}
		}
	}
	if queries == 0 {
		t.Errorf("%s has no queries", file)
	}
}
