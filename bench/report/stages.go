package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A stage is one run of go test -bench.
type stage struct {
	title   string
	folder  string // of the package
	pattern string
	server  bool // whether it needs one
	full    setting
	quick   setting
}

// A setting is how much of a stage is measured.
type setting struct {
	time  string // -benchtime
	count int
	flags string // of the package's own
}

const (
	once = "1x" // benchmarks that are one run, or as long as their own flags say

	codecKinds  = "kind=(uuid|bigint|text|bytea)(-pointer)?$"
	serverKinds = "kind=(uuid|bigint)(-pointer)?$"
)

// stages are all that the page has, in some 45 minutes on two cores, or quick in
// two. What costs little is repeated for a median.
var stages = []stage{
	{"minting one ID", "./bench", "Next$|NextParallel", false, setting{"700ms", 5, ""}, setting{"20ms", 2, ""}},
	{"minting by GOMAXPROCS", "./bench", "GOMAXPROCS", false, setting{"500ms", 3, ""}, setting{"20ms", 1, ""}},
	{"minting at once", "./bench", "Fill", false, setting{"500ms", 5, ""}, setting{"40ms", 3, ""}},
	{"minting at the cap", "./bench", "AtCap", false, setting{once, 3, "-captime 2s"}, setting{once, 1, "-captime 200ms"}},
	{"minting under a lease", "./bench", "Lease", false, setting{"1s", 5, ""}, setting{"40ms", 3, ""}},
	{"text", "./bench", "AppendText|String|Parse|Compare|ScanValue", false, setting{"200ms", 5, ""}, setting{"20ms", 2, ""}},
	{"pgx: encoding and scanning", "./bench/pgx", "(Encode|Scan)$/format=binary/" + codecKinds, false, setting{"500ms", 5, ""}, setting{"20ms", 1, ""}},
	{"pgx: slices", "./bench/pgx", "(EncodeSlice|ScanSlice)$/kind=(uuid|bigint)$", false, setting{"300ms", 5, ""}, setting{"20ms", 1, ""}},
	{"pgx: rows and COPY", "./bench/pgx", "Benchmark(Rows|CopyFrom)$/" + serverKinds, true, setting{"1s", 3, ""}, setting{"30ms", 1, ""}},
	{"GORM: setting keys", "./bench/gorm", "Callback/generator=(free|Snowflake|Sno)$", false, setting{"300ms", 5, ""}, setting{"20ms", 1, ""}},
	{"GORM: Create without a server", "./bench/gorm", "Create$", false, setting{"1s", 5, ""}, setting{"50ms", 1, ""}},
	{"GORM: Create", "./bench/gorm", "Postgres/client=codec", true, setting{"3s", 3, ""}, setting{"100ms", 1, ""}},
	{"primary keys", "./bench/insert", "Insert|Copy", true, setting{once, 1, ""}, setting{once, 1, "-rows 60000"}},
	{"one row per INSERT", "./bench/insert", "Default", true, setting{"1s", 3, ""}, setting{"50ms", 1, ""}},
	{"growing tables", "./bench/grow", "Grow", true, setting{once, 1, ""}, setting{once, 1, "-rows 50000 -steps 5"}},
	{"windows of time", "./bench/window", "Window", true, setting{"300ms", 3, ""}, setting{"20ms", 1, "-rows 50000"}},
}

func (s stage) setting(quick bool) setting {
	if quick {
		return s.quick
	}
	return s.full
}

// args are those of go.
func (s stage) args(quick bool) []string {
	with := s.setting(quick)
	args := []string{"test", "-run", "^$", "-bench", s.pattern, "-benchtime", with.time, "-count", fmt.Sprint(with.count), "-timeout", "60m", s.folder}
	return append(args, strings.Fields(with.flags)...)
}

// command is the stage for a shell.
func (s stage) command(quick bool) string {
	words := append([]string{"go"}, s.args(quick)...)
	for i, w := range words {
		if strings.ContainsAny(w, "^$|()?*") {
			words[i] = "'" + w + "'"
		}
	}
	return strings.Join(words, " ")
}

// leftOut says why a stage isn't run, if it isn't.
func (s stage) leftOut(server bool) string {
	if s.server && !server {
		return "no server"
	}
	if _, err := os.Stat(s.folder); err != nil {
		return "no " + s.folder
	}
	return ""
}

// run gives the output of a stage, whatever comes of it. Lines in it that are
// nearly results are errors, since figures would be missing.
func (s stage) run(ctx context.Context, quick bool) ([]byte, error) {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", s.args(quick)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	endTogether(cmd)
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return output.Bytes(), errors.Join(err, ctx.Err())
	}
	_, err := read(bytes.NewReader(output.Bytes()))
	if errors.Is(err, errEmpty) { // benchmarks skip what the server is too old for
		err = nil
	}
	return output.Bytes(), err
}
