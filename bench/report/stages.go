package main

import "fmt"

// environment prints the facts of a run: the date, the machine and the versions.
const environment = `echo "# date: $(date -u +%F)"
echo "# commit: $(git describe --tags --always --abbrev=12 --dirty)"
echo "# go: $(go env GOVERSION)"
echo "# cores: $(getconf _NPROCESSORS_ONLN)"
echo "# system: $(. /etc/os-release; echo $PRETTY_NAME), $(uname -srm)"
echo "# peers: $(go list -m -f '{{.Path}} {{.Version}}' github.com/bwmarrin/snowflake github.com/gofrs/uuid/v5 github.com/google/uuid \
	github.com/oklog/ulid/v2 github.com/rs/xid github.com/segmentio/ksuid github.com/sony/sonyflake/v2 github.com/jackc/pgx/v5 \
	github.com/vgarvardt/pgx-google-uuid/v5 gorm.io/gorm gorm.io/driver/postgres | paste -sd, - | sed 's/,/, /g')"
`

// A stage is one run of go test -bench.
type stage struct {
	title   string
	folder  string // of the package
	pattern string
	server  bool   // whether it needs a server
	full    string // flags of a full run
	quick   string // flags of a quick run
}

// command returns the stage's shell command.
func (s stage) command(quick bool) string {
	flags := s.full
	if quick {
		flags = s.quick
	}
	return fmt.Sprintf("go test %s -timeout 60m -run '^$' -bench '%s' %s", s.folder, s.pattern, flags)
}

// stages measure all figures of the page. On two cores a full run takes about 45
// minutes, a quick one two. Short stages are repeated for a median. Benchmarks with
// -benchtime 1x run once, or have their own flags for the duration.
var stages = []stage{
	{"generating one ID", "./bench", "Next$|NextParallel|NextFlatOut", false, "-benchtime 700ms -count 5", "-benchtime 20ms -count 2"},
	{"generating by GOMAXPROCS", "./bench", "GOMAXPROCS", false, "-benchtime 500ms -count 3", "-benchtime 20ms"},
	{"generating in bulk", "./bench", "Fill", false, "-benchtime 500ms -count 5", "-benchtime 40ms -count 3"},
	{"generating at the cap", "./bench", "AtCap", false, "-benchtime 1x -count 3 -captime 2s", "-benchtime 1x -captime 200ms"},
	{"generating under a lease", "./bench", "Lease", false, "-benchtime 1s -count 5", "-benchtime 40ms -count 3"},
	{"text", "./bench", "AppendText|String|Parse|Compare|ScanValue", false, "-benchtime 200ms -count 5", "-benchtime 20ms -count 2"},
	{"pgx: encoding and scanning", "./bench/pgx", "(Encode|Scan)$/format=binary/kind=(uuid|bigint|text|bytea)(-pointer)?$", false, "-benchtime 500ms -count 5", "-benchtime 20ms"},
	{"pgx: slices", "./bench/pgx", "(EncodeSlice|ScanSlice)$/kind=(uuid|bigint)$", false, "-benchtime 300ms -count 5", "-benchtime 20ms"},
	{"pgx: rows and COPY", "./bench/pgx", "Benchmark(Rows|CopyFrom)$/kind=(uuid|bigint)(-pointer)?$", true, "-benchtime 1s -count 3", "-benchtime 30ms"},
	{"GORM: setting keys", "./bench/gorm", "Callback/generator=(free|free,typed|Snowflake|Sno)$", false, "-benchtime 300ms -count 5", "-benchtime 20ms"},
	{"GORM: Create without a server", "./bench/gorm", "Create$", false, "-benchtime 1s -count 5", "-benchtime 50ms"},
	{"GORM: Create", "./bench/gorm", "Postgres/client=codec", true, "-benchtime 3s -count 3", "-benchtime 100ms"},
	{"primary keys", "./bench/insert", "Insert|Copy", true, "-benchtime 1x", "-benchtime 1x -rows 60000"},
	{"one row per INSERT", "./bench/insert", "Default", true, "-benchtime 1s -count 3", "-benchtime 50ms"},
	{"growing tables", "./bench/grow", "Grow", true, "-benchtime 1x", "-benchtime 1x -rows 50000 -steps 5"},
	{"windows of time", "./bench/window", "Window", true, "-benchtime 300ms -count 3", "-benchtime 20ms -rows 50000"},
}
