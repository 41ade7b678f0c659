package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// Lines of a file of results that aren't benchfmt's, which passes over them:
// facts of the run, and the commands whose output follows. As benchfmt's own
// configuration, a date would keep benchstat from comparing two files.
const (
	factMark    = "# "
	commandMark = "$ "
)

var errEmpty = errors.New("expected lines of benchmarks, got none")

// results are the figures of a run, with what it says of itself.
type results struct {
	facts    map[string]string
	commands []string
	names    []string                        // of benchmarks, in their order
	runs     map[string]map[string][]float64 // by name and unit
	packages map[string]string               // by name
	rounds   map[string]int                  // iterations of all runs, by name
}

// read reads what go test -bench printed, of one or several packages.
func read(from io.Reader) (*results, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	r := &results{facts: map[string]string{}, runs: map[string]map[string][]float64{}, packages: map[string]string{}, rounds: map[string]int{}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if command, ok := strings.CutPrefix(line, commandMark); ok {
			r.commands = append(r.commands, command)
		} else if fact, ok := strings.CutPrefix(line, factMark); ok && len(r.commands) == 0 { // below, a tool may have said something
			key, value, ok := strings.Cut(fact, ": ")
			if !ok {
				return nil, fmt.Errorf("expected %skey: value, got %q", factMark, line)
			}
			r.facts[key] = value
		}
	}

	reader := benchfmt.NewReader(bytes.NewReader(text), "results")
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.Result:
			if err := r.add(record); err != nil {
				return nil, err
			}
		case *benchfmt.SyntaxError:
			return nil, record
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	if len(r.names) == 0 {
		return nil, errEmpty
	}
	return r, nil
}

func (r *results) add(record *benchfmt.Result) error {
	name, pkg := baseName(record.Name), record.GetConfig("pkg")
	if cpu := record.GetConfig("cpu"); cpu != "" {
		r.facts["cpu"] = cpu
	}
	if r.runs[name] == nil {
		r.names = append(r.names, name)
		r.runs[name] = map[string][]float64{}
		r.packages[name] = pkg
	}
	if r.packages[name] != pkg {
		return fmt.Errorf("expected one package with a benchmark %s, got %s and %s", name, r.packages[name], pkg)
	}
	r.rounds[name] += record.Iters
	for _, v := range record.Values {
		if v.OrigUnit != "" { // which benchfmt has changed to seconds or bytes
			v.Value, v.Unit = v.OrigValue, v.OrigUnit
		}
		r.runs[name][v.Unit] = append(r.runs[name][v.Unit], v.Value)
	}
	return nil
}

// baseName is a benchmark's name without the GOMAXPROCS at its end.
func baseName(n benchfmt.Name) string {
	_, parts := n.Parts()
	name := string(n)
	if len(parts) > 0 && parts[len(parts)-1][0] == '-' {
		name = strings.TrimSuffix(name, string(parts[len(parts)-1]))
	}
	return name
}

// under are the names of a benchmark's parts, without the benchmark's own.
func (r *results) under(benchmark string) []string {
	var names []string
	for _, name := range r.names {
		if rest, ok := strings.CutPrefix(name, benchmark+"/"); ok {
			names = append(names, rest)
		}
	}
	return names
}

// A figure is what the runs of a benchmark come to.
type figure struct {
	median float64
	spread float64 // half of what is between the lowest and the highest, as a part of the median
	runs   int
}

// figure gives that of a benchmark; without runs it is the zero value.
func (r *results) figure(name, unit string) (figure, bool) {
	runs := slices.Clone(r.runs[name][unit])
	if len(runs) == 0 {
		return figure{}, false
	}
	slices.Sort(runs)
	n := len(runs)
	f := figure{median: (runs[(n-1)/2] + runs[n/2]) / 2, runs: n}
	if f.median != 0 {
		f.spread = (runs[n-1] - runs[0]) / 2 / f.median
	}
	return f, true
}

// keys are the key=value parts of a benchmark's name.
func keys(name string) map[string]string {
	m := map[string]string{}
	for part := range strings.SplitSeq(name, "/") {
		if key, value, ok := strings.Cut(part, "="); ok {
			m[key] = value
		}
	}
	return m
}
