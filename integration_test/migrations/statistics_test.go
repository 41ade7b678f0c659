package migrations

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The test table has rows of 20 days. The rate at night is two thirds of that by day.
const (
	statisticsRows  = 50_000
	statisticsDays  = 20
	statisticsNight = 0.25 // of a day's rows are in its first 8 hours
)

var (
	statisticsBegin    = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	statisticsEstimate = regexp.MustCompile(`rows=(\d+)`)
)

// statisticsTime returns the time of a row.
func statisticsTime(row int) time.Time {
	const perDay = float64(statisticsRows) / statisticsDays
	day := float64(row) / perDay
	whole := float64(int(day))
	part := day - whole
	if part < statisticsNight {
		part = part / statisticsNight * 8 / 24
	} else {
		part = (8 + (part-statisticsNight)/(1-statisticsNight)*16) / 24
	}
	return statisticsBegin.Add(time.Duration((whole+part)*24*60*60*1000) * time.Millisecond)
}

// The planner estimates the rows of a time range from the default statistics. Within
// a bin of the histogram, a hundredth of the table, it interpolates numbers, and is
// wrong only as far as the rate changes within the bin. It cannot interpolate uuids,
// and assumes half a bin for any part of one. So time ranges of a hundredth of the
// table or less need more bins, at least two per range. Columns of a domain have the
// same estimates as columns of the base type.
func TestStatistics(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		exec(t, conn, "CREATE UNLOGGED TABLE t (number bigint, snowflake sortkey.snowflake, uuid uuid, sno sortkey.sno)")
		times := make([]time.Time, statisticsRows)
		for row := range times {
			times[row] = statisticsTime(row)
		}
		exec(t, conn, `INSERT INTO t SELECT floor, floor, sno, sno FROM unnest($1::timestamptz[]) at,
			LATERAL (SELECT sortkey.snowflake_floor(at), sortkey.sno_floor(at) OFFSET 0) ids (floor, sno)`, times)
		exec(t, conn, "ANALYZE t")

		estimate := func(column, floor string, from, to time.Time) float64 {
			t.Helper()
			plan := explain(t, conn, "COSTS ON", fmt.Sprintf("SELECT FROM t WHERE %s >= sortkey.%s_floor('%s') AND %[1]s < sortkey.%[2]s_floor('%[4]s')",
				column, floor, parityInstant(from), parityInstant(to)))
			rows, err := strconv.ParseFloat(statisticsEstimate.FindStringSubmatch(plan)[1], 64)
			must(t, err)
			return rows
		}
		// spread returns the least and the highest ratio of an estimate to the actual row count.
		spread := func(column, floor string, rows int) (least, most float64) {
			t.Helper()
			const windows = 25
			for i := range windows {
				from := 500 + i*(statisticsRows-rows-1000)/(windows-1)
				ratio := estimate(column, floor, statisticsTime(from), statisticsTime(from+rows)) / float64(rows)
				if i == 0 || ratio < least {
					least = ratio
				}
				most = max(most, ratio)
			}
			t.Logf("%s, %d rows: estimates of %.2f to %.2f times that", column, rows, least, most)
			return least, most
		}
		within := func(column, floor string, rows int, factor float64) {
			t.Helper()
			if least, most := spread(column, floor, rows); least < 1/factor || most > factor {
				t.Errorf("%s: estimates of %d rows are %.2f to %.2f times that, want a factor of %v at most", column, rows, least, most, factor)
			}
		}

		for _, column := range []string{"number", "snowflake"} {
			for _, part := range []int{1000, 100, 20, 2} {
				within(column, "snowflake", statisticsRows/part, 2)
			}
		}
		for _, column := range []string{"uuid", "sno"} {
			for _, part := range []int{20, 2} {
				within(column, "sno", statisticsRows/part, 1.5)
			}
			if least, _ := spread(column, "sno", statisticsRows/1000); least > 0.1 {
				t.Errorf("%s: the least estimate of a thousandth of the rows is %.2f times that: estimates for uuids are better than this test assumes", column, least)
			}
			exec(t, conn, "ALTER TABLE t ALTER COLUMN "+column+" SET STATISTICS 500")
		}
		exec(t, conn, "ANALYZE t (uuid, sno)")
		for _, column := range []string{"uuid", "sno"} {
			for _, part := range []int{200, 100, 20, 2} {
				within(column, "sno", statisticsRows/part, 1.5)
			}
		}
	})
}
