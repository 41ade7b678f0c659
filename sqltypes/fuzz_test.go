package sqltypes_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A value that is read from JSON or text is written as JSON or text of the same value. If
// reading fails, the receiver is unchanged.
func FuzzUnmarshal(f *testing.F) {
	for _, s := range []string{`"132271570944274432"`, "132271570944274432", "9007199254740992", `"xinaS8QBh"`, "xinaS8QBh", `"xiAnaS8QBh"`, `"cb54ecf2840a0015"`, `"brpk4q72xwf2m63l"`,
		`"6272706b-3471-3732-7877-66326d36336c"`, `"\\x4e6f2160a0ff9a0a1033"`, `"brpk4q72xwf2m63l "`, "null", `""`, "", "[7,null]", `["brpk4q72xwf2m63l"]`, "[[7]]", "[]", `{"7":7}`, "7.0", `"\u0037"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, v := range []any{sqltypes.TextOf(snowflake), sqltypes.TextOf(uid60), sqltypes.OptionalOf(spread64), sqltypes.OptionalOf(sqltypes.TextOf(idtype.SnoOf[customer](sno.WithMeta('c')))), sqltypes.SnoBytesOf(sno)} {
			reread(t, in, v, func(u target, b []byte) error { return u.UnmarshalText(b) }, value.MarshalText)
			reread(t, in, v, func(u target, b []byte) error { return u.UnmarshalJSON(b) }, value.MarshalJSON)
		}
		rereadArray(t, in, new(sqltypes.Array[idtype.Snowflake]), new(sqltypes.Array[idtype.Snowflake]))
		rereadArray(t, in, new(sqltypes.Array[sqltypes.Optional[idtype.Sno]]), new(sqltypes.Array[sqltypes.Optional[idtype.Sno]]))
	})
}

func reread(t *testing.T, in []byte, before any, read func(target, []byte) error, write func(value) ([]byte, error)) {
	t.Helper()
	u, again := ptr(before).(target), newOf(before).(target)
	err := read(u, in)
	after := elem(u).(value)
	if err != nil {
		if after != before {
			t.Fatalf("%T: reading %q failed with %v, but changed the receiver to %v", before, in, err, after)
		}
		return
	}
	b, err := write(after)
	if err == nil {
		err = read(again, b)
	}
	if err != nil || elem(again) != after {
		t.Fatalf("%T: read from %q as %v, and from %q as %v, %v", before, in, after, b, elem(again), err)
	}
}

// rereadArray doesn't test that a failure leaves the Array unchanged, because package
// encoding/json fills it. It gets two pointers to empty Arrays.
func rereadArray(t *testing.T, in []byte, a, again any) {
	t.Helper()
	if json.Unmarshal(in, a) != nil {
		return
	}
	b, err := json.Marshal(a)
	if err == nil {
		err = json.Unmarshal(b, again)
	}
	if err != nil || !reflect.DeepEqual(again, a) {
		t.Fatalf("%T: read from %q as %v, and from %s as %v, %v", a, in, elem(a), b, elem(again), err)
	}
}
