package pgxcodec

import (
	"database/sql/driver"
	"encoding/binary"
	"math/bits"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
)

// This file repeats the generic plans of plan.go, without generics, for the cases that
// nearly all queries use: an ID in its own column type, in the binary format.
//
// A call through a type parameter costs more than the work of these plans. Relative
// to an int64, the four bigint types take
//
//	         with this file   without it
//	encode   1.00–1.05 ×      1.28–1.35 ×
//	scan     0.82–1.14 ×      1.56–2.03 ×
//
// (2026-11-22, Go 1.26.8, AMD EPYC, medians of six runs of
// go test -bench '(Encode|Scan)$/format=binary/kind=bigint' ./pgx in bench. In the
// runs without this file, elementType returned an *elementCodec.)

// A bigintCodec is the codec of int8.
type bigintCodec struct{ elementCodec }

func (c *bigintCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case idtype.Snowflake:
			return encodeSnowflake{}
		case idtype.SnowflakeSI:
			return encodeSnowflakeSI{}
		case idtype.UID60:
			return encodeUID60{}
		case idtype.Spread64:
			return encodeSpread64{}
		}
	}
	return c.elementCodec.PlanEncode(m, oid, format, value)
}

func (c *bigintCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format == pgtype.BinaryFormatCode {
		switch target.(type) {
		case *idtype.Snowflake:
			return scanSnowflake{}
		case *idtype.SnowflakeSI:
			return scanSnowflakeSI{}
		case *idtype.UID60:
			return scanUID60{}
		case *idtype.Spread64:
			return scanSpread64{}
		case *int64, *int:
			return c.Codec.PlanScan(m, oid, format, target)
		}
	}
	return c.elementCodec.PlanScan(m, oid, format, target)
}

type (
	encodeSnowflake   struct{}
	encodeSnowflakeSI struct{}
	encodeUID60       struct{}
	encodeSpread64    struct{}
	encodeSno         struct{}

	scanSnowflake   struct{}
	scanSnowflakeSI struct{}
	scanUID60       struct{}
	scanSpread64    struct{}
	scanSno         struct{}
)

// notID returns the error for a number outside its format's range.
func notID(id driver.Valuer) error {
	_, err := id.Value()
	return err
}

func (encodeSnowflake) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(idtype.Snowflake)
	if id < 0 {
		return nil, notID(id)
	}
	return binary.BigEndian.AppendUint64(buf, uint64(id)), nil
}

// The range check is a shift, here and below, because a comparison with a 64-bit
// constant takes longer.
func (encodeSnowflakeSI) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(idtype.SnowflakeSI)
	if uint64(id)>>bits.Len64(idtype.MaxSnowflakeSI) != 0 {
		return nil, notID(id)
	}
	return binary.BigEndian.AppendUint64(buf, uint64(id)), nil
}

func (encodeUID60) Encode(value any, buf []byte) ([]byte, error) {
	id := value.(idtype.UID60)
	if uint64(id)>>bits.Len64(idtype.MaxUID60) != 0 {
		return nil, notID(id)
	}
	return binary.BigEndian.AppendUint64(buf, uint64(id)), nil
}

func (encodeSpread64) Encode(value any, buf []byte) ([]byte, error) {
	return binary.BigEndian.AppendUint64(buf, uint64(value.(idtype.Spread64))), nil
}

func (scanSnowflake) Scan(src []byte, target any) error {
	if dst, ok := target.(*idtype.Snowflake); ok && len(src) == 8 {
		if id, err := idtype.SnowflakeFromInt64(int64(binary.BigEndian.Uint64(src))); err == nil {
			*dst = id
			return nil
		}
	}
	return scanValue[idtype.Snowflake, bigintBinary[idtype.Snowflake]]{}.Scan(src, target)
}

func (scanSnowflakeSI) Scan(src []byte, target any) error {
	if dst, ok := target.(*idtype.SnowflakeSI); ok && len(src) == 8 {
		if id, err := idtype.SnowflakeSIFromInt64(int64(binary.BigEndian.Uint64(src))); err == nil {
			*dst = id
			return nil
		}
	}
	return scanValue[idtype.SnowflakeSI, bigintBinary[idtype.SnowflakeSI]]{}.Scan(src, target)
}

func (scanUID60) Scan(src []byte, target any) error {
	if dst, ok := target.(*idtype.UID60); ok && len(src) == 8 {
		if id, err := idtype.UID60FromInt64(int64(binary.BigEndian.Uint64(src))); err == nil {
			*dst = id
			return nil
		}
	}
	return scanValue[idtype.UID60, bigintBinary[idtype.UID60]]{}.Scan(src, target)
}

func (scanSpread64) Scan(src []byte, target any) error {
	if dst, ok := target.(*idtype.Spread64); ok && len(src) == 8 {
		*dst = idtype.Spread64(binary.BigEndian.Uint64(src))
		return nil
	}
	return scanValue[idtype.Spread64, bigintBinary[idtype.Spread64]]{}.Scan(src, target)
}

// A uuidCodec is the codec of uuid.
type uuidCodec struct{ elementCodec }

func (c *uuidCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.(idtype.Sno); ok && format == pgtype.BinaryFormatCode {
		return encodeSno{}
	}
	return c.elementCodec.PlanEncode(m, oid, format, value)
}

func (c *uuidCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format == pgtype.BinaryFormatCode {
		switch target.(type) {
		case *idtype.Sno:
			return scanSno{}
		case *pgtype.UUID:
			return c.Codec.PlanScan(m, oid, format, target)
		}
	}
	return c.elementCodec.PlanScan(m, oid, format, target)
}

func (encodeSno) Encode(value any, buf []byte) ([]byte, error) {
	u := value.(idtype.Sno).UUID()
	return append(buf, u[:]...), nil
}

func (scanSno) Scan(src []byte, target any) error {
	// The bytes of a Sno's uuid are its text. If they don't parse, the generic plan
	// returns the better error.
	if dst, ok := target.(*idtype.Sno); ok && dst.UnmarshalText(src) == nil {
		return nil
	}
	return scanValue[idtype.Sno, uuidBinary[idtype.Sno]]{}.Scan(src, target)
}
