// Package gormtest has the tests of GORM with the plugin. Packages gorm and sqlite run them on
// their databases.
//
// # ID types
//
// The tests of [Tests] run with ID types: a [Kind] has an ID type and the models with fields of
// that type. A test reads like a test of one type. Its models have fields of type [ID], and it calls
// GORM through a database, which replaces the models and each ID by values of the ID type under test,
// and copies the results back. So the compiler compiles the tests once, not once per ID type. The
// files are subjects: create, save and hooks, forms of keys, associations, foreign keys, queries,
// scopes, upserts, collisions, migrations.
//
// The other tests are functions for one ID type, such as [TypedKeys].
//
// # Fixtures
//
// models.go has the models. All of them are generic in the ID type:
//
//   - thing: an ID and a name.
//   - Person: an association of each kind. newGraph returns a person with all of them.
//   - contact: unique keys besides the ID, for upserts.
//   - sender and letter: soft deletion, and IDs of several weeks, for pages and windows.
//   - keyed: an ID in any form, such as *T or sqltypes.Text[T].
package gormtest
