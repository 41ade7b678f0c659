// Package idtest describes the ID types for tests against databases. To test a new
// type, add a [Kind] here, and a row in the tables of the packages that test Go types.
//
//	db.Exec(t, idtest.CreateTable())
//	idtest.Check(t, query, idtest.Postgres)
//
// A Kind has the column of a type, its edge cases and random IDs, its bounds in time, and column
// values that scanning must reject. [Kind.Cases] returns IDs in all Go types that hold them:
// pointers, sql.Null, sqltypes.Text and others, each with the stored value. [Types] lists all
// kinds, with the typed keys of typed.go.
//
// [Check] stores and reads all cases with one driver, in the table of [CreateTable]. A [Query]
// hides the driver, and a [Dialect] the database. Packages databasesql, pgbouncer, pgx and gormtest
// use it, or the kinds alone.
//
// The package has no tests of its own. To see all cases with one driver, without Postgres:
//
//	go test ./databasesql -run TestSQLite -v
package idtest
