package migrations

import (
	"encoding/json"
	"fmt"
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

var statisticsBegin = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

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
		// The same as statisticsTime, with the time of day in units of 1/statisticsRows.
		exec(t, conn, fmt.Sprintf(`INSERT INTO t SELECT floor, floor, sno, sno FROM (
				SELECT sortkey.snowflake_floor(at) AS floor, sortkey.sno_floor(at) AS sno FROM (
					SELECT timestamptz '%s' + (i / %[2]d * 86400000 + CASE WHEN i %% %[2]d < %[3]d
						THEN i %% %[2]d * 28800000 / %[3]d
						ELSE 28800000 + (i %% %[2]d - %[3]d) * 57600000 / (%[2]d - %[3]d) END) * interval '1 millisecond' AS at
					FROM generate_series(0::bigint, %[4]d - 1, %[5]d) AS i) times) ids`,
			parityInstant(statisticsBegin), statisticsRows, int(statisticsRows*statisticsNight), statisticsRows*statisticsDays, statisticsDays))
		exec(t, conn, "ANALYZE t")

		estimate := func(column, floor string, from, to time.Time) float64 {
			t.Helper()
			var data []byte
			must(t, conn.QueryRow(t.Context(), fmt.Sprintf("EXPLAIN (FORMAT JSON) SELECT FROM t WHERE %s >= sortkey.%s_floor('%s') AND %[1]s < sortkey.%[2]s_floor('%[4]s')",
				column, floor, parityInstant(from), parityInstant(to))).Scan(&data))
			var plans []struct {
				Plan struct {
					Rows float64 `json:"Plan Rows"`
				}
			}
			must(t, json.Unmarshal(data, &plans))
			return plans[0].Plan.Rows
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

		// Check that the rows are at the times of statisticsTime.
		from, rows := statisticsRows/8, statisticsRows/1000
		if n := pgtest.Value[int](t, conn, "SELECT count(*) FROM t WHERE number >= sortkey.snowflake_floor($1) AND number < sortkey.snowflake_floor($2)",
			statisticsTime(from), statisticsTime(from+rows)); n < rows-2 || n > rows+2 {
			t.Fatalf("%d rows in the window of %d", n, rows)
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
			if least, _ := spread(column, "sno", rows); least > 0.1 {
				t.Errorf("%s: the least estimate of %d rows is %.2f times that: estimates for uuids are better than this test assumes", column, rows, least)
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
