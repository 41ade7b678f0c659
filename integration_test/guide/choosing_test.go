package guide

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// pageText is a page of docs.
func pageText(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page + ".md")
	must(t, err)
	return string(text)
}

// number reads what a page writes, such as 108,270.
func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	must(t, err)
	return n
}

// thousands writes numbers as the page does.
func thousands(n int) string {
	s := strconv.Itoa(n)
	if n < 10_000 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// The table of the formats is what the layouts give.
func TestChoosingFormats(t *testing.T) {
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	instant := func(at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z") }
	snowflake, spread := idtype.DefaultSnowflakeLayout(), idtype.Spread64Layout{}
	si := idtype.SnowflakeSILayout{BaseClock: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	lastSpread, lastSno := idtype.MustParseSpread64("ffffffffffff03ff"), idtype.MustParseSno("xxxxxxxxxxxxxxxx")
	// The last ID of a format has the largest of each part.
	a, err := snowflake.Parts(idtype.MaxSnowflake)
	must(t, err)
	b, err := si.Parts(idtype.MaxSnowflakeSI)
	must(t, err)
	c, err := spread.Parts(lastSpread)
	must(t, err)
	years := si.Time(idtype.MaxSnowflakeSI).Sub(si.BaseClock).Hours() / 24 / 365.25
	longest := idtype.SnowflakeSI(idtype.MaxSnowflakeSI).String()
	page := pageText(t, "choosing")
	for _, row := range []string{
		fmt.Sprintf("| `Snowflake` | %s | %s | %d | 8 | 18 or 19 |", instant(a.Time), thousands((a.Sequence+1)*1000), (a.Datacenter+1)*(a.Worker+1)),
		fmt.Sprintf("| `SnowflakeSI` | %.2f years after its base clock | %s | %d | 8 | up to %d |", years, thousands((b.Index+1)*1000), b.Machine+1, len(longest)),
		fmt.Sprintf("| `UID60` | %s | %s | no numbers | 8 | 10 |", instant(idtype.UID60(idtype.MaxUID60).Time()), thousands((idtype.UID60(idtype.MaxUID60).Sequence()+1)*1000)),
		fmt.Sprintf("| `Spread64` | %s | %s | %d | 8 | %d |", instant(lastSpread.Time()), thousands((c.Sequence+1)*1000), (c.Generator+1)*(c.Cluster+1), len(lastSpread.String())),
		fmt.Sprintf("| `Sno` | %s | %s | %s | 16 | %d |", instant(lastSno.Time()), thousands((math.MaxUint16+1)*250), thousands(math.MaxUint16+1), len(lastSno.String())),
	} {
		if !strings.Contains(page, row) {
			t.Errorf("expected the page to have %s", row)
		}
	}
	first, err := snowflake.Floor(day)
	must(t, err)
	if last := idtype.Snowflake(idtype.MaxSnowflake); len(first.String()) != 18 || len(last.String()) != 19 {
		t.Errorf("%s and %s", first, last)
	}
}

// The layouts have what their comments say, and the database has them.
func TestChoosingLayouts(t *testing.T) {
	events, pages := guide.Ends()
	if events.Year() != 2304 || pages.Year() != 2060 {
		t.Errorf("they end %v and %v", events, pages)
	}
	for worker, works := range map[int]bool{0: true, 63: true, 64: false} {
		if _, err := guide.NewEvents(worker); (err == nil) != works {
			t.Errorf("worker %d: %v", worker, err)
		}
	}
	at := events.Add(-time.Hour)
	if _, err := guide.EventLayout.Compose(idtype.SnowflakeParts{Time: at, Worker: 63, Sequence: 16383}); err != nil {
		t.Error(err)
	}
	if _, err := guide.EventLayout.Compose(idtype.SnowflakeParts{Time: at, Sequence: 16384}); err == nil {
		t.Error("expected no more than 16384 in a millisecond")
	}
	at = pages.Add(-time.Hour)
	if _, err := guide.PageLayout.Compose(idtype.SnowflakeSIParts{Time: at, Machine: 7, Index: 1023}); err != nil {
		t.Error(err)
	}
	if _, err := guide.PageLayout.Compose(idtype.SnowflakeSIParts{Time: at, Machine: 8}); err == nil {
		t.Error("expected no more than 8 machines")
	}

	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		must(t, guide.MigrateLayouts(t.Context(), pool))
		if err := migrations.Check(t.Context(), pool, migrations.Config{}); err == nil {
			t.Error("expected a program with the default layout to be refused")
		}
		gen, err := guide.NewEvents(5)
		must(t, err)
		id, err := gen.Next()
		must(t, err)
		var minted time.Time
		var worker int
		err = pool.QueryRowContext(t.Context(), `SELECT "time", worker FROM sortkey.snowflake_parts($1)`, id.Int64()).Scan(&minted, &worker)
		if err != nil || !minted.Equal(guide.EventLayout.Time(id)) || worker != 5 {
			t.Errorf("got %v and %d, %v", minted, worker, err)
		}
	})
}

// The kinds of documents can be told from the text.
func TestChoosingDocuments(t *testing.T) {
	invoices, creditNotes, err := guide.NewDocuments('A', 10)
	must(t, err)
	seen := map[idtype.Sno]bool{}
	for kind, gen := range map[byte]idtype.Generator[idtype.Sno]{guide.Invoice: invoices, guide.CreditNote: creditNotes} {
		for range 100 {
			id, err := gen.Next()
			must(t, err)
			got, err := idtype.SnoMetaFromText(id.String())
			if err != nil || got != kind || id.Partition() != (idtype.SnoPartition{'A', 10}) {
				t.Errorf("%v: %q, %v, partition %v", id, got, err, id.Partition())
			}
			seen[id.WithMeta(0)] = true
		}
	}
	if len(seen) != 200 {
		t.Errorf("expected 200 IDs that differ in more than the kind, got %d", len(seen))
	}
}

// The odds that the page gives are those of the formula.
func TestChoosingOdds(t *testing.T) {
	page := pageText(t, "choosing")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([\d.]+) \| ([\d.,]+) \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) != 5 {
		t.Fatalf("%d rows of odds", len(rows))
	}
	for _, row := range rows {
		got := guide.UID60Collisions(int(number(t, row[1])), number(t, row[2]), 365*24*time.Hour)
		if want := number(t, row[3]); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%v: %.4f", row[0], got)
		}
	}
	if got := guide.UID60Collisions(2, 1000, time.Millisecond) * 131072; math.Abs(got-1) > 1e-9 {
		t.Errorf("two that meet collide in %v of 131072 cases", got)
	}
	if got := guide.RandomCollision(1e9, 122); math.Abs(got/9.4e-20-1) > 0.01 || !strings.Contains(page, "9.4e-20") {
		t.Errorf("a billion UUIDs: %v", got)
	}
	if got := guide.RandomCollision(2.7e18, 122); math.Abs(got-0.5) > 0.005 || !strings.Contains(page, "2.7e18") {
		t.Errorf("a chance of one half: %v", got)
	}
	if got := guide.RandomCollision(23, 8); math.Abs(got-0.63) > 0.01 { // not by approximation: 0.638
		t.Errorf("23 of 256: %v", got)
	}
}

