package idtype

import (
	"fmt"
	"time"
)

// A Layout is the layout of an ID type T: [SnowflakeLayout], [SnowflakeSILayout],
// [UID60Layout], [Spread64Layout], [SnoLayout] or [UUIDLayout]. Each also has methods of its
// own, such as Range.
type Layout[T any] interface {
	// Time returns the start of the unit of time in which the ID was created, in UTC, or the
	// zero Time for an ID that has no time.
	Time(id T) time.Time
	// Fingerprint returns a text that differs between layouts of a type, and never
	// changes.
	Fingerprint() string
}

// LayoutOf returns the layout of g's IDs, or nil if it is unknown. UID60, Spread64, Sno and UUID
// have only one. The layout of a Snowflake or SnowflakeSI is the result of g's method Layout. If g
// wraps another generator, as the results of [MapGenerator] and the generators of package
// nodelease do, its method Source or Current returns that one.
func LayoutOf[T any](g Generator[T]) Layout[T] {
	if l := fixedLayout[T](); l != nil {
		return l
	}
	return layoutFrom[T](g)
}

// layoutFrom returns the layout of T that g or the generator in it reports, or nil.
func layoutFrom[T any](g any) Layout[T] {
	var l any
	switch g := g.(type) {
	case interface{ Layout() SnowflakeLayout }:
		l = g.Layout()
	case interface{ Layout() SnowflakeSILayout }:
		l = g.Layout()
	case interface{ Source() Generator[T] }:
		return layoutFrom[T](g.Source())
	case interface{ Current() Generator[T] }:
		return layoutFrom[T](g.Current())
	}
	layout, _ := l.(Layout[T])
	return layout
}

// fixedLayout returns the layout of a type that has only one, or nil.
func fixedLayout[T any]() Layout[T] {
	for _, l := range [...]any{UID60Layout{}, Spread64Layout{}, SnoLayout{}, UUIDLayout{}} {
		if l, ok := l.(Layout[T]); ok {
			return l
		}
	}
	return nil
}

// snowflakeDefault is the layout of typed Snowflakes whose model declares none.
var snowflakeDefault any = DefaultSnowflakeLayout()

// ModelLayout returns the layout of the model's keys: the fixed layout of T, the result of
// the model's IDLayout, or [DefaultSnowflakeLayout]. It returns nil for a SnowflakeSI whose
// model declares no layout.
func (Typed[P, T]) ModelLayout() Layout[T] {
	if l, ok := traitsOf[P]().layout.(Layout[T]); ok {
		return l
	}
	if l, ok := snowflakeDefault.(Layout[T]); ok {
		return l
	}
	return fixedLayout[T]()
}

// Time returns the time in the ID, as the Time of [Typed.ModelLayout] does. For a
// SnowflakeSI whose model declares no layout, Time panics.
func (id Typed[P, T]) Time() time.Time {
	l := id.ModelLayout()
	if l == nil {
		panic("idtype: Time of a " + typedName[P](kindOf[T]().name) + ": a SnowflakeSI has no default layout; declare its layout on the model with a method IDLayout() idtype.SnowflakeSILayout")
	}
	return l.Time(T(id))
}

// CheckGenerator returns an error that wraps [ErrConfig] if g creates IDs in another layout
// than the one in which the model's keys are read. g is a generator of T or of something made
// from it, such as the result of [MapGenerator]. If g or the model has no layout,
// CheckGenerator returns nil.
func (id Typed[P, T]) CheckGenerator(g any) error {
	model, created := id.ModelLayout(), layoutFrom[T](g)
	if model == nil || created == nil || model.Fingerprint() == created.Fingerprint() {
		return nil
	}
	name := kindOf[T]().name
	return &configError{fmt.Sprintf("idtype: generate %s: the generator has the layout %q, but keys of the model have %q; declare the generator's layout on the model with a method IDLayout() idtype.%sLayout",
		typedName[P](name), created.Fingerprint(), model.Fingerprint(), name)}
}
