package migrations

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// parityOdd returns settings that change the input and output of values. They must not
// affect the functions.
func parityOdd(db *pgtest.DB) string {
	return `SET DateStyle = 'German, DMY'; SET TimeZone = 'America/St_Johns'; SET IntervalStyle = 'sql_standard'; SET extra_float_digits = -15;
	SET bytea_output = 'escape'; SET standard_conforming_strings = ` + db.OddStrings() + `;
	SET plpgsql.variable_conflict = 'use_column'; SET search_path = ''`
}

// parityConfigs are the tested installations. They have layouts of various widths,
// with times from the years 1697 to 2242, for which SQL has a separate expression, and
// with other times.
var parityConfigs = []migrations.Config{
	complete,
	{Schema: "twitter", Snowflake: idtype.SnowflakeLayout{Epoch: parityUTC("2010-11-04T01:42:54.657Z"), DatacenterBits: 5, WorkerBits: 5, SequenceBits: 12},
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: parityUTC("2020-01-01T00:00:00Z"), IndexBits: 13}},
	{Schema: "workers", Snowflake: idtype.SnowflakeLayout{Epoch: parityUTC("2024-01-01T00:00:00Z"), WorkerBits: 10, SequenceBits: 12},
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: parityUTC("2020-01-01T00:00:00Z"), MachineBits: 13}},
	{Schema: "late", Snowflake: idtype.SnowflakeLayout{Epoch: parityUTC("2021-01-01T00:00:00Z"), DatacenterBits: 3, WorkerBits: 7, SequenceBits: 10},
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: parityUTC("2230-02-28T23:59:59.999Z")}},
	{Schema: "ancient", Snowflake: idtype.SnowflakeLayout{Epoch: parityUTC("0001-01-01T00:00:00.001Z"), DatacenterBits: 3, WorkerBits: 5, SequenceBits: 9},
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: parityUTC("2003-03-18T07:20:19.224Z")}},
	{Schema: "future", Snowflake: idtype.SnowflakeLayout{Epoch: parityUTC("9999-12-31T23:59:59.999Z"), WorkerBits: 1, SequenceBits: 16},
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: parityUTC("1955-11-05T06:15:00.007Z"), MachineBits: 1, IndexBits: 12}},
}

