package migrations

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// parityOdd are settings that change the input and output of values. They must not
// affect the functions.
var parityOdd = []string{
	"SET DateStyle = 'German, DMY'", "SET TimeZone = 'America/St_Johns'", "SET IntervalStyle = 'sql_standard'", "SET extra_float_digits = -15",
	"SET bytea_output = 'escape'", "SET escape_string_warning = off", "SET standard_conforming_strings = off",
	"SET plpgsql.variable_conflict = 'use_column'", "SET search_path = ''",
}

// A parityFormat is the Go implementation of an ID type, with the layout of an
// installation. Its functions use the text output of the column as stored values, so
// that the tests handle all formats alike, without codecs.
type parityFormat struct {
	schema, name string // in the names of the SQL functions
	title        string // in errors
	column       string
	fields       string // of T_parts after the time, comma-separated

	zero   string // which all domains reject
	random func(*rand.Rand) string
	edges  []string
	noIDs  func(*rand.Rand) string

	parse func(text string) (stored string, err error)
	text  func(stored string) (string, error)
	time  func(stored string) (time.Time, bool)
	parts func(stored string) (string, error)

	floor       func(time.Time) (string, error) // nil: no order in time
	lo, hi      string                          // the bounds of all times
	first, last time.Time                       // the first and the last unit
	unit        time.Duration

	// The arguments and the results of T_at, except for random bits, and of T_node. UID60 has
	// no node numbers: maxNode is 0, and node is nil.
	maxSequence, maxNode int
	mask                 int64
	compose              func(t time.Time, sequence, meta, node int) (string, error)
	node                 func(stored string) (node int, ok bool)
}

func (f *parityFormat) function(name string) string { return f.schema + "." + f.name + "_" + name }

// numeric reports whether the text of an ID is its number. Then SQL has no functions for
// the text, but a cast.
func (f *parityFormat) numeric() bool { return strings.HasPrefix(f.name, "snowflake") }

// call returns an SQL expression that calls a function, or casts from or to text.
func (f *parityFormat) call(name, argument string) string {
	switch {
	case f.numeric() && name == "text":
		return "(" + argument + ")::text"
	case f.numeric() && name == "from_text":
		return "(" + argument + ")::bigint"
	}
	return f.function(name) + "(" + argument + ")"
}

// parityLayout is a layout of any type: a Spread64 has no floor.
type parityLayout[T, P any] interface {
	Parts(T) (P, error)
	Time(T) time.Time
}

type parityFloors[T any] interface {
	Floor(time.Time) (T, error)
	Range(from, to time.Time) (lo, hi T, err error)
}

// parityOf returns the format of a Go type.
func parityOf[T idtest.ID[T], P any](f parityFormat, layout parityLayout[T, P], parse func(string) (T, error), read func(string) (T, bool), show func(T) string) *parityFormat {
	var zero T
	f.zero = show(zero)
	f.parse = func(s string) (string, error) {
		id, err := parse(s)
		return show(id), err
	}
	f.text = func(stored string) (string, error) {
		id, ok := read(stored)
		if !ok {
			return "", errors.New("no value of the type")
		}
		b, err := id.AppendText(nil)
		return string(b), err
	}
	f.time = func(stored string) (time.Time, bool) {
		id, ok := read(stored)
		t := layout.Time(id)
		return t, ok && !t.IsZero()
	}
	f.parts = func(stored string) (string, error) {
		id, ok := read(stored)
		if !ok {
			return "", errors.New("no value of the type")
		}
		p, err := layout.Parts(id)
		return parityShow(p), err
	}
	if floors, ok := layout.(parityFloors[T]); ok {
		f.floor = func(t time.Time) (string, error) {
			id, err := floors.Floor(t)
			return show(id), err
		}
		lo, hi, err := floors.Range(time.Time{}, time.Time{})
		if err != nil {
			panic(err)
		}
		f.lo, f.hi = show(lo), show(hi)
		f.first, f.last = layout.Time(lo), layout.Time(hi)
	}
	return &f
}

