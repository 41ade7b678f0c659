package guide

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// number parses a number as pages write it, such as 108,270.
func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	must(t, err)
	return n
}

// thousands formats a number as pages write it.
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

// The page's table of formats agrees with the layouts.
func TestChoosingFormats(t *testing.T) {
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	instant := func(at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z") }
	snowflake, spread := idtype.DefaultSnowflakeLayout(), idtype.Spread64Layout{}
	si := idtype.SnowflakeSILayout{BaseClock: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	lastSpread, lastSno := idtype.Must(idtype.ParseSpread64("ffffffffffff03ff")), idtype.Must(idtype.ParseSno("xxxxxxxxxxxxxxxx"))
	// The last ID of a format has the largest value of each part.
	a, err := snowflake.Parts(idtype.MaxSnowflake)
	must(t, err)
	b, err := si.Parts(idtype.MaxSnowflakeSI)
	must(t, err)
	c, err := spread.Parts(lastSpread)
	must(t, err)
	years := si.Time(idtype.MaxSnowflakeSI).Sub(si.BaseClock).Hours() / 24 / 365.25
	longest := idtype.SnowflakeSI(idtype.MaxSnowflakeSI).String()
	lastUID60 := idtype.UID60(idtype.MaxUID60)
	lastUUID := idtype.Must(idtype.ParseUUID("ffffffff-ffff-7fff-bfff-ffffffffffff"))
	uuidEnd, err := lastUUID.Time()
	must(t, err)
	page := docs.Page(t, "choosing")
	for _, row := range []string{
		fmt.Sprintf("| `Snowflake` | %d | `bigint` | 18 or 19 digits: `779300444248735744` | %s | %d | %s |",
			bits.Len64(idtype.MaxSnowflake), thousands((a.Sequence+1)*1000), (a.Datacenter+1)*(a.Worker+1), instant(a.Time)),
		fmt.Sprintf("| `SnowflakeSI` | %d | `bigint` | up to %d digits: `1781273964118016` | %s | %d | %.2f years after its base clock |",
			bits.Len64(idtype.MaxSnowflakeSI), len(longest), thousands((b.Index+1)*1000), b.Machine+1, years),
		fmt.Sprintf("| `UID60` | %d | `bigint` | up to %d characters: `%s` | %s | no node numbers | %s |",
			bits.Len64(idtype.MaxUID60), len(lastUID60.String()), idtype.Must(idtype.ParseUID60("7TEAe6SwuZ")), thousands((lastUID60.Sequence()+1)*1000), instant(lastUID60.Time())),
		fmt.Sprintf("| `Spread64` | 64 | `bigint` | %d hex digits: `%s` | %s | %d | %s |",
			len(lastSpread.String()), idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015")), thousands((c.Sequence+1)*1000), (c.Generator+1)*(c.Cluster+1), instant(lastSpread.Time())),
		fmt.Sprintf("| `Sno` | 80 | `uuid` | %d characters: `%s` | %s | %s | %s |",
			len(lastSno.String()), idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), thousands((math.MaxUint16+1)*250), thousands(math.MaxUint16+1), instant(lastSno.Time())),
		fmt.Sprintf("| `UUID` | %d | `uuid` | %d characters: `%s` | unlimited | no node numbers | %s |",
			8*len(lastUUID), len(lastUUID.String()), idtype.Must(idtype.ParseUUID("01890a5d-ac96-774b-bcce-b302099a8057")), instant(uuidEnd)),
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page doesn't contain %s", row)
		}
	}
	first, err := snowflake.Floor(day)
	must(t, err)
	if last := idtype.Snowflake(idtype.MaxSnowflake); len(first.String()) != 18 || len(last.String()) != 19 {
		t.Errorf("expected Snowflakes of 18 to 19 digits, got %s to %s", first, last)
	}
}

// The first generator of the page uses its worker, and rejects others.
func TestChoosingGenerator(t *testing.T) {
	gen, err := guide.NewOrderIDs(31)
	must(t, err)
	id, err := gen.Next()
	must(t, err)
	if p, err := idtype.DefaultSnowflakeLayout().Parts(id); err != nil || p.Worker != 31 || p.Datacenter != 0 {
		t.Errorf("expected datacenter 0 and worker 31, got %+v, %v", p, err)
	}
	_, err = guide.NewOrderIDs(32)
	pgtest.Fails(t, err, idtype.ErrNode)
}

// The layouts have the limits in their comments, and the database uses them.
func TestChoosingLayouts(t *testing.T) {
	events, pages := guide.EventLayout.Time(idtype.MaxSnowflake), guide.PageLayout.Time(idtype.MaxSnowflakeSI)
	if events.Year() != 2304 || pages.Year() != 2060 {
		t.Errorf("expected the layouts to end in 2304 and 2060, got %v and %v", events, pages)
	}
	for worker, works := range map[int]bool{0: true, 63: true, 64: false} {
		if _, err := guide.NewEvents(worker); (err == nil) != works {
			t.Errorf("worker %d: expected success to be %t, got %v", worker, works, err)
		}
	}
	at := events.Add(-time.Hour)
	if _, err := guide.EventLayout.Compose(idtype.SnowflakeParts{Time: at, Worker: 63, Sequence: 16383}); err != nil {
		t.Error(err)
	}
	if _, err := guide.EventLayout.Compose(idtype.SnowflakeParts{Time: at, Sequence: 16384}); err == nil {
		t.Error("expected an error for sequence 16384, got none")
	}
	at = pages.Add(-time.Hour)
	if _, err := guide.PageLayout.Compose(idtype.SnowflakeSIParts{Time: at, Machine: 7, Index: 1023}); err != nil {
		t.Error(err)
	}
	if _, err := guide.PageLayout.Compose(idtype.SnowflakeSIParts{Time: at, Machine: 8}); err == nil {
		t.Error("expected an error for machine 8, got none")
	}

	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		pool := db.SQL(t)
		must(t, migrations.Up(t.Context(), pool, migrations.Config{Snowflake: guide.EventLayout, SnowflakeSI: guide.PageLayout}))
		pgtest.Fails(t, migrations.Check(t.Context(), pool, migrations.Config{}), migrations.ErrLayout) // the default layout
		gen, err := guide.NewEvents(5)
		must(t, err)
		id, err := gen.Next()
		must(t, err)
		var created time.Time
		var worker int
		err = pool.QueryRowContext(t.Context(), `SELECT "time", worker FROM sortkey.snowflake_parts($1)`, id.Int64()).Scan(&created, &worker)
		if err != nil || !created.Equal(guide.EventLayout.Time(id)) || worker != 5 {
			t.Errorf("expected the time of %v and worker 5, got %v and %d, %v", id, created, worker, err)
		}
	})
}

