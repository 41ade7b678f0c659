package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/gin-gonic/gin"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/examples/frameworks/web"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// ada and bob are customers, and notCustomer has another model's metabyte.
var (
	ada         = idtype.Must(idtype.Parse[key.CustomerID]("brpk4q72egf2m63l"))
	bob         = idtype.Must(idtype.Parse[key.CustomerID]("brpk4q72egf2m63m"))
	notCustomer = ada.Untyped().WithMeta('d').String()
)

var ids = []key.OrderID{779300444248735744, 779300444248735745, 779300444248735746}

// A store is a list of orders.
type store []web.Order

var orders = store{
	{ID: ids[0], CustomerID: ada},
	{ID: ids[1], CustomerID: ada, ReplacesID: &ids[0]},
	{ID: ids[2], CustomerID: bob},
}

func (s store) Order(id key.OrderID) web.Order {
	return s[slices.IndexFunc(s, func(o web.Order) bool { return o.ID == id })]
}

func (s store) Orders(ids []key.OrderID, customer key.CustomerID) []web.Order {
	return slices.DeleteFunc(slices.Clone(s), func(o web.Order) bool {
		return len(ids) > 0 && !slices.Contains(ids, o.ID) || !customer.IsZero() && o.CustomerID != customer
	})
}

// TestRouters binds path and query parameters with each router.
func TestRouters(t *testing.T) {
	gin.SetMode(gin.TestMode)
	const (
		first  = `{"id":"ord_779300444248735744","customer_id":"brpk4q72egf2m63l"}`
		second = `{"id":"ord_779300444248735745","customer_id":"brpk4q72egf2m63l","replaces_id":"ord_779300444248735744"}`
		third  = `{"id":"ord_779300444248735746","customer_id":"brpk4q72egf2m63m"}`
	)
	for _, router := range []struct {
		name    string
		handler http.Handler
		refused int // status
	}{
		{"net/http", web.NetHTTP(orders), http.StatusBadRequest},
		{"gin", web.Gin(orders), http.StatusBadRequest},
		{"echo", web.Echo(orders), http.StatusBadRequest},
		{"huma", web.Huma(orders), http.StatusUnprocessableEntity},
	} {
		t.Run(router.name, func(t *testing.T) {
			for path, want := range map[string]string{
				"/orders/ord_779300444248735745": second,
				"/orders":                        "[" + first + "," + second + "," + third + "]",
				"/orders?id=ord_779300444248735744&id=ord_779300444248735746": "[" + first + "," + third + "]",
				"/orders?customer=brpk4q72egf2m63m":                           "[" + third + "]",
				"/orders?customer=":                                           "[" + first + "," + second + "," + third + "]",
			} {
				status, body := get(router.handler, path)
				body = strings.Replace(body, `"$schema":"https://example.com/schemas/Order.json",`, "", 1) // huma adds it
				if status != http.StatusOK || body != want {
					t.Errorf("%s: expected %s, got %d, %s", path, want, status, body)
				}
			}
			for path, want := range map[string]string{
				"/orders/779300444248735744":       "got no prefix",
				"/orders/cus_779300444248735744":   "got the prefix",
				"/orders/ord_x":                    "invalid character",
				"/orders/ord_0779300444248735744":  "leading zero",
				"/orders?id=ord_7&id=8":            "got no prefix",
				"/orders?customer=" + notCustomer:  "another kind of record",
				"/orders?customer=BRPK4Q72EGF2M63": "got 15",
			} {
				status, body := get(router.handler, path)
				if status != router.refused || !strings.Contains(body, want) || strings.Contains(body, "idtype") || strings.Contains(body, "Of[") {
					t.Errorf("%s: expected %d and %s without a Go type, got %d, %s", path, router.refused, want, status, body)
				}
			}
		})
	}
}

func get(h http.Handler, path string) (status int, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

// Without Param, huma rejects every value of an integer ID: it parses a number, and then
// expects a string.
func TestHumaWithoutParam(t *testing.T) {
	mux := http.NewServeMux()
	huma.Get(humago.New(mux, huma.DefaultConfig("Shop", "1.0.0")), "/orders/{id}", func(_ context.Context, in *struct {
		ID key.OrderID `path:"id"`
	}) (*struct{ Body web.Order }, error) {
		return &struct{ Body web.Order }{web.Order{ID: in.ID, CustomerID: ada}}, nil
	})
	for path, want := range map[string]string{"/orders/7": "expected string", "/orders/ord_7": "invalid integer"} {
		if status, body := get(mux, path); status != http.StatusUnprocessableEntity || !strings.Contains(body, want) {
			t.Errorf("%s: expected %s, got %d, %s", path, want, status, body)
		}
	}
}

// The page on frameworks shows the message.
func TestProtoOnPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/using-with.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("order.proto")
	if err != nil {
		t.Fatal(err)
	}
	_, message, _ := strings.Cut(string(source), "package shop;\n\n")
	if message == "" || !strings.Contains(string(page), "```proto\n"+message+"```\n") {
		t.Errorf("the page doesn't have this message:\n%s", message)
	}
}

