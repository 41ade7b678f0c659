package frameworks

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cloudwego/hertz/pkg/app/server/binding"
	"github.com/cloudwego/hertz/pkg/protocol"
	"github.com/cloudwego/hertz/pkg/route/param"
	"github.com/go-playground/form/v4"
	"github.com/jinzhu/copier"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// The libraries below convert or bind IDs by their kind, and take a function per type instead.
// Each test shows a fault without the functions, and then the functions.

// converters convert an OrderID to text and back.
var converters = slices.Concat(
	converter(func(id key.OrderID) (string, error) { return id.String(), nil }),
	converter(func(text string) (key.OrderID, error) { return idtype.Parse[key.OrderID](text) }),
)

// converter returns the converters from S, *S and []S to D, *D and []D. Without converters of
// pointers and slices, copier converts their elements by kind.
func converter[S, D any](f func(S) (D, error)) []copier.TypeConverter {
	value := func(src any) (any, error) { return f(src.(S)) }
	pointer := func(src any) (any, error) {
		d, err := f(src.(S))
		return &d, err
	}
	unlessNil := func(f func(any) (any, error)) func(any) (any, error) {
		return func(src any) (any, error) {
			if p := src.(*S); p != nil {
				return f(*p)
			}
			return nil, nil
		}
	}
	slice := func(src any) (any, error) {
		var list []D
		for _, s := range src.([]S) {
			d, err := f(s)
			if err != nil {
				return nil, err
			}
			list = append(list, d)
		}
		return list, nil
	}
	var s S
	var d D
	return []copier.TypeConverter{
		{SrcType: s, DstType: d, Fn: value}, {SrcType: &s, DstType: d, Fn: unlessNil(value)},
		{SrcType: s, DstType: &d, Fn: pointer}, {SrcType: &s, DstType: &d, Fn: unlessNil(pointer)},
		{SrcType: []S{}, DstType: []D{}, Fn: slice},
	}
}

// registerForm makes go-playground/form read and write IDs of type T as text.
func registerForm[T fmt.Stringer, P unmarshaler[T]](d *form.Decoder, e *form.Encoder) {
	var id T
	d.RegisterCustomTypeFunc(func(texts []string) (any, error) { return idtype.Parse[T, P](texts[0]) }, id)
	e.RegisterCustomTypeFunc(func(id any) ([]string, error) { return []string{id.(T).String()}, nil }, id)
}

// registerHertz makes a binder of hertz read IDs of type T from text. RegTypeUnmarshal rejects
// integer types, but the binder calls a function that is in the map.
func registerHertz[T any, P unmarshaler[T]](c *binding.BindConfig) {
	c.TypeUnmarshalFuncs[reflect.TypeFor[T]()] = func(_ *protocol.Request, _ param.Params, text string) (reflect.Value, error) {
		id, err := idtype.Parse[T, P](text)
		return reflect.ValueOf(id), err
	}
}

// An unmarshaler is a pointer to an ID.
type unmarshaler[T any] interface {
	*T
	UnmarshalText([]byte) error
}

// Orders in the forms between which copier converts.
type (
	orderIDs struct {
		ID, Parent     key.OrderID
		Replaces, None *key.OrderID
		List           []key.OrderID
	}
	orderTexts struct {
		ID, Replaces string
		Parent, None *string
		List         []string
	}
)

func TestCopier(t *testing.T) {
	id := key.OrderID(779300444248735744)
	text := id.String()
	ids := orderIDs{ID: id, Parent: id, Replaces: &id, List: []key.OrderID{id, id + 1}}
	texts := orderTexts{ID: text, Parent: &text, Replaces: text, List: []string{text, (id + 1).String()}}

	// By kind: runes, zeros, and a number that isn't an ID.
	var asTexts orderTexts
	must(t, copier.Copy(&asTexts, ids))
	if asTexts.ID != "\ufffd" {
		t.Errorf("without converters: got %+v; if copier calls String, drop the recipe", asTexts)
	}
	var asIDs orderIDs
	must(t, copier.Copy(&asIDs, texts))
	if asIDs.ID != 0 {
		t.Errorf("without converters: got %+v; if copier calls UnmarshalText, drop the recipe", asIDs)
	}
	must(t, copier.Copy(&asIDs, struct{ ID int64 }{-7}))
	if asIDs.ID != -7 {
		t.Errorf("without converters: got %+v; if copier calls Scan, drop the recipe", asIDs)
	}

	option := copier.Option{Converters: converters}
	asTexts, asIDs = orderTexts{}, orderIDs{}
	must(t, copier.CopyWithOption(&asTexts, ids, option))
	must(t, copier.CopyWithOption(&asIDs, texts, option))
	if !reflect.DeepEqual(asTexts, texts) || !reflect.DeepEqual(asIDs, ids) {
		t.Errorf("got %+v and %+v, want %+v and %+v", asTexts, asIDs, texts, ids)
	}
	for _, bad := range []string{"7", "-7", "", "cus_7"} {
		if err := copier.CopyWithOption(&asIDs, orderTexts{List: []string{text, bad}}, option); err == nil {
			t.Errorf("%q in a list: got %v, want an error", bad, asIDs.List)
		}
		if err := copier.CopyWithOption(&asIDs, orderTexts{ID: bad}, option); err == nil {
			t.Errorf("%q: got %v, want an error", bad, asIDs.ID)
		}
	}
	option.Converters = converter(func(n int64) (id key.OrderID, err error) { err = id.Scan(n); return id, err })
	if err := copier.CopyWithOption(&asIDs, struct{ ID int64 }{7}, option); err != nil || asIDs.ID != 7 {
		t.Errorf("an int64: got %v, %v, want ord_7", asIDs.ID, err)
	}
	if err := copier.CopyWithOption(&asIDs, struct{ ID int64 }{-7}, option); err == nil {
		t.Errorf("-7: got %v, want an error", asIDs.ID)
	}
	var number struct{ ID int64 }
	must(t, copier.Copy(&number, ids))
	if number.ID != id.Int64() {
		t.Errorf("an int64: got %d, want %d", number.ID, id)
	}
	// A field of the same type needs no converter.
	var same struct{ ID key.OrderID }
	must(t, copier.Copy(&same, ids))
	if same.ID != id {
		t.Errorf("the same type: got %v, want %v", same.ID, id)
	}
}

