package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
)

var (
	// factLine matches the lines above a command's output. They aren't benchfmt
	// configuration lines, because benchstat doesn't compare two runs with different
	// dates in their configuration.
	factLine = regexp.MustCompile(`(?m)^# (\w+): (.*)$`)
	errEmpty = errors.New("no benchmark results")
)

// results are the figures of a run.
type results struct {
	facts  map[string]string               // by name; several values are separated by semicolons
	names  []string                        // of the benchmarks, in the order of the run
	values map[string]map[string][]float64 // by name and unit

	missing []string // the columns and charts without figures of the last page
}

// read parses the output of several commands.
func read(text string) (*results, error) {
	r := &results{facts: map[string]string{}, values: map[string]map[string][]float64{}}
	for _, m := range factLine.FindAllStringSubmatch(text, -1) {
		if known := r.facts[m[1]]; known == "" {
			r.facts[m[1]] = m[2]
		} else if !strings.Contains(known, m[2]) {
			r.facts[m[1]] += "; " + m[2]
		}
	}

	reader := benchfmt.NewReader(strings.NewReader(text), "output")
	for reader.Scan() {
		switch record := reader.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, record
		case *benchfmt.Result:
			for _, c := range record.Config {
				r.facts[c.Key] = string(c.Value)
			}
			name := string(record.Name)
			if _, parts := record.Name.Parts(); len(parts) > 0 && parts[len(parts)-1][0] == '-' { // GOMAXPROCS
				name = strings.TrimSuffix(name, string(parts[len(parts)-1]))
			}
			if r.values[name] == nil {
				r.names = append(r.names, name)
				r.values[name] = map[string][]float64{}
			}
			for _, v := range record.Values {
				if v.OrigUnit != "" { // benchfmt has converted the value to seconds or bytes
					v.Value, v.Unit = v.OrigValue, v.OrigUnit
				}
				r.values[name][v.Unit] = append(r.values[name][v.Unit], v.Value)
			}
		}
	}
	if len(r.names) == 0 {
		return nil, errors.Join(errEmpty, reader.Err())
	}
	return r, reader.Err()
}

// figure returns the median of a benchmark's runs and half the distance between
// the lowest and the highest.
func (r *results) figure(name, unit string) (median, spread float64, ok bool) {
	v := slices.Sorted(slices.Values(r.values[name][unit]))
	n := len(v)
	if n == 0 {
		return 0, 0, false
	}
	return (v[(n-1)/2] + v[n/2]) / 2, (v[n-1] - v[0]) / 2, true
}

// cell returns a figure formatted for a table. Times and ratios include the spread.
func (r *results) cell(name, unit string) string {
	median, spread, ok := r.figure(name, unit)
	if !ok {
		return ""
	}
	s := short(median)
	switch {
	case strings.HasSuffix(unit, "ratio"):
		s = fmt.Sprintf("%.3f", median)
	case unit == "%cap":
		return fmt.Sprintf("%.1f", median)
	case !strings.HasPrefix(unit, "ns/") && unit != "ms/query" && unit != "rows/s":
		return s
	}
	if spread != 0 {
		s += fmt.Sprintf(" ± %.0f %%", 100*spread/median)
	}
	return s
}

// rows returns the substitutes for * in a pattern that yield names with figures.
func (r *results) rows(pattern, unit string) (rows []string) {
	prefix, suffix, _ := strings.Cut(pattern, "*")
	for _, name := range r.names {
		row, ok1 := strings.CutPrefix(name, prefix)
		row, ok2 := strings.CutSuffix(row, suffix)
		if _, _, ok3 := r.figure(name, unit); ok1 && ok2 && ok3 {
			rows = append(rows, row)
		}
	}
	return rows
}
