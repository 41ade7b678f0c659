package pgxcodec

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
)

// An elementCodec is the codec of a column that can hold IDs. It takes over
// the types that its column holds, refuses the IDs that belong in another, and
// leaves the rest to the codec it embeds.
//
// It plans the types it knows itself: pgx's hooks for scan targets are never
// asked about types with a Scan method.
type elementCodec struct {
	pgtype.Codec
	column  *column
	callers bool // Codec is the caller's own for a domain, and is asked first
}

func (c *elementCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	wrapped := planner(func(value any) pgtype.EncodePlan { return c.Codec.PlanEncode(m, oid, format, value) })
	if c.callers {
		if p := wrapped(value); p != nil {
			return p
		}
	}
	if p := first(c.column, func(v member) pgtype.EncodePlan { return v.encode(format, value) }); p != nil {
		return p
	}
	if err := c.column.refuse(value, wrapped); err != nil {
		return refusal{err}
	}
	return wrapped(value)
}

func (c *elementCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	switch target.(type) {
	case *string, **string, *[]byte, *int64, **int64, *int, *[16]byte, *pgtype.Text, *pgtype.Int8, *pgtype.UUID, *any:
		// Not ours, and frequent: a scan is planned for each query.
		return c.Codec.PlanScan(m, oid, format, target)
	}
	if c.callers {
		if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
			return p
		}
	}
	if p := first(c.column, func(v member) pgtype.ScanPlan { return v.scan(format, target) }); p != nil {
		return p
	}
	return c.Codec.PlanScan(m, oid, format, target)
}

func (c *elementCodec) wrapped() pgtype.Codec { return c.Codec }
func (c *elementCodec) holder() *column       { return c.column }
func (c *elementCodec) ofCaller() bool        { return c.callers }

// A refusal is the plan for an ID in a column where nobody would find it.
type refusal struct{ err error }

func (r refusal) Encode(any, []byte) ([]byte, error) { return nil, r.err }

// A scanRefusal is the plan for a target that can't hold what a column has.
type scanRefusal struct{ err error }

func (r scanRefusal) Scan([]byte, any) error { return r.err }

// maxErrorInput is how much of a refused value an error shows, in bytes.
const maxErrorInput = 64

// badWire is the error of bytes that no server sends for such a column.
func badWire(want string, src []byte) error {
	return fmt.Errorf("pgxcodec: decode a column value: want %s, got %d bytes %q; check that the column has the type its OID names: %w",
		want, len(src), src[:min(len(src), maxErrorInput)], idtype.ErrSyntax)
}
