package pgxbench

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// An extension registers the codecs that the users of a type need.
type extension struct{ register func(*pgtype.Map) }

var (
	none    = &extension{func(*pgtype.Map) {}}
	google  = &extension{pgxuuid.Register}
	sortkey = &extension{pgxcodec.Register}
	both    = &extension{func(m *pgtype.Map) { pgxuuid.Register(m); pgxcodec.Register(m) }}
)

func (e *extension) newMap() *pgtype.Map {
	m := pgtype.NewMap()
	e.register(m)
	return m
}

// A subject is a Go type to measure, with the extension that its users register.
type subject interface {
	label() string
	extends() *extension
	value(i int) any  // the i-th value, a T
	target() any      // a new *T
	slice(n int) any  // the first n values, a []T
	sliceTarget() any // a new *[]T
	query(ctx context.Context, conn *pgx.Conn, sql string) (run func() error, result func() any)
}

// of is the subject T. The name suffix "registered" marks another library's type on a
// map with this project's codec, which must not make the type slower. "plain" marks a
// type of this project on a map without the codec, where pgx calls Value and Scan.
type of[T any] struct {
	name string
	with *extension
	at   func(i int) T // returns the i-th value of a column, equal for all subjects of a kind
}

func (o of[T]) label() string       { return o.name }
func (o of[T]) extends() *extension { return o.with }
func (o of[T]) value(i int) any     { return o.at(i) }
func (o of[T]) target() any         { return new(T) }
func (o of[T]) slice(n int) any     { return first(n, o.at) }
func (o of[T]) sliceTarget() any    { return new([]T) }

// query reads a column into a slice, row by row.
func (o of[T]) query(ctx context.Context, conn *pgx.Conn, sql string) (run func() error, result func() any) {
	ids := make([]T, 0, rowCount)
	return func() error {
		ids = ids[:0]
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			return err
		}
		defer rows.Close()
		var id T
		for rows.Next() {
			if err := rows.Scan(&id); err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return rows.Err()
	}, func() any { return ids }
}

func first[T any](n int, at func(int) T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = at(i)
	}
	return s
}

// A kind is a Postgres type and a form of its values in Go. Its first subject is the
// yardstick.
type kind struct {
	name       string
	column     string // name in the tables
	oid, array uint32
	subjects   []subject
}

// named returns k without [16]byte, which pgx can't encode without the OID.
func (k kind) named() kind {
	k.subjects = slices.DeleteFunc(slices.Clone(k.subjects), func(s subject) bool {
		return strings.Contains(s.label(), "[16]byte")
	})
	return k
}

