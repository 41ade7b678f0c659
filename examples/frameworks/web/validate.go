package web

import (
	"reflect"

	"github.com/go-playground/validator/v10"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/sqltypes"
)

// A NewOrder is a request with rules for go-playground/validator.
type NewOrder struct {
	CustomerID key.CustomerID                 `validate:"required"`
	ReplacesID sqltypes.Optional[key.OrderID] `validate:"required_if=Kind exchange"`
	Related    []key.OrderID                  `validate:"max=3,unique,dive,required"`
	Kind       string
}

// NewValidator returns a validator that looks into Optional.
func NewValidator() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterCustomTypeFunc(func(field reflect.Value) any {
		return field.Interface().(sqltypes.Optional[key.OrderID]).ID
	}, sqltypes.Optional[key.OrderID]{})
	return v
}
