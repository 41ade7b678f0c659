package zklease

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/nodelease"
)

// From any content of a znode, decode returns ErrMisconfigured, or exactly its fields, with
// values that a claim can follow. Among any names of znodes, numbers finds only numbers.
func FuzzZnode(f *testing.F) {
	f.Add([]byte(`{"term":3,"holder":"web-3 7","nonce":"KJ","after":5,"until":1763784000123}`))
	f.Add([]byte(`{"term":3,"holder":"","nonce":"","after":0,"until":null}`))
	f.Add([]byte(`{"term":3,"holder":"","nonce":"","UNTIL":9,"until":7}`))
	f.Add([]byte(`{"size":1024,"layout":"snowflake"}`))
	f.Add([]byte("7\n03\n-1\n64\n+2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if r := fuzzDecode[record](t, data); r != (record{}) && (r.Term < 1 || r.Term+1 < r.Term || r.After < 0 || r.Until < r.After) {
			t.Errorf("%q: decoded as %+v", data, r)
		}
		fuzzDecode[layout](t, data)

		names, want := strings.Split(string(data), "\n"), map[int]bool{}
		for n := range 8 {
			if slices.Contains(names, strconv.Itoa(n)) {
				want[n] = true
			}
		}
		if found := numbers(names, 8); !maps.Equal(found, want) {
			t.Errorf("%q: found %v, want %v", names, found, want)
		}
	})
}

func fuzzDecode[T comparable](t *testing.T, data []byte) T {
	v, err := decode[T]("/x", data)
	var zero T
	if err != nil {
		if v != zero || !errors.Is(err, nodelease.ErrMisconfigured) {
			t.Errorf("%q: decoded as %+v, %v", data, v, err)
		}
		return v
	}
	var got, want map[string]any
	if err := errors.Join(json.Unmarshal(encode(v), &got), json.Unmarshal(data, &want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q: decoded as %+v, %v", data, v, err)
	}
	return v
}