var (
	uuids = kind{"uuid", "u", pgtype.UUIDOID, pgtype.UUIDArrayOID, []subject{
		of[pgtype.UUID]{"pgtype.UUID", none, pgtypeUUID},
		of[pgtype.UUID]{"pgtype.UUID,registered", sortkey, pgtypeUUID},
		of[[16]byte]{"[16]byte", none, bytes16},
		of[[16]byte]{"[16]byte,registered", sortkey, bytes16},
		of[uuid.UUID]{"uuid.UUID", google, snoUUID},
		of[uuid.UUID]{"uuid.UUID,registered", both, snoUUID},
		of[idtype.Sno]{"Sno", sortkey, snoID},
		of[customerID]{"SnoOf", sortkey, customer},
		of[taggedID]{"SnoOf,tagged", sortkey, func(i int) taggedID { return taggedID(snoID(i)) }},
		of[idtype.Sno]{"Sno,plain", none, snoID},
		of[idtype.UUID]{"UUID", sortkey, ownUUID},
		of[documentID]{"UUIDOf", sortkey, document},
		of[idtype.UUID]{"UUID,plain", none, ownUUID},
	}}
	uuidPointers = kind{"uuid-pointer", "u", pgtype.UUIDOID, pgtype.UUIDArrayOID, []subject{
		of[*pgtype.UUID]{"*pgtype.UUID", none, pointer(pgtypeUUID)},
		of[*[16]byte]{"*[16]byte", none, pointer(bytes16)},
		of[*uuid.UUID]{"*uuid.UUID", google, pointer(snoUUID)},
		of[*idtype.Sno]{"*Sno", sortkey, pointer(snoID)},
		of[*customerID]{"*SnoOf", sortkey, pointer(customer)},
		of[*idtype.UUID]{"*UUID", sortkey, pointer(ownUUID)},
		of[*documentID]{"*UUIDOf", sortkey, pointer(document)},
	}}
	bigints = kind{"bigint", "n", pgtype.Int8OID, pgtype.Int8ArrayOID, []subject{
		of[int64]{"int64", none, number},
		of[int64]{"int64,registered", sortkey, number},
		of[idtype.Snowflake]{"Snowflake", sortkey, snowflake},
		of[idtype.SnowflakeSI]{"SnowflakeSI", sortkey, func(i int) idtype.SnowflakeSI { return idtype.SnowflakeSI(number(i)) }},
		of[idtype.UID60]{"UID60", sortkey, func(i int) idtype.UID60 { return idtype.UID60(number(i)) }},
		of[idtype.Spread64]{"Spread64", sortkey, func(i int) idtype.Spread64 { return idtype.Spread64(number(i)) }},
		of[idtype.Snowflake]{"Snowflake,plain", none, snowflake},
		of[orderID]{"SnowflakeOf", sortkey, order},
		of[uid60ID]{"UID60Of", sortkey, func(i int) uid60ID { return uid60ID(number(i)) }},
		of[structID]{"struct", sortkey, func(i int) structID { return structID{snowflake(i)} }},
	}}
	bigintPointers = kind{"bigint-pointer", "n", pgtype.Int8OID, pgtype.Int8ArrayOID, []subject{
		of[*int64]{"*int64", none, pointer(number)},
		of[*int64]{"*int64,registered", sortkey, pointer(number)},
		of[*idtype.Snowflake]{"*Snowflake", sortkey, pointer(snowflake)},
		of[*orderID]{"*SnowflakeOf", sortkey, pointer(order)},
	}}
	texts = kind{"text", "t", pgtype.TextOID, pgtype.TextArrayOID, []subject{
		of[string]{"string", none, snoText},
		of[string]{"string,registered", sortkey, snoText},
		of[sqltypes.Text[idtype.Sno]]{"SnoText", sortkey, func(i int) sqltypes.Text[idtype.Sno] { return sqltypes.TextOf(snoID(i)) }},
	}}
	byteas = kind{"bytea", "b", pgtype.ByteaOID, pgtype.ByteaArrayOID, []subject{
		of[[]byte]{"[]byte", none, snoBytes},
		of[[]byte]{"[]byte,registered", sortkey, snoBytes},
		of[sqltypes.SnoBytes]{"SnoBytes", sortkey, func(i int) sqltypes.SnoBytes { return sqltypes.SnoBytesOf(snoID(i)) }},
	}}

	kinds = []kind{uuids, uuidPointers, bigints, bigintPointers, texts, byteas}
	bases = []kind{uuids, bigints, texts, byteas}

	// pgx has fast paths only for slices of int64 and [16]byte.
	sliceKinds = []kind{
		{"uuid", "u", pgtype.UUIDOID, pgtype.UUIDArrayOID, []subject{
			of[[16]byte]{"[16]byte", none, bytes16},
			of[[16]byte]{"[16]byte,registered", sortkey, bytes16},
			of[pgtype.UUID]{"pgtype.UUID", none, pgtypeUUID},
			of[uuid.UUID]{"uuid.UUID", google, snoUUID},
			of[uuid.UUID]{"uuid.UUID,registered", both, snoUUID},
			of[idtype.Sno]{"Sno", sortkey, snoID},
			of[*idtype.Sno]{"*Sno", sortkey, pointer(snoID)},
			of[customerID]{"SnoOf", sortkey, customer},
			of[*customerID]{"*SnoOf", sortkey, pointer(customer)},
			of[idtype.Sno]{"Sno,plain", none, snoID},
			of[idtype.UUID]{"UUID", sortkey, ownUUID},
			of[*idtype.UUID]{"*UUID", sortkey, pointer(ownUUID)},
			of[documentID]{"UUIDOf", sortkey, document},
		}},
		{"bigint", "n", pgtype.Int8OID, pgtype.Int8ArrayOID, append(bigints.subjects[:len(bigints.subjects):len(bigints.subjects)],
			of[*int64]{"*int64", none, pointer(number)}, of[*idtype.Snowflake]{"*Snowflake", sortkey, pointer(snowflake)}, of[*orderID]{"*SnowflakeOf", sortkey, pointer(order)})},
		texts, byteas,
	}
)

// snoID returns the i-th value of the uuid, text and bytea columns.
func snoID(i int) idtype.Sno {
	return must(idtype.SnoLayout{}.Compose(idtype.SnoParts{
		Time: when.Add(time.Duration(i) * 4 * time.Millisecond), Meta: 'A', Partition: idtype.SnoPartition{'A', 10}, Sequence: uint16(i),
	}))
}

// number returns the i-th value of the bigint column. It is valid for all bigint
// types, so that they read and write the same values: a SnowflakeSI whose bits 10 to
// 15 are zero, as Spread64 requires.
func number(i int) int64 {
	since := when.Sub(figures.SILayout.BaseClock).Truncate(8*time.Millisecond) + time.Duration(i)*8*time.Millisecond
	return must(figures.SILayout.Compose(idtype.SnowflakeSIParts{
		Time: figures.SILayout.BaseClock.Add(since), Machine: 3, Index: i % 256,
	})).Int64()
}

var when = time.Date(2026, 7, 1, 12, 34, 56, 789e6, time.UTC)

func snoUUID(i int) uuid.UUID          { return snoID(i).UUID() }
func ownUUID(i int) idtype.UUID        { return idtype.UUID(snoID(i).UUID()) }
func bytes16(i int) [16]byte           { return snoUUID(i) }
func pgtypeUUID(i int) pgtype.UUID     { return pgtype.UUID{Bytes: snoUUID(i), Valid: true} }
func snoText(i int) string             { return snoID(i).String() }
func snoBytes(i int) []byte            { return must(snoID(i).MarshalBinary()) }
func snowflake(i int) idtype.Snowflake { return idtype.Snowflake(number(i)) }

// A row is the model of typed keys, and a tagged row one that declares a metabyte.
type (
	row       struct{}
	taggedRow struct{}
)

func (taggedRow) IDMeta() byte { return 'A' } // as in snoID

type (
	orderID    = idtype.SnowflakeOf[row]
	uid60ID    = idtype.UID60Of[row]
	customerID = idtype.SnoOf[row]
	taggedID   = idtype.SnoOf[taggedRow]
	documentID = idtype.UUIDOf[row]
	// A structID is a caller's own type.
	structID struct{ idtype.Snowflake }
)

func order(i int) orderID       { return orderID(number(i)) }
func customer(i int) customerID { return customerID(snoID(i)) }
func document(i int) documentID { return documentID(ownUUID(i)) }

func pointer[T any](at func(int) T) func(int) *T {
	return func(i int) *T { return new(at(i)) }
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
