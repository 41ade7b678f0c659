package gorm

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/sqltypes"
)

// A hooked row has hooks that record and use its ID.
type hooked[T sqltypes.ID] struct {
	ID    T
	Name  string
	Code  string          // set from the ID by BeforeSave
	Parts []hookedPart[T] `gorm:"foreignKey:HookedID"`

	Instead T   `gorm:"-"` // if not zero, the ID that BeforeCreate sets
	Saw     []T `gorm:"-"` // the IDs that the hooks saw, in order
}

type hookedPart[T sqltypes.ID] struct {
	ID       T
	HookedID T
	Saw      []T `gorm:"-"`
}

// A trace is a row that AfterCreate inserts.
type trace[T sqltypes.ID] struct {
	ID       T
	HookedID T
}

func (hooked[T]) TableName() string     { return "hooked" }
func (hookedPart[T]) TableName() string { return "hooked_parts" }
func (trace[T]) TableName() string      { return "traces" }

func (h *hooked[T]) BeforeSave(*gorm.DB) error {
	h.Saw = append(h.Saw, h.ID)
	h.Code = "code of " + h.ID.String()
	return nil
}

func (h *hooked[T]) BeforeCreate(*gorm.DB) error {
	h.Saw = append(h.Saw, h.ID)
	if !h.Instead.IsZero() {
		h.ID = h.Instead
	}
	return nil
}

// AfterCreate finds the row by its ID, on the same connection.
func (h *hooked[T]) AfterCreate(tx *gorm.DB) error {
	h.Saw = append(h.Saw, h.ID)
	var n int64
	if err := tx.Model(h).Where("id = ?", h.ID).Count(&n).Error; err != nil {
		return err
	}
	if n != 1 {
		return errors.New("AfterCreate found no row with the ID")
	}
	return tx.Create(&trace[T]{HookedID: h.ID}).Error
}

func (h *hooked[T]) AfterSave(*gorm.DB) error { h.Saw = append(h.Saw, h.ID); return nil }

func (p *hookedPart[T]) BeforeCreate(*gorm.DB) error {
	p.Saw = append(p.Saw, p.ID, p.HookedID)
	return nil
}

// Hooks see the IDs of the rows and may replace them, also without GORM's transaction, which
// begins in a callback.
func (k of[T, N]) hooks(t *testing.T, g *gorm.DB) {
	set := k.ids(t, 4)
	for name, g := range map[string]*gorm.DB{
		"transaction":             g,
		"no transaction":          withConfig(t, g, gorm.Config{SkipDefaultTransaction: true}, k.bind(t)),
		"session, no transaction": g.Session(&gorm.Session{SkipDefaultTransaction: true}),
	} {
		for _, table := range []string{"hooked_parts", "hooked", "traces"} {
			must(t, g.Exec("delete from "+table).Error)
		}
		parts := func() []hookedPart[T] { return make([]hookedPart[T], 2) }

		one := hooked[T]{Name: "a", Parts: parts()}
		must(t, g.Create(&one).Error)
		replaced := hooked[T]{Name: "b, replaced", Parts: parts(), Instead: set[0]}
		must(t, g.Create(&replaced).Error)
		slice := []hooked[T]{{Name: "c"}, {Name: "d, replaced", Instead: set[1], Parts: parts()}, {Name: "e", Parts: parts()}, {Name: "f, set", ID: set[2]}}
		must(t, g.Create(&slice).Error)
		pointers := []*hooked[T]{{Name: "g, replaced", Instead: set[3]}, {Name: "h"}}
		must(t, g.Create(pointers).Error)
		all := append([]hooked[T]{one, replaced}, slice...)
		all = append(all, *pointers[0], *pointers[1])

		seen := map[T]bool{}
		for _, h := range all {
			before := h.Saw[0]
			if h.Instead.IsZero() != (h.ID == before) || !h.Instead.IsZero() && h.ID != h.Instead || before.IsZero() || seen[before] {
				t.Errorf("%s: %s: got ID %v, the hooks saw %v, want a new ID, or %v", name, h.Name, h.ID, h.Saw, h.Instead)
			}
			seen[before] = true
			if want := []T{before, before, h.ID, h.ID}; !slices.Equal(h.Saw, want) {
				t.Errorf("%s: %s: the hooks saw %v, want %v", name, h.Name, h.Saw, want)
			}
			if want := "code of " + before.String(); h.Code != want {
				t.Errorf("%s: %s: got %q, want %q", name, h.Name, h.Code, want)
			}
			for _, p := range h.Parts {
				if want := []T{p.ID, h.ID}; p.HookedID != h.ID || p.ID.IsZero() || !slices.Equal(p.Saw, want) {
					t.Errorf("%s: %s: got part %+v, want HookedID %v, in the hook as well", name, h.Name, p, h.ID)
				}
			}
		}

		// The rows equal the structs.
		var rows []hooked[T]
		must(t, g.Preload("Parts", func(g *gorm.DB) *gorm.DB { return g.Order("id") }).Order("name").Find(&rows).Error)
		for i := range all {
			h := &all[i]
			h.Instead, h.Saw = *new(T), nil
			slices.SortFunc(h.Parts, func(a, b hookedPart[T]) int { return a.ID.Compare(b.ID) })
			for j := range h.Parts {
				h.Parts[j].Saw = nil
			}
			if h.Parts == nil {
				h.Parts = []hookedPart[T]{} // as Preload sets it
			}
		}
		if !reflect.DeepEqual(rows, all) {
			t.Errorf("%s: the rows are\n%+v, the structs\n%+v", name, rows, all)
		}
		var n int
		must(t, g.Raw("select count(*) from hooked h join traces t on t.hooked_id = h.id").Scan(&n).Error)
		if n != len(all) {
			t.Errorf("%s: got %d traces of the rows, want %d", name, n, len(all))
		}
	}
}

// Without hooks the plugin still fills the IDs.
func (k of[T, N]) skippedHooks(t *testing.T, g *gorm.DB) {
	g = g.Session(&gorm.Session{SkipHooks: true})
	rows := []hooked[T]{{Name: "a", Parts: make([]hookedPart[T], 1)}, {Name: "b"}}
	must(t, g.Create(&rows).Error)
	one := hooked[T]{Name: "c"}
	must(t, g.Create(&one).Error)
	var want []thing[T]
	for _, h := range append(rows, one) {
		if h.Saw != nil || h.Code != "" {
			t.Errorf("%s: hooks ran: %+v", h.Name, h)
		}
		want = append(want, thing[T]{ID: h.ID, Name: h.Name})
	}
	must(t, g.Exec("insert into things select id, name from hooked").Error)
	k.agree(t, g, want)
	var part hookedPart[T]
	must(t, g.Take(&part).Error)
	if p := rows[0].Parts[0]; p.Saw != nil || p.ID.IsZero() || part.ID != p.ID || part.HookedID != rows[0].ID {
		t.Errorf("got part %+v, its row %+v, want the same with HookedID %v", p, part, rows[0].ID)
	}
}
