package pgxcodec

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
	"github.com/sortkey/sortkey/sqltypes"
)

// A wire consists of the plans for a leaf T, for one column type and one format.
type wire interface {
	// Encode appends an ID, a T or a *T that isn't nil.
	pgtype.EncodePlan
	// Scan reads a value into a *T. If it fails, it leaves the ID unchanged. It passes unusual
	// input to the ID's Scan, which accepts it or returns the error, and all input of a struct.
	pgtype.ScanPlan
}

// wire returns the wire of a leaf, or nil if there is no such format.
func (l *leaf) wire(c *column, format int16) wire {
	text := format == pgtype.TextFormatCode
	switch {
	case !text && format != pgtype.BinaryFormatCode:
		return nil
	case c == &chars:
		return paddedChars{textChars{l}}
	case c == &texts:
		return textChars{l}
	case c == &bigints && text:
		return bigintText{l}
	case c == &bigints:
		return bigintBinary{l}
	case c == &uuids && l.uuid:
		return wholeUUID{l, text}
	case c == &uuids && text:
		return uuidText{l}
	case c == &uuids:
		return uuidBinary{l}
	case text:
		return byteaText{l}
	}
	return byteaBinary{l}
}

// encoder returns the wire for encoding with a planner.
func (l *leaf) encoder(c *column, p planner) wire {
	w := l.wire(c, p.format)
	if w != nil && l.own() {
		return structWire{w, l, p}
	}
	return w
}

// structWire is the wire for a struct. The others can't encode it, because its Value may
// differ from that of the ID.
type structWire struct {
	wire
	leaf *leaf
	planner
}

func (w structWire) Encode(value any, buf []byte) ([]byte, error) {
	if w.leaf.isOther(value) {
		return nil, wrongType(value, w.leaf.typ)
	}
	v, err := value.(driver.Valuer).Value()
	if err != nil {
		return nil, err
	}
	if text, ok := v.(string); ok && w.leaf.column == &uuids && w.format == pgtype.BinaryFormatCode {
		if u, err := uuid.Parse(text); err == nil {
			return append(buf, u[:]...), nil
		}
	}
	return w.m.Encode(w.oid, w.format, v, buf)
}

// isOther reports whether a value is neither a T nor a *T.
func (l *leaf) isOther(value any) bool {
	t := reflect.TypeOf(value)
	return t != l.typ && t != l.pointer
}

// wrongType returns the error for a value of another type than a plan was made for.
func wrongType(value any, planned reflect.Type) error {
	return fmt.Errorf("pgxcodec: encode %s: want a value of the planned type %s; make a plan for each type", typename.OfValue(value), typename.Of(planned))
}

// isUsual reports whether an ID is to be read from src into a *T.
func (l *leaf) isUsual(src []byte, target any) bool {
	return src != nil && reflect.TypeOf(target) == l.pointer
}

// unusual scans NULL, which only a struct with its own Scan may accept, or returns the error
// for a target of another type.
func (l *leaf) unusual(target any) error {
	if reflect.TypeOf(target) != l.pointer {
		return pgtype.ErrScanTargetTypeChanged
	}
	if l.own() {
		if err := scan(target, nil); !errors.Is(err, idtype.ErrNull) {
			return err
		}
	}
	return fmt.Errorf("pgxcodec: %w", l.nullError())
}

// nullError returns the error for a NULL that is scanned into an ID.
func (l *leaf) nullError() error {
	return fmt.Errorf("scan NULL into %[1]s; scan a nullable column into *%[1]s, sql.Null[%[1]s] or sqltypes.Optional[%[1]s]: %[2]w", typename.Of(l.typ), idtype.ErrNull)
}

// scan calls the Scan method of a target.
func scan(target, src any) error { return target.(sql.Scanner).Scan(src) }

// rejection returns the error of an ID's Value method, or err if there is none.
func rejection(id any, err error) error {
	if _, own := id.(driver.Valuer).Value(); own != nil {
		return own
	}
	return err
}

// maxErrorInput is the number of bytes of a rejected value that an error shows.
const maxErrorInput = 64

