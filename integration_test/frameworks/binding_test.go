package frameworks

import (
	"encoding/json"
	"io"
	"log"
	"net/url"
	"reflect"
	"testing"

	"github.com/go-viper/mapstructure/v2"
	"github.com/google/go-querystring/query"
	"github.com/gorilla/schema"
	"github.com/oapi-codegen/runtime"
	"github.com/swaggo/swag"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// The libraries below look at the kind of a type, for example int64, before its methods, in
// some places. Each test shows which form works. The UID60 is a text of digits, which is also
// the number of another ID.

// A search has IDs in the forms of parameters.
type search struct {
	Short    idtype.UID60                   `schema:"short" url:"short" json:"short"`
	Spread   idtype.Spread64                `schema:"spread" url:"spread" json:"spread"`
	Order    key.OrderID                    `schema:"order" url:"order" json:"order"`
	Customer key.CustomerID                 `schema:"customer" url:"-" json:"customer"`
	Replaces *key.OrderID                   `schema:"replaces" url:"replaces" json:"replaces"`
	Parent   sqltypes.Optional[key.OrderID] `schema:"parent" url:"-" json:"parent"`
	Orders   []key.OrderID                  `schema:"orders" url:"orders" json:"orders"`
}

func aSearch() search {
	order := key.OrderID(779300444248735744)
	return search{idtype.Must(idtype.ParseUID60("1234567890")), idtype.Must(idtype.ParseSpread64("9234567890120123")), order,
		key.CustomerID(idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")).WithMeta('c')), &order, sqltypes.OptionalOf(order), []key.OrderID{order, order + 1}}
}

func (s search) values() url.Values {
	return url.Values{"short": {s.Short.String()}, "spread": {s.Spread.String()}, "order": {s.Order.String()}, "customer": {s.Customer.String()},
		"replaces": {s.Replaces.String()}, "parent": {s.Parent.String()}, "orders": {s.Orders[0].String(), s.Orders[1].String()}}
}

// bound is an ID that oapi-codegen's runtime has to read from the text of want.
func bound[T any](t *testing.T, name, text string, want T) {
	t.Helper()
	var query, path T
	must(t, runtime.BindRawQueryParameter("form", true, true, name, url.Values{name: {text}}.Encode(), &query))
	must(t, runtime.BindStyledParameterWithOptions("simple", name, text, &path, runtime.BindStyledParameterOptions{ParamLocation: runtime.ParamLocationPath, Required: true}))
	var optional *T
	must(t, runtime.BindRawQueryParameter("form", true, false, name, url.Values{name: {text}}.Encode(), &optional))
	var list, joined, header []T
	must(t, runtime.BindRawQueryParameter("form", true, true, name, url.Values{name: {text, text}}.Encode(), &list))
	must(t, runtime.BindRawQueryParameter("form", false, true, name, name+"="+text+","+text, &joined))
	must(t, runtime.BindStyledParameterWithOptions("simple", name, text+","+text, &header, runtime.BindStyledParameterOptions{ParamLocation: runtime.ParamLocationHeader, Required: true}))
	if !reflect.DeepEqual([]any{query, path, *optional, list, joined, header}, []any{want, want, want, []T{want, want}, []T{want, want}, []T{want, want}}) {
		t.Errorf("%s: got %v, %v, %v, %v, %v, %v, want %v", name, query, path, *optional, list, joined, header, want)
	}
	// The client sends the text.
	if sent, err := runtime.StyleParamWithLocation("form", true, name, runtime.ParamLocationQuery, want); err != nil || sent != name+"="+text {
		t.Errorf("%s: sends %s, %v, want the text %s", name, sent, err, text)
	}
}

func TestOAPICodegen(t *testing.T) {
	s := aSearch()
	bound(t, "short", s.Short.String(), s.Short)
	bound(t, "spread", s.Spread.String(), s.Spread)
	bound(t, "order", s.Order.String(), s.Order)
	bound(t, "customer", s.Customer.String(), s.Customer)
	bound(t, "snowflake", "779300444248735744", idtype.Snowflake(779300444248735744))
	bound(t, "si", "1781273964118016", idtype.SnowflakeSI(1781273964118016))
	bound(t, "sno", "brpk4q72xwf2m63l", idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")))
	bound(t, "optional", s.Order.String(), s.Parent)
	bound(t, "text", s.Order.String(), sqltypes.TextOf(s.Order))
	var id key.OrderID
	if err := runtime.BindRawQueryParameter("form", true, true, "id", url.Values{"id": {"7"}}.Encode(), &id); err == nil {
		t.Errorf("a text without a prefix: got %v, want an error", id)
	}

	// Fields of a deepObject, and lists that a client sends, are Optionals.
	var deep struct {
		Order sqltypes.Optional[key.OrderID] `json:"order"`
	}
	must(t, runtime.BindRawQueryParameter("deepObject", true, true, "q", url.Values{"q[order]": {s.Order.String()}}.Encode(), &deep))
	sent, err := runtime.StyleParamWithLocation("form", false, "q", runtime.ParamLocationQuery, []sqltypes.Optional[key.OrderID]{s.Parent, s.Parent})
	if want := "q=" + s.Order.String() + "," + s.Order.String(); err != nil || deep.Order.ID != s.Order || sent != want {
		t.Errorf("Optionals: got %v, sends %s, %v, want %s", deep.Order, sent, err, want)
	}
}

func TestGorillaSchema(t *testing.T) {
	s := aSearch()
	var got search
	if err := schema.NewDecoder().Decode(&got, s.values()); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("decoded %+v, %v, want %+v", got, err, s)
	}
	// The encoder needs a function per type.
	encoder, text := schema.NewEncoder(), func(v reflect.Value) string { return v.Interface().(interface{ String() string }).String() }
	for _, id := range []any{s.Short, s.Spread, s.Order, s.Customer, s.Parent} {
		encoder.RegisterEncoder(id, text)
	}
	sent := url.Values{}
	if err := encoder.Encode(s, sent); err != nil || !reflect.DeepEqual(sent, s.values()) {
		t.Errorf("encoded %v, %v, want %v", sent, err, s.values())
	}
}

func TestGoQuerystring(t *testing.T) {
	s := aSearch()
	want := s.values()
	want.Del("customer")
	want.Del("parent")
	if sent, err := query.Values(s); err != nil || !reflect.DeepEqual(sent, want) {
		t.Errorf("encoded %v, %v, want %v", sent, err, want)
	}
	// It takes arrays and structs apart, so the field is a string.
	sent, err := query.Values(struct {
		Customer string `url:"customer"`
	}{s.Customer.String()})
	if err != nil || sent.Get("customer") != s.Customer.String() {
		t.Errorf("encoded %v, %v", sent, err)
	}
}

func TestMapstructure(t *testing.T) {
	s := aSearch()
	text, err := json.Marshal(s)
	must(t, err)
	var document map[string]any
	must(t, json.Unmarshal(text, &document))
	for _, weak := range []bool{false, true} {
		var got search
		d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{Result: &got, TagName: "json", WeaklyTypedInput: weak, DecodeHook: mapstructure.TextUnmarshallerHookFunc()})
		must(t, err)
		if err := d.Decode(document); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("decoded %+v, %v, want %+v", got, err, s)
		}
	}
}

// swag takes integer types for integers, and a Sno for an array, but JSON has strings. A plain
// type needs an override, and a generic one a tag.
func TestSwag(t *testing.T) {
	t.Chdir("testdata/swag")
	p := swag.New(swag.SetDebugger(log.New(io.Discard, "", 0)), swag.SetParseDependency(1), swag.SetOverrides(map[string]string{
		"github.com/sortkey/sortkey/idtype.Snowflake": "string",
		"github.com/sortkey/sortkey/idtype.Sno":       "string",
	}))
	must(t, p.ParseAPI(".", "api.go", 1))
	document, err := json.Marshal(p.GetSwagger())
	must(t, err)
	var got struct {
		Definitions map[string]struct {
			Properties map[string]struct {
				Type  string
				Items struct{ Type string }
			}
		}
	}
	must(t, json.Unmarshal(document, &got))
	properties := got.Definitions["api.Order"].Properties
	for name, p := range properties {
		if p.Type != "string" && p.Items.Type != "string" {
			t.Errorf("%s: got %+v, want a string or strings", name, p)
		}
	}
	if len(properties) != 6 {
		t.Errorf("got %s, want 6 properties", document)
	}
}
