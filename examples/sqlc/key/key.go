// Package key declares the keys of the shop's tables for sqlc, which needs a name
// without type arguments for each type. Package shop imports this package, so its
// generated structs can't be the type arguments.
package key

import (
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A CustomerID is a key of the table customers.
type CustomerID = idtype.SnoOf[Customer]

// An OptionalCustomerID is a CustomerID or NULL.
type OptionalCustomerID = sqltypes.Optional[CustomerID]

// A VoucherCode is a code of the table vouchers, stored as text.
type VoucherCode = sqltypes.Text[idtype.Sno]

// An OrderID is a key of the table orders.
type OrderID = idtype.SnowflakeOf[Order]

// A Customer distinguishes CustomerIDs. It may have the methods IDPrefix and IDMeta.
type Customer struct{}

// An Order distinguishes OrderIDs. It may have the method IDPrefix.
type Order struct{}