func parityUTC(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

// parityInstall installs the first n configurations and returns their formats: all
// formats for the first one, and the formats with layouts for the others.
func parityInstall(t *testing.T, db *pgtest.DB, n int) (formats []*format) {
	t.Helper()
	db.Exec(t, parityTry)
	for i, c := range parityConfigs[:n] {
		up(t, db, c)
		if i == 0 {
			formats = genFormats()
		} else {
			formats = append(formats, formatsOf(c)[:2]...)
		}
	}
	return formats
}

// parityMicros returns an SQL expression for the microseconds of a time.
func parityMicros(expression string) string {
	return "trunc(extract(epoch FROM " + expression + ") * 1000000)::bigint"
}

// parityInstant formats a time as an SQL literal.
func parityInstant(t time.Time) string {
	t, era := t.UTC(), ""
	if year := t.Year(); year < 1 {
		t, era = t.AddDate(1-2*year, 0, 0), " BC"
	}
	return t.Format("2006-01-02 15:04:05.000000+00") + era
}

// parityTry creates a function that evaluates an expression of $1 and returns the result as
// text, or its error as SQLSTATE and message.
const parityTry = `CREATE FUNCTION public.try(expression text, x text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		result text;
	BEGIN
		EXECUTE 'SELECT (' || expression || ')::text' INTO result USING x;
		RETURN result;
	EXCEPTION WHEN others THEN
		RETURN sqlstate || ' ' || sqlerrm;
	END $$`

// parityValues returns the text of an SQL expression of x, for each of the values.
func parityValues(t *testing.T, conn *pgx.Conn, expression string, values []string) []string {
	t.Helper()
	rows, _ := conn.Query(t.Context(), "SELECT ("+expression+")::text FROM unnest($1::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n", values)
	results, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if len(results) != len(values) {
		t.Fatalf("%d results of %d", len(results), len(values))
	}
	return results
}

// parityResults returns the results of parityTry for an expression of $1.
func parityResults(t *testing.T, conn *pgx.Conn, expression string, values []string) []string {
	t.Helper()
	return parityValues(t, conn, "public.try('"+expression+"', x)", values)
}

// nodeOf returns an SQL expression for the node number in an ID.
func (f *format) nodeOf(id string) string {
	if !f.hasNodes() {
		return "NULL::integer"
	}
	return f.function("node") + "(" + id + ")"
}

// compareIDs checks that each ID has the same text, time, node number and parts in SQL as in
// Go, and that SQL parses the text to the same ID.
func (f *format) compareIDs(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	r, id := idtest.Rand(f.schema+f.name), "x::"+f.column
	ids := f.edges
	for len(ids) < n {
		ids = append(ids, f.random(r))
	}
	text := f.call("text", id)
	for i, got := range parityValues(t, conn, fmt.Sprintf("SELECT concat_ws(' ', %s, %s, %s, %s, %s, %s) FROM %s p",
		parityMicros(f.call("time", id)), text, f.call("from_text", text), f.nodeOf(id), parityMicros("p.time"), f.fields, f.call("parts", id)), ids) {
		text, err := f.text(ids[i])
		must(t, err)
		p, err := f.parts(ids[i])
		must(t, err)
		at, _ := f.time(ids[i])
		node := ""
		if f.hasNodes() {
			node = fmt.Sprint(p.node, " ")
		}
		if want := fmt.Sprint(at.UnixMicro(), " ", text, " ", ids[i], " ", node, p.time.UnixMicro(), " ", p.shown); got != want {
			t.Errorf("%s.%s %s: SQL returns the time, text, parsed text, node number and parts %s, Go %s", f.schema, f.name, ids[i], got, want)
			return
		}
	}
}

// compareNoIDs checks that values that are not IDs have no text, time, node number and
// parts in SQL if they have none in Go.
func (f *format) compareNoIDs(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	r, x := idtest.Rand(f.schema+f.name+" not"), "x::"+f.column
	var values []string
	for len(values) < n {
		values = append(values, f.noIDs(r))
	}
	show, code := f.call("text", x), "22003" // numeric_value_out_of_range
	if f.numeric() {
		show = "NULL::text"
	}
	if f.column == "uuid" {
		code = "22P02" // invalid_text_representation
	}
	parts := parityResults(t, conn, f.function("parts")+"($1::"+f.column+")", values)
	for i, got := range parityValues(t, conn, fmt.Sprintf("concat(%s, ' ', %s, ' ', %s)", parityMicros(f.call("time", x)), f.nodeOf(x), show), values) {
		var micros, node string
		if at, ok := f.time(values[i]); ok {
			micros = fmt.Sprint(at.UnixMicro())
		}
		p, err := f.parts(values[i])
		if f.name == "spread64" { // whose time and node number ignore the reserved bits
			node = fmt.Sprint(p.node)
		}
		_, textErr := f.text(values[i])
		if err == nil || textErr == nil || got != micros+" "+node+" " || !strings.HasPrefix(parts[i], code+" "+values[i]+" is not a "+f.title) {
			t.Errorf("%s.%s %s: SQL returns the time, node number and text %q and the parts %s, Go %s %s, %v and %v", f.schema, f.name, values[i], got, parts[i], micros, node, textErr, err)
			return
		}
	}
	wantValue(t, conn, fmt.Sprintf("SELECT num_nonnulls(%s, %s, (SELECT p.time FROM %s p), %s, %s)",
		f.call("time", "NULL"), f.call("text", "NULL"), f.call("parts", "NULL"), f.call("from_text", "NULL"), f.nodeOf("NULL")), 0)
}

// parityLimits matches the range of times in an error.
var parityLimits = regexp.MustCompile(`[-0-9T:.]+Z to [-0-9T:.]+Z`)

// compareFloors checks that floors are the same in SQL and Go: at random times, at
// the edges of units, and outside the range of the format.
func (f *format) compareFloors(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	if f.floor == nil {
		return
	}
	r := idtest.Rand(f.schema + f.name + " floor")
	end := f.last.Add(f.unit)
	instants := []time.Time{
		f.first, f.first.Add(-time.Microsecond), f.first.Add(time.Microsecond), f.first.Add(f.unit - time.Microsecond),
		f.last, f.last.Add(-time.Microsecond), end.Add(-time.Microsecond), end, end.Add(time.Microsecond),
		parityUTC("1969-12-31T23:59:59.999999Z"), parityUTC("1970-01-01T00:00:00Z"), parityUTC("1999-12-31T23:59:59.999999Z"), parityUTC("2000-01-01T00:00:00Z"),
		time.UnixMicro(-62135596800000001), time.UnixMicro(-100000000000000000), time.Date(250000, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	span := uint64(f.last.Unix() - f.first.Unix()) // more than a Duration holds
	for len(instants) < n {
		at := time.Unix(f.first.Unix()+int64(r.Uint64N(span)), r.Int64N(1e6)*1000)
		if r.IntN(2) == 0 { // the edge of a unit
			at = time.UnixMilli(f.first.UnixMilli() + (at.UnixMilli()-f.first.UnixMilli())/f.unit.Milliseconds()*f.unit.Milliseconds())
			at = at.Add(time.Duration(r.IntN(3)-1) * time.Microsecond)
		}
		instants = append(instants, at)
	}
	literals := make([]string, len(instants))
	for i, at := range instants {
		literals[i] = parityInstant(at)
	}
	outside, floor := 0, f.function("floor")+"($1::timestamptz)"
	for i, got := range parityResults(t, conn, floor, literals) {
		want, err := f.floor(instants[i])
		if err != nil {
			outside++
			limits := parityLimits.FindString(err.Error())
			value := strings.NewReplacer("+00", "Z", " BC", " BC", " ", "T").Replace(literals[i])
			want = fmt.Sprintf("22008 time %s is out of range for %s (%s)", value, f.title, limits)
			if limits == "" {
				t.Errorf("%s.%s: expected the range of times in Go's error, got %v", f.schema, f.name, err)
			}
		}
		if got != want {
			t.Errorf("%s.%s at %s: SQL says %s, Go %s (%v)", f.schema, f.name, literals[i], got, want, err)
			return
		}
	}
	if outside < 4 || outside > 16 {
		t.Errorf("%s.%s: %d times are out of range, want 4 to 16", f.schema, f.name, outside)
	}
	if got := parityResults(t, conn, floor, []string{"-infinity", "infinity"}); got[0] != f.lo || got[1] != f.hi {
		t.Errorf("%s.%s: floors of infinity are %s, want %s and %s", f.schema, f.name, got, f.lo, f.hi)
	}
}

// parityMalformed are texts that parsers often get wrong.
var parityMalformed = []string{
	"", " ", "0", "00", "01", "-1", "-0", "+1", " 1", "1 ", "1\n", "\n1", "1\r\n", "1_0", "1.0", "1e3", "0x1", "0b1", "1\n2", "١", "１", "NaN", "Infinity", "null",
	"9007199254740991", "9007199254740992", "9223372036854775807", "9223372036854775808", "09223372036854775807", "18446744073709551617", "99999999999999999999",
	"AAA", "AAAA", "AAAAA", "AAAAAAAAA", "AAAAAAAAAA", "AAAAAAAAAAA", "__________", "----------", "xinaS8QBh", "xiAaS8QBh", "xiAnaS8QBh", "naS8QBhx+", "naS8QBhx/", "AABA=", "AA A",
	"AABA\n", "AAB", "____", "_____", "AABAAA", "AA_A",
	"cb54ecf2840a0015", "cb54ecf2840a001", "cb54ecf2840a00150", "CB54ecf2840a0015", "cb54ecf2840a001g", "0xcb54ecf2840a00", " b54ecf2840a0015", "0000000000000400",
	"ffffffffffffffff", "0000000000008000", "ffffffffffff03ff", "cb54ecf2840a0015\n",
	"brpk4q72xwf2m63l", "brpk4q72xwf2m63", "brpk4q72xwf2m63l2", "Brpk4q72xwf2m63l", "brpk4q72xwf2m63y", "brpk4q72xwf2m631", "0rpk4q72xwf2m63l", "!!!!!!!!!!!!!!!!",
	"brpk4q72 wf2m63l", "6272706b-3471-3732-7877-66326d36336c", "brpk4q72xwf2m63l\n", "brpk4q72xwf2m63é", "brpk4q72xwf2m6é", "brpk4q72xwf2m63\u0131", "\u212arpk4q72xwf2m63",
	`brpk4q72\134wf2m6`, `brpk4q72xwf2m63\`, `\xDEADBEEF`, "it's", `\'`, "100%", "%s", `"1"`, "{}", "[1]",
}

// compareTexts checks that SQL and Go parse the same texts. SQL errors name the value.
func (f *format) compareTexts(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	if f.numeric() {
		return // Postgres reads numbers in more forms
	}
	r := idtest.Rand(f.schema + f.name + " text")
	texts := append(parityMalformed, strings.Repeat("9", 100), strings.Repeat("é", 70), strings.Repeat("'", 64)+"x")
	for len(texts) < n {
		text, err := f.text(f.random(r))
		must(t, err)
		texts = append(texts, parityMutate(r, text))
	}
	read, refused := 0, 0
	for i, got := range parityResults(t, conn, f.function("from_text")+"($1)", texts) {
		want, err := f.parse(texts[i])
		if err == nil {
			read++
		} else {
			refused++
			if strings.HasPrefix(got, "22P02 cannot parse "+parityQuoted(texts[i])+" as "+f.title+"; want ") {
				continue
			}
		}
		if got != want {
			t.Errorf("%s.%s %q: SQL says %s, Go %s (%v)", f.schema, f.name, texts[i], got, want, err)
			return
		}
	}
	if read < n/50 || refused < n/5 {
		t.Errorf("%s.%s: %d texts parsed and %d rejected of %d, too few for a test", f.schema, f.name, read, refused, n)
	}
}

// parityMutate changes a text a little. The result can be the text of another ID.
func parityMutate(r *rand.Rand, s string) string {
	runes, pool := []rune(s), []rune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFXYZ+/=-_ \n\t.,'\"\\é１٣\u00a0\u2028\x01\x7f")
	if len(runes) > 0 {
		pool = append(pool, slices.Repeat(runes, len(pool)/len(runes))...) // half of them are its own digits
	}
	for range 1 + r.IntN(2) { // replace, insert or delete a character
		from, c := r.IntN(len(runes)+1), r.IntN(len(pool))
		to := min(from+r.IntN(2), len(runes))
		runes = slices.Concat(runes[:from], pool[c:][:r.IntN(2)], runes[to:])
	}
	if r.IntN(10) == 0 { // leading zeros
		return strings.Repeat("A0"[r.IntN(2):][:1], 1+r.IntN(3)) + string(runes)
	}
	return string(runes)
}

// parityQuoted quotes the first 64 characters of a value, like the errors.
func parityQuoted(s string) string {
	if runes := []rune(s); len(runes) > 64 {
		s = string(runes[:64])
	}
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// Go and SQL functions return the same results, with any session settings.
func TestParity(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		formats := parityInstall(t, db, pgtest.Scaled(2, len(parityConfigs)))
		conn, odd := db.Conn(t), db.Conn(t)
		exec(t, odd, parityOdd(db))
		for _, f := range formats {
			n := pgtest.Scaled(500, 2000)
			if f.schema == migrations.DefaultSchema {
				n = pgtest.Scaled(n, 10_000)
			}
			few := pgtest.Scaled(300, 1000)
			f.compareIDs(t, conn, n)
			f.compareFloors(t, conn, n)
			f.compareTexts(t, conn, few) // these values take longer
			f.compareNoIDs(t, conn, few)
			f.compareIDs(t, odd, few)
			f.compareFloors(t, odd, few)
			f.compareTexts(t, odd, few)
			f.compareNoIDs(t, odd, few)
		}
	})
}

// SQL handles the test vectors, which are from other implementations, as Go does.
func TestParityVectors(t *testing.T) {
	type vector struct {
		Layout struct {
			Epoch, BaseClock                                                 time.Time
			DatacenterBits, WorkerBits, SequenceBits, MachineBits, IndexBits int
		}
		Padded, SQL string
	}
	data, err := os.ReadFile("../../idtype/testdata/vectors.json")
	must(t, err)
	var vectors struct{ Snowflake, SnowflakeSI, UID60, Spread64, Sno []vector }
	must(t, json.Unmarshal(data, &vectors))
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn, schemas := db.Conn(t), 0
		for k, list := range [][]vector{vectors.Snowflake, vectors.SnowflakeSI, vectors.UID60, vectors.Spread64, vectors.Sno} { // as in formatsOf
			if len(list) < 5 {
				t.Errorf("got %d vectors of a format", len(list))
			}
			byLayout := map[any][]vector{}
			for _, v := range list {
				byLayout[v.Layout] = append(byLayout[v.Layout], v)
			}
			for _, same := range byLayout {
				l := same[0].Layout
				if l.DatacenterBits+l.WorkerBits+l.SequenceBits == 15 {
					continue // SQL doesn't support 48 bits of time
				}
				schemas++
				c := migrations.Config{Schema: fmt.Sprint("v", schemas), SnowflakeSI: complete.SnowflakeSI}
				if !l.Epoch.IsZero() {
					c.Snowflake = idtype.SnowflakeLayout{Epoch: l.Epoch, DatacenterBits: l.DatacenterBits, WorkerBits: l.WorkerBits, SequenceBits: l.SequenceBits}
				}
				if !l.BaseClock.IsZero() {
					c.SnowflakeSI = idtype.SnowflakeSILayout{BaseClock: l.BaseClock, MachineBits: l.MachineBits, IndexBits: l.IndexBits}
				}
				up(t, db, c)
				f := formatsOf(c)[k]
				f.edges = nil
				for _, v := range same {
					f.edges = append(f.edges, v.SQL)
					if v.Padded != "" {
						wantValue(t, conn, "SELECT ("+f.call("from_text", "'"+v.Padded+"'")+")::text", v.SQL)
					}
				}
				f.compareIDs(t, conn, 0)
			}
		}
	})
}

