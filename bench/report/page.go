package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

const page = "benchmarks.md"

//go:embed page.md.tmpl
var pageTemplate string

// page gives the page in Markdown, with those of the plots that there are.
func (r *results) page(pictures []picture) ([]byte, error) {
	t, err := template.New(page).Funcs(template.FuncMap{
		"fact":     func(key string) string { return r.facts[key] },
		"commands": func() string { return strings.Join(r.commands, "\n") },
		"picture": func(name, description string) string {
			if !slices.ContainsFunc(pictures, func(p picture) bool { return p.name == name }) {
				return ""
			}
			return fmt.Sprintf("\n![%s](%s/%s)\n", description, images, name)
		},
		"missing": func(server bool) string {
			if server && r.facts["postgres"] == "" {
				return "Not measured: this run had no Postgres server."
			}
			return "Not measured in this run."
		},
	}).Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := t.Execute(&out, r); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// A table is one in Markdown. Without rows it is nothing, which the page says.
type table struct {
	head []string
	rows [][]string
	left int // columns of words; the others are of figures
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t table) String() string {
	if len(t.rows) == 0 {
		return ""
	}
	var b strings.Builder
	line := func(cells []string) {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---"
		if t.left > 0 && i >= t.left {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// short is a number in three digits, or as many as it has before the point.
func short(x float64) string {
	if x == 0 {
		return "0"
	}
	s := strconv.FormatFloat(x, 'g', 3, 64)
	if abs := max(x, -x); abs >= 1000 {
		s = strconv.FormatFloat(x, 'f', 0, 64)
	} else if abs >= 0.001 {
		rounded, _ := strconv.ParseFloat(s, 64)
		s = strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	for i := len(s) - 3; i > 0 && !strings.ContainsAny(s, ".e"); i -= 3 {
		if s[i-1] == '-' {
			break
		}
		s = s[:i] + "," + s[i:]
	}
	return s
}

// around is how far its runs are from it, if there are several that differ.
func (f figure) around() string {
	if f.runs == 1 || f.spread == 0 {
		return ""
	}
	return fmt.Sprintf(" ± %.0f %%", 100*f.spread)
}

// cell is a figure with its spread.
func (r *results) cell(name, unit string) string {
	f, ok := r.figure(name, unit)
	if !ok {
		return ""
	}
	return short(f.median) + f.around()
}

// ratio is a figure that is one, in three digits behind the point.
func (r *results) ratio(name, unit string) string {
	f, ok := r.figure(name, unit)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.3f%s", f.median, f.around())
}

// plain is a figure without its spread.
func (r *results) plain(name, unit string) string {
	f, ok := r.figure(name, unit)
	if !ok {
		return ""
	}
	return short(f.median)
}

// library is what a library is called on the page.
func library(name string) string {
	switch name {
	case "time.Now":
		return "`time.Now`, the clock"
	case "time.Since":
		return "`time.Since`, the monotonic one"
	}
	if slices.Contains(formats, name) {
		return "**" + name + "**"
	}
	if number, ok := strings.CutPrefix(name, "strconv/"); ok {
		return "strconv, " + number + "'s number"
	}
	return versioned(name)
}

// versioned says of libraries with several versions of UUIDs which one it is.
func versioned(name string) string {
	if name == "google/uuid" || name == "gofrs/uuid" {
		return name + " v7"
	}
	return name
}

// MintTable is what minting one ID costs, by library.
func (r *results) MintTable() table {
	t := table{head: []string{"", "one goroutine, ns", "all cores, ns", "allocations", "by `time.Now`"}, left: 1}
	floor, _ := r.figure("Next/time.Now", "ns/op")
	for _, name := range r.under("Next") {
		if strings.HasSuffix(name, "/atcap") {
			continue
		}
		share := ""
		if f, _ := r.figure("Next/"+name, "ns/op"); floor.median > 0 {
			share = fmt.Sprintf("%.2f", f.median/floor.median)
		}
		t.add(library(name), r.cell("Next/"+name, "ns/op"), r.cell("NextParallel/"+name, "ns/op"), r.plain("Next/"+name, "allocs/op"), share)
	}
	return t
}

// AtCapPeers are the peers that wait for their cap, flat out.
func (r *results) AtCapPeers() string {
	var all []string
	for _, name := range r.under("Next") {
		if peer, ok := strings.CutSuffix(name, "/atcap"); ok {
			all = append(all, fmt.Sprintf("%s %s ns", peer, r.plain("Next/"+name, "ns/op")))
		}
	}
	return strings.Join(all, ", ")
}

// Late says how many benchmarks of bursts were disturbed so often that their
// figures are the machine's: more than five bursts in a hundred took longer than
// their unit.
func (r *results) Late() string {
	disturbed, all := 0, 0
	for _, name := range r.names {
		if len(r.runs[name]["median-ns/op"]) == 0 && len(r.runs[name]["late-bursts"]) == 0 {
			continue
		}
		all++
		late := 0.0
		for _, n := range r.runs[name]["late-bursts"] {
			late += n
		}
		if late > 0.05*float64(r.rounds[name]) {
			disturbed++
		}
	}
	if disturbed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", disturbed, all)
}

// GOMAXPROCSTable is the same by GOMAXPROCS.
func (r *results) GOMAXPROCSTable() table {
	procs, names := r.procs()
	t := table{head: []string{"GOMAXPROCS"}, left: 1}
	for _, p := range procs {
		t.head = append(t.head, strconv.Itoa(p)+", ns")
	}
	for _, name := range names {
		row := []string{library(name)}
		for _, p := range procs {
			row = append(row, r.cell(fmt.Sprintf("GOMAXPROCS/%s/procs=%d", name, p), "ns/op"))
		}
		t.add(row...)
	}
	return t
}

// procs are the numbers of cores and the libraries of BenchmarkGOMAXPROCS.
func (r *results) procs() (procs []int, names []string) {
	for _, rest := range r.under("GOMAXPROCS") {
		name, number, _ := strings.Cut(rest, "/procs=")
		if n, err := strconv.Atoi(number); err == nil && !slices.Contains(procs, n) {
			procs = append(procs, n)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(procs)
	return procs, names
}

// FillTable is minting 1000 at once.
func (r *results) FillTable() table {
	t := table{head: []string{"", "ns an ID"}, left: 1}
	for _, name := range r.under("Fill") {
		t.add(library(name), r.cell("Fill/"+name, "ns/ID"))
	}
	return t
}

// CapTable is the share of the cap, with the cores in brackets.
func (r *results) CapTable() table {
	ways := []string{"Next/goroutines=1", "Next/goroutines=8", "Next/goroutines=200", "Fill"}
	t := table{head: []string{"", "1 goroutine", "8", "200", "Fill"}, left: 1}
	var names []string
	for _, rest := range r.under("AtCap") {
		for _, way := range ways {
			if name, ok := strings.CutSuffix(rest, "/"+way); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, name := range names {
		row := []string{library(name)}
		for _, way := range ways {
			share, ok := r.figure("AtCap/"+name+"/"+way, "%cap")
			cores, hasCores := r.figure("AtCap/"+name+"/"+way, "cores")
			switch {
			case !ok:
				row = append(row, "")
			case hasCores:
				row = append(row, fmt.Sprintf("%s (%.2f)", showCap(share.median), cores.median))
			default:
				row = append(row, showCap(share.median))
			}
		}
		t.add(row...)
	}
	return t
}

// LeaseTable is minting with a node number of one kind or another.
func (r *results) LeaseTable() table {
	t := table{head: []string{"node number", "ns", "by the first"}, left: 1}
	names := r.under("Lease")
	for _, name := range names {
		first, _ := r.figure("Lease/"+names[0], "ns/op")
		f, _ := r.figure("Lease/"+name, "ns/op")
		share := ""
		if first.median > 0 {
			share = fmt.Sprintf("%.2f", f.median/first.median)
		}
		t.add(name, r.cell("Lease/"+name, "ns/op"), share)
	}
	return t
}

// TextTable is text, out and in.
func (r *results) TextTable() table {
	t := table{head: []string{"", "into a buffer, ns", "into a string, ns", "parsing, ns", "allocations parsing"}, left: 1}
	for _, name := range r.union("AppendText", "String", "Parse") {
		t.add(library(name), r.cell("AppendText/"+name, "ns/op"), r.cell("String/"+name, "ns/op"),
			r.cell("Parse/"+name, "ns/op"), r.plain("Parse/"+name, "allocs/op"))
	}
	return t
}

// ValueTable is what values cost outside of pgx.
func (r *results) ValueTable() table {
	t := table{head: []string{"", "Compare, ns", "Scan of an int64, ns", "Scan of a string, ns"}, left: 1}
	for _, name := range r.under("Compare") {
		t.add(library(name), r.cell("Compare/"+name, "ns/op"), r.cell("ScanValue/"+name+"/int64", "ns/op"), r.cell("ScanValue/"+name+"/string", "ns/op"))
	}
	return t
}

// union are the names under any of the benchmarks: this project's first, the
// yardsticks last.
func (r *results) union(benchmarks ...string) []string {
	var names []string
	for _, b := range benchmarks {
		for _, name := range r.under(b) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	rank := func(name string) int {
		if i := slices.Index(formats, name); i >= 0 {
			return i - len(formats)
		}
		if strings.HasPrefix(name, "strconv/") {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names
}

// CodecTable is what pgx takes for a value, planning included.
func (r *results) CodecTable() table {
	return r.codec("Encode/format=binary", "Scan/format=binary")
}

// SliceTable is CodecTable for arrays of 100.
func (r *results) SliceTable() table { return r.codec("EncodeSlice", "ScanSlice") }

func (r *results) codec(encode, scan string) table {
	t := table{head: []string{"held as", "type", "encoding, ns", "ratio", "allocs", "scanning, ns", "ratio", "allocs"}, left: 2}
	for _, name := range r.union(encode, scan) {
		row := []string{keys(name)["kind"], "`" + keys(name)["type"] + "`"}
		for _, b := range []string{encode, scan} {
			row = append(row, r.cell(b+"/"+name, "ns/op"), r.ratio(b+"/"+name, "ratio"), r.plain(b+"/"+name, "allocs/op"))
		}
		t.add(row...)
	}
	return t
}

// RowTable is reading and writing 10,000 rows on a server.
func (r *results) RowTable() table {
	t := table{head: []string{"held as", "type", "reading, ns/row", "ratio", "CPU ratio", "allocs", "COPY, ns/row", "ratio", "CPU ratio", "allocs"}, left: 2}
	for _, name := range r.union("Rows", "CopyFrom") {
		row := []string{keys(name)["kind"], "`" + keys(name)["type"] + "`"}
		for _, b := range []string{"Rows", "CopyFrom"} {
			row = append(row, r.cell(b+"/"+name, "ns/row"), r.ratio(b+"/"+name, "ratio"), r.ratio(b+"/"+name, "cpu-ratio"), r.plain(b+"/"+name, "allocs/row"))
		}
		t.add(row...)
	}
	return t
}

// CallbackTable is setting the keys of rows that nobody creates.
func (r *results) CallbackTable() table {
	t := table{head: []string{"generator", "rows", "by", "ns/row", "by Set", "allocs"}, left: 3}
	for _, name := range r.under("Callback") {
		k := keys(name)
		t.add(k["generator"], k["rows"], k["by"], r.cell("Callback/"+name, "ns/row"), r.ratio("Callback/"+name, "ratio"), r.plain("Callback/"+name, "allocs/row"))
	}
	return t
}

// CreateTable is Create without a server.
func (r *results) CreateTable() table { return r.creating("Create") }

// PostgresTable is Create with one.
func (r *results) PostgresTable() table { return r.creating("Postgres") }

func (r *results) creating(benchmark string) table {
	t := table{head: []string{"rows at once", "column", "key", "ns/row", "ratio to preset", "CPU ratio", "allocs"}, left: 3}
	for _, name := range r.under(benchmark) {
		k, full := keys(name), benchmark+"/"+name
		t.add(k["batch"], k["kind"], k["key"], r.cell(full, "ns/row"), r.ratio(full, "ratio"), r.ratio(full, "cpu-ratio"), r.plain(full, "allocs/row"))
	}
	return t
}

// InsertTable is what a primary key costs a table that is filled.
func (r *results) InsertTable() table {
	t := table{head: []string{"key", "INSERT, ns/row", "ratio", "WAL, B/row", "COPY, ns/row", "ratio", "WAL, B/row", "index, B/row"}, left: 1}
	for _, name := range r.union("Insert", "Copy") {
		row := []string{"`" + keys(name)["key"] + "`"}
		for _, b := range []string{"Insert", "Copy"} {
			row = append(row, r.cell(b+"/"+name, "ns/row"), r.ratio(b+"/"+name, "ratio"), r.plain(b+"/"+name, "wal-B/row"))
		}
		index := r.plain("Copy/"+name, "index-B/row")
		if index == "" {
			index = r.plain("Insert/"+name, "index-B/row")
		}
		t.add(append(row, index)...)
	}
	return t
}

// DefaultTable is one row per INSERT.
func (r *results) DefaultTable() table {
	t := table{head: []string{"connections", "key", "rows/s", "ns/row", "ratio to bigserial"}, left: 2}
	for _, name := range r.under("Default") {
		k, full := keys(name), "Default/"+name
		t.add(k["clients"], "`"+k["key"]+"`", r.cell(full, "rows/s"), r.cell(full, "ns/row"), r.ratio(full, "ratio"))
	}
	return t
}

// A point is a table that grows, at some number of rows.
type point struct {
	rows float64
	name string // of the benchmark
}

// growth is by key, in the order of the run, and by rows.
func (r *results) growth() (names []string, points map[string][]point) {
	points = map[string][]point{}
	for _, rest := range r.under("Grow") {
		k := keys(rest)
		n, err := strconv.ParseFloat(k["rows"], 64)
		if err != nil || n <= 0 {
			continue
		}
		if points[k["key"]] == nil {
			names = append(names, k["key"])
		}
		points[k["key"]] = append(points[k["key"]], point{n, "Grow/" + rest})
	}
	for _, p := range points {
		slices.SortFunc(p, func(a, b point) int { return cmp.Compare(a.rows, b.rows) })
	}
	return names, points
}

// GrowTable is the end of the growth, and what it took in all.
func (r *results) GrowTable() table {
	t := table{head: []string{"key", "rows", "rows/s of all", "of the last step", "index, MB", "table, MB", "WAL, MB", "index lookups found in shared_buffers, %"}, left: 1}
	names, points := r.growth()
	for _, key := range names {
		last := points[key][len(points[key])-1]
		var seconds, wal, before float64
		for _, p := range points[key] {
			if f, ok := r.figure(p.name, "rows/s"); ok && f.median > 0 {
				seconds += (p.rows - before) / f.median
			}
			f, _ := r.figure(p.name, "wal-MB")
			wal += f.median
			before = p.rows
		}
		all := ""
		if seconds > 0 {
			all = short(last.rows / seconds)
		}
		t.add("`"+key+"`", short(last.rows), all, r.plain(last.name, "rows/s"), r.plain(last.name, "index-MB"), r.plain(last.name, "table-MB"), short(wal), r.plain(last.name, "hit-%"))
	}
	return t
}

// WindowTable is reading the rows of a window of time.
func (r *results) WindowTable() table {
	t := table{head: []string{"key", "window", "by", "ms a query", "pages a query", "index beside the key's, MB"}, left: 3}
	for _, name := range r.under("Window") {
		k, full := keys(name), "Window/"+name
		t.add(k["kind"], k["window"], "`"+k["by"]+"`", r.cell(full, "ms/query"), r.plain(full, "buffers/query"), r.plain(full, "extra-index-MB"))
	}
	return t
}
