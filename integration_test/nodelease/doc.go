// Package nodelease tests claims of node numbers with real processes and real
// faults: processes that are killed and stopped, servers that are paused, cut off,
// stopped and started again, and clocks that are off by an hour. All that the
// processes have minted is looked at for repeats.
//
// SORTKEY_SEED repeats a run's random choices, and SORTKEY_SOAK, such as 10m, is
// how long the random mixture of faults goes on.
package nodelease
