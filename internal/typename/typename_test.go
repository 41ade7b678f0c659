package typename

import (
	"database/sql"
	"reflect"
	"testing"
)

type local struct{}

func TestOf(t *testing.T) {
	type inside struct{}
	for want, v := range map[string]any{
		"int64":                                  int64(0),
		"*typename.local":                        new(local),
		"sql.Null[typename.local]":               sql.Null[local]{},
		"sql.Null[typename.inside]":              sql.Null[inside]{},
		"map[string][]sql.Null[*typename.local]": map[string][]sql.Null[*local]{},
		"struct { A sql.Null[typename.local]; B typename.local }": struct {
			A sql.Null[local]
			B local
		}{},
		"func(sql.Null[typename.local]) error": func(sql.Null[local]) error { return nil },
	} {
		if got := OfValue(v); got != want {
			t.Errorf("%T is named %q, want %q", v, got, want)
		}
	}
	if got := Of(nil); got != "nil" {
		t.Errorf("nil is named %q", got)
	}
	if got := Of(reflect.TypeFor[error]()); got != "error" {
		t.Errorf("error is named %q", got)
	}
}

// These names are from modules that the tests can't import.
func TestNames(t *testing.T) {
	const idtype = "github.com/sortkey/sortkey/idtype"
	for name, want := range map[string]string{
		"idtype.Typed[*example.com/acme/shop/v2.Order," + idtype + ".Snowflake]":  "idtype.SnowflakeOf[shop.Order]",
		"idtype.Typed[*example.com/acme/shop/v2_test.Order," + idtype + ".UID60]": "idtype.UID60Of[shop_test.Order]",
		"idtype.Typed[*gopkg.in/shop%2ev3.Order," + idtype + ".Spread64]":         "idtype.Spread64Of[shop.Order]",
		"idtype.TypedSno[*example.com/a%2eb.List[example.com/c/v10.Item]]":        "idtype.SnoOf[a.b.List[c.Item]]",
		"[]*sql.Null[" + idtype + ".TypedSno[*example.com/shop.Order]]":           "[]*sql.Null[idtype.SnoOf[shop.Order]]",
		"idtype.TypedUUID[*a/b.C]": "idtype.UUIDOf[b.C]",
		"map[" + idtype + ".TypedSno[*a/b.C]]" + idtype + ".Typed[*a/b.C," + idtype + ".UID60]": "map[idtype.SnoOf[b.C]]idtype.UID60Of[b.C]",
		"idtype.Typed[*" + idtype + ".TypedSno[*a/b.C]," + idtype + ".SnowflakeSI]":             "idtype.SnowflakeSIOf[idtype.SnoOf[b.C]]",
		"shop.v2.Order": "shop.v2.Order",
	} {
		if got := aliased(withoutPaths(name)); got != want {
			t.Errorf("%s becomes %q, want %q", name, got, want)
		}
	}
}
