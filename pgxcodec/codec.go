package pgxcodec

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
)

// An elementCodec is the codec of a column type that can hold IDs. It handles the
// ID types that the column holds, rejects IDs that belong in another column type, and
// leaves other values to the codec that it embeds.
//
// The codec plans scans itself: pgx's hook for scan targets, TryWrapScanPlanFuncs, is
// never called for types with a Scan method.
type elementCodec struct {
	pgtype.Codec
	column  *column
	callers bool // the caller registered Codec for a domain; it goes first
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
		// Common types that aren't IDs. pgx plans a scan for each query, so skip the search.
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

// A refusal is the plan for an ID in a wrong column type. Encode returns err.
type refusal struct{ err error }

func (r refusal) Encode(any, []byte) ([]byte, error) { return nil, r.err }

// A scanRefusal is the plan for a target that can't hold the column's value.
type scanRefusal struct{ err error }

func (r scanRefusal) Scan([]byte, any) error { return r.err }

// maxErrorInput is the number of bytes of a rejected value that an error shows.
const maxErrorInput = 64

// badWire returns the error for bytes that no server sends for a column type.
func badWire(want string, src []byte) error {
	return fmt.Errorf("pgxcodec: decode a column value: want %s, got %d bytes %q; check that the column has the type its OID names: %w",
		want, len(src), src[:min(len(src), maxErrorInput)], idtype.ErrSyntax)
}
