package gormplugin

import (
	"errors"

	"gorm.io/gorm"
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