// badWire returns the error for bytes that no server sends for a column type.
func badWire(want string, src []byte) error {
	return fmt.Errorf("pgxcodec: decode a column value: want %s, got %d bytes %q; check that the column has the type its OID names: %w",
		want, len(src), src[:min(len(src), maxErrorInput)], idtype.ErrSyntax)
}

// valid reports whether a number is an ID that the leaf can hold.
func (l *leaf) valid(n int64) bool { return l.base != nil && uint64(n)&l.base.invalid == 0 }

// number returns the number of an ID.
func (l *leaf) number(id any) (int64, error) {
	if l.isOther(id) {
		return 0, wrongType(id, l.typ)
	}
	n := id.(interface{ Int64() int64 }).Int64()
	if !l.valid(n) {
		return 0, rejection(id, idtype.ErrRange)
	}
	return n, nil
}

// setNumber sets the ID at target to a number.
func (l *leaf) setNumber(target any, n int64) error {
	if !l.valid(n) {
		return scan(target, n)
	}
	switch id := target.(type) { // saves reflection where it takes a sixth of the scan
	case *idtype.Snowflake:
		*id = idtype.Snowflake(n)
	case *idtype.SnowflakeSI:
		*id = idtype.SnowflakeSI(n)
	case *idtype.UID60:
		*id = idtype.UID60(n)
	case *idtype.Spread64:
		*id = idtype.Spread64(n)
	default:
		reflect.ValueOf(target).Elem().SetInt(n)
	}
	return nil
}

// bigintBinary is the wire for int8.
type bigintBinary struct{ *leaf }

func (w bigintBinary) Encode(id any, buf []byte) ([]byte, error) {
	n, err := w.number(id)
	if err != nil {
		return nil, err
	}
	return binary.BigEndian.AppendUint64(buf, uint64(n)), nil
}

func (w bigintBinary) Scan(src []byte, target any) error {
	if !w.isUsual(src, target) {
		return w.unusual(target)
	}
	if len(src) != 8 {
		return badWire("an int8 of 8 bytes", src)
	}
	return w.setNumber(target, int64(binary.BigEndian.Uint64(src)))
}

type bigintText struct{ *leaf }

func (w bigintText) Encode(id any, buf []byte) ([]byte, error) {
	n, err := w.number(id)
	if err != nil {
		return nil, err
	}
	return strconv.AppendInt(buf, n, 10), nil
}

func (w bigintText) Scan(src []byte, target any) error {
	if !w.isUsual(src, target) {
		return w.unusual(target)
	}
	n, err := strconv.ParseInt(string(src), 10, 64)
	if err != nil || !canonical(src) {
		return scan(target, string(src))
	}
	return w.setNumber(target, n)
}

// canonical reports whether a number that ParseInt accepts is written as a server
// writes it: without a plus sign and without leading zeros.
func canonical(src []byte) bool {
	first := src[0]
	if first == '-' {
		first = src[1]
	}
	return '1' <= first && first <= '9' || len(src) == 1 // a 0
}

// uuidOf returns the UUID of an ID.
func (l *leaf) uuidOf(id any) (uuid.UUID, error) {
	var sno idtype.Sno
	switch v := id.(type) {
	case idtype.Sno:
		sno = v
	case *idtype.Sno:
		sno = *v
	case untyper[idtype.Sno]:
		sno = v.Untyped()
	}
	switch {
	case l.isOther(id):
		return uuid.UUID{}, wrongType(id, l.typ)
	case !l.accepts(sno):
		return uuid.UUID{}, rejection(id, idtype.ErrRange)
	}
	return sno.UUID(), nil
}

// setUUID sets *id to the Sno in a UUID, and reports whether the leaf can hold it. The bytes
// of a Sno's uuid are its text.
func (l *leaf) setUUID(id *idtype.Sno, u []byte) bool {
	was := *id
	if id.UnmarshalText(u) == nil && l.accepts(*id) {
		return true
	}
	*id = was
	return false
}

// snoAt returns the Sno at target, or nil if target is neither a *Sno nor a pointer to a typed
// key. It may return the Sno in a struct.
func snoAt(target any) *idtype.Sno {
	switch id := target.(type) {
	case *idtype.Sno:
		return id
	case interface{ UntypedPointer() *idtype.Sno }:
		return id.UntypedPointer()
	}
	return nil
}

type uuidBinary struct{ *leaf }