// All functions work in a database with another collation than "C", and sno_as_text
// sorts like the IDs. The Danish collation sorts aa after z. Another one ignores case.
func TestParityCollation(t *testing.T) {
	pgtest.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		danish := newDatabase(t, db, "danish", "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'da' LC_COLLATE 'C' LC_CTYPE 'C'")
		formats := parityInstall(t, danish, 1)
		conn := danish.Conn(t)
		for _, f := range formats {
			f.compareIDs(t, conn, 2000)
			f.compareTexts(t, conn, 2000)
		}

		danish.Exec(t, `CREATE TABLE t (id sortkey.sno PRIMARY KEY, code sortkey.sno_as_text UNIQUE, plain text)`)
		sno := formats[4]
		r := idtest.Rand("collation")
		var ids, texts []string
		for range 2000 {
			id := sno.random(r)
			text, err := sno.text(id)
			must(t, err)
			ids, texts = append(ids, id), append(texts, text)
		}
		for _, text := range []string{"aa22222222222222", "ax22222222222222", "x222222222222222"} {
			id, err := sno.parse(text)
			must(t, err)
			ids, texts = append(ids, id), append(texts, text)
		}
		exec(t, conn, `INSERT INTO t SELECT id::uuid, text, text FROM unnest($1::text[], $2::text[]) AS u (id, text)`, ids, texts)
		wantValue(t, conn, `SELECT bool_and(a = b) AND bool_or(a <> c) FROM
			(SELECT row_number() OVER (ORDER BY id) a, row_number() OVER (ORDER BY code) b, row_number() OVER (ORDER BY plain) c FROM t) o`, true)

		// In this collation, texts of different IDs are equal.
		danish.Exec(t, `CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`)
		for _, f := range formats {
			for range 100 {
				id := f.random(r)
				text, err := f.text(id)
				must(t, err)
				wantValue(t, conn, "SELECT ("+f.call("from_text", "'"+text+"'::text COLLATE blind")+")::text", id)
			}
		}
		for sql, code := range map[string]string{
			"sortkey.sno_from_text('BRPK4q72xwf2m63l' COLLATE blind)": "22P02", "sortkey.spread64_from_text('CB54ecf2840a0015' COLLATE blind)": "22P02",
			"sortkey.uid60_from_text('AAAAé' COLLATE blind)": "22P02", "('BRPK4q72xwf2m63l' COLLATE blind)::sortkey.sno_as_text": "23514",
			"('brpk4q72xwf2m6é' COLLATE blind)::sortkey.sno_as_text": "23514",
		} {
			fails(t, conn, code, "SELECT "+sql)
		}
	})
}

