package pgxcodec

import (
	"database/sql"
	"database/sql/driver"
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
	if c.callers {
		if p := c.Codec.PlanEncode(m, oid, format, value); p != nil {
			return p
		}
	}
	f := formOf(reflect.TypeOf(value))
	if member := c.column.memberFor(f); member != nil {
		if p := member.encode(f, format); p != nil {
			return p
		}
	}
	if err := c.column.refuse(f, value, planner{c.Codec, m, oid, format}); err != nil {
		return refusal{err}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
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

// A refusal is the plan for an ID in a wrong column type. Encode returns err. But NULL, such
// as an Optional without an ID, fits every column.
type refusal struct{ err error }

func (r refusal) Encode(value any, _ []byte) ([]byte, error) {
	if isNull(reflect.ValueOf(value)) {
		return nil, nil
	}
	return nil, r.err
}

// isNull reports whether a value is NULL: a nil pointer, or a driver.Valuer, behind any
// pointers, whose Value is nil.
func isNull(v reflect.Value) bool {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return true
		}
		v = v.Elem()
	}
	valuer, ok := v.Interface().(driver.Valuer)
	if !ok {
		return false
	}
	value, err := valuer.Value()
	return value == nil && err == nil
}

// A scanRefusal is the plan for a target that can hold one ID and NULL, but no array.
type scanRefusal struct{ err error }

func (r scanRefusal) Scan(src []byte, target any) error {
	if src != nil {
		return r.err
	}
	if s, ok := target.(sql.Scanner); ok {
		return s.Scan(nil)
	}
	reflect.ValueOf(target).Elem().SetZero() // a pointer
	return nil
}

// maxErrorInput is the number of bytes of a rejected value that an error shows.
const maxErrorInput = 64

// badWire returns the error for bytes that no server sends for a column type.
func badWire(want string, src []byte) error {
	return fmt.Errorf("pgxcodec: decode a column value: want %s, got %d bytes %q; check that the column has the type its OID names: %w",
		want, len(src), src[:min(len(src), maxErrorInput)], idtype.ErrSyntax)
}