func (w uuidBinary) Encode(id any, buf []byte) ([]byte, error) {
	u, err := w.uuidOf(id)
	if err != nil {
		return nil, err
	}
	return append(buf, u[:]...), nil
}

func (w uuidBinary) Scan(src []byte, target any) error {
	id := snoAt(target)
	switch {
	case id == nil, w.own():
	case !w.tagged && id.UnmarshalText(src) == nil, w.tagged && w.setUUID(id, src): // saves a call if there is no metabyte
		return nil
	}
	switch {
	case !w.isUsual(src, target):
		return w.unusual(target)
	case len(src) != len(uuid.UUID{}):
		return badWire("a uuid of 16 bytes", src)
	}
	return scan(target, uuid.UUID(src).String())
}

type uuidText struct{ *leaf }

func (w uuidText) Encode(id any, buf []byte) ([]byte, error) {
	u, err := w.uuidOf(id)
	if err != nil {
		return nil, err
	}
	for i, part := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			buf = append(buf, '-')
		}
		buf = hex.AppendEncode(buf, part)
	}
	return buf, nil
}

func (w uuidText) Scan(src []byte, target any) error {
	if !w.isUsual(src, target) {
		return w.unusual(target)
	}
	u, err := uuid.ParseBytes(src)
	if id := snoAt(target); err == nil && len(src) == 36 && !w.own() && w.setUUID(id, u[:]) { // ParseBytes also accepts other notations
		return nil
	}
	return scan(target, string(src))
}

// wholeUUID is the wire for an idtype.UUID or a typed key of one.
type wholeUUID struct {
	*leaf
	text bool
}

func (w wholeUUID) Encode(id any, buf []byte) ([]byte, error) {
	var u idtype.UUID
	switch v := id.(type) {
	case idtype.UUID:
		u = v
	case *idtype.UUID:
		u = *v
	case untyper[idtype.UUID]:
		u = v.Untyped()
	}
	switch {
	case w.isOther(id):
		return nil, wrongType(id, w.typ)
	case w.text:
		return u.AppendText(buf)
	}
	return append(buf, u[:]...), nil
}

func (w wholeUUID) Scan(src []byte, target any) error {
	if !w.isUsual(src, target) {
		return w.unusual(target)
	}
	var id *idtype.UUID
	switch target := target.(type) {
	case *idtype.UUID:
		id = target
	case interface{ UntypedPointer() *idtype.UUID }:
		id = target.UntypedPointer()
	}
	switch {
	case w.text && (w.own() || id.UnmarshalText(src) != nil):
		return scan(target, string(src))
	case w.text:
		return nil
	case len(src) != len(id):
		return badWire("a uuid of 16 bytes", src)
	case w.own():
		return scan(target, uuid.UUID(src).String())
	}
	copy(id[:], src)
	return nil
}

// textChars is the wire for text, varchar and domains over them, in both formats.
type textChars struct{ *leaf }

func (w textChars) Encode(id any, buf []byte) ([]byte, error) {
	if w.isOther(id) {
		return nil, wrongType(id, w.typ)
	}
	b, err := w.append(buf, id)
	if err != nil {
		return nil, rejection(id, err)
	}
	return b, nil
}

// An untyper is a typed key.
type untyper[T any] interface{ Untyped() T }

// append appends the text without the prefix of a typed key.
func (w textChars) append(buf []byte, id any) ([]byte, error) {
	if !w.of.typed() {
		return id.(encoding.TextAppender).AppendText(buf)
	}
	switch key := at(reflect.Indirect(reflect.ValueOf(id)).Field(0)).(type) {
	case untyper[idtype.Snowflake]:
		return key.Untyped().AppendText(buf)
	case untyper[idtype.SnowflakeSI]:
		return key.Untyped().AppendText(buf)
	case untyper[idtype.UID60]:
		return key.Untyped().AppendText(buf)
	case untyper[idtype.Spread64]:
		return key.Untyped().AppendText(buf)
	case untyper[idtype.UUID]:
		return key.Untyped().AppendText(buf)
	default:
		u, err := w.of.uuidOf(key)
		return append(buf, u[:]...), err // the bytes of a Sno's uuid are its text
	}
}