// parityShow formats parts as the queries of the tests do.
func parityShow(p any) string {
	switch p := p.(type) {
	case idtype.SnowflakeParts:
		return fmt.Sprint(p.Time.UnixMicro(), " ", p.Datacenter, " ", p.Worker, " ", p.Sequence)
	case idtype.SnowflakeSIParts:
		return fmt.Sprint(p.Time.UnixMicro(), " ", p.Machine, " ", p.Index)
	case idtype.UID60Parts:
		return fmt.Sprint(p.Time.UnixMicro(), " ", p.Sequence, " ", p.Random)
	case idtype.Spread64Parts:
		return fmt.Sprint(p.Time.UnixMicro(), " ", p.Sequence, " ", p.Generator, " ", p.Cluster)
	case idtype.SnoParts:
		tick := "f" // as Postgres shows it
		if p.TickTock {
			tick = "t"
		}
		return fmt.Sprint(p.Time.UnixMicro(), " ", tick, " ", p.Meta, " ", p.Partition.Uint16(), " ", p.Sequence)
	}
	panic(fmt.Sprintf("parts %T", p))
}

// parityShort returns a random number of a random width, of at most width bits.
func parityShort(r *rand.Rand, width int) int64 {
	return int64(r.Uint64() >> (64 - width) >> max(0, r.IntN(2*width)-width))
}

// parityNode returns the node function of a format that is stored as a number.
func parityNode[P any, T ~int64](parts func(T) (P, error), node func(P) int) func(string) (int, bool) {
	return func(stored string) (int, bool) {
		id, ok := parityNumber[T](stored)
		p, err := parts(id)
		return node(p), ok && err == nil
	}
}

func paritySnowflake(schema string, l idtype.SnowflakeLayout) *parityFormat {
	widths, err := l.Parts(idtype.MaxSnowflake) // the maximum of each field
	if err != nil {
		panic(err)
	}
	workers := widths.Worker + 1
	return parityOf(parityFormat{
		schema: schema, name: "snowflake", title: "Snowflake", column: "bigint", fields: "p.datacenter, p.worker, p.sequence", unit: time.Millisecond,
		random: func(r *rand.Rand) string { return fmt.Sprint(parityShort(r, 63)) },
		edges:  []string{"0", "1", "4095", "4096", "4194303", "4194304", "9223372036854775806", "9223372036854775807"},
		noIDs:  func(r *rand.Rand) string { return fmt.Sprint(-1 - parityShort(r, 63)) },

		maxSequence: widths.Sequence, maxNode: (widths.Datacenter+1)*workers - 1,
		compose: func(t time.Time, sequence, _, node int) (string, error) {
			id, err := l.Compose(idtype.SnowflakeParts{Time: t, Datacenter: node / workers, Worker: node % workers, Sequence: sequence})
			return parityDecimal(id), err
		},
		node: parityNode(l.Parts, func(p idtype.SnowflakeParts) int { return p.Datacenter*workers + p.Worker }),
	}, l, idtype.ParseSnowflake, parityNumber[idtype.Snowflake], parityDecimal[idtype.Snowflake])
}

func paritySnowflakeSI(schema string, l idtype.SnowflakeSILayout) *parityFormat {
	widths, err := l.Parts(idtype.MaxSnowflakeSI)
	if err != nil {
		panic(err)
	}
	return parityOf(parityFormat{
		schema: schema, name: "snowflake_si", title: "SnowflakeSI", column: "bigint", fields: "p.machine, p.index", unit: time.Millisecond,
		random: func(r *rand.Rand) string { return fmt.Sprint(parityShort(r, 53)) },
		edges:  []string{"0", "1", "255", "256", "8191", "8192", "9007199254740990", "9007199254740991"},
		noIDs:  parityBeyond(1 << 53),

		maxSequence: widths.Index, maxNode: widths.Machine,
		compose: func(t time.Time, sequence, _, node int) (string, error) {
			id, err := l.Compose(idtype.SnowflakeSIParts{Time: t, Machine: node, Index: sequence})
			return parityDecimal(id), err
		},
		node: parityNode(l.Parts, func(p idtype.SnowflakeSIParts) int { return p.Machine }),
	}, l, idtype.ParseSnowflakeSI, parityNumber[idtype.SnowflakeSI], parityDecimal[idtype.SnowflakeSI])
}

