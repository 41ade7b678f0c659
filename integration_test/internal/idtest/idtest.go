package idtest

import (
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// An ID is one of the ID types.
type ID[T any] interface {
	sqltypes.ID
	Compare(T) int
	MarshalBinary() ([]byte, error)
}

// A Kind is an ID type.
type Kind[T ID[T]] struct {
	Name   string // of the Go type
	Column string // the type of its column

	// Stored returns an ID as the database casts it to text.
	Stored func(T) string
	// Edges are edge cases, including the smallest and the largest ID.
	Edges []T
	// Random returns any ID of the format.
	Random func(*rand.Rand) T

	// TextOrders and BytesOrder report whether text and bytes sort as the column does.
	TextOrders, BytesOrder bool

	// Layout is nil if IDs don't sort by time.
	Layout gormplugin.Layout[T]
	// First and Last are the first and the last unit of time.
	First, Last time.Time
	Unit        time.Duration
	// At returns an ID with a time. pick chooses each other field, given the field's
	// largest value.
	At func(t time.Time, pick func(largest int) int) (T, error)

	// NewGenerator returns a generator with a node number of its own.
	NewGenerator func() (idtype.Generator[T], error)

	// Refused maps column values that aren't IDs, as text, to the error of scanning
	// them.
	Refused map[string]error
	// Wrapped returns cases for further Go types that hold the ID.
	Wrapped func(T) []Case
}

// A Case is a Go value and the expected column value.
type Case struct {
	Column string // the column's type, one of Columns
	Value  any
	Stored sql.Null[string] // as text
}

// Columns lists the column types that store IDs.
var Columns = []string{"bigint", "uuid", "text", "varchar(40)", "char(40)", "bytea"}

// Cases returns the edge cases and n random IDs, in all Go types that hold the ID.
func (k Kind[T]) Cases(n int) []Case {
	r := Rand(k.Name)
	ids := slices.Clone(k.Edges) // tests run in parallel
	for range n {
		ids = append(ids, k.Random(r))
	}
	null := sql.Null[string]{}
	cases := []Case{
		{k.Column, (*T)(nil), null},
		{k.Column, sql.Null[T]{}, null},
		{"text", (*sqltypes.Text[T])(nil), null},
		{"text", sql.Null[sqltypes.Text[T]]{}, null},
	}
	for _, id := range ids {
		wrapped := sqltypes.TextOf(id)
		stored, text := notNull(k.Stored(id)), notNull(ColumnText(wrapped))
		cases = append(cases,
			Case{k.Column, id, stored},
			Case{k.Column, &id, stored},
			Case{k.Column, sql.Null[T]{V: id, Valid: true}, stored},
			Case{"text", wrapped, text},
			Case{"text", &wrapped, text},
			Case{"text", sql.Null[sqltypes.Text[T]]{V: wrapped, Valid: true}, text},
			Case{"varchar(40)", wrapped, text},
			Case{"char(40)", wrapped, text},
			Case{k.Column, sqltypes.OptionalOf(id), unlessZero(id, stored)},
			Case{"text", sqltypes.OptionalOf(wrapped), unlessZero(id, text)},
		)
		if k.Wrapped != nil {
			cases = append(cases, k.Wrapped(id)...)
		}
	}
	return cases
}

// unlessZero returns the value that an Optional stores: NULL for the zero ID.
func unlessZero[T ID[T]](id T, stored sql.Null[string]) sql.Null[string] {
	stored.Valid = !id.IsZero()
	if !stored.Valid {
		stored.V = ""
	}
	return stored
}

func notNull(s string) sql.Null[string] { return sql.Null[string]{V: s, Valid: true} }

// ColumnText returns the text that a column stores, which has no prefix.
func ColumnText[T sqltypes.ID](id sqltypes.Text[T]) string {
	v, err := id.Value()
	if err != nil {
		panic(err)
	}
	return v.(string)
}

// Rand returns a source of random numbers, which are the same in each run.
func Rand(name string) *rand.Rand {
	var seed [32]byte
	copy(seed[:], name)
	return rand.New(rand.NewChaCha8(seed))
}

// The ID types.
var (
	Snowflake = Kind[idtype.Snowflake]{
		Name: "Snowflake", Column: "bigint", BytesOrder: true,
		Stored: decimal[idtype.Snowflake],
		Edges:  []idtype.Snowflake{0, 1, 132271570944274432, 1<<53 + 1, math.MaxInt64},
		Random: func(r *rand.Rand) idtype.Snowflake { return idtype.Snowflake(r.Int64()) },
		Layout: idtype.DefaultSnowflakeLayout(),
		First:  utc(2021, 1, 1), Last: utc(2090, 9, 7, 15, 47, 35, 551), Unit: time.Millisecond,
		At: func(t time.Time, pick func(int) int) (idtype.Snowflake, error) {
			return idtype.SnowflakeLayout{}.Compose(idtype.SnowflakeParts{
				Time: t, Datacenter: pick(31), Worker: pick(31), Sequence: pick(4095)})
		},
		NewGenerator: func() (idtype.Generator[idtype.Snowflake], error) {
			return idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Datacenter: 3, Worker: 7})
		},
		Refused: map[string]error{"-1": idtype.ErrRange, "-9223372036854775808": idtype.ErrRange},
	}

	SnowflakeSI = Kind[idtype.SnowflakeSI]{
		Name: "SnowflakeSI", Column: "bigint", BytesOrder: true,
		Stored: decimal[idtype.SnowflakeSI],
		Edges:  []idtype.SnowflakeSI{0, 1, 1<<53 - 1},
		Random: func(r *rand.Rand) idtype.SnowflakeSI { return idtype.SnowflakeSI(r.Int64N(1 << 53)) },
		Layout: snowflakeSILayout,
		First:  snowflakeSILayout.BaseClock, Last: snowflakeSILayout.BaseClock.Add((1<<40 - 1) * time.Millisecond), Unit: time.Millisecond,
		At: func(t time.Time, pick func(int) int) (idtype.SnowflakeSI, error) {
			return snowflakeSILayout.Compose(idtype.SnowflakeSIParts{Time: t, Machine: pick(31), Index: pick(255)})
		},
		NewGenerator: func() (idtype.Generator[idtype.SnowflakeSI], error) {
			return idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: snowflakeSILayout, Machine: 7})
		},
		Refused: map[string]error{"-1": idtype.ErrRange, "9007199254740992": idtype.ErrRange},
	}

	UID60 = Kind[idtype.UID60]{
		Name: "UID60", Column: "bigint", BytesOrder: true,
		Stored: decimal[idtype.UID60],
		Edges:  []idtype.UID60{0, 1, 262144, 11093174944930914, 1<<60 - 1},
		Random: func(r *rand.Rand) idtype.UID60 { return idtype.UID60(r.Int64N(1 << 60)) },
		Layout: idtype.UID60Layout{},
		First:  utc(2018, 3, 1), Last: utc(2157, 7, 13, 7, 35, 11, 103), Unit: time.Millisecond,
		At: func(t time.Time, pick func(int) int) (idtype.UID60, error) {
			return idtype.UID60Layout{}.Compose(idtype.UID60Parts{Time: t, Sequence: pick(511), Random: pick(511)})
		},
		NewGenerator: func() (idtype.Generator[idtype.UID60], error) {
			return idtype.NewUID60Generator(idtype.UID60Config{})
		},
		Refused: map[string]error{"-1": idtype.ErrRange, "1152921504606846976": idtype.ErrRange},
	}

	// The column sorts as signed numbers.
	Spread64 = Kind[idtype.Spread64]{
		Name: "Spread64", Column: "bigint",
		Stored: decimal[idtype.Spread64],
		Edges: []idtype.Spread64{math.MinInt64, -1 << 22, 0, 1, idtype.Must(idtype.ParseSpread64("cb54ecf2840a0015")),
			idtype.Must(idtype.ParseSpread64("ffffffffffff03ff")), math.MaxInt64 &^ 0xfc00},
		Random: func(r *rand.Rand) idtype.Spread64 { return idtype.Spread64(r.Uint64() &^ 0xfc00) },
		First:  utc(1970, 1, 1), Last: utc(2109, 5, 15, 7, 35, 11, 103), Unit: time.Millisecond,
		At: func(t time.Time, pick func(int) int) (idtype.Spread64, error) {
			return idtype.Spread64Layout{}.Compose(idtype.Spread64Parts{
				Time: t, Sequence: pick(63), Generator: pick(63), Cluster: pick(15)})
		},
		NewGenerator: func() (idtype.Generator[idtype.Spread64], error) {
			return idtype.NewSpread64Generator(idtype.Spread64Config{Generator: 3, Cluster: 7})
		},
		// A number with reserved bits is not a valid ID, but can be stored and read.
		Wrapped: func(id idtype.Spread64) []Case {
			id |= 0x0400
			return []Case{{"bigint", id, notNull(decimal(id))}}
		},
	}

	Sno = Kind[idtype.Sno]{
		Name: "Sno", Column: "uuid", TextOrders: true, BytesOrder: true,
		Stored: func(id idtype.Sno) string {
			s := id.String()
			return fmt.Sprintf("%x-%x-%x-%x-%x", s[:4], s[4:6], s[6:8], s[8:10], s[10:])
		},
		Edges: []idtype.Sno{{}, {9: 1}, idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")),
			idtype.Must(idtype.ParseSno("22222222e2222222")), idtype.Must(idtype.ParseSno("xxxxxxxxxxxxxxxx"))},
		Random: func(r *rand.Rand) (id idtype.Sno) {
			for i := range id {
				id[i] = byte(r.Uint32())
			}
			return id
		},
		Layout: idtype.SnoLayout{},
		First:  utc(2010, 1, 1), Last: utc(2079, 9, 7, 15, 47, 35, 548), Unit: 4 * time.Millisecond,
		At: func(t time.Time, pick func(int) int) (idtype.Sno, error) {
			return idtype.SnoLayout{}.Compose(idtype.SnoParts{Time: t, TickTock: pick(1) == 1, Meta: byte(pick(255)),
				Partition: idtype.SnoPartitionFrom(uint16(pick(65535))), Sequence: uint16(pick(65535))})
		},
		NewGenerator: func() (idtype.Generator[idtype.Sno], error) {
			return idtype.NewSnoGenerator(idtype.SnoConfig{Meta: 7})
		},
		Refused: map[string]error{
			"f47ac10b-58cc-4372-a567-0e02b2c3d479": idtype.ErrNotSno,
			"00000000-0000-0000-0000-000000000000": idtype.ErrNotSno,
			// One wrong character, an upper-case B.
			"4272706b-3471-3732-7877-66326d36336c": idtype.ErrNotSno,
		},
		Wrapped: func(id idtype.Sno) []Case {
			b, raw := sqltypes.SnoBytesOf(id), notNull(fmt.Sprintf("\\x%x", id[:]))
			return []Case{
				{"bytea", b, raw},
				{"bytea", &b, raw},
				{"bytea", (*sqltypes.SnoBytes)(nil), sql.Null[string]{}},
				{"bytea", sql.Null[sqltypes.SnoBytes]{V: b, Valid: true}, raw},
				{"bytea", sqltypes.OptionalOf(b), unlessZero(id, raw)},
			}
		},
	}

	// Any UUID is an ID. A UUID of version 7 has a time.
	UUID = Kind[idtype.UUID]{
		Name: "UUID", Column: "uuid", TextOrders: true, BytesOrder: true,
		Stored: idtype.UUID.String,
		Edges: []idtype.UUID{{}, {15: 1}, idtype.Must(idtype.ParseUUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")), idtype.Must(idtype.ParseUUID("919108f7-52d1-4320-9bac-f847db4148a8")),
			idtype.Must(idtype.ParseUUID("ffffffff-ffff-ffff-ffff-ffffffffffff"))},
		Random: func(r *rand.Rand) (id idtype.UUID) {
			for i := range id {
				id[i] = byte(r.Uint32())
			}
			return id
		},
		Layout: idtype.UUIDLayout{},
		First:  utc(1970, 1, 1), Last: time.UnixMilli(1<<48 - 1).UTC(), Unit: time.Millisecond,
		At: func(t time.Time, pick func(int) int) (idtype.UUID, error) {
			id, err := idtype.UUIDLayout{}.Floor(t)
			id[6] |= byte(pick(15))
			id[7] = byte(pick(255))
			id[8] |= byte(pick(63))
			for i := range id[9:] {
				id[9+i] = byte(pick(255))
			}
			return id, err
		},
		NewGenerator: func() (idtype.Generator[idtype.UUID], error) {
			return idtype.NewUUIDGenerator(idtype.UUIDConfig{})
		},
	}
)

var snowflakeSILayout = idtype.SnowflakeSILayout{BaseClock: utc(2020, 1, 1)}

func decimal[T ~int64](id T) string { return fmt.Sprint(int64(id)) }

// utc returns an instant. rest is hour, minute, second and millisecond.
func utc(year, month, day int, rest ...int) time.Time {
	rest = append(rest, 0, 0, 0, 0)
	return time.Date(year, time.Month(month), day, rest[0], rest[1], rest[2], rest[3]*int(time.Millisecond), time.UTC)
}
