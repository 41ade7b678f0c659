package pgxbench

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"github.com/sortkey/sortkey/bench/internal/figures"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
)

// A subject is a Go type to measure, with the codecs that its users register.
type subject interface {
	label() string
	register(*pgtype.Map)
	value(i int) any  // the i-th value, a T
	target() any      // a new *T
	slice(n int) any  // the first n values, a []T
	sliceTarget() any // a new *[]T
	query(ctx context.Context, conn *pgx.Conn, sql string) (run func() error, result func() any)
}

// of is the subject T. The name suffix "plain" marks a type of this project on a map
// without the codec, where pgx calls Value and Scan.
type of[T any] struct {
	name   string
	codecs func(*pgtype.Map) // registers them
	at     func(i int) T     // returns the i-th value of a column, equal for all subjects of a kind
}

func (o of[T]) label() string          { return o.name }
func (o of[T]) register(m *pgtype.Map) { o.codecs(m) }
func (o of[T]) value(i int) any        { return o.at(i) }
func (o of[T]) target() any            { return new(T) }
func (o of[T]) sliceTarget() any       { return new([]T) }

func (o of[T]) slice(n int) any {
	s := make([]T, n)
	for i := range s {
		s[i] = o.at(i)
	}
	return s
}

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

// A kind is a Postgres type. Its first subject is the yardstick.
type kind struct {
	name       string
	oid, array uint32
	subjects   []subject
}

var (
	bytes16s = of[[16]byte]{"[16]byte", none, bytes16}
	uuids    = kind{"uuid", pgtype.UUIDOID, pgtype.UUIDArrayOID, []subject{
		of[pgtype.UUID]{"pgtype.UUID", none, func(i int) pgtype.UUID { return pgtype.UUID{Bytes: bytes16(i), Valid: true} }},
		bytes16s,
		of[uuid.UUID]{"uuid.UUID", pgxuuid.Register, func(i int) uuid.UUID { return snoID(i).UUID() }},
		of[idtype.Sno]{"Sno", pgxcodec.Register, snoID},
		of[idtype.Sno]{"Sno,plain", none, snoID},
		of[idtype.UUID]{"UUID", pgxcodec.Register, ownUUID},
		of[idtype.UUIDOf[row]]{"UUIDOf", pgxcodec.Register, func(i int) idtype.UUIDOf[row] { return idtype.UUIDOf[row](ownUUID(i)) }},
		of[idtype.UUID]{"UUID,plain", none, ownUUID},
	}}
	bigints = kind{"bigint", pgtype.Int8OID, pgtype.Int8ArrayOID, []subject{
		of[int64]{"int64", none, number[int64]},
		of[idtype.Snowflake]{"Snowflake", pgxcodec.Register, number[idtype.Snowflake]},
		of[idtype.UID60]{"UID60", pgxcodec.Register, number[idtype.UID60]},
		of[idtype.Spread64]{"Spread64", pgxcodec.Register, number[idtype.Spread64]},
		of[idtype.Snowflake]{"Snowflake,plain", none, number[idtype.Snowflake]},
		of[idtype.SnowflakeOf[row]]{"SnowflakeOf", pgxcodec.Register, number[idtype.SnowflakeOf[row]]},
	}}
	kinds = []kind{uuids, bigints}

	// pgx has fast paths only for slices of int64 and [16]byte: compare with these.
	sliceKinds = []kind{{uuids.name, uuids.oid, uuids.array, append([]subject{bytes16s}, uuids.subjects...)}, bigints}
)

// none registers nothing.
func none(*pgtype.Map) {}

// A row is the model of typed keys.
type row struct{}

var when = time.Date(2026, 7, 1, 12, 34, 56, 789e6, time.UTC)

// snoID returns the i-th value of the uuid column.
func snoID(i int) idtype.Sno {
	id, err := idtype.SnoLayout{}.Compose(idtype.SnoParts{
		Time: when.Add(time.Duration(i) * 4 * time.Millisecond), Meta: 'A', Partition: idtype.SnoPartition{'A', 10}, Sequence: uint16(i),
	})
	if err != nil {
		panic(err)
	}
	return id
}

func bytes16(i int) [16]byte    { return snoID(i).UUID() }
func ownUUID(i int) idtype.UUID { return idtype.UUID(snoID(i).UUID()) }

// number returns the i-th value of the bigint column. It is valid for all types, so that
// they read and write the same values: bits 10 to 15 are zero, as Spread64 requires.
func number[T ~int64 | ~uint64](i int) T { return T(1<<58 + i<<16) }

// versus runs a benchmark of each subject of a kind against the first one.
func (k kind) versus(b *testing.B, prefix string, d figures.Duel, open func(b *testing.B, s subject) figures.Side) {
	b.Helper()
	for i, s := range k.subjects {
		if i > 0 && s.label() == k.subjects[0].label() {
			continue
		}
		b.Run(prefix+"kind="+k.name+"/type="+s.label(), func(b *testing.B) {
			yardstick := open(b, k.subjects[0])
			d.Run(b, yardstick, open(b, s))
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
