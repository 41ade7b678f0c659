package main

// A table has a row for each substitute of * in its columns' patterns.
type table struct {
	keys    []string // head=key: columns for parts of the names, instead of one column for the name
	columns []column
}

// A column holds figures of a unit, or their quotients: "Lease/* / Lease/configured".
type column struct{ head, pattern, unit string }

var tables = map[string]table{
	"mint": {columns: []column{
		{"one goroutine, ns", "Next/*", "ns/op"}, {"ratio to `time.Now`", "Next/* / Next/time.Now", "ns/op"}, {"allocs", "Next/*", "allocs/op"},
		{"all cores, ns", "NextParallel/*", "ns/op"}, {"late, %", "NextParallel/*", "late-%"}, {"flat out, ns", "NextFlatOut/*", "ns/op"}, {"`Fill`, ns", "Fill/*", "ns/ID"},
	}},
	"gomaxprocs": {columns: []column{
		{"GOMAXPROCS 1, ns", "GOMAXPROCS/*/procs=1", "ns/op"}, {"2, ns", "GOMAXPROCS/*/procs=2", "ns/op"},
		{"8, ns", "GOMAXPROCS/*/procs=8", "ns/op"}, {"32, ns", "GOMAXPROCS/*/procs=32", "ns/op"},
	}},
	"cap": {columns: []column{
		{"1 goroutine, %", "AtCap/*/Next/goroutines=1", "%cap"}, {"cores", "AtCap/*/Next/goroutines=1", "cores"},
		{"8, %", "AtCap/*/Next/goroutines=8", "%cap"}, {"cores", "AtCap/*/Next/goroutines=8", "cores"},
		{"200, %", "AtCap/*/Next/goroutines=200", "%cap"}, {"cores", "AtCap/*/Next/goroutines=200", "cores"},
		{"Fill, %", "AtCap/*/Fill", "%cap"}, {"cores", "AtCap/*/Fill", "cores"},
	}},
	"lease": {columns: []column{{"ns per ID", "Lease/*", "ns/op"}, {"ratio to configured", "Lease/* / Lease/configured", "ns/op"}}},
	"text": {columns: []column{
		{"into buffer, ns", "AppendText/*", "ns/op"}, {"into string, ns", "String/*", "ns/op"},
		{"parsing, ns", "Parse/*", "ns/op"}, {"allocs parsing", "Parse/*", "allocs/op"},
		{"Compare, ns", "Compare/*", "ns/op"}, {"Scan from int64, ns", "ScanValue/*/int64", "ns/op"}, {"Scan from string, ns", "ScanValue/*/string", "ns/op"},
	}},
	"codec": {keys: []string{"kind=kind", "type=type"}, columns: []column{
		{"encoding, ns", "Encode/format=binary/*", "ns/op"}, {"ratio", "Encode/format=binary/*", "ratio"}, {"allocs", "Encode/format=binary/*", "allocs/op"},
		{"scanning, ns", "Scan/format=binary/*", "ns/op"}, {"ratio", "Scan/format=binary/*", "ratio"}, {"allocs", "Scan/format=binary/*", "allocs/op"},
	}},
	"slice": {keys: []string{"kind=kind", "type=type"}, columns: []column{
		{"encoding, ns", "EncodeSlice/*", "ns/op"}, {"ratio", "EncodeSlice/*", "ratio"}, {"allocs", "EncodeSlice/*", "allocs/op"},
		{"scanning, ns", "ScanSlice/*", "ns/op"}, {"ratio", "ScanSlice/*", "ratio"}, {"allocs", "ScanSlice/*", "allocs/op"},
	}},
	"rows": {keys: []string{"kind=kind", "type=type"}, columns: []column{
		{"reading, ns/row", "Rows/*", "ns/row"}, {"ratio", "Rows/*", "ratio"}, {"CPU ratio", "Rows/*", "cpu-ratio"}, {"allocs", "Rows/*", "allocs/row"},
		{"COPY, ns/row", "CopyFrom/*", "ns/row"}, {"ratio", "CopyFrom/*", "ratio"}, {"CPU ratio", "CopyFrom/*", "cpu-ratio"}, {"allocs", "CopyFrom/*", "allocs/row"},
	}},
	"callback": {keys: []string{"generator=generator", "rows=rows", "keys set by=by"}, columns: []column{{"ns/row", "Callback/*", "ns/row"}, {"ratio to Set", "Callback/*", "ratio"}, {"allocs", "Callback/*", "allocs/row"}}},
	"create": {keys: []string{"batch=batch", "column=kind", "key=key"}, columns: []column{
		{"no server, ns/row", "Create/*", "ns/row"}, {"ratio to preset", "Create/*", "ratio"}, {"allocs", "Create/*", "allocs/row"},
		{"Postgres, ns/row", "Postgres/client=codec/*", "ns/row"}, {"ratio to preset", "Postgres/client=codec/*", "ratio"},
		{"CPU ratio", "Postgres/client=codec/*", "cpu-ratio"}, {"allocs", "Postgres/client=codec/*", "allocs/row"},
	}},
	"insert": {keys: []string{"key=key"}, columns: []column{
		{"INSERT, ns/row", "Insert/*", "ns/row"}, {"ratio", "Insert/*", "ratio"}, {"server CPU ratio", "Insert/*", "server-cpu-ratio"}, {"WAL, B/row", "Insert/*", "wal-B/row"},
		{"COPY, ns/row", "Copy/*", "ns/row"}, {"ratio", "Copy/*", "ratio"}, {"server CPU ratio", "Copy/*", "server-cpu-ratio"}, {"WAL, B/row", "Copy/*", "wal-B/row"},
		{"index, B/row", "Copy/*", "index-B/row"},
	}},
	"grow": {keys: []string{"key=key"}, columns: []column{
		{"rows", "Grow/*/total", "rows"}, {"rows/s, all steps", "Grow/*/total", "rows/s"}, {"rows/s, last step", "Grow/*/total", "last-rows/s"},
		{"index, MB", "Grow/*/total", "index-MB"}, {"table, MB", "Grow/*/total", "table-MB"}, {"WAL, MB", "Grow/*/total", "wal-MB"},
		{"index hits in shared_buffers, %", "Grow/*/total", "hit-%"},
	}},
	"default": {keys: []string{"connections=clients", "key=key"}, columns: []column{
		{"rows/s", "Default/*", "rows/s"}, {"ns/row", "Default/*", "ns/row"}, {"ratio to bigserial", "Default/*", "ratio"},
		{"server CPU, ns/row", "Default/*", "server-cpu-ns/row"}, {"ratio to bigserial", "Default/*", "server-cpu-ratio"}, {"WAL, B/row", "Default/*", "wal-B/row"},
	}},
	"window": {keys: []string{"key=kind", "window=window", "rows found by=by"}, columns: []column{
		{"ms per query", "Window/*", "ms/query"}, {"pages per query", "Window/*", "buffers/query"}, {"additional index, MB", "Window/*", "extra-index-MB"},
	}},
}