func parityUID60(schema string) *parityFormat {
	return parityOf(parityFormat{
		schema: schema, name: "uid60", title: "UID60", column: "bigint", fields: "p.sequence, p.random", unit: time.Millisecond,
		random: func(r *rand.Rand) string { return fmt.Sprint(parityShort(r, 60)) },
		edges: []string{"0", "1", "63", "64", "4095", "4096", "262143", "262144", "16777215", "16777216", "1073741823", "1073741824", "68719476735", "68719476736",
			"4398046511103", "4398046511104", "281474976710655", "281474976710656", "18014398509481983", "18014398509481984", "1152921504606846975"},
		noIDs: parityBeyond(1 << 60),

		maxSequence: 511, mask: 511,
		compose: func(t time.Time, sequence, _, _ int) (string, error) {
			id, err := idtype.UID60Layout{}.Compose(idtype.UID60Parts{Time: t, Sequence: sequence})
			return parityDecimal(id), err
		},
	}, idtype.UID60Layout{}, idtype.ParseUID60, parityNumber[idtype.UID60], parityDecimal[idtype.UID60])
}

func paritySpread64(schema string) *parityFormat {
	const reserved = 0xfc00
	edges := []string{"0", "1", "1023", "65536", "-1024", "-9223372036854775808", "-64513", "9223372036854711295"}
	for bit := range 64 {
		if id := uint64(1) << bit; id&reserved == 0 {
			edges = append(edges, fmt.Sprint(int64(id)), fmt.Sprint(int64(^id&^reserved)))
		}
	}
	edges[4] = "-65536" // all bits of time and sequence
	return parityOf(parityFormat{
		schema: schema, name: "spread64", title: "Spread64", column: "bigint", fields: "p.sequence, p.generator, p.cluster", unit: time.Millisecond,
		random: func(r *rand.Rand) string { return fmt.Sprint(int64(r.Uint64() &^ reserved)) },
		edges:  edges,
		noIDs:  func(r *rand.Rand) string { return fmt.Sprint(int64(r.Uint64()&^reserved | 1<<(10+r.IntN(6)))) },

		first: idtype.Spread64(0).Time(), last: idtype.Spread64(-1 << 22).Time(),
		maxSequence: 63, maxNode: 1023,
		compose: func(t time.Time, sequence, _, node int) (string, error) {
			id, err := idtype.Spread64Layout{}.Compose(idtype.Spread64Parts{Time: t, Sequence: sequence, Generator: node >> 4, Cluster: node & 15})
			return parityDecimal(id), err
		},
		node: func(stored string) (int, bool) {
			id, ok := parityNumber[idtype.Spread64](stored)
			p, err := idtype.Spread64Layout{}.Parts(id)
			if err != nil { // spread64_node ignores the reserved bits, as spread64_time does
				return int(id & 1023), ok
			}
			return p.Generator<<4 | p.Cluster, ok
		},
	}, idtype.Spread64Layout{}, idtype.ParseSpread64, parityNumber[idtype.Spread64], parityDecimal[idtype.Spread64])
}

