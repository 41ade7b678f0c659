package guide_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/leasetest"
)

// minting returns a generator that has created three IDs.
func minting(t *testing.T) *nodelease.Generator[idtype.Snowflake] {
	t.Helper()
	ids, err := guide.ClaimIDs(t.Context(), &leasetest.Store{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ids.Close() })
	for range 3 {
		if _, err := ids.Next(); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

func TestServeMetrics(t *testing.T) {
	hasLines(t, guide.ServeMetrics(minting(t)), `sortkey_ids_minted_total{generator="orders"} 3`, `sortkey_ready{generator="orders"} 1`)
}

func TestServeDatabaseMetrics(t *testing.T) {
	handler, err := guide.ServeDatabaseMetrics(t.Context(), "postgres://127.0.0.1:1/shop", slog.New(slog.DiscardHandler)) // nothing listens there
	if err != nil {
		t.Fatal(err)
	}
	hasLines(t, handler, `sortkey_database_up{database="shop"} 0`)
}

// hasLines checks that the response for Prometheus has the lines.
func hasLines(t *testing.T, handler http.Handler, lines ...string) {
	t.Helper()
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range lines {
		if !strings.Contains(response.Body.String(), line+"\n") {
			t.Errorf("want the line %s, got\n%s", line, response.Body)
		}
	}
}

// An exporter keeps what it gets.
type exporter struct{ got metricdata.ResourceMetrics }

func (*exporter) Temporality(metric.InstrumentKind) metricdata.Temporality {
	return metricdata.CumulativeTemporality
}
func (*exporter) Aggregation(metric.InstrumentKind) metric.Aggregation { return nil }
func (e *exporter) Export(_ context.Context, m *metricdata.ResourceMetrics) error {
	e.got = *m
	return nil
}
func (*exporter) ForceFlush(context.Context) error { return nil }
func (*exporter) Shutdown(context.Context) error   { return nil }

func TestExportMetrics(t *testing.T) {
	e := &exporter{}
	if err := guide.ExportMetrics(minting(t), e).Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, scope := range e.got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[float64]); ok && m.Name == "sortkey_ids_minted_total" {
				if len(sum.DataPoints) != 1 || sum.DataPoints[0].Value != 3 {
					t.Errorf("got %+v, want one value of 3", sum.DataPoints)
				}
				return
			}
		}
	}
	t.Errorf("got no sortkey_ids_minted_total in %+v", e.got)
}
