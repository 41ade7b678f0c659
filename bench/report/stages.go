package main

import (
	"fmt"
	"os"
)

// environment prints the facts of a run: the date, the machine and the versions.
const environment = `echo "# date: $(date -u +%F)"
echo "# commit: $(git describe --tags --always --abbrev=12 --dirty)"
echo "# go: $(go env GOVERSION)"
echo "# cores: $(getconf _NPROCESSORS_ONLN)"
echo "# system: $(. /etc/os-release; echo $PRETTY_NAME), $(uname -srm)"
echo "# peers: $(go list -m -f '{{.Path}} {{.Version}}' github.com/bwmarrin/snowflake github.com/gofrs/uuid/v5 github.com/google/uuid \
	github.com/oklog/ulid/v2 github.com/rs/xid github.com/segmentio/ksuid github.com/sony/sonyflake/v2 go.jetify.com/typeid go.jetify.com/typeid/v2 github.com/jackc/pgx/v5 \
	github.com/vgarvardt/pgx-google-uuid/v5 gorm.io/gorm gorm.io/driver/postgres | paste -sd, - | sed 's/,/, /g')"
`

// A stage is one run of go test -bench.
type stage struct {
	title   string
	folder  string // of the package
	pattern string
	server  bool   // whether it needs a server
	durable bool   // whether that is a server of its own with fsync, unless DATABASE_URL is the user's
	full    string // flags of a full run
	quick   string // flags of a quick run
}

// command returns the stage's shell command.
func (s stage) command(quick bool) string {
	flags := s.full
	if quick {
		flags = s.quick
	}
	prefix := ""
	if s.durable && os.Getenv("BENCH_OWN_SERVERS") != "" { // set by the Makefile
		prefix = "env -u DATABASE_URL scripts/with-postgres --durable "
	}
	return prefix + fmt.Sprintf("go test %s -timeout 60m -run '^$' -bench '%s' %s", s.folder, s.pattern, flags)
}

// stages measure all figures of the pages. On two cores a full run takes about 25
// minutes, a quick one two. Short stages are repeated for a median; a duel's ratio is
// a median within each run. Benchmarks with -benchtime 1x run once, or have their own
// flags for the duration.
var stages = []stage{
	{"generating one ID", "./bench", "Next$|NextParallel", false, false, "-benchtime 300ms -count 5", "-benchtime 20ms -count 2"},
	{"generating in bulk", "./bench", "Fill", false, false, "-benchtime 200ms -count 5", "-benchtime 40ms -count 3"},
	{"generating at the cap", "./bench", "AtCap", false, false, "-benchtime 1x -count 2 -captime 1s", "-benchtime 1x -captime 100ms"},
	{"text", "./bench", "AppendText|String|Parse|Seal|Unseal", false, false, "-benchtime 100ms -count 5", "-benchtime 10ms -count 2"},
	{"pgx: encoding and scanning", "./bench/pgx", "(Encode|Scan)$", false, false, "-benchtime 150ms -count 3", "-benchtime 20ms"},
	{"pgx: slices", "./bench/pgx", "(EncodeSlice|ScanSlice)$", false, false, "-benchtime 150ms -count 3", "-benchtime 20ms"},
	{"pgx: rows and COPY", "./bench/pgx", "Benchmark(Rows|CopyFrom)$", true, false, "-benchtime 400ms -count 2", "-benchtime 30ms"},
	{"GORM: Create", "./bench/gorm", "Postgres", true, false, "-benchtime 1s -count 3", "-benchtime 50ms"},
	{"primary keys", "./bench/insert", "Insert|Copy", true, false, "-benchtime 1x", "-benchtime 1x -rows 60000"},
	{"one row per INSERT", "./bench/insert", "Default", true, false, "-benchtime 700ms -count 2", "-benchtime 50ms"},
	{"growing tables", "./bench/grow", "Grow", true, true, "-benchtime 1x", "-benchtime 1x -rows 50000 -steps 5"},
	{"windows of time", "./bench/window", "Window", true, false, "-benchtime 200ms -count 3", "-benchtime 20ms -rows 50000"},
}
