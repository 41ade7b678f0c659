package gorm

import (
	"errors"
	"testing"

	"gorm.io/gorm"
)

type thing[T any] struct {
	ID   T
	Name string
}

func (thing[T]) TableName() string { return "things" }

// Create fills zero keys and keeps keys that are set, in every kind of value that it
// accepts. Structs and rows have the same IDs.
func (k of[T, N]) create(t *testing.T, g *gorm.DB) {
	set := k.ids(t, 10)

	one := thing[T]{Name: "struct"}
	must(t, g.Create(&one).Error)
	kept := thing[T]{Name: "struct, set", ID: set[0]}
	must(t, g.Create(&kept).Error)

	pointer := &thing[T]{Name: "pointer to pointer"}
	must(t, g.Create(&pointer).Error)

	values := []thing[T]{{Name: "slice 0"}, {Name: "slice 1, set", ID: set[1]}, {Name: "slice 2"}, {Name: "slice 3, set", ID: set[2]}}
	must(t, g.Create(&values).Error)
	byValue := []thing[T]{{Name: "slice by value 0"}, {Name: "slice by value 1"}}
	must(t, g.Create(byValue).Error)

	pointers := []*thing[T]{{Name: "pointers 0", ID: set[3]}, {Name: "pointers 1"}, {Name: "pointers 2"}}
	must(t, g.Create(pointers).Error)
	more := []*thing[T]{{Name: "pointers 3"}}
	must(t, g.Create(&more).Error)

	array := [2]thing[T]{{Name: "array 0"}, {Name: "array 1, set", ID: set[4]}}
	must(t, g.Create(&array).Error)

	all := []thing[T]{one, kept, *pointer}
	all = append(all, values...)
	all = append(all, byValue...)
	for _, p := range append(pointers, more...) {
		all = append(all, *p)
	}
	all = append(all, array[:]...)

	for got, want := range map[T]T{kept.ID: set[0], values[1].ID: set[1], values[3].ID: set[2], pointers[0].ID: set[3], array[1].ID: set[4]} {
		if got != want {
			t.Errorf("key that was set: got %v, want %v", got, want)
		}
	}
	k.agree(t, g, all)
}

// agree checks that the table contains exactly these structs, and that no two have the
// same ID.
func (k of[T, N]) agree(t *testing.T, g *gorm.DB, want []thing[T]) {
	t.Helper()
	var rows []thing[T]
	must(t, g.Find(&rows).Error)
	names, ids := map[string]T{}, map[T]bool{}
	for _, row := range rows {
		names[row.Name], ids[row.ID] = row.ID, true
	}
	if len(rows) != len(want) || len(ids) != len(want) {
		t.Errorf("got %d rows with %d IDs, want %d", len(rows), len(ids), len(want))
	}
	for _, w := range want {
		if got := names[w.Name]; got != w.ID || w.ID.IsZero() {
			t.Errorf("%s: ID = %v in the struct, %v in the row", w.Name, w.ID, got)
		}
	}
}

// ids returns n IDs with a time in the past, like IDs of an earlier run.
func (k of[T, N]) ids(t *testing.T, n int) (ids []T) {
	t.Helper()
	for i := range n {
		id, err := k.At(k.First.AddDate(1, 0, i), func(largest int) int { return largest / (i + 1) })
		must(t, err)
		ids = append(ids, id)
	}
	return ids
}

// If a key can't be filled, Create fails and inserts nothing.
func (k of[T, N]) createRefused(t *testing.T, g *gorm.DB) {
	for name, c := range map[string]struct {
		value any
		want  error
	}{
		"a struct by value":            {thing[T]{Name: "x"}, gorm.ErrInvalidValue},
		"an array by value":            {[2]thing[T]{{Name: "x"}, {Name: "y"}}, gorm.ErrInvalidValue},
		"a nil element":                {[]*thing[T]{{Name: "x"}, nil, {Name: "y"}}, gorm.ErrInvalidData},
		"a nil element, by a pointer":  {&[]*thing[T]{nil}, gorm.ErrInvalidData},
		"a nil pointer":                {(*thing[T])(nil), gorm.ErrInvalidValue},
		"an empty slice":               {[]thing[T]{}, gorm.ErrEmptySlice},
		"an empty slice, by a pointer": {&[]*thing[T]{}, gorm.ErrEmptySlice},
	} {
		if err := g.Create(c.value).Error; !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	k.agree(t, g, nil)
}
