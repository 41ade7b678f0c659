package rekey

import (
	"fmt"
	"strings"
)

// A keyForm describes old keys that contain times. The keys are in the order of their times, as
// uuid or as text by bytes.
type keyForm struct {
	types []string // of baseTypes
	what  string   // such as "a UUIDv7"
	// valid and milliseconds render SQL expressions for a key: whether it has the form, and
	// its time in Unix milliseconds.
	valid, milliseconds func(k *key, column string) string
}

// keyForms are the forms of old keys that contain times.
var keyForms = map[KeyTimes]keyForm{
	KeyUUIDv7: {
		types: []string{"uuid", "text"}, what: "a UUIDv7",
		valid: func(_ *key, column string) string {
			return "replace(" + column + "::text, '-', '') ~* '^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$'"
		},
		milliseconds: first48Bits,
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
}

func first48Bits(_ *key, column string) string {
	return "('x' || left(replace(" + column + "::text, '-', ''), 12))::bit(48)::bigint"
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

var baseTypes = map[string]string{"int2": "integer", "int4": "integer", "int8": "integer", "uuid": "uuid", "text": "text", "varchar": "text", "bpchar": "text"}

// ulidDigits are the digits of Crockford's base 32.
const ulidDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// newULID is an SQL expression for a ULID of now.
var newULID = query("ulid", ulidDigits)
