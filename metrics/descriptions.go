package metrics

import "github.com/prometheus/client_golang/prometheus"

// A metric is the description of a metric and its kind.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// The first label of each metric, which contains the name of its source.
const (
	labelGenerator = "generator"
	labelDatabase  = "database"
)

// all contains each metric once.
var all []*metric

func describe(kind prometheus.ValueType, name, help string, labels ...string) *metric {
	m := &metric{prometheus.NewDesc(name, help, labels, nil), kind}
	all = append(all, m)
	return m
}

func counter(name, help string) *metric {
	return describe(prometheus.CounterValue, name, help, labelGenerator)
}

func gauge(name, help string) *metric {
	return describe(prometheus.GaugeValue, name, help, labelGenerator)
}

func ofDatabase(name, help string, labels ...string) *metric {
	return describe(prometheus.GaugeValue, name, help, append([]string{labelDatabase}, labels...)...)
}

// The metrics of generators.
var (
	minted      = counter("sortkey_ids_minted_total", "IDs created.")
	waits       = counter("sortkey_generator_waits_total", "Waits of calls, for the clock, the sequence or a lease.")
	overflow    = counter("sortkey_sequence_overflow_seconds_total", "Length of the time units with fewer sequence numbers than requested.")
	regressions = counter("sortkey_clock_regressions_total", "Steps of the clock back to an earlier time unit.")
	tickTocks   = counter("sortkey_tick_tocks_total", "Steps of the clock back that a Sno generator handled with its tick-tock bit.")
	lifetime    = gauge("sortkey_lifetime_remaining_seconds", "Time until the last ID of the format.")
	ready       = gauge("sortkey_ready", "1 if the generator can create IDs now and in the next seconds, else 0.")
)

// The metrics of claims.
var (
	leaseHeld            = gauge("sortkey_lease_held", "1 while the generator holds a node number, else 0.")
	leaseLeft            = gauge("sortkey_lease_left_seconds", "Time until the claim ends unless it is renewed.")
	leaseNode            = describe(prometheus.GaugeValue, "sortkey_lease_node_info", "1, with the pool and the claimed node number in labels, while the generator holds it.", labelGenerator, "pool", "node")
	leaseTerm            = gauge("sortkey_lease_term", "The number of claims of the node number so far.")
	leaseSkew            = gauge("sortkey_lease_clock_skew_seconds", "How far the clock of this machine is ahead of the store's clock.")
	leaseLosses          = counter("sortkey_lease_losses_total", "Claims lost.")
	leaseReacquisitions  = counter("sortkey_lease_reacquisitions_total", "Node numbers claimed after a loss.")
	leaseRenewals        = describe(0, "sortkey_lease_renewal_duration_seconds", "Duration of the successful renewals of claims.", labelGenerator) // a summary
	leaseRenewalFailures = counter("sortkey_lease_renewal_failures_total", "Failed renewals of claims.")
)

// The metrics of databases.
var (
	databaseUp        = ofDatabase("sortkey_database_up", "1 if the last scrape could read all metrics of the database, else 0.")
	poolNumbers       = ofDatabase("sortkey_pool_numbers", "Node numbers of a pool, by state: free, held, reserved or ahead.", "pool", "state")
	poolFence         = ofDatabase("sortkey_pool_fence_left_seconds", "Time until the pool grants node numbers again after a failover.", "pool")
	partitionHorizon  = ofDatabase("sortkey_partition_horizon_seconds", "Time until the end of the last partition that follows the present without a gap; 0 or negative if none contains the present.", "table")
	partitionMaintain = ofDatabase("sortkey_partition_maintained_timestamp_seconds", "Unix time of the last successful maintenance of the partitions; 0 if there was none.", "table")
	findingCount      = ofDatabase("sortkey_findings", "Findings of a rule, by level: warning, problem, info or unknown.", "id", "level")
	defaultRows       = ofDatabase("sortkey_default_partition_rows", "Estimated rows in the default partition.", "table")
)
