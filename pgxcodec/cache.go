package pgxcodec

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgtype"
)

// scanPlans caches the plans of a column type by target type, because pgx plans the scan
// anew for each query. Connections share it, because the plans depend only on the column
// type, the format and the target type.
type scanPlans struct {
	slots [256]atomic.Pointer[scanEntry]
	rest  sync.Map // from typeID to *scanEntry, for types whose slot is taken
}

// A scanEntry holds the plan for a type, or nil if the column has none for it.
type scanEntry struct {
	id   typeID
	plan pgtype.ScanPlan
}

// slot returns the slot for a type.
func (c *scanPlans) slot(id typeID) *atomic.Pointer[scanEntry] {
	return &c.slots[uintptr(id)>>5%256] // types are aligned to 32 bytes
}

// plan returns the plan for a target. If it isn't cached yet, it comes from make, which
// returns nil for a target without a plan.
func (c *scanPlans) plan(target any, make func(*form) pgtype.ScanPlan) pgtype.ScanPlan {
	id := idIn(target)
	if e := c.get(id); e != nil {
		return e.plan
	}
	plan := make(formOf(reflect.TypeOf(target)))
	c.put(id, plan)
	return plan
}

// get returns the entry for a type, or nil if there is none yet.
func (c *scanPlans) get(id typeID) *scanEntry {
	if e := c.slot(id).Load(); e != nil && e.id == id {
		return e
	}
	if e, ok := c.rest.Load(id); ok {
		return e.(*scanEntry)
	}
	return nil
}

func (c *scanPlans) put(id typeID, plan pgtype.ScanPlan) {
	e := &scanEntry{id, plan}
	if !c.slot(id).CompareAndSwap(nil, e) {
		c.rest.Store(id, e)
	}
}
