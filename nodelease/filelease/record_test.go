package filelease

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

// From any content of a file, decode returns an error, or exactly its fields, with values that
// a claim can follow. TestErrors claims numbers of such files.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"size":1024,"layout":"snowflake","term":3,"holder":"web-3 7","nonce":"KJ","after":5,"until":1763784000123}`))
	f.Add([]byte(`{"size":1024,"layout":"snowflake","term":3,"holder":"","nonce":"","after":0,"until":null}`))
	f.Add([]byte(`{"size":1024,"layout":"snowflake","term":3,"holder":"","nonce":"","UNTIL":9,"until":7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := decode(data)
		if err != nil {
			if rec != (record{}) {
				t.Errorf("%q: decoded as %+v, %v", data, rec, err)
			}
			return
		}
		if rec.Term < 1 || rec.Term+1 < rec.Term || rec.After < 0 || rec.Until < rec.After {
			t.Errorf("%q: decoded as %+v", data, rec)
		}
		written, err := json.Marshal(rec)
		var got, want map[string]any
		if err := errors.Join(err, json.Unmarshal(written, &got), json.Unmarshal(data, &want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: decoded as %+v, %v", data, rec, err)
		}
	})
}