func TestPlaygroundForm(t *testing.T) {
	s := aSearch()
	plain := form.NewDecoder()
	plain.SetTagName("json")
	var got search
	must(t, plain.Decode(&got, url.Values{"short": {s.Short.String()}, "order": {"-7"}}))
	if got.Short == s.Short || got.Order != -7 {
		t.Errorf("without functions: got %+v; if form calls UnmarshalText, drop the recipe", got)
	}

	d, e := form.NewDecoder(), form.NewEncoder()
	d.SetTagName("json")
	e.SetTagName("json")
	registerForm[idtype.UID60](d, e)
	registerForm[idtype.Spread64](d, e)
	registerForm[key.OrderID](d, e)
	registerForm[key.CustomerID](d, e)
	registerForm[sqltypes.Optional[key.OrderID]](d, e)
	got = search{}
	if err := d.Decode(&got, s.values()); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("decoded %+v, %v, want %+v", got, err, s)
	}
	// form writes the elements of a list as orders[0] and orders[1], and reads both forms.
	want := s.values()
	want["orders[0]"], want["orders[1]"] = want["orders"][:1], want["orders"][1:]
	want.Del("orders")
	sent, err := e.Encode(s)
	if err != nil || !reflect.DeepEqual(sent, want) {
		t.Errorf("encoded %v, %v, want %v", sent, err, want)
	}
	got = search{}
	if err := d.Decode(&got, sent); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("decoded %+v, %v, want %+v", got, err, s)
	}
	for _, bad := range []string{"7", "-7", "", "cus_7"} {
		if err := d.Decode(&got, url.Values{"order": {bad}}); err == nil {
			t.Errorf("%q: got %v, want an error", bad, got.Order)
		}
	}
}

// A hertzSearch has the parameters of a search.
type hertzSearch struct {
	Short    idtype.UID60                   `query:"short"`
	Spread   idtype.Spread64                `query:"spread"`
	Order    key.OrderID                    `query:"order"`
	Customer key.CustomerID                 `query:"customer"`
	Replaces *key.OrderID                   `query:"replaces"`
	Parent   sqltypes.Optional[key.OrderID] `query:"parent"`
	Orders   []key.OrderID                  `query:"orders"`
}

func TestHertz(t *testing.T) {
	s := aSearch()
	request := func(query string) *protocol.Request {
		return protocol.NewRequest("GET", "http://shop/?"+query, nil)
	}
	// hertz tries UnmarshalText, and then the kind: it takes texts that are no IDs.
	plain := binding.NewDefaultBinder(nil)
	var number struct {
		Order key.OrderID  `query:"order"`
		Short idtype.UID60 `query:"short"`
	}
	must(t, plain.BindQuery(request("order=-7&short=-7"), &number))
	if number.Order != -7 || number.Short != -7 {
		t.Errorf("without functions: got %+v; if hertz rejects them, drop the recipe", number)
	}
	var customer struct {
		ID key.CustomerID `query:"customer"`
	}
	if err := plain.BindQuery(request("customer="+s.Customer.String()), &customer); err == nil {
		t.Errorf("without functions: got %v; if hertz calls UnmarshalText, drop the recipe", customer)
	}

	config := binding.NewBindConfig()
	registerHertz[idtype.UID60](config)
	registerHertz[idtype.Spread64](config)
	registerHertz[key.OrderID](config)
	registerHertz[key.CustomerID](config)
	registerHertz[sqltypes.Optional[key.OrderID]](config)
	binder := binding.NewDefaultBinder(config)
	var got hertzSearch
	if err := binder.BindQuery(request(s.values().Encode()), &got); err != nil || !reflect.DeepEqual(search(got), s) {
		t.Errorf("got %+v, %v, want %+v", got, err, s)
	}
	// Fields of bodies need nothing.
	body := request("")
	body.Header.SetContentTypeBytes([]byte("application/json"))
	text, err := json.Marshal(s)
	must(t, err)
	body.SetBody(text)
	got = hertzSearch{}
	if err := plain.BindJSON(body, &got); err != nil || !reflect.DeepEqual(search(got), s) {
		t.Errorf("body: got %+v, %v, want %+v", got, err, s)
	}
	for _, bad := range []string{"7", "-7", "", "cus_7", fmt.Sprint(math.MaxInt64)} {
		for _, name := range []string{"order", "replaces", "orders"} {
			if err := binder.BindQuery(request(name+"="+bad), new(hertzSearch)); err == nil || !strings.Contains(err.Error(), "ord_") && name != "orders" {
				t.Errorf("%s=%q: got %v, want an error with the prefix", name, bad, err)
			}
		}
	}
}
