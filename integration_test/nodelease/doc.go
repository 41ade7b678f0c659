// Package nodelease tests claims of node numbers with real processes and real faults:
// processes are killed and stopped, servers are paused, cut off, stopped and restarted,
// and clocks are wrong by an hour. The tests check all IDs of the processes for
// duplicates.
//
// SORTKEY_SEED repeats the random choices of a run. SORTKEY_SOAK, for example 10m, is
// the duration of the random faults.
package nodelease
