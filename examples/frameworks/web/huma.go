package web

import (
	"context"
	"encoding"
	"errors"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
)

// A Param is an ID as a parameter. huma parses parameters of integer types as numbers, but
// passes the text to UnmarshalText if the type is a struct.
type Param[T any] struct{ ID T }

// UnmarshalText parses the ID's text. huma shows the error to the client.
func (p *Param[T]) UnmarshalText(b []byte) error {
	if err := any(&p.ID).(encoding.TextUnmarshaler).UnmarshalText(b); err != nil {
		return errors.New(idtype.PublicMessage(err))
	}
	return nil
}

// Schema returns the schema of the ID.
func (*Param[T]) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[T](), true, "")
}

type (
	orderSchema    struct{}
	customerSchema struct{}
)

func (orderSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "order-id", Pattern: "^ord_(0|[1-9][0-9]{0,18})$", Examples: []any{"ord_779300444248735744"}}
}

func (customerSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "customer-id", Pattern: "^[2-9a-x]{16}$", Examples: []any{"brpk4q72eqwf2m63"}}
}

// RegisterIDs tells huma the schemas of the IDs.
func RegisterIDs(r huma.Registry) {
	r.RegisterTypeAlias(reflect.TypeFor[key.OrderID](), reflect.TypeFor[orderSchema]())
	r.RegisterTypeAlias(reflect.TypeFor[key.CustomerID](), reflect.TypeFor[customerSchema]())
}

// Huma serves orders, and their OpenAPI document at /openapi.json.
func Huma(s Store) http.Handler {
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("Shop", "1.0.0"))
	RegisterIDs(api.OpenAPI().Components.Schemas)
	huma.Get(api, "/orders/{id}", func(_ context.Context, in *struct {
		ID Param[key.OrderID] `path:"id"`
	}) (*struct{ Body Order }, error) {
		return &struct{ Body Order }{s.Order(in.ID.ID)}, nil
	})
	huma.Get(api, "/orders", func(_ context.Context, in *struct {
		IDs      []string              `query:"id,explode"`
		Customer Param[key.CustomerID] `query:"customer"`
	}) (*struct{ Body []Order }, error) {
		ids, err := parseOrderIDs(in.IDs)
		if err != nil {
			return nil, huma.Error422UnprocessableEntity("query parameter id: " + idtype.PublicMessage(err))
		}
		return &struct{ Body []Order }{s.Orders(ids, in.Customer.ID)}, nil
	})
	return mux
}