// Each domain rejects values that are not IDs. The constraint names the reason.
func TestParityDomains(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		formats := parityInstall(t, db, 1)
		conn := db.Conn(t)
		for _, c := range []struct {
			domain, constraint string
			refused            []string
		}{
			{"snowflake", "snowflake_is_positive", []string{"0", "-1", "-9223372036854775808"}},
			{"snowflake_si", "snowflake_si_is_positive_and_53_bits", []string{"0", "-1", "9007199254740992"}},
			{"uid60", "uid60_is_positive_and_60_bits", []string{"0", "-1", "1152921504606846976"}},
			{"spread64", "spread64_is_not_zero", []string{"0"}},
			{"spread64", "spread64_has_no_reserved_bits", []string{"1024", "32768", "-1", "-9223372036854774784"}},
			{"sno", "sno_is_not_zero", []string{"32323232-3232-3232-3232-323232323232"}},
			{"sno", "sno_has_digits_for_bytes", []string{"00000000-0000-0000-0000-000000000000", "f47ac10b-58cc-4372-a567-0e02b2c3d479", "6272706b-3471-3732-7877-66326d363379",
				"4272706b-3471-3732-7877-66326d36336c", "6272706b-3471-3732-0077-66326d36336c"}},
			{"sno_as_text", "sno_as_text_is_not_zero", []string{"2222222222222222"}},
			{"sno_as_text", "sno_as_text_has_16_digits", []string{"", "brpk4q72xwf2m63", "brpk4q72xwf2m63l2", "brpk4q72 wf2m63l", "Brpk4q72xwf2m63l",
				"brpk4q72xwf2m63l\n", "brpk4q72xwf2m6é", "brpk4q72xwf2m6\\x"}},
			{"uuid7", "uuid7_has_version_7", []string{"919108f7-52d1-4320-9bac-f847db4148a8", "017f22e2-79b0-7cc3-18c4-dc0c0c07398f", "00000000-0000-0000-0000-000000000000"}},
		} {
			for i, got := range parityResults(t, conn, "$1::sortkey."+c.domain, c.refused) {
				if !strings.HasPrefix(got, "23514 ") || !strings.HasSuffix(got, `violates check constraint "`+c.constraint+`"`) {
					t.Errorf("%s %q: got %s, want constraint %s", c.domain, c.refused[i], got, c.constraint)
				}
			}
			wantValue(t, conn, "SELECT NULL::sortkey."+c.domain+" IS NULL", true)
		}

		// The domains reject the same values as the functions, and zero.
		for _, f := range formats {
			r := idtest.Rand(f.name + " domain")
			values := f.edges
			for len(values) < pgtest.Scaled(600, 3000) {
				values = append(values, f.random(r), f.noIDs(r))
			}
			for i, got := range parityResults(t, conn, "$1::"+f.column+"::sortkey."+f.name, values) {
				_, err := f.text(values[i])
				if want := err == nil && values[i] != f.zero; (got == values[i]) != want || !want && !strings.HasPrefix(got, "23514 ") {
					t.Errorf("%s %s: got %s, want it accepted: %v", f.name, values[i], got, want)
				}
			}
		}
	})
}