// The OpenAPI document describes the IDs as strings, with patterns that their texts match.
func TestOpenAPI(t *testing.T) {
	_, body := get(web.Huma(orders), "/openapi.json")
	type schema struct {
		Type            any
		Format, Pattern string
		Examples        []string
	}
	var doc struct {
		Components struct {
			Schemas struct {
				Order struct{ Properties map[string]schema }
			}
		}
		Paths map[string]struct {
			Get struct{ Parameters []struct{ Schema schema } }
		}
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Fatal(err)
	}
	order := doc.Components.Schemas.Order.Properties
	for name, got := range map[string]struct {
		schema
		text, format string
	}{
		"id":          {order["id"], ids[0].String(), "order-id"},
		"replaces_id": {order["replaces_id"], ids[0].String(), "order-id"},
		"customer_id": {order["customer_id"], ada.String(), "customer-id"},
		"parameter":   {doc.Paths["/orders/{id}"].Get.Parameters[0].Schema, ids[0].String(), "order-id"},
	} {
		match, err := regexp.MatchString(got.Pattern, got.text)
		if err != nil || got.Pattern == "" || !match || got.Type != "string" || got.Format != got.format || len(got.Examples) != 1 {
			t.Fatalf("%s: got %+v", name, got)
		}
		if match, _ := regexp.MatchString(got.Pattern, got.Examples[0]); !match {
			t.Errorf("%s: the example doesn't match %s", name, got.Pattern)
		}
	}
}

// Both versions of package json write and read the same texts.
func TestJSON(t *testing.T) {
	for name, codec := range map[string]struct {
		marshal   func(any) ([]byte, error)
		unmarshal func([]byte, any) error
	}{
		"v1": {json.Marshal, json.Unmarshal},
		"v2": {
			func(v any) ([]byte, error) { return jsonv2.Marshal(v, jsonv2.Deterministic(true)) },
			func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			type document struct {
				Order  web.Order                                `json:"order"`
				IDs    []key.OrderID                            `json:"ids"`
				Totals map[key.OrderID]int                      `json:"totals"`
				None   key.OrderID                              `json:"none"`
				Absent key.OrderID                              `json:"absent,omitzero"`
				Parent sqltypes.Optional[key.OrderID]           `json:"parent"`
				Count  idtype.SnowflakeSI                       `json:"count"`
				Sizes  map[idtype.Sno]int                       `json:"sizes"`
				Other  *key.CustomerID                          `json:"other"`
				Any    map[string]sqltypes.Optional[idtype.Sno] `json:"any,omitempty"`
			}
			in := document{
				Order: orders[1], IDs: ids[:2], Totals: map[key.OrderID]int{ids[0]: 1}, Count: 1781273964118016,
				Sizes: map[idtype.Sno]int{ada.Untyped(): 2},
			}
			const want = `{"order":{"id":"ord_779300444248735745","customer_id":"brpk4q72egf2m63l","replaces_id":"ord_779300444248735744"},` +
				`"ids":["ord_779300444248735744","ord_779300444248735745"],"totals":{"ord_779300444248735744":1},` +
				`"none":null,"parent":null,"count":1781273964118016,"sizes":{"brpk4q72egf2m63l":2},"other":null}`
			b, err := codec.marshal(in)
			if err != nil || string(b) != want {
				t.Errorf("expected %s, got %s, %v", want, b, err)
			}
			var out document
			if err := codec.unmarshal(b, &out); err != nil || !reflect.DeepEqual(out, in) {
				t.Errorf("expected %+v, got %+v, %v", in, out, err)
			}
			for _, bad := range []string{`{"ids":["7"]}`, `{"ids":[-7]}`, `{"ids":[7.5]}`, `{"totals":{"7":1}}`, `{"other":"` + notCustomer + `"}`} {
				if err := codec.unmarshal([]byte(bad), &out); err == nil || !strings.Contains(err.Error(), "idtype: ") {
					t.Errorf("%s: got %v", bad, err)
				}
			}
		})
	}
}

// Logs have the texts of IDs.
func TestLog(t *testing.T) {
	var text, inJSON bytes.Buffer
	noTime := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	web.Log(slog.New(slog.NewTextHandler(&text, noTime)), orders[1])
	web.Log(slog.New(slog.NewJSONHandler(&inJSON, noTime)), orders[1])
	if want := "level=INFO msg=\"order replaced\" order=ord_779300444248735745 customer=brpk4q72egf2m63l replaces=ord_779300444248735744\n"; text.String() != want {
		t.Errorf("expected %s, got %s", want, &text)
	}
	if want := `{"level":"INFO","msg":"order replaced","order":"ord_779300444248735745","customer":"brpk4q72egf2m63l","replaces":"ord_779300444248735744"}` + "\n"; inJSON.String() != want {
		t.Errorf("expected %s, got %s", want, &inJSON)
	}
}

// The rules treat the zero ID as absent.
func TestValidator(t *testing.T) {
	v := web.NewValidator()
	for _, test := range []struct {
		order web.NewOrder
		want  string // a part of the error
	}{
		{web.NewOrder{CustomerID: ada}, ""},
		{web.NewOrder{}, "'CustomerID' failed on the 'required' tag"},
		{web.NewOrder{CustomerID: ada, Kind: "exchange"}, "'ReplacesID' failed on the 'required_if' tag"},
		{web.NewOrder{CustomerID: ada, Kind: "exchange", ReplacesID: sqltypes.OptionalOf(ids[0])}, ""},
		{web.NewOrder{CustomerID: ada, Related: ids}, ""},
		{web.NewOrder{CustomerID: ada, Related: []key.OrderID{ids[0], 0}}, "'Related[1]' failed on the 'required' tag"},
		{web.NewOrder{CustomerID: ada, Related: []key.OrderID{ids[0], ids[0]}}, "'Related' failed on the 'unique' tag"},
		{web.NewOrder{CustomerID: ada, Related: make([]key.OrderID, 4)}, "'Related' failed on the 'max' tag"},
	} {
		err := v.Struct(test.order)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: expected %q, got %v", test.order, test.want, err)
		}
	}
}
