// Package idtest helps to test programs whose keys are of package idtype: with IDs that are
// the same in every run, and with a clock that the test sets.
//
//	orders := idtest.Sequence[idtype.SnowflakeOf[Order]]() // ord_1, ord_2, ord_3, …
//	clock := idtest.NewClock(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
//
// In a bubble of testing/synctest, pass time.Now as the clock. For claims of node numbers
// without a database, pass the Store of package nodelease/leasetest instead of Postgres.
package idtest
