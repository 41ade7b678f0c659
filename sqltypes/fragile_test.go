package sqltypes_test

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// The aliases are what their names say.
var (
	_ sqltypes.SnowflakeText   = sqltypes.Text[idtype.Snowflake]{}
	_ sqltypes.SnowflakeSIText = sqltypes.Text[idtype.SnowflakeSI]{}
	_ sqltypes.UID60Text       = sqltypes.Text[idtype.UID60]{}
	_ sqltypes.Spread64Text    = sqltypes.Text[idtype.Spread64]{}
	_ sqltypes.SnoText         = sqltypes.Text[idtype.Sno]{}

	_ sqltypes.OptionalSnowflake   = sqltypes.Optional[idtype.Snowflake]{}
	_ sqltypes.OptionalSnowflakeSI = sqltypes.Optional[idtype.SnowflakeSI]{}
	_ sqltypes.OptionalUID60       = sqltypes.Optional[idtype.UID60]{}
	_ sqltypes.OptionalSpread64    = sqltypes.Optional[idtype.Spread64]{}
	_ sqltypes.OptionalSno         = sqltypes.Optional[idtype.Sno]{}

	_ sqltypes.OptionalSnowflakeText   = sqltypes.Optional[sqltypes.Text[idtype.Snowflake]]{}
	_ sqltypes.OptionalSnowflakeSIText = sqltypes.Optional[sqltypes.Text[idtype.SnowflakeSI]]{}
	_ sqltypes.OptionalUID60Text       = sqltypes.Optional[sqltypes.Text[idtype.UID60]]{}
	_ sqltypes.OptionalSpread64Text    = sqltypes.Optional[sqltypes.Text[idtype.Spread64]]{}
	_ sqltypes.OptionalSnoText         = sqltypes.Optional[sqltypes.Text[idtype.Sno]]{}
	_ sqltypes.OptionalSnoBytes        = sqltypes.Optional[sqltypes.SnoBytes]{}
)

// A fragileID lacks Scan, breaks what it fails on, and has a JSON of its own
// for zero.
type fragileID struct{ n int }

func (id fragileID) IsZero() bool                     { return id.n == 0 }
func (fragileID) String() string                      { return "" }
func (fragileID) AppendText(b []byte) ([]byte, error) { return b, nil }
func (fragileID) MarshalText() ([]byte, error)        { return nil, nil }
func (fragileID) MarshalJSON() ([]byte, error)        { return []byte("0"), nil }
func (fragileID) Value() (driver.Value, error)        { return nil, nil }
func (fragileID) GormDataType() string                { return "" }
func (id *fragileID) UnmarshalText([]byte) error      { id.n++; return errors.New("no") }
func (id *fragileID) UnmarshalJSON([]byte) error      { id.n++; return errors.New("no") }

// Types of others are put back if they fail, and told what they lack.
func TestFragileTypes(t *testing.T) {
	text, optional := sqltypes.TextOf(fragileID{1}), sqltypes.OptionalOf(fragileID{1})
	if text.UnmarshalText([]byte("1")) == nil || optional.UnmarshalJSON([]byte("1")) == nil || text.ID.n != 1 || optional.ID.n != 1 {
		t.Errorf("no error, or a trace: %v, %v", text, optional)
	}
	if err := optional.Scan("1"); err == nil || !strings.Contains(err.Error(), "with a method Scan, got sqltypes_test.fragileID: declare Scan on *sqltypes_test.fragileID") {
		t.Errorf("Scan: %v", err)
	}
	if b, err := json.Marshal(sqltypes.Optional[fragileID]{}); err != nil || string(b) != "null" {
		t.Errorf("JSON = %s, %v", b, err)
	}
	if err := optional.UnmarshalJSON([]byte("null")); err != nil || !optional.IsZero() {
		t.Errorf("null: %v, %v", optional, err)
	}
}

// What is wrong is said with what to do.
func TestMessages(t *testing.T) {
	var b sqltypes.SnoBytes
	for src, want := range map[any]string{
		nil:      "expected the 10 bytes of an idtype.Sno, got NULL: scan a nullable column into *sqltypes.SnoBytes, sql.Null[sqltypes.SnoBytes] or sqltypes.Optional[sqltypes.SnoBytes]: ",
		int64(1): "expected the 10 bytes of an idtype.Sno, got a column value of type int64: ",
	} {
		if err := b.Scan(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Scan(%v): %v, want %q", src, err, want)
		}
	}
}

// What could not be read again isn't written.
func TestNoIDs(t *testing.T) {
	for _, v := range []driver.Valuer{
		sqltypes.TextOf(idtype.Snowflake(-1)), sqltypes.TextOf(idtype.SnowflakeSI(1 << 53)), sqltypes.TextOf(idtype.UID60(-1)),
		sqltypes.TextOf(idtype.Spread64(0x0400)), sqltypes.OptionalOf(idtype.Snowflake(-1)), sqltypes.OptionalOf(sqltypes.TextOf(idtype.Snowflake(-1))),
	} {
		if got, err := v.Value(); got != nil || !errors.Is(err, idtype.ErrRange) {
			t.Errorf("%T: %v, %v, want ErrRange", v, got, err)
		}
	}
}