func paritySno(schema string) *parityFormat {
	show := func(id idtype.Sno) string { return id.UUID().String() }
	random := func(r *rand.Rand) (id idtype.Sno) {
		for i := range id {
			id[i] = byte(r.Uint32())
		}
		return id
	}
	edges := []string{show(idtype.Sno{}), show(idtype.Sno{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})}
	for bit := range 80 { // a single bit, and all bits except one
		var one, rest idtype.Sno
		for i := range rest {
			rest[i] = 0xff
		}
		one[bit/8] |= 1 << (bit % 8)
		rest[bit/8] &^= 1 << (bit % 8)
		edges = append(edges, show(one), show(rest))
	}
	return parityOf(parityFormat{
		schema: schema, name: "sno", title: "Sno", column: "uuid", fields: "p.tick_tock, p.meta, p.partition, p.sequence", unit: 4 * time.Millisecond,
		random: func(r *rand.Rand) string { return show(random(r)) },
		edges:  edges,
		noIDs: func(r *rand.Rand) string {
			u := random(r).UUID()
			if r.IntN(10) == 0 {
				for i := range u {
					u[i] = byte(r.Uint32())
				}
			}
			bytes := "\x00\x01 01:;A`yz{\x7f\x80\x92\xb2\xe1\xff" // neighbors of digits, and digits with another bit
			u[r.IntN(16)] = bytes[r.IntN(len(bytes))]
			return u.String()
		},

		maxSequence: 65535, maxNode: 65535,
		compose: func(t time.Time, sequence, meta, node int) (string, error) {
			id, err := idtype.SnoLayout{}.Compose(idtype.SnoParts{
				Time: t, Meta: byte(meta), Partition: idtype.SnoPartitionFrom(uint16(node)), Sequence: uint16(sequence),
			})
			return show(id), err
		},
		node: func(stored string) (int, bool) {
			id, err := idtype.SnoFromUUID(uuid.MustParse(stored))
			p := id.Partition()
			return int(p.Uint16()), err == nil
		},
	}, idtype.SnoLayout{}, idtype.ParseSno, func(stored string) (idtype.Sno, bool) {
		id, err := idtype.SnoFromUUID(uuid.MustParse(stored))
		return id, err == nil
	}, show)
}

func parityNumber[T ~int64](stored string) (T, bool) {
	n, err := strconv.ParseInt(stored, 10, 64)
	return T(n), err == nil
}

func parityDecimal[T ~int64](id T) string { return strconv.FormatInt(int64(id), 10) }