// Foreign keys between columns of a domain and of its base type work in both directions.
func TestParityForeignKeys(t *testing.T) {
	installed.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		conn := db.Conn(t)
		for _, c := range []struct{ domain, base, id, other string }{
			{"snowflake", "bigint", "1", "2"}, {"snowflake_si", "bigint", "1", "2"}, {"uid60", "bigint", "1", "2"}, {"spread64", "bigint", "1", "2"},
			{"sno", "uuid", "6272706b-3471-3732-7877-66326d36336c", "6272706b-3471-3732-7877-66326d36336d"},
			{"sno_as_text", "text", "brpk4q72xwf2m63l", "brpk4q72xwf2m63m"},
		} {
			db.Exec(t, fmt.Sprintf(`CREATE TABLE of_%[1]s (id sortkey.%[1]s PRIMARY KEY, base %[2]s REFERENCES of_%[1]s);
				CREATE TABLE base_of_%[1]s (id %[2]s PRIMARY KEY, of sortkey.%[1]s REFERENCES of_%[1]s);
				ALTER TABLE of_%[1]s ADD other sortkey.%[1]s REFERENCES base_of_%[1]s;
				INSERT INTO of_%[1]s VALUES ('%[3]s', '%[3]s'); INSERT INTO base_of_%[1]s VALUES ('%[3]s', '%[3]s'); UPDATE of_%[1]s SET other = id`,
				c.domain, c.base, c.id))
			wantValue(t, conn, fmt.Sprintf("SELECT count(*) FROM of_%[1]s d JOIN base_of_%[1]s b ON b.id = d.id AND b.of = d.base AND d.other = b.id", c.domain), 1)
			fails(t, conn, "23503", fmt.Sprintf("INSERT INTO base_of_%s VALUES ('%[2]s', '%[2]s')", c.domain, c.other))
			fails(t, conn, "23503", fmt.Sprintf("UPDATE of_%s SET other = '%s'", c.domain, c.other))
		}
	})
}
