package pgtest

import (
	"regexp"
	"strings"
)

const (
	// logPrefix begins the lines of a server's log: time, process, database.
	logPrefix = "%m [%p] %q%d "
	// logLines is how much of the log a failed test shows.
	logLines = 100
)

// lineHead begins what a server logs itself. What surrounds it, such as the
// talk of the programs that set up its data, has another form.
var lineHead = regexp.MustCompile(`^\S+ \S+ \S+ \[\d+\] (` + databasePrefix + `\S+)?`)

// linesAbout leaves out what a log says about other tests' databases.
func linesAbout(database, log string) string {
	var kept []string
	keep := false
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "\t") { // which continues the line before
			m := lineHead.FindStringSubmatch(line)
			keep = m != nil && (m[1] == "" || m[1] == database)
		}
		if keep {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// lastLines is the end of a text.
func lastLines(s string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
