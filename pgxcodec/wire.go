package pgxcodec

import (
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"reflect"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
)

// A wire encodes and scans an idType T in the binary format of bigint or uuid, without
// allocations. Everything else goes through Value and Scan.
type wire interface {
	// Encode appends an ID, a T or a *T that isn't nil.
	pgtype.EncodePlan
	// Scan reads a value into a *T. If it fails, it leaves the ID unchanged. It passes unusual
	// input to the ID's Scan, which accepts it or returns the error.
	pgtype.ScanPlan
	// of returns a copy for an idType with the same base type.
	of(id *idType) wire
}

// isOther reports whether a value is neither a T nor a *T.
func (id *idType) isOther(value any) bool {
	t := reflect.TypeOf(value)
	return t != id.typ && t != id.pointer
}

// isUsual reports whether an ID is to be read from size bytes into a *T.
func (id *idType) isUsual(src []byte, size int, target any) bool {
	return len(src) == size && reflect.TypeOf(target) == id.pointer
}

// unusual scans NULL, or returns the error for bytes that no server sends or for a target of
// another type.
func (id *idType) unusual(src []byte, want string, target any) error {
	switch {
	case reflect.TypeOf(target) != id.pointer:
		return pgtype.ErrScanTargetTypeChanged
	case src == nil:
		return scan(target, nil)
	}
	return badWire(want, src)
}

// scan calls the Scan method of a target.
func scan(target, src any) error {
	s, ok := target.(sql.Scanner)
	if !ok {
		return pgtype.ErrScanTargetTypeChanged
	}
	return s.Scan(src)
}

// rejection returns the error of an ID's Value method.
func rejection(id any) error {
	if _, err := id.(driver.Valuer).Value(); err != nil {
		return err
	}
	return idtype.ErrRange
}

// maxErrorInput is the number of bytes of a rejected value that an error shows.
const maxErrorInput = 64

// badWire returns the error for bytes that no server sends for a column type.
func badWire(want string, src []byte) error {
	return fmt.Errorf("pgxcodec: decode a column value: want %s, got %d bytes %q; check that the column has the type its OID names: %w",
		want, len(src), src[:min(len(src), maxErrorInput)], idtype.ErrSyntax)
}

// bigint is the wire for an integer in a bigint column.
type bigint struct {
	*idType
	invalid uint64 // the bits that are zero in all IDs
}

func (w *bigint) of(id *idType) wire { return &bigint{id, w.invalid} }

func (w *bigint) Encode(id any, buf []byte) ([]byte, error) {
	if w.isOther(id) {
		return nil, wrongType(id, w.typ)
	}
	n := uint64(id.(interface{ Int64() int64 }).Int64())
	if n&w.invalid != 0 {
		return nil, rejection(id)
	}
	return binary.BigEndian.AppendUint64(buf, n), nil
}

func (w *bigint) Scan(src []byte, target any) error {
	if !w.isUsual(src, 8, target) {
		return w.unusual(src, "an int8 of 8 bytes", target)
	}
	n := binary.BigEndian.Uint64(src)
	if n&w.invalid != 0 {
		return scan(target, int64(n))
	}
	if w.typed {
		reflect.ValueOf(target).Elem().SetInt(int64(n))
		return nil
	}
	switch id := target.(type) { // saves reflection, which takes a sixth of the scan
	case *idtype.Snowflake:
		*id = idtype.Snowflake(n)
	case *idtype.SnowflakeSI:
		*id = idtype.SnowflakeSI(n)
	case *idtype.UID60:
		*id = idtype.UID60(n)
	case *idtype.Spread64:
		*id = idtype.Spread64(n)
	}
	return nil
}

const uuidWant = "a uuid of 16 bytes"

// An untyper is a typed key, and a pointer to one.
type untyper[T any] interface{ Untyped() T }

// sno is the wire for a Sno in a uuid column. The bytes of a Sno's uuid are its text.
type sno struct {
	*idType
	tagged bool // all IDs have the metabyte meta
	meta   byte
}

func (*sno) of(id *idType) wire {
	w := &sno{idType: id}
	if tag, ok := reflect.Zero(id.typ).Interface().(interface{ ModelMeta() (byte, bool) }); ok {
		w.meta, w.tagged = tag.ModelMeta()
	}
	return w
}

// accepts reports whether the type can hold an ID: its model declares no metabyte, the ID
// has that metabyte, or the ID is zero.
func (w *sno) accepts(id idtype.Sno) bool { return !w.tagged || id[5] == w.meta || id.IsZero() }

func (w *sno) Encode(id any, buf []byte) ([]byte, error) {
	if w.isOther(id) {
		return nil, wrongType(id, w.typ)
	}
	var v idtype.Sno
	switch id := id.(type) {
	case idtype.Sno:
		v = id
	case *idtype.Sno:
		v = *id
	case untyper[idtype.Sno]:
		v = id.Untyped()
	}
	if !w.accepts(v) {
		return nil, rejection(id)
	}
	u := v.UUID()
	return append(buf, u[:]...), nil
}

func (w *sno) Scan(src []byte, target any) error {
	var id *idtype.Sno
	switch t := target.(type) {
	case *idtype.Sno:
		id = t
	case interface{ UntypedPointer() *idtype.Sno }:
		id = t.UntypedPointer()
	}
	if id == nil || w.typed && reflect.TypeOf(target) != w.pointer {
		return pgtype.ErrScanTargetTypeChanged
	}
	if !w.tagged && id.UnmarshalText(src) == nil || w.tagged && w.set(id, src) {
		return nil
	}
	if len(src) != len(uuid.UUID{}) {
		return w.unusual(src, uuidWant, target)
	}
	return scan(target, uuid.UUID(src).String())
}

// set sets *id to the ID in a uuid, and reports whether the type can hold it.
func (w *sno) set(id *idtype.Sno, u []byte) bool {
	was := *id
	if id.UnmarshalText(u) == nil && w.accepts(*id) {
		return true
	}
	*id = was
	return false
}

// uuid7 is the wire for an idtype.UUID in a uuid column.
type uuid7 struct{ *idType }

func (*uuid7) of(id *idType) wire { return &uuid7{id} }

func (w *uuid7) Encode(id any, buf []byte) ([]byte, error) {
	if w.isOther(id) {
		return nil, wrongType(id, w.typ)
	}
	var v idtype.UUID
	switch id := id.(type) {
	case idtype.UUID:
		v = id
	case *idtype.UUID:
		v = *id
	case untyper[idtype.UUID]:
		v = id.Untyped()
	}
	return append(buf, v[:]...), nil
}

func (w *uuid7) Scan(src []byte, target any) error {
	if !w.isUsual(src, len(idtype.UUID{}), target) {
		return w.unusual(src, uuidWant, target)
	}
	id, ok := target.(*idtype.UUID)
	if !ok {
		id = target.(interface{ UntypedPointer() *idtype.UUID }).UntypedPointer()
	}
	copy(id[:], src)
	return nil
}
