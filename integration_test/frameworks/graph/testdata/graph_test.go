// Package uses tests the recipe for gqlgen. It compiles only with package graph, which
// TestGraph generates.
package uses

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/examples/frameworks/web"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/frameworks/graph/testdata/graph"
)

// ada is a customer, and other has another model's metabyte.
var (
	ada   = idtype.Must(idtype.Parse[key.CustomerID]("brpk4q72egf2m63l"))
	other = ada.Untyped().WithMeta('d')
)

type resolvers struct{}

func (resolvers) Query() graph.QueryResolver { return resolvers{} }

func (resolvers) Order(_ context.Context, id key.OrderID) (*web.Order, error) {
	return &web.Order{ID: id, CustomerID: ada}, nil
}

func (resolvers) Orders(_ context.Context, ids []key.OrderID, customer *key.CustomerID) (orders []*web.Order, err error) {
	for _, id := range ids {
		orders = append(orders, &web.Order{ID: id, CustomerID: *customer, ReplacesID: &ids[0]})
	}
	return orders, nil
}

func TestGraph(t *testing.T) {
	s := handler.New(graph.NewExecutableSchema(graph.Config{Resolvers: resolvers{}}))
	s.AddTransport(transport.POST{})
	for _, test := range []struct{ query, want string }{
		{`{order(id: "ord_7") {id customerID replacesID}}`,
			`{"data":{"order":{"id":"ord_7","customerID":"brpk4q72egf2m63l","replacesID":null}}}`},
		{`{orders(ids: ["ord_7", "ord_8"], customer: "brpk4q72egf2m63l") {id customerID replacesID}}`,
			`{"data":{"orders":[{"id":"ord_7","customerID":"brpk4q72egf2m63l","replacesID":"ord_7"},{"id":"ord_8","customerID":"brpk4q72egf2m63l","replacesID":"ord_7"}]}}`},
		{`{orders(ids: []) {id}}`, `{"data":{"orders":[]}}`},
		{`{order(id: "7") {id}}`, `got no prefix`},
		{`{order(id: 7) {id}}`, `want the text of an ID as a string`},
		{`{orders(ids: ["ord_7"], customer: "` + other.String() + `") {id}}`, `another kind of record`},
	} {
		body, err := json.Marshal(map[string]string{"query": test.query})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "/query", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Body.String(); !strings.Contains(got, test.want) {
			t.Errorf("%s: expected %s, got %s", test.query, test.want, got)
		}
	}
}
