package gormplugin

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// The names under which the plugin and its callbacks are registered with GORM.
const (
	pluginName        = "sortkey"
	fillCallback      = "sortkey:fill_keys"
	prepareCallback   = "sortkey:prepare_upsert"
	reconcileCallback = "sortkey:reconcile_keys"
	checkCallback     = "sortkey:check_relations"
	leaveCallback     = "sortkey:leave"

	createCallback = "gorm:create"
)

// A Plugin fills the primary keys of new rows. It is safe for concurrent use, and
// for use with several databases.
type Plugin struct{ bindings []Binding }

var _ gorm.Plugin = (*Plugin)(nil)

// New returns a plugin for [gorm.DB.Use]. Use fails if a binding has no
// generator, if two bindings have the same type or name, or if a struct tag
// can't contain the name of a binding.
func New(bindings ...Binding) *Plugin { return &Plugin{bindings: bindings} }

// Name returns the plugin's name. A second plugin of that name on the same
// database fails with [gorm.ErrRegistered].
func (p *Plugin) Name() string { return pluginName }

// Initialize registers the callbacks. [gorm.DB.Use] calls it.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if err := checkBindings(p.bindings); err != nil {
		return err
	}
	models := &planner{bindings: p.bindings}
	create, update := db.Callback().Create(), db.Callback().Update()
	return errors.Join(
		// Before all other callbacks, so that hooks see the ID.
		// Before("gorm:begin_transaction") would be too late if the default
		// transaction is off.
		create.Before("*").Register(fillCallback, models.fill),
		// After GORM has saved the belongs-tos and run the hooks, which may replace IDs.
		create.After("gorm:save_before_associations").Before(createCallback).Register(prepareCallback, models.prepare),
		// Before GORM saves the other associations, which copy the row's ID to their foreign keys.
		create.After(createCallback).Before("gorm:save_after_associations").Register(reconcileCallback, models.reconcile),
		create.After("*").Register(leaveCallback, leave),
		update.Before("*").Register(checkCallback, models.checkUpdate),
		update.After("*").Register(leaveCallback, leave),
	)
}

// A planner caches the plan of each model of a database.
type planner struct {
	bindings []Binding
	// A map that is copied on each write: reading it takes half as long as
	// reading a sync.Map.
	plans   atomic.Pointer[map[*schema.Schema]*plan]
	writing sync.Mutex
}

// fill is the callback that runs before a Create.
func (p *planner) fill(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	// The statement may be a clone of one that holds a generation.
	delete(stmt.Clauses, generationClause)
	known := p.planFor(stmt.Schema)
	if known.err != nil {
		_ = db.AddError(known.err)
		return
	}
	var few [4]span // without an allocation
	spans := few[:]
	if len(known.keys) > len(few) {
		spans = make([]span, len(known.keys))
	}
	spans = spans[:len(known.keys)]
	for i := range known.keys {
		if k := &known.keys[i]; k.wanted(stmt) {
			if err := k.fill(stmt, &spans[i]); err != nil {
				_ = db.AddError(err)
				return
			}
		}
	}
	if known.associated {
		enter(stmt)
	}
	known.generated(stmt, spans)
}

// planFor returns the plan of a model.
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
	// A model parsed since then may have added a relation that shares this model's key.
	s.Relationships.Mux.RLock()
	defer s.Relationships.Mux.RUnlock()
	if known == nil || known.relations != len(s.Relationships.Relations) {
		known = p.keep(s, p.resolve(s))
	}
	return known
}

// keep stores and returns the plan of a model.
func (p *planner) keep(s *schema.Schema, made *plan) *plan {
	p.writing.Lock()
	defer p.writing.Unlock()
	plans := map[*schema.Schema]*plan{}
	if old := p.plans.Load(); old != nil {
		maps.Copy(plans, *old)
	}
	made.whole, made.none = generation{plan: made}, generation{plan: made, spans: make([]span, len(made.keys))}
	plans[s] = made
	p.plans.Store(&plans)
	return made
}
