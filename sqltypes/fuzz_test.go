package sqltypes_test

import (
	"encoding"
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
		fuzzUnmarshal(t, in, sqltypes.TextOf(snowflake))
		fuzzUnmarshal(t, in, sqltypes.TextOf(uid60))
		fuzzUnmarshal(t, in, sqltypes.OptionalOf(spread64))
		fuzzUnmarshal(t, in, sqltypes.OptionalOf(sqltypes.TextOf(idtype.SnoOf[customer](sno.WithMeta('c')))))
		fuzzUnmarshal(t, in, sqltypes.SnoBytesOf(sno))
		fuzzArrayJSON[idtype.Snowflake](t, in)
		fuzzArrayJSON[sqltypes.OptionalSno](t, in)
	})
}

func fuzzUnmarshal[V value](t *testing.T, in []byte, before V) {
	t.Helper()
	var again V
	after := before
	reread(t, in, before, &after, any(&after).(encoding.TextUnmarshaler).UnmarshalText, V.MarshalText, &again, any(&again).(encoding.TextUnmarshaler).UnmarshalText)
	after = before
	reread(t, in, before, &after, any(&after).(json.Unmarshaler).UnmarshalJSON, V.MarshalJSON, &again, any(&again).(json.Unmarshaler).UnmarshalJSON)
}

func reread[V value](t *testing.T, in []byte, before V, after *V, read func([]byte) error, write func(V) ([]byte, error), again *V, readAgain func([]byte) error) {
	t.Helper()
	if err := read(in); err != nil {
		if *after != before {
			t.Fatalf("%T: reading %q failed with %v, but changed the receiver to %v", before, in, err, *after)
		}
		return
	}
	b, err := write(*after)
	if err == nil {
		err = readAgain(b)
	}
	if err != nil || *again != *after {
		t.Fatalf("%T: read from %q as %v, and from %q as %v, %v", before, in, *after, b, *again, err)
	}
}

// fuzzArrayJSON doesn't test that a failure leaves the Array unchanged, because package
// encoding/json fills it.
func fuzzArrayJSON[T sqltypes.ID](t *testing.T, in []byte) {
	t.Helper()
	var a, again sqltypes.Array[T]
	if json.Unmarshal(in, &a) != nil {
		return
	}
	b, err := json.Marshal(a)
	if err == nil {
		err = json.Unmarshal(b, &again)
	}
	if err != nil || !reflect.DeepEqual(again, a) {
		t.Fatalf("%T: read from %q as %v, and from %s as %v, %v", a, in, a, b, again, err)
	}
}
