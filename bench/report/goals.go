package main

import (
	"fmt"
	"slices"
	"strings"
)

var formats = []string{"Snowflake", "SnowflakeSI", "UID60", "Spread64", "Sno"}

// A goal is a bound that each of some figures has to keep.
type goal struct {
	text    string
	unit    string // of the figures
	limit   float64
	atLeast bool // else at most
	of      []string
	show    func(float64) string
}

// A verdict is what became of a goal.
type verdict string

const (
	met         verdict = "met"
	missed      verdict = "**missed**"
	notMeasured verdict = "not measured"
)

// judge gives a goal's verdict, and the figure that is the furthest from what
// is wanted, with the name of its benchmark. It is met if all are there and keep
// the bound. One that doesn't is enough to miss it.
func (g goal) judge(r *results) (v verdict, worst figure, name string) {
	v = met
	for _, n := range g.of {
		f, ok := r.figure(n, g.unit)
		if !ok {
			v = notMeasured
			continue
		}
		if name == "" || g.atLeast && f.median < worst.median || !g.atLeast && f.median > worst.median {
			worst, name = f, n
		}
	}
	if name != "" && (g.atLeast && worst.median < g.limit || !g.atLeast && worst.median > g.limit) {
		v = missed
	}
	return v, worst, name
}

// each makes names of benchmarks: the pattern with every one of the words.
func each(pattern string, words ...string) []string {
	var names []string
	for _, w := range words {
		names = append(names, strings.ReplaceAll(pattern, "*", w))
	}
	return names
}

func showRatio(x float64) string  { return fmt.Sprintf("%.3f ×", x) }
func showNS(x float64) string     { return short(x) + " ns" }
func showAllocs(x float64) string { return short(x) }
func showBytes(x float64) string  { return short(x) + " B" }
func showCap(x float64) string    { return fmt.Sprintf("%.1f %%", x) }
func showCores(x float64) string  { return fmt.Sprintf("%.2f", x) }

var (
	integers = formats[:4]

	// Those that wait nearly all of the time at their cap. A Snowflake mints for a
	// sixth of each millisecond, a Sno for more than a half.
	waiting = []string{"SnowflakeSI", "UID60", "Spread64"}

	scalars  = slices.Concat(each("kind=bigint/type=*", integers...), []string{"kind=uuid/type=Sno"})
	pointers = []string{"kind=bigint-pointer/type=*Snowflake", "kind=uuid-pointer/type=*Sno"}
)

