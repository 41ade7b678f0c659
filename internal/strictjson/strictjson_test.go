package strictjson

import (
	"strings"
	"testing"
)

type sample struct {
	Term   int64  `json:"term"`
	Holder string `json:"holder"`
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		`{"term":3,"holder":"x"}`:             "",
		" {\"holder\": \"x\",\n\"term\": 3} ": "",
		`{"term":3}`:                          "want 2 fields, got 1",
		`{"term":3,"holder":"x","x":1}`:       `unknown or repeated field "x"`,
		`{"term":3,"holder":"x","term":3}`:    `unknown or repeated field "term"`,
		`{"term":3,"Holder":"x"}`:             `unknown or repeated field "Holder"`,
		`{"term":null,"holder":"x"}`:          `want a value of field "term", got null`,
		`{"term":3.5,"holder":"x"}`:           "cannot unmarshal number 3.5",
		`{"term":3,"holder":"x"} 8`:           "after top-level value",
		`{"term":3,"holder":"x"`:              "unexpected end",
		"null":                                "want an object",
		"":                                    "unexpected end",
	} {
		got, err := Decode[sample]([]byte(in))
		if want == "" && (err != nil || got != sample{3, "x"}) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || got != sample{}) {
			t.Errorf("%s: got %+v, %v, want the error %q", in, got, err, want)
		}
	}
}
