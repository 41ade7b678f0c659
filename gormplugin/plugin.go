package gormplugin

import (
	"maps"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// The names under which GORM knows the plugin and its callbacks.
const (
	pluginName        = "sortkey"
	fillCallback      = "sortkey:fill_keys"
	reconcileCallback = "sortkey:reconcile_keys"
	checkCallback     = "sortkey:check_relations"
)

// A Plugin fills in primary keys. One may serve several databases, and as many
// goroutines as there are.
type Plugin struct{ bindings []Binding }

var _ gorm.Plugin = (*Plugin)(nil)

// New makes a plugin for [gorm.DB.Use], which reports what is wrong with the
// bindings: two for one type or name, a name that no tag can hold, a missing
// generator.
func New(bindings ...Binding) *Plugin { return &Plugin{bindings: bindings} }

// Name is the plugin's name: a second one on the same database is a
// [gorm.ErrRegistered].
func (p *Plugin) Name() string { return pluginName }

// Initialize registers the callbacks. [gorm.DB.Use] calls it.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if err := checkBindings(p.bindings); err != nil {
		return err
	}
	create, models := db.Callback().Create(), &planner{bindings: p.bindings}
	// Before everything: at a later place hooks wouldn't see the ID, and
	// "before gorm:begin_transaction" comes too late where the default
	// transaction is off.
	if err := create.Before("*").Register(fillCallback, models.fill); err != nil {
		return err
	}
	if err := db.Callback().Update().Before("*").Register(checkCallback, models.checkUpdate); err != nil {
		return err
	}
	// Before the associations, which take the row's ID for their foreign keys.
	return create.After("gorm:create").Before("gorm:save_after_associations").Register(reconcileCallback, reconcile)
}

// A planner knows what a Create has to do for each model of a database. It
// finds that out once.
type planner struct {
	bindings []Binding
	// A map that is copied to be written is half as expensive to read as a
	// sync.Map.
	plans   atomic.Pointer[map[*schema.Schema]*plan]
	writing sync.Mutex
	related sync.Map // from *schema.Schema to what checkRelations found
}

// fill is the callback before a Create.
func (p *planner) fill(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	known := p.planFor(stmt.Schema)
	if known.err != nil {
		_ = db.AddError(known.err)
		return
	}
	var filled []*key
	_, conflicts := stmt.Clauses[onConflict]
	for i := range known.keys {
		k := &known.keys[i]
		if !k.wanted(stmt) {
			continue
		}
		one, err := k.fill(stmt)
		if err != nil {
			_ = db.AddError(err)
			return
		}
		if one && conflicts {
			filled = append(filled, k)
		}
	}
	if conflicts {
		prepareUpsert(stmt, known, filled)
	}
}

// planFor gives the plan of a model.
func (p *planner) planFor(s *schema.Schema) *plan {
	var known *plan
	if plans := p.plans.Load(); plans != nil {
		known = (*plans)[s]
	}
	if known == nil && isJoinTable(s.ModelType) {
		known = p.keep(s, &plan{relations: unwatched})
	}
	if known != nil && known.relations == unwatched {
		return known
	}
	// Another model may have declared since that this one shares its key.
	s.Relationships.Mux.RLock()
	defer s.Relationships.Mux.RUnlock()
	if known == nil || known.relations != len(s.Relationships.Relations) {
		known = p.keep(s, p.resolve(s))
	}
	return known
}

// keep remembers the plan of a model.
func (p *planner) keep(s *schema.Schema, made *plan) *plan {
	p.writing.Lock()
	defer p.writing.Unlock()
	plans := map[*schema.Schema]*plan{}
	if old := p.plans.Load(); old != nil {
		maps.Copy(plans, *old)
	}
	plans[s] = made
	p.plans.Store(&plans)
	return made
}
