package windowbench

import "time"

// The keys of a table have times at equal intervals, from start over span. start is
// in the past because SnoGenerator.At rejects future times.
var start = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)

const span = 30 * 24 * time.Hour

// orders is the number of rows in a table.
type orders int

// step returns the interval between two rows, in the resolution of timestamptz.
func (n orders) step() time.Duration { return (span / time.Duration(n)).Truncate(time.Microsecond) }

// at returns the time of a row.
func (n orders) at(i int) time.Time { return start.Add(time.Duration(i) * n.step()) }

// total returns the value of a row's column total.
func total(i int) int32 { return int32(i % 1000) }

// An answer is the result of a query: the number of rows and the sum of their totals.
type answer struct{ count, sum int64 }

// between returns the answer for the rows with times in [from, to).
func (n orders) between(from, to time.Time) answer {
	return n.until(n.first(to)).minus(n.until(n.first(from)))
}

// latest returns the answer for the last rows.
func (n orders) latest(limit int) answer {
	return n.until(int(n)).minus(n.until(max(int(n)-limit, 0)))
}

// first returns the index of the first row at t or later.
func (n orders) first(t time.Time) int {
	step := n.step()
	return int(min(max((t.Sub(start)+step-1)/step, 0), time.Duration(n)))
}

// until returns the answer for the rows before row i.
func (n orders) until(i int) answer {
	whole, rest := int64(i/1000), int64(i%1000)
	return answer{int64(i), whole*(999*1000/2) + rest*(rest-1)/2}
}

func (a answer) minus(b answer) answer { return answer{a.count - b.count, a.sum - b.sum} }
