// Package gormplugin fills in the primary keys of the rows that GORM creates.
// One line does it:
//
//	db.Use(gormplugin.New(gormplugin.For(gen)))
//
// From then on every model whose key is of the type that gen mints gets an ID
// from it: a struct, a slice or an array of them, maps created through a Model,
// associations, custom join tables. A key that is set is never changed, nor is
// one that GORM takes from another table.
//
// # Which generator
//
// The first of these that says something decides:
//
//   - the field's tag: `gorm:"idgen:orders"` names a generator registered with
//     [Named], `gorm:"idgen"` means the one that [For] bound to the field's
//     type, and `gorm:"idgen:-"` leaves the key alone;
//   - the model's method IDGenerator() string, which gives such a name, or "-";
//   - the type: T, *T, [database/sql.Null] of T, and the column forms of
//     package sqltypes that hold a T.
//
// A generator's Fill gets the context of the statement, by which a generator of
// one's own may go; a statement without one is served by Next.
//
// Of a composite key only tagged parts are filled. A key with a default in the
// database is filled if it has a generator.
//
// A key that is also the foreign key of a belongs-to isn't: GORM copies it from
// the other row. Neither is that of a has-one, as far as the plugin can know of
// it: once GORM has met the model which has it, and never if the has-one is in an
// embedded struct. The tag idgen:- on such a key tells in any case.
//
// A model whose tag or method names no generator, or one that mints another
// type, fails at its first Create with an [ErrNoGenerator] that says what to
// write. So does a row without an ID where the key has one of package idtype's
// types and nothing fills it, instead of being inserted with a zero key.
//
// # When
//
// IDs are set before anything else happens in a Create, so BeforeSave and
// BeforeCreate hooks see them and may replace them. [gorm.Session.SkipHooks]
// makes no difference. A Select that leaves the key out gets it added, since
// struct and row would disagree otherwise; Omit("ID") leaves the key alone. If a
// generator fails nothing is inserted and [errors.Is] finds its error.
//
// # Upserts
//
// An ON CONFLICT on another unique key than the primary one may keep a row
// whose ID is not the new one. Where the database supports RETURNING, the
// structs then get the IDs that their rows have: one by one, and in batches if
// the update has no WHERE, with which rows could be missing from the answer.
// After an ON CONFLICT that changed nothing, the ID that was made up for a
// single struct is zero again. In a batch with DO NOTHING nobody says which
// rows were skipped: their structs keep IDs that no row has. Maps keep what
// they were given.
//
// # Time windows and pages
//
// [MintedBetween] finds the rows minted in a window of time by the index of
// the key, without a column for the time. [PageAfter] and [PageBefore] go
// through rows page by page, oldest or newest first.
package gormplugin