// JavaScript has a 64-bit float for each number.
func TestChoosingJavaScript(t *testing.T) {
	page := pageText(t, "choosing")
	line := guide.Line{
		Snowflake: 779300444248735745, SnowflakeSI: 1781273964118016, UID60: idtype.MustParseUID60("7TEAe6SwuZ"),
		Spread64: idtype.MustParseSpread64("cb54ecf2840a0015"), Sno: idtype.MustParseSno("brpk4q72xwf2m63l"),
	}
	b, err := json.Marshal(line)
	if err != nil || !strings.Contains(page, "\n"+string(b)+"\n") {
		t.Errorf("the page doesn't have %s, %v", b, err)
	}
	rounded := strconv.FormatFloat(float64(line.Snowflake), 'f', -1, 64)
	if rounded != "779300444248735700" || !strings.Contains(page, "`"+rounded+"`") {
		t.Errorf("rounded it is %s", rounded)
	}
	same := 0
	for n := line.Snowflake - 1000; n < line.Snowflake+1000; n++ {
		if float64(n) == float64(line.Snowflake) {
			same++
		}
	}
	// A float stands for the numbers nearer to it than to its neighbours, which are 128 apart; those halfway go to the even one.
	if same < 127 || same > 129 || float64(idtype.MaxSnowflakeSI) == float64(idtype.MaxSnowflakeSI-1) {
		t.Errorf("%d numbers are the same", same)
	}
	// What comes back may be a number or a string.
	for _, in := range []string{`{"Snowflake":17,"SnowflakeSI":"17"}`, `{"Snowflake":"17","SnowflakeSI":17}`} {
		var back guide.Line
		if err := json.Unmarshal([]byte(in), &back); err != nil || back.Snowflake != 17 || back.SnowflakeSI != 17 {
			t.Errorf("%s: %v, %v", in, back, err)
		}
	}
	if b, err := json.Marshal(guide.Line{}); err != nil || strings.Count(string(b), "null") != 5 {
		t.Errorf("got %s, %v", b, err)
	}
}

// Keys in order change a page or two; the others hundreds.
func TestChoosingPages(t *testing.T) {
	page := pageText(t, "choosing")
	migrated.Each(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		checkpoint := func() string {
			return pgtest.Value[string](t, conn, "SELECT redo_lsn::text FROM pg_control_checkpoint()")
		}
		var plans []string
		// A checkpoint while rows are inserted has pages counted twice.
		for last := ""; last == "" || last != checkpoint(); {
			plans = nil
			db.Exec(t, "DROP TABLE IF EXISTS ordered, spread, random")
			for _, p := range pieces(t, "choosing.sql") {
				for _, s := range p.statements() {
					results, err := conn.PgConn().Exec(t.Context(), s).ReadAll()
					if err != nil {
						t.Fatalf("[%s]: %v\nin: %s", p.name, err, s)
					}
					if strings.HasPrefix(strings.TrimSpace(s), "EXPLAIN") {
						plans = append(plans, string(results[0].Rows[1][0]))
					} else {
						last = checkpoint()
					}
				}
			}
		}
		names := []string{"`Snowflake`, in order", "`Spread64`", "random uuid"}
		if len(plans) != len(names) {
			t.Fatalf("%d plans", len(plans))
		}
		for i, name := range names {
			dirtied := regexp.MustCompile(`dirtied=(\d+)`).FindStringSubmatch(plans[i])
			row := regexp.MustCompile(`(?m)^\| ` + name + ` \| (\d+) \|$`).FindStringSubmatch(page)
			if dirtied == nil || row == nil {
				t.Errorf("%s: %v, %v", name, plans[i], row)
				continue
			}
			if got, says := number(t, dirtied[1]), number(t, row[1]); got < says*0.95 || got > says*1.05+20 {
				t.Errorf("%s: the page says %v, but it is %v", name, says, got)
			}
		}
		// Postgres has what the table of other keys says.
		var version int
		must(t, conn.QueryRow(t.Context(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&version))
		var has bool
		if err := conn.QueryRow(t.Context(), "SELECT to_regprocedure('uuidv7()') IS NOT NULL").Scan(&has); err != nil || has != (version >= 18) {
			t.Errorf("uuidv7 on Postgres %d: %t, %v", version, has, err)
		}
	})
}
