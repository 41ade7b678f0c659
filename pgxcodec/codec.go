package pgxcodec

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgtype"
)

// An elementCodec is the codec of a column type that can hold IDs. The codec that it
// embeds goes first. It then handles the ID types that the column holds, and rejects IDs
// that belong in another column type.
//
// The codec plans scans itself: pgx's hook for scan targets, TryWrapScanPlanFuncs, is
// never called for types with a Scan method.
type elementCodec struct {
	pgtype.Codec
	column *column
	scans  scanPlans
}

func (c *elementCodec) wrapped() pgtype.Codec { return c.Codec }

func (c *elementCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if p := c.Codec.PlanEncode(m, oid, format, value); p != nil {
		return p
	}
	f := formOf(reflect.TypeOf(value))
	if p := c.column.planEncode(f, planner{c.Codec, m, oid, format}); p != nil {
		return p
	}
	if err := c.column.refuse(f, value, planner{c.Codec, m, oid, format}); err != nil {
		return refusal{err}
	}
	return nil
}

func (c *elementCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if p := c.scans.again(format, target); p != nil {
		return p
	}
	if p := c.Codec.PlanScan(m, oid, format, target); p != nil {
		return p
	}
	return c.scans.plan(format, target, c.column.planScan)
}

// scanPlans caches the plans of a codec, because pgx plans the scan anew for each query. The
// zero value is empty.
type scanPlans struct {
	last atomic.Pointer[scanEntry]
	all  [2]sync.Map // by format, from reflect.Type to *scanEntry
}

// A scanEntry holds a plan, or nil if the codec has none.
type scanEntry struct {
	target reflect.Type
	format int16
	plan   pgtype.ScanPlan
}

// again returns the plan for a target of the same type as the last one, or nil. It takes a
// fifth of the time that plan does.
func (p *scanPlans) again(format int16, target any) pgtype.ScanPlan {
	if e := p.last.Load(); e != nil && e.target == reflect.TypeOf(target) && e.format == format {
		return e.plan
	}
	return nil
}

// plan returns the plan for a target, or nil if there is none. If it isn't cached yet, it
// comes from make.
func (p *scanPlans) plan(format int16, target any, make func(f *form, format int16) pgtype.ScanPlan) pgtype.ScanPlan {
	if format != pgtype.BinaryFormatCode && format != pgtype.TextFormatCode {
		return nil
	}
	t := reflect.TypeOf(target)
	e, ok := p.all[format].Load(t)
	if !ok {
		e = &scanEntry{t, format, make(formOf(t), format)}
		p.all[format].Store(t, e)
	}
	entry := e.(*scanEntry)
	if entry.plan != nil {
		p.last.Store(entry)
	}
	return entry.plan
}
