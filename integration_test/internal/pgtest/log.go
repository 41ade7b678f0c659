package pgtest

import (
	"regexp"
	"strings"
)

const (
	// logPrefix is the server's log_line_prefix: time, process, database.
	logPrefix = "%m [%p] %q%d "
	// logLines is the number of log lines that a failed test shows.
	logLines = 100
)

// lineHead matches the start of a line that the server logged. Other lines, such as the
// output of initdb, have another form.
var lineHead = regexp.MustCompile(`^\S+ \S+ \S+ \[\d+\] (` + databasePrefix + `\S+)?`)

// linesAbout returns the lines of a log, without those about other tests' databases.
func linesAbout(database, log string) string {
	var kept []string
	keep := false
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "\t") { // a tab continues the previous line
			m := lineHead.FindStringSubmatch(line)
			keep = m != nil && (m[1] == "" || m[1] == database)
		}
		if keep {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// lastLines returns the last n lines of a text.
func lastLines(s string, n int) string {
	lines := strings.SplitAfter(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