// parityBeyond returns a source of numbers below zero and from limit on.
func parityBeyond(limit int64) func(*rand.Rand) string {
	return func(r *rand.Rand) string {
		switch r.IntN(4) {
		case 0:
			return fmt.Sprint(limit + r.Int64N(3))
		case 1:
			return fmt.Sprint(limit + r.Int64N(math.MaxInt64-limit+1))
		}
		return fmt.Sprint(-1 - parityShort(r, 63))
	}
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
func parityInstall(t *testing.T, db *pgtest.DB, n int) (formats []*parityFormat) {
	t.Helper()
	for i, c := range parityConfigs[:n] {
		up(t, db, c)
		if i == 0 {
			c.Schema = migrations.DefaultSchema
			formats = append(formats, parityUID60(c.Schema), paritySpread64(c.Schema), paritySno(c.Schema))
		}
		formats = append(formats, paritySnowflake(c.Schema, c.Snowflake), paritySnowflakeSI(c.Schema, c.SnowflakeSI))
	}
	return formats
}

// parityMicros returns an SQL expression for a time in the form of parityShow.
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

// parityTries creates functions that call another function and return its result as
// text, or its error as SQLSTATE and message.
func parityTries(t *testing.T, db *pgtest.DB, f *parityFormat) {
	t.Helper()
	for name, parameter := range map[string]string{"from_text": "text", "floor": "timestamptz", "parts": f.column} {
		if name == "floor" && f.floor == nil || name == "from_text" && f.numeric() {
			continue
		}
		db.Exec(t, fmt.Sprintf(`CREATE FUNCTION public.try_%s(x text) RETURNS text LANGUAGE plpgsql AS $$
			BEGIN
				RETURN %s(x::%s)::text;
			EXCEPTION WHEN others THEN
				RETURN sqlstate || ' ' || sqlerrm;
			END $$`, strings.ReplaceAll(f.function(name), ".", "_"), f.function(name), parameter))
	}
}

// try returns the results of an SQL function for each of the values.
func (f *parityFormat) try(t *testing.T, conn *pgx.Conn, name string, values []string) []string {
	t.Helper()
	rows, _ := conn.Query(t.Context(), "SELECT public.try_"+strings.ReplaceAll(f.function(name), ".", "_")+
		"(x) FROM unnest($1::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n", values)
	results, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	if len(results) != len(values) {
		t.Fatalf("%d results of %d", len(results), len(values))
	}
	return results
}

// nodeOf returns an SQL expression for the node number in an ID.
func (f *parityFormat) nodeOf(id string) string {
	if f.node == nil {
		return "NULL::integer"
	}
	return f.function("node") + "(" + id + ")"
}

// wantNode reports whether a node number in SQL, or NULL, is that in Go.
func (f *parityFormat) wantNode(stored string, got *int) bool {
	if f.node == nil {
		return got == nil
	}
	want, ok := f.node(stored)
	return ok == (got != nil) && (!ok || *got == want)
}

// compareIDs checks that each ID has the same text, time, node number and parts in SQL as in
// Go, and that SQL parses the text to the same ID.
func (f *parityFormat) compareIDs(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	r := idtest.Rand(f.schema + f.name)
	ids := f.edges
	for len(ids) < n {
		ids = append(ids, f.random(r))
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		text, err := f.text(id)
		must(t, err)
		texts[i] = text
	}
	query := fmt.Sprintf(`SELECT %s, %s, (%s)::text, concat_ws(' ', %s, %s), %s
		FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u (stored, text, n), LATERAL (SELECT stored::%s AS id) i, LATERAL %s(id) p ORDER BY n`,
		parityMicros(f.function("time")+"(id)"), f.call("text", "id"), f.call("from_text", "u.text"), parityMicros("p.time"), f.fields, f.nodeOf("id"), f.column, f.function("parts"))
	rows, _ := conn.Query(t.Context(), query, ids, texts)
	var micros int64
	var text, parsed, parts string
	var node *int
	i, wrong := 0, 0
	_, err := pgx.ForEachRow(rows, []any{&micros, &text, &parsed, &parts, &node}, func() error {
		at, _ := f.time(ids[i])
		want, err := f.parts(ids[i])
		if err != nil {
			return err
		}
		if micros != at.UnixMicro() || text != texts[i] || parsed != ids[i] || parts != want {
			t.Errorf("%s.%s %s: SQL says time %d, text %s, from text %s, parts %s; Go says %d, %s, parts %s",
				f.schema, f.name, ids[i], micros, text, parsed, parts, at.UnixMicro(), texts[i], want)
			if wrong++; wrong == 5 {
				return errors.New("too many errors")
			}
		}
		if !f.wantNode(ids[i], node) {
			t.Errorf("%s.%s %s: SQL and Go node numbers differ", f.schema, f.name, ids[i])
		}
		i++
		return nil
	})
	if err != nil || i != len(ids) {
		t.Errorf("%s.%s: %d rows of %d, %v", f.schema, f.name, i, len(ids), err)
	}
}

// compareNoIDs checks that values that are not IDs have no text, time, node number and
// parts in SQL if they have none in Go.
func (f *parityFormat) compareNoIDs(t *testing.T, conn *pgx.Conn, n int) {
	t.Helper()
	r := idtest.Rand(f.schema + f.name + " not")
	var values []string
	for len(values) < n {
		values = append(values, f.noIDs(r))
	}
	parts := f.try(t, conn, "parts", values)
	show := f.call("text", "x::"+f.column)
	if f.numeric() {
		show = "NULL::text"
	}
	rows, _ := conn.Query(t.Context(), fmt.Sprintf("SELECT %s, %s, %s FROM unnest($1::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n",
		parityMicros(f.function("time")+"(x::"+f.column+")"), show, f.nodeOf("x::"+f.column)), values)
	var micros *int64
	var text *string
	var node *int
	i := 0
	_, err := pgx.ForEachRow(rows, []any{&micros, &text, &node}, func() error {
		v := values[i]
		if !f.wantNode(v, node) {
			t.Errorf("%s.%s %s: SQL and Go node numbers differ", f.schema, f.name, v)
		}
		at, ok := f.time(v)
		if ok != (micros != nil) || ok && at.UnixMicro() != *micros {
			t.Errorf("%s.%s %s: SQL and Go times differ, want %v (%t)", f.schema, f.name, v, at, ok)
		}
		if _, err := f.text(v); err == nil || text != nil {
			t.Errorf("%s.%s %s: expected no text, Go's error is %v", f.schema, f.name, v, err)
		}
		code := "22003" // numeric_value_out_of_range
		if f.column == "uuid" {
			code = "22P02" // invalid_text_representation
		}
		if _, err := f.parts(v); err == nil || !strings.HasPrefix(parts[i], code+" "+v+" is not a "+f.title) {
			t.Errorf("%s.%s %s: parts: %q and Go's error %v", f.schema, f.name, v, parts[i], err)
		}
		i++
		return nil
	})
	if err != nil || i != n {
		t.Errorf("%s.%s: %d rows of %d, %v", f.schema, f.name, i, n, err)
	}
	var null bool
	must(t, conn.QueryRow(t.Context(), fmt.Sprintf("SELECT num_nonnulls(%s, %s, (SELECT p.time FROM %s p), %s, %s) = 0",
		f.call("time", "NULL"), f.call("text", "NULL"), f.call("parts", "NULL"), f.call("from_text", "NULL"), f.nodeOf("NULL"))).Scan(&null))
	if !null {
		t.Errorf("%s.%s: expected NULL for NULL", f.schema, f.name)
	}
}

// parityLimits matches the range of times in an error.
var parityLimits = regexp.MustCompile(`[-0-9T:.]+Z to [-0-9T:.]+Z`)

// compareFloors checks that floors are the same in SQL and Go: at random times, at
// the edges of units, and outside the range of the format.
func (f *parityFormat) compareFloors(t *testing.T, conn *pgx.Conn, n int) {
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
	outside := 0
	for i, got := range f.try(t, conn, "floor", literals) {
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
	if got := f.try(t, conn, "floor", []string{"-infinity", "infinity"}); got[0] != f.lo || got[1] != f.hi {
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
func (f *parityFormat) compareTexts(t *testing.T, conn *pgx.Conn, n int) {
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
	for i, got := range f.try(t, conn, "from_text", texts) {
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
	const characters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFXYZ+/=-_ \n\t.,'\"\\é１٣\u00a0\u2028\x01\x7f"
	runes, pool := []rune(s), []rune(characters)
	for range 1 + r.IntN(2) {
		at := 0
		if len(runes) > 0 {
			at = r.IntN(len(runes))
		}
		c := pool[r.IntN(len(pool))]
		if r.IntN(2) == 0 && len(runes) > 0 {
			c = runes[r.IntN(len(runes))] // one of its own digits
		}
		switch k := r.IntN(10); {
		case k < 5 && len(runes) > 0:
			runes[at] = c
		case k < 6 && len(runes) > 0:
			runes = append(runes[:at], runes[at+1:]...)
		case k < 8:
			runes = append(runes[:at], append([]rune{c}, runes[at:]...)...)
		case k < 9:
			runes = append(runes, c)
		default:
			runes = append([]rune(strings.Repeat("A0"[r.IntN(2):][:1], 1+r.IntN(3))), runes...)
		}
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
		formats := parityInstall(t, db, len(parityConfigs))
		conn, odd := db.Conn(t), db.Conn(t)
		for _, sql := range parityOdd {
			exec(t, odd, sql)
		}
		for _, f := range formats {
			parityTries(t, db, f)
			n := 5000
			if f.schema == migrations.DefaultSchema {
				n = pgtest.Scaled(n, 30_000)
			}
			f.compareIDs(t, conn, n)
			f.compareFloors(t, conn, n)
			f.compareTexts(t, conn, n/10) // these values take longer
			f.compareNoIDs(t, conn, n/20)
			f.compareIDs(t, odd, 1000)
			f.compareFloors(t, odd, 1000)
			f.compareTexts(t, odd, 1000)
			f.compareNoIDs(t, odd, 1000)
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
		check := func(list []vector, format func(c migrations.Config) *parityFormat) {
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
				c := migrations.Config{Schema: fmt.Sprint("v", schemas)}
				if !l.Epoch.IsZero() {
					c.Snowflake = idtype.SnowflakeLayout{Epoch: l.Epoch, DatacenterBits: l.DatacenterBits, WorkerBits: l.WorkerBits, SequenceBits: l.SequenceBits}
				}
				if !l.BaseClock.IsZero() {
					c.SnowflakeSI = idtype.SnowflakeSILayout{BaseClock: l.BaseClock, MachineBits: l.MachineBits, IndexBits: l.IndexBits}
				}
				up(t, db, c)
				f := format(c)
				f.edges = nil
				for _, v := range same {
					f.edges = append(f.edges, v.SQL)
					if v.Padded != "" {
						if got := pgtest.Value[string](t, conn, "SELECT ("+f.call("from_text", "$1")+")::text", v.Padded); got != v.SQL {
							t.Errorf("%s: SQL parses %s as %s, want %s", f.name, v.Padded, got, v.SQL)
						}
					}
				}
				f.compareIDs(t, conn, 0)
			}
		}
		check(vectors.Snowflake, func(c migrations.Config) *parityFormat { return paritySnowflake(c.Schema, c.Snowflake) })
		check(vectors.SnowflakeSI, func(c migrations.Config) *parityFormat { return paritySnowflakeSI(c.Schema, c.SnowflakeSI) })
		check(vectors.UID60, func(c migrations.Config) *parityFormat { return parityUID60(c.Schema) })
		check(vectors.Spread64, func(c migrations.Config) *parityFormat { return paritySpread64(c.Schema) })
		check(vectors.Sno, func(c migrations.Config) *parityFormat { return paritySno(c.Schema) })
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
			parityTries(t, danish, f)
			f.compareIDs(t, conn, 2000)
			f.compareTexts(t, conn, 2000)
		}

		danish.Exec(t, `CREATE TABLE t (id sortkey.sno PRIMARY KEY, code sortkey.sno_as_text UNIQUE, plain text)`)
		sno := formats[2]
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
		var domain, plain int
		must(t, conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE a <> b), count(*) FILTER (WHERE a <> c) FROM
			(SELECT row_number() OVER (ORDER BY id) a, row_number() OVER (ORDER BY code) b, row_number() OVER (ORDER BY plain) c FROM t) o`).Scan(&domain, &plain))
		if domain != 0 || plain == 0 {
			t.Errorf("%d texts of the domain sort differently from their IDs, and %d texts of a plain column; want none and some", domain, plain)
		}

		// In this collation, texts of different IDs are equal.
		danish.Exec(t, `CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level1', deterministic = false)`)
		for _, f := range formats {
			for range 100 {
				id := f.random(r)
				text, err := f.text(id)
				must(t, err)
				var got string
				must(t, conn.QueryRow(t.Context(), "SELECT ("+f.call("from_text", "$1::text COLLATE blind")+")::text", text).Scan(&got))
				if got != id {
					t.Errorf("%s: SQL parses %s as %s, want %s", f.name, text, got, id)
				}
			}
		}
		var parsed string
		for f, text := range map[string]string{"sno": "BRPK4q72xwf2m63l", "spread64": "CB54ecf2840a0015", "uid60": "AAAAé"} {
			err := conn.QueryRow(t.Context(), "SELECT sortkey."+f+"_from_text($1::text COLLATE blind)::text", text).Scan(&parsed)
			if err == nil || !strings.Contains(err.Error(), "22P02") {
				t.Errorf("%s: parse %s: want SQLSTATE 22P02, got %s, %v", f, text, parsed, err)
			}
		}
		for _, code := range []string{"BRPK4q72xwf2m63l", "brpk4q72xwf2m6é"} {
			if _, err := conn.Exec(t.Context(), "SELECT ($1::text COLLATE blind)::sortkey.sno_as_text", code); err == nil || !strings.Contains(err.Error(), "23514") {
				t.Errorf("%s: want SQLSTATE 23514 from sno_as_text, got %v", code, err)
			}
		}
	})
}

// Each domain rejects values that are not IDs. The constraint names the reason.
func TestParityDomains(t *testing.T) {
	installed.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		formats := parityInstall(t, db, 1)
		conn := db.Conn(t, pgtest.Codec)
		for domain, refused := range map[string]map[string]string{
			"snowflake":    {"0": "snowflake_is_positive", "-1": "snowflake_is_positive", "-9223372036854775808": "snowflake_is_positive"},
			"snowflake_si": {"0": "snowflake_si_is_positive_and_53_bits", "-1": "snowflake_si_is_positive_and_53_bits", "9007199254740992": "snowflake_si_is_positive_and_53_bits"},
			"uid60":        {"0": "uid60_is_positive_and_60_bits", "-1": "uid60_is_positive_and_60_bits", "1152921504606846976": "uid60_is_positive_and_60_bits"},
			"spread64": {"0": "spread64_is_not_zero", "1024": "spread64_has_no_reserved_bits", "32768": "spread64_has_no_reserved_bits",
				"-1": "spread64_has_no_reserved_bits", "-9223372036854774784": "spread64_has_no_reserved_bits"},
			"sno": {"32323232-3232-3232-3232-323232323232": "sno_is_not_zero", "00000000-0000-0000-0000-000000000000": "sno_has_digits_for_bytes",
				"f47ac10b-58cc-4372-a567-0e02b2c3d479": "sno_has_digits_for_bytes", "6272706b-3471-3732-7877-66326d363379": "sno_has_digits_for_bytes",
				"4272706b-3471-3732-7877-66326d36336c": "sno_has_digits_for_bytes", "6272706b-3471-3732-0077-66326d36336c": "sno_has_digits_for_bytes"},
			"sno_as_text": {"2222222222222222": "sno_as_text_is_not_zero", "": "sno_as_text_has_16_digits", "brpk4q72xwf2m63": "sno_as_text_has_16_digits",
				"brpk4q72xwf2m63l2": "sno_as_text_has_16_digits", "brpk4q72 wf2m63l": "sno_as_text_has_16_digits", "Brpk4q72xwf2m63l": "sno_as_text_has_16_digits",
				"brpk4q72xwf2m63l\n": "sno_as_text_has_16_digits", "brpk4q72xwf2m6é": "sno_as_text_has_16_digits", "brpk4q72xwf2m6\\x": "sno_as_text_has_16_digits"},
		} {
			for value, constraint := range refused {
				_, err := conn.Exec(t.Context(), "SELECT ($1::text)::sortkey."+domain, value)
				var pg *pgconn.PgError
				if !errors.As(err, &pg) || pg.Code != "23514" || pg.ConstraintName != constraint {
					t.Errorf("%s %q: got %v, want constraint %s", domain, value, err, constraint)
				}
			}
			var null bool
			if err := conn.QueryRow(t.Context(), "SELECT NULL::sortkey."+domain+" IS NULL").Scan(&null); err != nil || !null {
				t.Errorf("%s: want NULL accepted, got %v", domain, err)
			}
		}

		// The domains reject the same values as the functions, and zero.
		for _, f := range formats {
			r := idtest.Rand(f.name + " domain")
			domain := "sortkey." + f.name
			values := f.edges
			for len(values) < 3000 {
				values = append(values, f.random(r), f.noIDs(r))
			}
			db.Exec(t, fmt.Sprintf(`CREATE FUNCTION public.is_%s(x text) RETURNS boolean LANGUAGE plpgsql AS $$
				BEGIN
					PERFORM x::%s::%s;
					RETURN true;
				EXCEPTION WHEN check_violation THEN
					RETURN false;
				END $$`, f.name, f.column, domain))
			rows, _ := conn.Query(t.Context(), "SELECT public.is_"+f.name+"(x) FROM unnest($1::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n", values)
			accepted, err := pgx.CollectRows(rows, pgx.RowTo[bool])
			must(t, err)
			for i, v := range values {
				_, err := f.text(v)
				if want := err == nil && v != f.zero; accepted[i] != want {
					t.Errorf("%s %s: accepted is %v, want %v", domain, v, accepted[i], want)
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
			if n := pgtest.Value[int](t, conn, fmt.Sprintf("SELECT count(*) FROM of_%[1]s d JOIN base_of_%[1]s b ON b.id = d.id AND b.of = d.base AND d.other = b.id", c.domain)); n != 1 {
				t.Errorf("%s: joined %d rows, want 1", c.domain, n)
			}
			fails(t, conn, "23503", fmt.Sprintf("INSERT INTO base_of_%s VALUES ('%[2]s', '%[2]s')", c.domain, c.other))
			fails(t, conn, "23503", fmt.Sprintf("UPDATE of_%s SET other = '%s'", c.domain, c.other))
		}
	})
}
