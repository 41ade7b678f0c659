package rekey

import (
	"fmt"
	"strings"
	"time"
)

// A keyForm describes old keys that contain times.
type keyForm struct {
	types []string // of baseTypes
	what  string   // such as "a UUIDv7"
	// valid and milliseconds render SQL expressions for a key: whether it has the form, and
	// its time in Unix milliseconds.
	valid, milliseconds func(k *key, column string) string
	exact               bool // upper and lower case differ
	// sorts renders an expression for a bigint with the order of the times. Without it, keys
	// are in the order of their times, as uuid or as text by bytes.
	sorts func(column string) string
}

const (
	xidDigits   = "0123456789abcdefghijklmnopqrstuv"
	ksuidDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// keyForms are the forms of old keys that contain times.
var keyForms = map[KeyTimes]keyForm{
	KeyUUIDv7: {
		types: []string{"uuid", "text"}, what: "a UUIDv7",
		valid: func(_ *key, column string) string {
			return "replace(" + column + "::text, '-', '') ~* '^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$'"
		},
		milliseconds: first48Bits,
	},
	KeyUUIDv1: {
		types: []string{"uuid"}, what: "a UUIDv1", sorts: uuidv1Ticks,
		valid: func(_ *key, column string) string { return column + "::text ~ '^.{14}1.{4}[89ab]'" },
		milliseconds: func(_ *key, column string) string { // units of 100 ns since 1582-10-15
			return "(" + uuidv1Ticks(column) + " / 10000 - 12219292800000)"
		},
	},
	KeyULID: {
		types: []string{"text", "uuid"}, what: "a ULID of 26 characters",
		valid: func(k *key, column string) string {
			if k.root.Base == "uuid" {
				return "true"
			}
			return "upper(" + column + ") ~ '^[0-7][" + ulidDigits + "]{25}$'"
		},
		milliseconds: func(k *key, column string) string {
			if k.root.Base == "uuid" {
				return first48Bits(k, column)
			}
			return digits("upper("+column+")", ulidDigits, 10)
		},
	},
	KeyKSUID: {
		types: []string{"text"}, what: "a KSUID of 27 characters", exact: true,
		valid: func(_ *key, column string) string {
			return column + " ~ '^[0-9A-Za-z]{27}$' AND " + column + ` COLLATE "C" <= 'aWgEPTl1tmebfsQzFP4bxwgy80V'`
		},
		milliseconds: func(_ *key, column string) string { // the first 32 of 160 bits are seconds since 2014-05-13T16:53:20Z
			return "(SELECT (1400000000 + div(sum((strpos('" + ksuidDigits + "', substr(" + column + ", i, 1)) - 1) * 62::numeric ^ (27 - i)), 2::numeric ^ 128))::bigint * 1000 FROM generate_series(1, 27) i)"
		},
	},
	KeyXID: {
		types: []string{"text"}, what: "an xid of 20 lower-case characters",
		valid: func(_ *key, column string) string { return column + " ~ '^[0-9a-v]{19}[0g]$'" },
		milliseconds: func(_ *key, column string) string { // the first 32 of 96 bits are Unix seconds
			return "((" + digits(column, xidDigits, 7) + " >> 3) * 1000)"
		},
	},
	KeySnowflake: {
		types: []string{"integer"}, what: "a snowflake",
		valid: func(_ *key, column string) string { return column + " >= 0" },
		milliseconds: func(k *key, column string) string {
			return fmt.Sprintf("(%d + div((%s >> %d)::numeric * %d, 1000))::bigint", k.Times.Epoch.UnixMilli(), column, k.Times.Shift, k.Times.Unit.Microseconds())
		},
	},
}

func first48Bits(_ *key, column string) string {
	return "('x' || left(replace(" + column + "::text, '-', ''), 12))::bit(48)::bigint"
}

// uuidv1Ticks renders the time of a UUIDv1, whose lowest bits come first.
func uuidv1Ticks(column string) string {
	return strings.ReplaceAll("(('x' || substr({}::text, 16, 3) || substr({}::text, 10, 4) || left({}::text, 8))::bit(60)::bigint)", "{}", column)
}

// digits renders the number that the first n characters of a text are in base 32.
func digits(column, alphabet string, n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("(strpos('%s', substr(%s, %d, 1)) - 1)::bigint << %d", alphabet, column, i+1, 5*(n-1-i)))
	}
	return "((" + strings.Join(list, ") | (") + "))"
}

// byBytes reports whether the order of the old keys is that of their bytes.
func (k *key) byBytes() bool { return k.Times.Key != "" && baseTypes[k.root.Base] == "text" }

// numeric reports whether times are numbers of Times.Unit since 1970.
func (c timeColumn) numeric() bool { return c.Type == "int8" || c.Type == "int4" }

// unit returns the unit of a column of numbers in microseconds.
func (t Times) unit() int64 {
	if t.Unit == 0 {
		return time.Millisecond.Microseconds()
	}
	return t.Unit.Microseconds()
}

var baseTypes = map[string]string{"int2": "integer", "int4": "integer", "int8": "integer", "uuid": "uuid", "text": "text", "varchar": "text", "bpchar": "text"}

// ulidDigits are the digits of Crockford's base 32.
const ulidDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newULID is an SQL expression for a ULID of now.
var newULID = query("ulid", ulidDigits)