var formats = []string{"Snowflake", "SnowflakeSI", "UID60", "Spread64", "Sno"}

// Lists of words for the braces in the patterns below.
const (
	integers  = "Snowflake|SnowflakeSI|UID60|Spread64"
	all       = integers + "|Sno"
	libraries = "google/uuid|gofrs/uuid|oklog/ulid|segmentio/ksuid|rs/xid|bwmarrin/snowflake" // not sonyflake, which has small bursts and no text
	scalars   = "kind=bigint/type=Snowflake|kind=bigint/type=SnowflakeSI|kind=bigint/type=UID60|kind=bigint/type=Spread64|kind=uuid/type=Sno"
	pointers  = "kind=bigint-pointer/type=*Snowflake|kind=uuid-pointer/type=*Sno"
	uuids     = "{uuidv7|gen_random_uuid|google-v4|google-v7}" // other keys in a uuid column
)

// A goal is a bound for one or more figures.
type goal struct {
	text, unit string
	bound      float64 // maximum; a negative bound is a minimum of -bound
	pattern    string
}

// goals are the goals of this project.
var goals = []goal{
	{"Next from 1, 8 and 200 goroutines reaches 98 % of the cap of Snowflake, SnowflakeSI, UID60 and Spread64", "%cap", -98, "AtCap/{" + integers + "}/Next/goroutines={1|8|200}"},
	{"Fill reaches 98 % of the cap", "%cap", -98, "AtCap/{" + all + "}/Fill"},
	{"SnowflakeSI, UID60 and Spread64, which mostly wait at their cap, use at most 0.2 cores there", "cores", 0.2, "AtCap/{SnowflakeSI|UID60|Spread64}/Next/goroutines={1|8|200}"},
	{"No call fails at the cap", "errors", 0, "AtCap/{" + all + "}/Next/goroutines={1|8|200}"},
	{"Next, Fill, AppendText (the append form of MarshalText), parsing and Compare don't allocate", "allocs/op", 0, "{Next|Fill|AppendText|Parse|Compare}/{" + all + "}"},
	{"Scan of an int64 doesn't allocate", "allocs/op", 0, "ScanValue/{" + integers + "}/int64"},
	{"Scan of a string doesn't allocate", "allocs/op", 0, "ScanValue/{" + all + "}/string"},
	{"pgx encodes a value or a slice without allocating", "allocs/op", 0, "{Encode/format=binary|EncodeSlice}/{" + scalars + "}"},
	{"pgx encodes a pointer without allocating", "allocs/op", 0, "Encode/format=binary/{" + pointers + "}"},
	{"pgx scans a value without allocating", "allocs/op", 0, "Scan/format=binary/{" + scalars + "}"},
	{"pgx scans into a pointer with one allocation, for the value", "allocs/op", 1, "Scan/format=binary/{" + pointers + "}"},
	{"pgx encodes and scans a Sno in at most 1.10 × the time of a pgtype.UUID", "ratio", 1.10, "{Encode|Scan}/format=binary/kind=uuid/type=Sno"},
	{"pgx encodes a bigint key in at most 1.05 × the time of an int64", "ratio", 1.05, "Encode/format=binary/kind=bigint/type={" + integers + "}"},
	{"pgx scans a bigint key in at most 1.05 × the time of an int64", "ratio", 1.05, "Scan/format=binary/kind=bigint/type={" + integers + "}"},
	{"Formatting, parsing and comparing a typed key doesn't allocate", "allocs/op", 0, "{AppendText|Parse|Compare}/{SnowflakeOf|SnoOf}"},
	{"pgx encodes a typed key in at most 1.05 × the time of its base type", "ratio", 1.05, "Encode/format=binary/kind=bigint/type=SnowflakeOf / Encode/format=binary/kind=bigint/type=Snowflake"},
	{"pgx scans a typed key in at most 1.05 × the time of its base type", "ratio", 1.05, "Scan/format=binary/kind=bigint/type=SnowflakeOf / Scan/format=binary/kind=bigint/type=Snowflake"},
	{"pgx encodes a slice of typed keys in at most 1.05 × the time of the base type", "ratio", 1.05, "EncodeSlice/kind=bigint/type=SnowflakeOf / EncodeSlice/kind=bigint/type=Snowflake"},
	{"pgx scans a slice of typed keys in at most 1.05 × the time of the base type", "ratio", 1.05, "ScanSlice/kind=bigint/type=SnowflakeOf / ScanSlice/kind=bigint/type=Snowflake"},
	{"COPY of 10,000 rows allocates at most once per 100 rows", "allocs/row", 0.01, "CopyFrom/{" + scalars + "}"},
	{"The GORM plugin's callbacks take at most 60 ns for a single row, not counting the generator, with or without a cancelable context", "ns/row", 60, "Callback/generator=free/rows={one|one,cancelable}/by=plugin"},
	{"The GORM plugin's callbacks take at most 30 ns per row in a batch of 1000, not counting the generator", "ns/row", 30, "Callback/generator=free/rows={values|pointers}/by=plugin"},
	{"The GORM plugin's callbacks don't allocate", "allocs/row", 0, "Callback/generator=free/rows={one|one,cancelable|values|pointers}/by=plugin"},
	{"Create with the plugin takes at most 1.03 × the time with preset keys", "ratio", 1.03, "Postgres/client=codec/batch={1|1000}/kind={bigint|uuid}/key=plugin"},
	{"INSERT … SELECT with the default next_snowflake() takes at most 1.25 × the time of a bigserial", "ratio", 1.25, "Insert/key=next_snowflake()"},
	{"INSERT … SELECT with the default next_sno() takes at most 1.75 × the time of a bigserial", "ratio", 1.75, "Insert/key=next_sno()"},
	{"One row per INSERT with next_snowflake() or next_sno() takes at most 1.4 × the time of a bigserial, from 1 and 8 connections", "ratio", 1.4, "Default/clients={1|8}/key={next_snowflake()|next_sno()}"},
	{"One row per INSERT with next_snowflake() takes at most 1.3 × the server's CPU time of a bigserial, from 1 and 8 connections", "server-cpu-ratio", 1.3, "Default/clients={1|8}/key=next_snowflake()"},
	{"COPY of Snowflakes from Go takes no longer than a bigserial", "ratio", 1, "Copy/key=Snowflake"},
	{"COPY of Snos from Go takes at most 1.05 × the time of the server's uuidv7()", "ratio", 1.05, "Copy/key=Sno / Copy/key=uuidv7"},

	// Small bursts include the time to wake goroutines, so a quotient compares bursts of similar size.
	{"Generating one Snowflake or Sno takes no longer than one ID of any other library, in bursts of at least 2048", "ns/op", 1, "Next/{Snowflake|Sno} / Next/{" + libraries + "}"},
	{"Generating one Snowflake or Sno on all cores takes no longer than one ID of any other library, in bursts of at least 2048", "ns/op", 1, "NextParallel/{Snowflake|Sno} / NextParallel/{" + libraries + "}"},
	{"Generating one SnowflakeSI or UID60 takes no longer than one ID of sonyflake, in bursts of 128", "ns/op", 1, "Next/{SnowflakeSI|UID60} / Next/sony/sonyflake"},
	{"Generating one SnowflakeSI or UID60 on all cores takes no longer than one ID of sonyflake, in bursts of 128", "ns/op", 1, "NextParallel/{SnowflakeSI|UID60} / NextParallel/sony/sonyflake"},
	{"Formatting into a buffer takes no longer than in any other library", "ns/op", 1, "AppendText/{" + all + "} / AppendText/{oklog/ulid|segmentio/ksuid|rs/xid}"},
	{"Formatting into a string takes no longer than in any other library", "ns/op", 1, "String/{" + all + "} / String/{" + libraries + "}"},
	{"Parsing takes no longer than in any other library", "ns/op", 1, "Parse/{" + all + "} / Parse/{" + libraries + "}"},
	{"pgx encodes a Sno in no more time than a uuid.UUID", "ns/op", 1, "Encode/format=binary/kind=uuid/type=Sno / Encode/format=binary/kind=uuid/type=uuid.UUID"},
	{"pgx scans a Sno in no more time than a uuid.UUID", "ns/op", 1, "Scan/format=binary/kind=uuid/type=Sno / Scan/format=binary/kind=uuid/type=uuid.UUID"},
	{"COPY with a Sno takes no longer than with any other uuid key", "ratio", 1, "Copy/key=Sno / Copy/key=" + uuids},
	{"The index on a Snowflake is no larger than on a bigserial", "index-B/row", 1, "Copy/key=Snowflake / Copy/key=bigserial"},
	{"The index on a Sno is no larger than on any other uuid key", "index-B/row", 1, "Copy/key=Sno / Copy/key=" + uuids},
	{"COPY with a Snowflake writes no more WAL than with a bigserial", "wal-B/row", 1, "Copy/key=Snowflake / Copy/key=bigserial"},
	{"COPY with a Sno writes no more WAL than with any other uuid key", "wal-B/row", 1, "Copy/key=Sno / Copy/key=" + uuids},
}

// A chart has a bar for each substitute of * in its pattern. If the pattern ends
// with the key of the x axis, it has lines instead.
type chart struct{ pattern, unit, x, y string }

// charts are the charts of the page, by file name.
var charts = map[string]chart{
	"mint.svg":       {"Next/*", "ns/op", "ns per ID, one goroutine", ""},
	"grow-rows.svg":  {"Grow/*/rows=", "rows/s", "rows", "rows per second"},
	"grow-index.svg": {"Grow/*/rows=", "index-MB", "rows", "MB of the primary key index"},
}
