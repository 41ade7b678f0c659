package web

import (
	"errors"

	"github.com/sortkey/sortkey/examples/frameworks/key"
)

// An OrderMessage has the getters that protoc-gen-go generates for the message Order.
type OrderMessage interface {
	GetId() int64
	GetCustomerId() []byte
	GetReplacesId() string
}

// OrderFromProto returns the order of a message. It rejects values that are not IDs.
func OrderFromProto(m OrderMessage) (o Order, err error) {
	err = errors.Join(
		o.ID.Scan(m.GetId()), // checks the number, unlike key.OrderID(m.GetId())
		o.CustomerID.UnmarshalBinary(m.GetCustomerId()),
	)
	if s := m.GetReplacesId(); s != "" {
		o.ReplacesID = new(key.OrderID)
		err = errors.Join(err, o.ReplacesID.UnmarshalText([]byte(s)))
	}
	return o, err
}
