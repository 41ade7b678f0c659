package dbhealth

import "context"

// A Rule finds one kind of fault. The table Findings in docs/monitoring.md says what each rule means.
type Rule struct {
	ID   string
	Area string // the section in the report

	check checkFunc
	needs string // privileges, with $s for the schema
}

// A checkFunc adds the findings of a rule.
type checkFunc = func(context.Context, *Examination) error

// The privileges of rules.
const (
	usage   = "USAGE ON SCHEMA $s"
	mayList = "SELECT ON $s.node_pool, $s.node_status"
)

// notInstalled is the ID of a rule that runs in each examination: the other rules need the layouts.
const notInstalled = "not-installed"

// Rules returns all rules, in the order of the report. The first ones read what the others use.
func Rules() []Rule {
	return []Rule{
		{"server-version", "server", checkVersion, usage},
		{"server-read-only", "server", checkReadOnly, usage},
		{"clock-skew", "clock", checkClock, usage},
		{notInstalled, "installation", checkInstalled, usage},
		{"migration-missing", "installation", checkMigrations, usage},
		{"layout-differs", "installation", checkLayouts, usage},
		{"object-missing", "installation", checkObjects, usage},
		{"database-copied", "installation", checkCopied, usage},
		{"generator-ahead", "generators", checkSequences, usage},
		{"generator-subscribed", "generators", checkSubscribed, usage},
		{"generator-behind", "generators", eachKey(generatedInOrder, checkGeneratorBehind), usage},
		{"key-ahead", "generators", eachKey(sorts, checkKeyAhead), usage},
		{"format-ends", "lifetime", checkLifetimes, usage},
		{"node-setting", "setting", checkSetting, usage},
		{"setting-unreserved", "setting", checkReservation, mayList},
		{"node-missing", "defaults", checkDefaults(true), usage},
		{"node-unreserved", "defaults", checkDefaults(false), usage},
		{"node-opaque", "defaults", checkOpaque, usage},
		{"default-denied", "defaults", checkDenied, usage},
		{"pool-exhausted", "claims", checkExhausted, mayList},
		{"pool-fenced", "claims", checkFences, mayList},
		{"pool-layout", "claims", checkPoolLayouts, mayList},
		{"reservation-range", "claims", checkRanges, mayList},
		{"mark-ahead", "claims", checkMarks, mayList},
		{"partition-skipped", "partitions", checkSkippedTables, usage},
		{"partition-missing", "partitions", checkMissingTables, usage},
		{"partition-horizon", "partitions", eachTable(checkHorizon), usage},
		{"partition-premake", "partitions", eachTable(checkPremake), usage},
		{"partition-default", "partitions", eachTable(checkDefault), usage},
		{"partition-maintenance", "partitions", eachTable(checkMaintenance), usage},
		{"key-skipped", "keys", checkSkippedKeys, usage},
		{"int4-reference", "keys", checkReferences, usage},
		{"key-duplicate", "keys", eachKey(unindexed, checkDuplicates), usage},
		{"key-zero", "keys", checkZero, usage},
		{"uuid-version", "keys", eachKey(isUUID7, checkUUIDVersion), usage},
		{"rekey-stalled", "rekey", checkRekey, usage},
		{"citus-domain", "citus", checkDistribution, usage},
		{"citus-worker", "citus", checkWorkers, usage},
	}
}