// goals are those that the project has set itself.
var goals = []goal{
	{"Minting at the cap reaches 98 % of it: Snowflake, SnowflakeSI, UID60 and Spread64 by Next from 1, 8 and 200 goroutines and by Fill, Sno by Fill",
		"%cap", 98, true, slices.Concat(each("AtCap/*/Next/goroutines=1", integers...), each("AtCap/*/Next/goroutines=8", integers...),
			each("AtCap/*/Next/goroutines=200", integers...), each("AtCap/*/Fill", formats...)), showCap},
	{"SnowflakeSI, UID60 and Spread64 at their cap use at most 0.2 cores, minting included, with 1, 8 and 200 goroutines that wait",
		"cores", 0.2, false, slices.Concat(each("AtCap/*/Next/goroutines=1", waiting...), each("AtCap/*/Next/goroutines=8", waiting...),
			each("AtCap/*/Next/goroutines=200", waiting...)), showCores},
	{"No call fails at the cap", "errors", 0, false, slices.Concat(each("AtCap/*/Next/goroutines=1", formats...),
		each("AtCap/*/Next/goroutines=8", formats...), each("AtCap/*/Next/goroutines=200", formats...)), showAllocs},
	{"Next doesn't allocate", "allocs/op", 0, false, each("Next/*", formats...), showAllocs},
	{"Fill doesn't allocate", "allocs/op", 0, false, each("Fill/*", formats...), showAllocs},
	{"AppendText, which is MarshalText's append form, doesn't allocate", "allocs/op", 0, false, each("AppendText/*", formats...), showAllocs},
	{"Parsing doesn't allocate", "allocs/op", 0, false, each("Parse/*", formats...), showAllocs},
	{"Compare doesn't allocate", "allocs/op", 0, false, each("Compare/*", formats...), showAllocs},
	{"Scan of an int64 and of a string doesn't allocate", "allocs/op", 0, false,
		slices.Concat(each("ScanValue/*/int64", integers...), each("ScanValue/*/string", formats...)), showAllocs},
	{"pgx encodes a value, and a pointer to one, without allocating", "allocs/op", 0, false,
		slices.Concat(each("Encode/format=binary/*", scalars...), each("Encode/format=binary/*", pointers...)), showAllocs},
	{"pgx scans a value without allocating", "allocs/op", 0, false, each("Scan/format=binary/*", scalars...), showAllocs},
	{"pgx scans into a pointer with one allocation, the value that it then points to", "allocs/op", 1, false,
		each("Scan/format=binary/*", pointers...), showAllocs},
	{"pgx encodes a slice without allocating", "allocs/op", 0, false, each("EncodeSlice/*", scalars...), showAllocs},
	{"pgx encodes a Sno in at most 1.10 × what a pgtype.UUID takes", "ratio", 1.10, false, []string{"Encode/format=binary/kind=uuid/type=Sno"}, showRatio},
	{"pgx scans a Sno in at most 1.10 × what a pgtype.UUID takes", "ratio", 1.10, false, []string{"Scan/format=binary/kind=uuid/type=Sno"}, showRatio},
	{"pgx encodes a key of a bigint in at most 1.05 × what an int64 takes", "ratio", 1.05, false,
		each("Encode/format=binary/kind=bigint/type=*", integers...), showRatio},
	{"pgx scans a key of a bigint in at most 1.05 × what an int64 takes", "ratio", 1.05, false,
		each("Scan/format=binary/kind=bigint/type=*", integers...), showRatio},
	{"COPY of 10,000 rows allocates at most once for 100 of them", "allocs/row", 0.01, false, each("CopyFrom/*", scalars...), showAllocs},
	{"The GORM plugin's callbacks take at most 60 ns for a row that is created alone, beside minting, with a context that can be canceled or can't", "ns/row", 60, false,
		each("Callback/generator=free/rows=*/by=plugin", "one", "one,cancelable"), showNS},
	{"The GORM plugin's callbacks take at most 30 ns a row for 1000 at once, beside minting", "ns/row", 30, false,
		each("Callback/generator=free/rows=*/by=plugin", "values", "pointers"), showNS},
	{"The GORM plugin's callbacks don't allocate", "allocs/row", 0, false,
		each("Callback/generator=free/rows=*/by=plugin", "one", "one,cancelable", "values", "pointers"), showAllocs},
	{"Create with the plugin takes at most 1.03 × what it takes with keys that are set before", "ratio", 1.03, false,
		slices.Concat(each("Postgres/client=codec/batch=*/kind=bigint/key=plugin", "1", "1000"),
			each("Postgres/client=codec/batch=*/kind=uuid/key=plugin", "1", "1000")), showRatio},
	{"INSERT … SELECT with the default next_snowflake takes at most 1.4 × what a bigserial takes", "ratio", 1.4, false,
		[]string{"Insert/key=next_snowflake"}, showRatio},
	{"INSERT … SELECT with the default next_sno does, in a uuid", "ratio", 1.4, false, []string{"Insert/key=next_sno"}, showRatio},
	{"One row per INSERT with next_snowflake does, from one connection and from 8", "ratio", 1.4, false, each("Default/clients=*/key=next_snowflake", "1", "8"), showRatio},
	{"One row per INSERT with next_sno does, from one connection and from 8", "ratio", 1.4, false, each("Default/clients=*/key=next_sno", "1", "8"), showRatio},
	{"COPY of Snowflakes made in Go takes at most as long as a bigserial", "ratio", 1, false, []string{"Copy/key=Snowflake"}, showRatio},
}

// snoGoal compares two figures of one run, each of which is a ratio to the same
// yardstick.
const snoGoal = "COPY of Snos made in Go takes at most 1.05 × what the server's uuidv7() takes"

// judgeSno is judge for snoGoal.
func judgeSno(r *results) (verdict, float64) {
	sno, ok1 := r.figure("Copy/key=Sno", "ratio")
	uuidv7, ok2 := r.figure("Copy/key=uuidv7", "ratio")
	if !ok1 || !ok2 || uuidv7.median == 0 {
		return notMeasured, 0
	}
	ratio := sno.median / uuidv7.median
	if ratio > 1.05 {
		return missed, ratio
	}
	return met, ratio
}

// GoalTable has a row for each goal.
func (r *results) GoalTable() table {
	t := table{head: []string{"goal", "figure", "measured by", "verdict"}}
	for _, g := range goals {
		v, worst, name := g.judge(r)
		shown := ""
		if name != "" {
			shown, name = g.show(worst.median)+worst.around(), "`"+name+"`"
			if len(g.of) > 1 {
				name = fmt.Sprintf("%s, the furthest of %d", name, len(g.of))
			}
		}
		t.add(g.text, shown, name, string(v))
	}
	v, ratio := judgeSno(r)
	if v == notMeasured {
		t.add(snoGoal, "", "", string(v))
	} else {
		t.add(snoGoal, showRatio(ratio), "`Copy/key=Sno` by `Copy/key=uuidv7`, of the ratios to bigserial", string(v))
	}
	return t
}

