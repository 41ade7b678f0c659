// Package strictjson decodes records that people may edit by hand.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Decode decodes an object that has each field of the struct T once, and no other field.
// Package encoding/json alone would leave a field at zero if it is missing or null, take the
// last of several, and ignore the case of names.
func Decode[T any](data []byte) (T, error) {
	var v, zero T
	if err := json.Unmarshal(data, &v); err != nil { // also if other data follows
		return zero, err
	}
	example, err := json.Marshal(zero)
	if err != nil {
		return zero, err
	}
	var missing map[string]json.RawMessage
	if err := json.Unmarshal(example, &missing); err != nil {
		return zero, err
	}
	want := len(missing)
	// The tokens of valid JSON: Token and Decode don't fail.
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, _ := d.Token(); begin != json.Delim('{') {
		return zero, errors.New("want an object")
	}
	for d.More() {
		name, _ := d.Token()
		key, _ := name.(string)
		var value json.RawMessage
		_ = d.Decode(&value)
		switch _, ok := missing[key]; {
		case !ok:
			return zero, fmt.Errorf("unknown or repeated field %q", key)
		case string(value) == "null":
			return zero, fmt.Errorf("want a value of field %q, got null", key)
		}
		delete(missing, key)
	}
	if len(missing) > 0 {
		return zero, fmt.Errorf("want %d fields, got %d", want, want-len(missing))
	}
	return v, nil
}
