package pgxcodec

import (
	"fmt"
	"reflect"

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
	f := formOf(reflect.TypeOf(value))
	if member := c.column.memberFor(f); member != nil {
		if p := member.encode(f, format); p != nil {
			return p
		}
	}
	if err := c.column.refuse(f, value, wrapped); err != nil {
		return refusal{err}
	}
	return wrapped(value)
}

func (c *elementCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if c.callers {
		if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
			return p
		}
	}
	if format == pgtype.BinaryFormatCode || format == pgtype.TextFormatCode {
		if p := c.column.scans[format].plan(target, func(f *form) pgtype.ScanPlan { return c.column.planScan(f, format) }); p != nil {
			return p
		}
	}
	return c.Codec.PlanScan(m, oid, format, target)
}

// planScan returns the plan for a target that holds one ID, or nil for other targets.
func (c *column) planScan(f *form, format int16) pgtype.ScanPlan {
	if member := c.memberFor(f); member != nil {
		return member.scan(f, format)
	}
	return nil
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
