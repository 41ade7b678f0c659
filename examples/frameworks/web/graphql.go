package web

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
)

// MarshalOrderID writes an OrderID. gqlgen finds the two functions by their names.
func MarshalOrderID(id key.OrderID) graphql.Marshaler { return marshal(id) }

// UnmarshalOrderID reads an OrderID.
func UnmarshalOrderID(v any) (key.OrderID, error) { return unmarshal[key.OrderID](v) }

// MarshalCustomerID writes a CustomerID.
func MarshalCustomerID(id key.CustomerID) graphql.Marshaler { return marshal(id) }

// UnmarshalCustomerID reads a CustomerID.
func UnmarshalCustomerID(v any) (key.CustomerID, error) { return unmarshal[key.CustomerID](v) }

func marshal(id fmt.Stringer) graphql.Marshaler { return graphql.MarshalString(id.String()) }

func unmarshal[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](v any) (id T, err error) {
	s, ok := v.(string)
	if !ok {
		return id, errors.New("want the text of an ID as a string")
	}
	if err = P(&id).UnmarshalText([]byte(s)); err != nil {
		err = errors.New(idtype.PublicMessage(err)) // gqlgen shows the error to the client
	}
	return id, err
}
