package windowbench

import "time"

// The rows of a table are minted at equal distances from start on, for as long
// as span. A SnoGenerator wants times that have passed.
var start = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)

const span = 30 * 24 * time.Hour

// orders are the rows of a table: how many there are.
type orders int

// step is from one row to the next, in what a timestamptz tells apart.
func (n orders) step() time.Duration { return (span / time.Duration(n)).Truncate(time.Microsecond) }

// at is when a row was minted.
func (n orders) at(i int) time.Time { return start.Add(time.Duration(i) * n.step()) }

// total is what a row has in its column of that name.
func total(i int) int32 { return int32(i % 1000) }

// An answer is that of all queries: of how many rows, and their totals together.
type answer struct{ count, sum int64 }

// between is the answer for the rows minted from an instant to before another.
func (n orders) between(from, to time.Time) answer {
	return n.until(n.first(to)).minus(n.until(n.first(from)))
}

// latest is the answer for the last rows.
func (n orders) latest(limit int) answer {
	return n.until(int(n)).minus(n.until(max(int(n)-limit, 0)))
}

// first is the first row that was minted at t or later.
func (n orders) first(t time.Time) int {
	step := n.step()
	return int(min(max((t.Sub(start)+step-1)/step, 0), time.Duration(n)))
}

// until is the answer for the rows before one.
func (n orders) until(i int) answer {
	whole, rest := int64(i/1000), int64(i%1000)
	return answer{int64(i), whole*(999*1000/2) + rest*(rest-1)/2}
}

func (a answer) minus(b answer) answer { return answer{a.count - b.count, a.sum - b.sum} }
