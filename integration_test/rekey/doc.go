// Package rekey tests package rekey on real servers. Most tests rekey the tables of a
// shop, which have every property that rekey carries over.
//
// SORTKEY_REKEY_ROWS is the row count of the shop in the load test, such as 10000000.
// SORTKEY_SEED repeats the random choices of a run. SORTKEY_SOAK, for example 10m, is
// how long the programs of both versions run side by side under load. If it is set, the
// tests also kill programs and servers with ten times as many seeds, and the load test
// checks times.
package rekey
