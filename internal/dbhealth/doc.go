// Package dbhealth finds what is wrong, or near its end, in a database with an installation
// of package migrations.
//
//	e := dbhealth.New(db, dbhealth.Options{})
//	report, err := e.Run(ctx)
//
// Each fault is a [Finding] of a [Rule] with a stable ID, such as node-unreserved. [Rules] is the
// table of rules, in the order of the report. The files rules_….go have their checks by area. The
// commands doctor, migrate check, nodes list and partitions list, and the metrics of a database,
// print the findings of these rules, and have none of their own.
//
// The package also has the queries on which several rules rely, and which the commands print
// as tables: [Examination.Pools], [Examination.Numbers] and [Examination.ManagedTables].
//
// All queries are in read-only transactions in which names without a schema are the server's.
// A rule reads a table of a user only if that runs no code of a role that the session doesn't
// trust; see package trust. If the role lacks a privilege, the finding has the level
// [Unknown].
package dbhealth