// A contest is between this project's and what others have for the same.
type contest struct {
	what   string
	unit   string
	ours   []string
	theirs []string
	show   func(float64) string
}

// The libraries that mint, write and read IDs.
var libraries = []string{
	"google/uuid", "gofrs/uuid", "oklog/ulid", "segmentio/ksuid", "rs/xid", "bwmarrin/snowflake", "sony/sonyflake",
}

var contests = []contest{
	{"minting one ID, one goroutine", "ns/op", each("Next/*", formats...), each("Next/*", libraries...), showNS},
	{"minting one ID, on all cores", "ns/op", each("NextParallel/*", formats...), each("NextParallel/*", libraries...), showNS},
	{"text into a buffer", "ns/op", each("AppendText/*", formats...), each("AppendText/*", libraries...), showNS},
	{"text into a string", "ns/op", each("String/*", formats...), each("String/*", libraries...), showNS},
	{"reading text", "ns/op", each("Parse/*", formats...), each("Parse/*", libraries...), showNS},
	{"encoding for pgx, a uuid", "ns/op", []string{"Encode/format=binary/kind=uuid/type=Sno"}, []string{"Encode/format=binary/kind=uuid/type=uuid.UUID"}, showNS},
	{"scanning from pgx, a uuid", "ns/op", []string{"Scan/format=binary/kind=uuid/type=Sno"}, []string{"Scan/format=binary/kind=uuid/type=uuid.UUID"}, showNS},
	{"setting the key of one row in GORM", "ns/row", []string{"Callback/generator=free/rows=one/by=plugin"}, []string{"Callback/generator=free/rows=one/by=Set"}, showNS},
	{"COPY of rows with keys in a bigint, as a ratio to a bigserial", "ratio", []string{"Copy/key=Snowflake"}, []string{"Copy/key=bigserial"}, showRatio},
	{"COPY of rows with keys in a uuid, as a ratio to a bigserial", "ratio", []string{"Copy/key=Sno"}, each("Copy/key=*", uuids...), showRatio},
	{"index of a primary key of a bigint, by the row", "index-B/row", []string{"Copy/key=Snowflake"}, []string{"Copy/key=bigserial"}, showBytes},
	{"index of a primary key of a uuid, by the row", "index-B/row", []string{"Copy/key=Sno"}, each("Copy/key=*", uuids...), showBytes},
	{"WAL of COPY, keys in a bigint, by the row", "wal-B/row", []string{"Copy/key=Snowflake"}, []string{"Copy/key=bigserial"}, showBytes},
	{"WAL of COPY, keys in a uuid, by the row", "wal-B/row", []string{"Copy/key=Sno"}, each("Copy/key=*", uuids...), showBytes},
}

// uuids are the keys of others in a uuid column.
var uuids = []string{"uuidv7", "gen_random_uuid", "google-v4", "google-v7"}

// ContestTable has a row for each contest that was measured on both sides.
func (r *results) ContestTable() table {
	t := table{head: []string{"what", "ours", "the best of the others", "ours that are no worse"}}
	for _, c := range contests {
		best, peer := r.least(c.theirs, c.unit)
		if peer == "" {
			continue
		}
		var ours []string
		noWorse := 0
		for _, name := range c.ours {
			f, ok := r.figure(name, c.unit)
			if !ok {
				continue
			}
			ours = append(ours, label(name)+" "+c.show(f.median))
			if f.median <= best {
				noWorse++
			}
		}
		if len(ours) > 0 {
			t.add(c.what, strings.Join(ours, ", "), label(peer)+" "+c.show(best), fmt.Sprintf("%d of %d", noWorse, len(ours)))
		}
	}
	return t
}

// least is the smallest figure of some benchmarks, and the name of its own.
func (r *results) least(names []string, unit string) (least float64, name string) {
	for _, n := range names {
		if f, ok := r.figure(n, unit); ok && (name == "" || f.median < least) {
			least, name = f.median, n
		}
	}
	return least, name
}

// label is what a benchmark is about: the end of its name.
func label(name string) string {
	if i := strings.LastIndex(name, "="); i >= 0 {
		return strings.TrimSuffix(name[i+1:], "*")
	}
	_, rest, _ := strings.Cut(name, "/")
	return rest
}
