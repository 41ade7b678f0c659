// Package metrics exports the state of generators, claims and databases to Prometheus.
//
//	registry.MustRegister(metrics.NewCollector(
//		metrics.Leased("orders", orderIDs),  // from package nodelease
//		metrics.Generator("events", events), // from package idtype
//	))
//	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
//
// One process per database exports [Database], with a role and a pool of its own.
//
// The collector reads the counters at each scrape. It adds nothing to the cost of an ID.
// alerts.yaml has alert rules, and dashboard.json a Grafana dashboard.
//
// # Generators
//
// [Generator] and [Leased] export these metrics with the label generator:
//
//	sortkey_ids_minted_total             IDs created
//	sortkey_generator_waits_total        waits of calls, for the clock, the sequence or a lease
//	sortkey_sequence_overflow_seconds_total
//	                                     length of the time units with fewer sequence numbers than
//	                                     requested; it grows by 1 per second at the format's limit
//	sortkey_clock_regressions_total      steps of the clock back to an earlier time unit
//	sortkey_tick_tocks_total             steps back that a Sno generator handled with its tick-tock bit
//	sortkey_lifetime_remaining_seconds   time until the last ID of the format
//	sortkey_ready                        1 if the generator can create IDs now and in the next seconds, else 0
//
// # Claims
//
// [Leased] and [Keeper] export these metrics with the label generator. Leased counts over
// all claims of the generator.
//
//	sortkey_lease_held                   1 while the generator holds a node number, else 0
//	sortkey_lease_left_seconds           time until the claim ends unless it is renewed
//	sortkey_lease_node_info              1 while the generator holds a node number (labels pool and node)
//	sortkey_lease_term                   the number of claims of the node number so far
//	sortkey_lease_clock_skew_seconds     how far this machine's clock is ahead of the store's; 0 if unknown
//	sortkey_lease_losses_total           claims lost
//	sortkey_lease_reacquisitions_total   node numbers claimed after a loss; not of a Keeper
//	sortkey_lease_renewal_duration_seconds
//	                                     successful renewals: a summary with their number (suffix
//	                                     _count) and their total duration (suffix _sum)
//	sortkey_lease_renewal_failures_total failed renewals
//
// The mean duration of a renewal is rate(sortkey_lease_renewal_duration_seconds_sum[5m]) /
// rate(sortkey_lease_renewal_duration_seconds_count[5m]).
//
// # Databases
//
// [Database] exports these metrics with the label database:
//
//	sortkey_database_up                  1 if the last scrape could read all metrics of the database, else 0
//	sortkey_pool_numbers                 node numbers of a pool (label pool) in a state (label state):
//	                                     held, reserved, free, or ahead: neither held nor reserved, but
//	                                     with a high-water mark ahead of the server's clock
//	sortkey_pool_fence_left_seconds      time until a pool grants numbers again after a failover
//	sortkey_partition_horizon_seconds    time until the end of the last partition of a managed table
//	                                     (label table) that follows the present without a gap; 0 or
//	                                     negative if none contains the present, +Inf if it has no end
//	sortkey_partition_maintained_timestamp_seconds
//	                                     Unix time of the last successful maintenance; 0 if there was none
//	sortkey_default_partition_rows       estimated rows in the default partition
//	sortkey_findings                     findings of a rule (label id) of sortkey doctor, by level (label
//	                                     level): warning, problem, info, unknown without a privilege,
//	                                     or skipped; missing if there are none
package metrics