// The text of a key contains the kind of its document.
func TestChoosingDocuments(t *testing.T) {
	invoices, creditNotes, err := guide.NewDocuments('A', 10)
	must(t, err)
	seen := map[idtype.Sno]bool{}
	for kind, gen := range map[byte]idtype.Generator[idtype.Sno]{guide.Invoice: invoices, guide.CreditNote: creditNotes} {
		for range 100 {
			id, err := gen.Next()
			must(t, err)
			if id.Meta() != kind || id.Partition() != (idtype.SnoPartition{'A', 10}) {
				t.Errorf("%v: expected kind %q and partition A 10, got %q and %v", id, kind, id.Meta(), id.Partition())
			}
			seen[id.WithMeta(0)] = true
		}
	}
	if len(seen) != 200 {
		t.Errorf("expected 200 IDs that differ in more than the kind, got %d", len(seen))
	}
}

// The probabilities in the page agree with its formulas.
func TestChoosingOdds(t *testing.T) {
	page := docs.Page(t, "choosing")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([\d.]+) \| ([\d.,]+) \|$`).FindAllStringSubmatch(page, -1)
	if len(rows) != 5 {
		t.Fatalf("expected 5 rows of collisions, got %d", len(rows))
	}
	for _, row := range rows {
		got := guide.UID60Collisions(int(number(t, row[1])), number(t, row[2]), 365*24*time.Hour)
		if want := number(t, row[3]); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%v: computed %.4f", row[0], got)
		}
	}
	if got := guide.UID60Collisions(2, 1000, time.Millisecond) * 131072; math.Abs(got-1) > 1e-9 {
		t.Errorf("expected two IDs in a millisecond to collide in 1 of 131072 cases, got %v", got)
	}
}

// A typed key has the prefix of its model in JSON, and rejects another metabyte.
func TestChoosingTyped(t *testing.T) {
	gen, err := guide.NewOrderIDs(1)
	must(t, err)
	customer := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")).WithMeta(guide.Customer{}.IDMeta())
	order, created, err := guide.NewOrder(gen, customer.String())
	if err != nil || order.CustomerID.Untyped() != customer || time.Since(created).Abs() > time.Minute {
		t.Errorf("got %v, created %v, %v", order, created, err)
	}
	if _, _, err := guide.NewOrder(gen, "brpk4q72xwf2m63l"); !errors.Is(err, idtype.ErrRange) {
		t.Errorf("customer with another metabyte: expected %v, got %v", idtype.ErrRange, err)
	}
	b, err := json.Marshal(guide.Order{ID: 779300444248735744}.ID)
	if err != nil || !strings.Contains(docs.Page(t, "choosing"), " In JSON its ID is "+string(b)+".") {
		t.Errorf("the page doesn't contain %s, %v", b, err)
	}
}

// An upload has the ID that a client sent, in any version, or a new one of version 7.
func TestChoosingUpload(t *testing.T) {
	gen := idtype.Must(idtype.NewUUIDGenerator(idtype.UUIDConfig{}))
	made, err := guide.NewUpload(gen, "")
	if created := made.ID.Time(); err != nil || time.Since(created).Abs() > time.Minute {
		t.Errorf("got %v, created %v, %v", made, created, err)
	}
	const text = "upload_01h455vb4pex5vsknk084sn02q" // as in the page, and in TypeID's specification
	sent, err := guide.NewUpload(gen, text)
	if b, jsonErr := json.Marshal(sent.ID); err != nil || jsonErr != nil || string(b) != `"`+text+`"` {
		t.Errorf("got %s, %v, %v", b, err, jsonErr)
	}
	if _, err := guide.NewUpload(gen, "order_01h455vb4pex5vsknk084sn02q"); !errors.Is(err, idtype.ErrSyntax) {
		t.Errorf("another model's ID: expected %v, got %v", idtype.ErrSyntax, err)
	}
}

// The page's JSON and its rounded number are correct: JavaScript numbers are
// 64-bit floats.
func TestChoosingJavaScript(t *testing.T) {
	page := docs.Page(t, "choosing")
	line := guide.Line{
		Snowflake: 779300444248735745, SnowflakeSI: 1781273964118016, UID60: idtype.Must(idtype.ParseUID60("7TEAe6SwuZ")),
		Spread64: idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015")), Sno: idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")),
		UUID: idtype.Must(idtype.ParseUUID("01890a5d-ac96-774b-bcce-b302099a8057")),
	}
	b, err := json.Marshal(line)
	if err != nil || !strings.Contains(page, "\n"+string(b)+"\n") {
		t.Errorf("the page doesn't contain %s, %v", b, err)
	}
	rounded := strconv.FormatFloat(float64(line.Snowflake), 'f', -1, 64)
	if rounded != "779300444248735700" || !strings.Contains(page, "`"+rounded+"`") {
		t.Errorf("expected the page to show the rounded number %s", rounded)
	}
	same := 0
	for n := line.Snowflake - 1000; n < line.Snowflake+1000; n++ {
		if float64(n) == float64(line.Snowflake) {
			same++
		}
	}
	// Floats of this size are 128 apart. A number halfway between two is rounded to the even one.
	if same < 127 || same > 129 || float64(idtype.MaxSnowflakeSI) == float64(idtype.MaxSnowflakeSI-1) {
		t.Errorf("expected about 128 Snowflakes with the same float, and none with the largest SnowflakeSI, got %d", same)
	}
	// Clients may send numbers or strings.
	for _, in := range []string{`{"Snowflake":17,"SnowflakeSI":"17"}`, `{"Snowflake":"17","SnowflakeSI":17}`} {
		var back guide.Line
		if err := json.Unmarshal([]byte(in), &back); err != nil || back.Snowflake != 17 || back.SnowflakeSI != 17 {
			t.Errorf("%s: expected 17 and 17, got %v, %v", in, back, err)
		}
	}
	if b, err := json.Marshal(guide.Line{}); err != nil || strings.Count(string(b), "null") != 6 {
		t.Errorf("expected null for each zero ID, got %s, %v", b, err)
	}
}

// Inserts of ascending keys change a few pages, inserts of other keys hundreds.
func TestChoosingPages(t *testing.T) {
	page := docs.Page(t, "choosing")
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		checkpoint := func() string {
			return pgtest.Value[string](t, conn, "SELECT redo_lsn::text FROM pg_control_checkpoint()")
		}
		var plans []string
		// Repeat if a checkpoint ran during the inserts: it counts pages twice.
		for last := ""; last == "" || last != checkpoint(); {
			plans = nil
			db.Exec(t, "DROP TABLE IF EXISTS ordered, spread, random")
			for _, p := range docs.File(t, "examples/guide/choosing.sql") {
				for _, s := range p.Statements() {
					results, err := conn.PgConn().Exec(t.Context(), s).ReadAll()
					if err != nil {
						t.Fatalf("[%s]: %v\nin: %s", p.Name, err, s)
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
			t.Fatalf("expected %d plans, got %d", len(names), len(plans))
		}
		for i, name := range names {
			dirtied := regexp.MustCompile(`dirtied=(\d+)`).FindStringSubmatch(plans[i])
			row := regexp.MustCompile(`(?m)^\| ` + name + ` \| (\d+) \|$`).FindStringSubmatch(page)
			if dirtied == nil || row == nil {
				t.Errorf("%s: no count in the plan %v or in the row %v", name, plans[i], row)
				continue
			}
			if got, documented := number(t, dirtied[1]), number(t, row[1]); got < documented*0.95 || got > documented*1.05+20 {
				t.Errorf("%s: expected about %v pages as in the page, got %v", name, documented, got)
			}
		}
		// uuidv7() exists since Postgres 18, as in the table of other keys.
		has(t, "uuidv7", lines(t, conn, "SELECT (to_regprocedure('uuidv7()') IS NOT NULL) = (current_setting('server_version_num')::int >= 180000)"), "t")
	})
}