func (w textChars) Scan(src []byte, target any) error {
	if !w.isUsual(src, target) {
		return w.unusual(target)
	}
	if w.own() {
		if i := len(bytes.TrimRight(src, " ")); i < len(src) { // Scan would take them for the padding of char(n)
			return &idtype.ParseError{Type: typename.Of(w.of.typ), Want: "the ID's text without spaces", Input: string(src[:min(len(src), maxErrorInput)]),
				Pos: i, Reason: `invalid character " "`, Err: idtype.ErrSyntax}
		}
		return scan(target, string(src))
	}
	if err := w.of.parse(src, reflect.ValueOf(target).Elem().Field(0).Addr().Interface()); err != nil {
		return w.of.named(err)
	}
	return nil
}

// named puts the name of a typed key into the error of its base type.
func (l *leaf) named(err error) error {
	var e *idtype.ParseError
	if errors.As(err, &e) {
		e.Type = strings.TrimPrefix(typename.Of(l.typ), "idtype.")
	}
	return err
}

// parse sets the ID at target to the one in a text without the prefix of a typed key.
func (l *leaf) parse(text []byte, target any) (err error) {
	if !l.typed() {
		return target.(encoding.TextUnmarshaler).UnmarshalText(text)
	}
	var n int64
	switch target := target.(type) {
	case untyper[idtype.Snowflake]:
		var id idtype.Snowflake
		err = id.UnmarshalText(text)
		n = int64(id)
	case untyper[idtype.SnowflakeSI]:
		var id idtype.SnowflakeSI
		err = id.UnmarshalText(text)
		n = int64(id)
	case untyper[idtype.UID60]:
		var id idtype.UID60
		err = id.UnmarshalText(text)
		n = int64(id)
	case untyper[idtype.Spread64]:
		var id idtype.Spread64
		err = id.UnmarshalText(text)
		n = int64(id)
	case interface{ UntypedPointer() *idtype.UUID }:
		return target.UntypedPointer().UnmarshalText(text)
	default:
		var id idtype.Sno
		if err := id.UnmarshalText(text); err != nil || l.setUUID(snoAt(target), text) {
			return err
		}
		return scan(target, id.UUID().String()) // for its error
	}
	if err != nil {
		return err
	}
	return l.setNumber(target, n)
}

// paddedChars is the wire for char(n), which the server pads with spaces.
type paddedChars struct{ textChars }

func (w paddedChars) Scan(src []byte, target any) error {
	return w.textChars.Scan(bytes.TrimRight(src, " "), target)
}

// snoIn returns the ID in a SnoBytes.
func (l *leaf) snoIn(id any) (idtype.Sno, error) {
	switch id := id.(type) {
	case sqltypes.SnoBytes:
		return id.ID, nil
	case *sqltypes.SnoBytes:
		return id.ID, nil
	}
	return idtype.Sno{}, wrongType(id, l.typ)
}

type byteaBinary struct{ *leaf }

func (w byteaBinary) Encode(id any, buf []byte) ([]byte, error) {
	sno, err := w.snoIn(id)
	return append(buf, sno[:]...), err
}

func (w byteaBinary) Scan(src []byte, target any) error {
	if !w.isUsual(src, target) {
		return w.unusual(target)
	}
	return target.(*sqltypes.SnoBytes).ID.UnmarshalBinary(src)
}

type byteaText struct{ *leaf }

const byteaPrefix = `\x`

func (w byteaText) Encode(id any, buf []byte) ([]byte, error) {
	sno, err := w.snoIn(id)
	return hex.AppendEncode(append(buf, byteaPrefix...), sno[:]), err
}

func (w byteaText) Scan(src []byte, target any) error {
	if !w.isUsual(src, target) {
		return w.unusual(target)
	}
	digits, ok := bytes.CutPrefix(src, []byte(byteaPrefix))
	var sno idtype.Sno
	if !ok || len(digits) != 2*len(sno) {
		return badWire(`a bytea of 10 bytes as \x and 20 hex digits`, src)
	}
	if _, err := hex.Decode(sno[:], digits); err != nil {
		return badWire(`a bytea of 10 bytes as \x and 20 hex digits`, src)
	}
	target.(*sqltypes.SnoBytes).ID = sno
	return nil
}
