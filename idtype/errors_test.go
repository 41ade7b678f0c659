package idtype

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// errValuer is a driver.Valuer that holds a Snowflake and fails.
type errValuer struct{ Snowflake }

func (errValuer) Value() (driver.Value, error) { return nil, errors.New("no value") }

func TestErrorTexts(t *testing.T) {
	scan := func(src any) error { var id Snowflake; return id.Scan(src) }
	scanSno := func(src any) error { var id Sno; return id.Scan(src) }
	errOf := func(_ any, err error) error { return err }
	foreign := uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479")
	_, err := SnoFromUUID(foreign)
	_, _, window := UID60Layout{}.Range(time.UnixMilli(2), time.UnixMilli(1))
	for want, err := range map[string]error{
		`idtype: parse "abc" as Sno: want 16 characters [2-9a-x], got 3 bytes`:                                                                                                                       errOf(ParseSno("abc")),
		`idtype: parse "Brpk4q72xwf2m63l" as Sno: invalid character "B" at byte 0; want 16 characters [2-9a-x]`:                                                                                      errOf(ParseSno("Brpk4q72xwf2m63l")),
		`idtype: parse "1" as Sno: not a JSON string; want 16 characters [2-9a-x] in quotes`:                                                                                                         new(Sno).UnmarshalJSON([]byte("1")),
		`idtype: parse "9007199254740992" as SnowflakeSI: out of range; want a decimal integer from 0 to 9007199254740991`:                                                                           errOf(ParseSnowflakeSI("9007199254740992")),
		`idtype: parse "" as Snowflake: no digits; want a decimal integer from 0 to 9223372036854775807`:                                                                                             errOf(ParseSnowflake("")),
		`idtype: convert -1 to Snowflake: out of range; want a decimal integer from 0 to 9223372036854775807`:                                                                                        errOf(Snowflake(-1).Value()),
		`idtype: scan -1 into Snowflake: out of range; want a decimal integer from 0 to 9223372036854775807`:                                                                                         scan(int64(-1)),
		`idtype: scan "-1" into Snowflake: invalid character "-" at byte 0; want a decimal integer from 0 to 9223372036854775807, the value of a bigint column`:                                      scan("-1"),
		`idtype: scan "f47ac10b-58cc-4372-a567-0e02b2c3d479" into Snowflake: invalid character "f" at byte 0; want a decimal integer from 0 to 9223372036854775807, the value of a bigint column`:    scan(foreign.String()),
		`idtype: scan "ord_01h455vb4pex5vsknk084sn02q" into UUID: want a UUID as 16 bytes or 36 characters, the value of a uuid column, got 30 bytes`:                                                new(UUID).Scan("ord_01h455vb4pex5vsknk084sn02q"),
		`idtype: scan "1.5" into Snowflake: want a decimal integer from 0 to 9223372036854775807, got float64; scan a column of the format's type`:                                                   scan(1.5),
		`idtype: scan "AAAB" into Snowflake: want one ID of type idtype.Snowflake, alone or in a struct, got idtype.UID60; scan it into its own type`:                                                scan(UID60(1 << 12)),
		`idtype: scan "7" into Snowflake: call Value of idtype.errValuer: no value`:                                                                                                                  scan(errValuer{7}),
		`idtype: scan NULL into Sno: NULL is not an ID; scan a nullable column into *idtype.Sno, sql.Null[idtype.Sno] or sqltypes.Optional[idtype.Sno]`:                                              scanSno(nil),
		`idtype: parse "f47ac10b-58cc-4372-a567-0e02b2c3d479" as Sno: not all bytes are in [2-9a-x], so the UUID is from another source; want a UUID whose 16 bytes are the 16 characters of a Sno`:  err,
		`idtype: scan "f47ac10b-58cc-4372-a567-0e02b2c3d479" into Sno: not all bytes are in [2-9a-x], so the UUID is from another source; want a UUID whose 16 bytes are the 16 characters of a Sno`: scanSno(foreign),
		`idtype: parse "xiAaS8QBh" as UID60: leading A at byte 2; want 4 to 10 characters [A-Za-z0-9_-], with a leading A only in the 10-character form`:                                             errOf(ParseUID60("xiAaS8QBh")),
		`idtype: convert 1024 to Spread64: reserved bits are set; want a number with bits 10 to 15 zero`:                                                                                             errOf(Spread64(1024).AppendText(nil)),
		`idtype: parse "0000000000000400" as Spread64: reserved bits are set; want 16 hex digits [0-9a-f] with bits 10 to 15 zero`:                                                                   errOf(ParseSpread64("0000000000000400")),
		`idtype: scan c1_brpk4q72xwf2m63l into SnoOf[idtype.customer]: want the model's metabyte 99 ('c'), got the metabyte 255`:                                                                     new(SnoOf[customer]).Scan(Must(ParseSno("brpk4q72xwf2m63l")).UUID()),
		`idtype: convert times 1970-01-01T00:00:00.002Z and 1970-01-01T00:00:00.001Z to a range: the end is before the start; swap the times`:                                                        window,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// PublicMessage names neither Go types nor remedies for programmers.
func TestPublicMessage(t *testing.T) {
	errOf := func(_ any, err error) error { return err }
	scan := func(src any) error { return new(SnowflakeOf[order]).Scan(src) }
	const decimal = "want a decimal integer from 0 to 9223372036854775807"
	for _, test := range []struct {
		err  error
		want string
	}{
		{errOf(ParseSno("abc")), `"abc" is not a valid ID: want 16 characters [2-9a-x], got 3 bytes`},
		{fmt.Errorf("parameter id: %w", errOf(ParseSno("abc"))), `"abc" is not a valid ID: want 16 characters [2-9a-x], got 3 bytes`},
		{errOf(ParseSno("Brpk4q72xwf2m63l")), `"Brpk4q72xwf2m63l" is not a valid ID: invalid character "B" at byte 0; want 16 characters [2-9a-x]`},
		{errOf(Parse[SnowflakeOf[order]]("7")), `"7" is not a valid ID: want "ord_" and a decimal integer from 0 to 9223372036854775807, got no prefix`},
		{errOf(Parse[SnoOf[customer]]("c1_brpk4q72xwf2m63l")), `"c1_brpk4q72xwf2m63l" is not a valid ID: it is the ID of another kind of record`},
		{new(SnoOf[customer]).UnmarshalJSON([]byte("7")), `"7" is not a valid ID: not a JSON string; want "c1_" and 16 characters [2-9a-x] in quotes`},
		{new(UID60).UnmarshalJSON([]byte("true")), `"true" is not a valid ID: want 4 to 10 characters [A-Za-z0-9_-] in quotes, or a decimal integer from 0 to 1152921504606846975`},
		{errOf(new(UUID).Time()), `"00000000-0000-0000-0000-000000000000" is not a valid ID`},
		{scan(int64(-1)), `"-1" is not a valid ID: out of range; ` + decimal},
		{scan("1.5"), `"1.5" is not a valid ID: invalid character "." at byte 1; ` + decimal},
		{scan(1.5), `"1.5" is not a valid ID: ` + decimal},
		{scan(UID60(1 << 12)), `"AAAB" is not a valid ID: it is a value of another type`},
		{errOf(SnoFromUUID(uuid.MustParse("f47ac10b-58cc-4372-a567-0e02b2c3d479"))), `"f47ac10b-58cc-4372-a567-0e02b2c3d479" is not a valid ID: not all bytes`},
		// Long and binary input.
		{errOf(ParseSno(strings.Repeat("a", 1000))), `"` + strings.Repeat("a", 40) + `"... is not a valid ID: want 16 characters [2-9a-x], got 1000 bytes`},
		{errOf(ParseSno(strings.Repeat("a", 39) + "é")), `"` + strings.Repeat("a", 39) + `"... is not a valid ID`},
		{errOf(ParseSno(strings.Repeat("\x80", 50))), `"` + strings.Repeat(`\x80`, 36) + `"... is not a valid ID`},
		{errOf(ParseSno("\x00\n\"\u202e\xff")), `"\x00\n\"\u202e\xff" is not a valid ID`},
		{errOf(ParseSno("<a&amp;>é")), `"\x3ca\x26amp;\x3e\u00e9" is not a valid ID`},
		{errOf(ParseSno("<234567890123456")), `"\x3c234567890123456" is not a valid ID: invalid character "\x3c" at byte 0`},
		// Not about the client's input.
		{scan(nil), "invalid input"},
		{scan(errValuer{7}), `"7" is not a valid ID: it is a value of another type`},
		{new(Snowflake).Scan(errValuer{7}), "invalid input"},
		{errors.New("dial 10.0.0.7"), "invalid input"},
		{nil, "invalid input"},
	} {
		got := PublicMessage(test.err)
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%v:\ngot  %s\nwant %s", test.err, got, test.want)
		}
		for _, internal := range []string{"idtype", "Of[", "order", "customer", "float64", "model", "column", "tag"} {
			if strings.Contains(got, internal) {
				t.Errorf("%s contains %s", got, internal)
			}
		}
	}
}
