package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sortkey/sortkey/metrics"
)

// exported returns the names of all metrics.
func exported(t *testing.T) (names []string) {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 100)
	metrics.NewCollector().Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		names = append(names, regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1])
	}
	return names
}

// used returns the metrics that a file mentions.
func used(t *testing.T, file string) []string {
	t.Helper()
	names := regexp.MustCompile(`\bsortkey_\w+`).FindAllString(read(t, file), -1)
	for i, name := range names { // a summary has two series
		names[i] = strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The alerts and the dashboard use only metrics that exist, the dashboard shows all of
// them, and doc.go lists them.
func TestNames(t *testing.T) {
	names := exported(t)
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "alerts_days_test.yaml", "dashboard.json", "doc.go"} {
		for _, name := range used(t, file) {
			if !slices.Contains(names, name) && name != "sortkey_internal" {
				t.Errorf("%s: no metric has the name %s", file, name)
			}
		}
	}
	for _, file := range []string{"dashboard.json", "doc.go"} {
		for _, name := range names {
			if !slices.Contains(used(t, file), name) {
				t.Errorf("%s: %s is missing", file, name)
			}
		}
	}
}

// The page about monitoring has a row for each alert, to which the alert links.
func TestRunbooks(t *testing.T) {
	page := read(t, "../docs/monitoring.md")
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)\n(?: {8}.*\n)*`).FindAllStringSubmatch(read(t, "alerts.yaml"), -1)
	if len(alerts) == 0 {
		t.Fatal("alerts.yaml has no alerts")
	}
	for _, a := range alerts {
		if url := "https://github.com/sortkey/sortkey/blob/main/docs/monitoring.md#" + strings.ToLower(a[1]); !strings.Contains(a[0], `runbook_url: "`+url+`"`) {
			t.Errorf("%s: want the annotation runbook_url %s", a[1], url)
		}
		if row := `| <a id="` + strings.ToLower(a[1]) + `"></a>` + a[1] + ` | `; !strings.Contains(page, "\n"+row) {
			t.Errorf("docs/monitoring.md: want a row that begins with %s", row)
		}
	}
}

// promtool runs the cases in alerts_test.yaml and alerts_days_test.yaml.
func TestEachAlertHasTests(t *testing.T) {
	alerts := regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(read(t, "alerts.yaml"), -1)
	if len(alerts) == 0 {
		t.Fatal("alerts.yaml has no alerts")
	}
	tests := read(t, "alerts_test.yaml") + read(t, "alerts_days_test.yaml")
	for _, a := range alerts {
		for _, pattern := range []string{
			`- name: ` + a[1] + ` fires\n(?:    .*\n)*        alertname: ` + a[1] + `\n        exp_alerts:\n`,
			`- name: ` + a[1] + ` does not fire\n(?:    .*\n)*      - \{eval_time: \w+, alertname: ` + a[1] + `\}`,
		} {
			if !regexp.MustCompile(pattern).MatchString(tests) {
				t.Errorf("alerts*_test.yaml: no match for %q", pattern)
			}
		}
	}
}

func TestDashboard(t *testing.T) {
	var d struct {
		Panels []struct {
			ID          int
			Type, Title string
			FieldConfig struct{ Defaults struct{ Unit string } }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range d.Panels {
		if seen[p.ID] {
			t.Errorf("%s: another panel has the id %d", p.Title, p.ID)
		}
		seen[p.ID] = true
		if p.Type != "row" && (p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0) {
			t.Errorf("%s: the unit or the query is missing", p.Title)
		}
	}
}
