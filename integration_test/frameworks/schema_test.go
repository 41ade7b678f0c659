package frameworks

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	invopop "github.com/invopop/jsonschema"

	"github.com/sortkey/sortkey/examples/frameworks/key"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// schemas are the JSON schemas of the IDs for google/jsonschema-go. The zero ID is null.
var schemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[idtype.SnowflakeSI]():             {Types: []string{"null", "integer"}, Minimum: jsonschema.Ptr(1.0), Maximum: jsonschema.Ptr(1<<53 - 1.0)},
	reflect.TypeFor[idtype.UID60]():                   {Types: []string{"null", "string"}, Pattern: `^[A-Za-z0-9_-]{4,10}$`},
	reflect.TypeFor[idtype.Spread64]():                {Types: []string{"null", "string"}, Pattern: `^[0-9a-f]{16}$`},
	reflect.TypeFor[key.OrderID]():                    {Types: []string{"null", "string"}, Pattern: `^ord_[1-9][0-9]{0,18}$`},
	reflect.TypeFor[key.CustomerID]():                 {Types: []string{"null", "string"}, Pattern: `^[2-9a-x]{16}$`},
	reflect.TypeFor[sqltypes.Optional[key.OrderID]](): {Types: []string{"null", "string"}, Pattern: `^ord_[1-9][0-9]{0,18}$`},
}

// A document has IDs in the forms of JSON.
type document struct {
	SI       idtype.SnowflakeSI             `json:"si"`
	Short    idtype.UID60                   `json:"short"`
	Spread   idtype.Spread64                `json:"spread"`
	Order    key.OrderID                    `json:"order"`
	Customer key.CustomerID                 `json:"customer"`
	Replaces *key.OrderID                   `json:"replaces"`
	Parent   sqltypes.Optional[key.OrderID] `json:"parent"`
}

// A taggedDocument is a document with tags for invopop/jsonschema.
type taggedDocument struct {
	SI       idtype.SnowflakeSI             `json:"si" jsonschema:"nullable,minimum=1,maximum=9007199254740991"`
	Short    idtype.UID60                   `json:"short" jsonschema:"nullable,pattern=^[A-Za-z0-9_-]{4\\,10}$"`
	Spread   idtype.Spread64                `json:"spread" jsonschema:"nullable,pattern=^[0-9a-f]{16}$"`
	Order    key.OrderID                    `json:"order" jsonschema:"nullable,pattern=^ord_[1-9][0-9]{0\\,18}$"`
	Customer key.CustomerID                 `json:"customer" jsonschema:"nullable,pattern=^[2-9a-x]{16}$"`
	Replaces *key.OrderID                   `json:"replaces" jsonschema:"nullable,pattern=^ord_[1-9][0-9]{0\\,18}$"`
	Parent   sqltypes.Optional[key.OrderID] `json:"parent" jsonschema:"nullable,pattern=^ord_[1-9][0-9]{0\\,18}$"`
}

// values are JSON values. Some are IDs.
var values = []string{
	"null", "7", "-7", "0", "7.5", "9007199254740991", "9007199254740992", `"7"`, `"-7"`, `""`, `"pear"`, `["ord_7"]`, `{"ID":7}`, "[1,2,3,4,5,6,7,8,9,10]", "true",
	`"ord_7"`, `"ord_0"`, `"ord_07"`, `"ord_-7"`, `"ORD_7"`, `"cus_7"`, `"ord_7 "`, `"ord_779300444248735744"`, `"ord_77930044424873574400"`,
	`"AHAA"`, `"xinaS8QBh"`, `"xinaS8QBh="`, `"xinaS8QBh-0"`, `"1234567890"`, `"0000000000000007"`, `"cb54ecf2840a0015"`, `"CB54ECF2840A0015"`,
	`"brpk4q72egf2m63l"`, `"brpk4q72egf2m631"`, `"brpk4q72egf2m63"`, `"6272706b-3471-3732-6567-66326d36336c"`,
}

// validates reports whether a schema accepts a document in which one field has a JSON value.
func validates(t *testing.T, schema []byte, field, value string) bool {
	t.Helper()
	var s jsonschema.Schema
	must(t, json.Unmarshal(schema, &s))
	s.Required = nil
	resolved, err := s.Resolve(nil)
	must(t, err)
	var instance any
	must(t, json.Unmarshal(fmt.Appendf(nil, `{%q:%s}`, field, value), &instance))
	return resolved.Validate(instance) == nil
}

// checkSchema compares a schema of document with the JSON of its fields: the schema accepts a
// value if it is the JSON of an ID.
func checkSchema(t *testing.T, schema []byte) {
	t.Helper()
	accepted := 0
	for _, field := range reflect.VisibleFields(reflect.TypeFor[document]()) {
		name := field.Tag.Get("json")
		for _, value := range values {
			id := reflect.New(field.Type)
			err := json.Unmarshal([]byte(value), id.Interface())
			written, _ := json.Marshal(id.Interface())
			isJSON := err == nil && string(written) == value
			if isJSON {
				accepted++
			}
			if got := validates(t, schema, name, value); got != isJSON {
				t.Errorf("%s: the schema accepts %s: %t, want %t", name, value, got, isJSON)
			}
		}
	}
	if accepted < 20 {
		t.Errorf("got %d values that are JSON of IDs, want 20 or more", accepted)
	}
}

func TestGoogleSchema(t *testing.T) {
	// By kind, the schema rejects the struct's own JSON.
	plain, err := jsonschema.For[document](nil)
	must(t, err)
	bare, err := json.Marshal(plain)
	must(t, err)
	if validates(t, bare, "order", `"ord_7"`) {
		t.Error("without TypeSchemas, the schema accepts a text; drop the recipe")
	}

	s, err := jsonschema.For[document](&jsonschema.ForOptions{TypeSchemas: schemas})
	must(t, err)
	schema, err := json.Marshal(s)
	must(t, err)
	checkSchema(t, schema)
}

func TestInvopopSchema(t *testing.T) {
	reflector := invopop.Reflector{DoNotReference: true}
	schema, err := json.Marshal(reflector.Reflect(taggedDocument(document{})))
	must(t, err)
	checkSchema(t, schema)

	// Without tags, a schema has the type of the JSON.
	type forms struct {
		Integer  idtype.SnowflakeSI                               `want:"integer"`
		TypedSI  idtype.SnowflakeSIOf[document]                   `want:"integer"`
		Prefixed idtype.SnowflakeSIOf[key.Order]                  `want:"string"`
		Number   idtype.Snowflake                                 `want:"string"`
		Sno      idtype.Sno                                       `want:"string"`
		UUID     idtype.UUID                                      `want:"string"`
		TypedID  idtype.UUIDOf[document]                          `want:"string"`
		Text     sqltypes.Text[idtype.Sno]                        `want:"string"`
		Bytes    sqltypes.SnoBytes                                `want:"string"`
		Nested   sqltypes.Optional[sqltypes.Text[key.CustomerID]] `want:"string"`
		Own      ownID                                            `want:"string"`
		List     []key.OrderID                                    `want:"string in an array"`
		Array    sqltypes.Array[key.CustomerID]                   `want:"string in an array"`
	}
	properties := reflector.Reflect(forms{}).Properties
	for _, field := range reflect.VisibleFields(reflect.TypeFor[forms]()) {
		if field.Anonymous || len(field.Index) > 1 {
			continue
		}
		property, _ := properties.Get(field.Name)
		got := property.Type
		if got == "array" {
			got = property.Items.Type + " in an array"
		}
		if want := field.Tag.Get("want"); got != want {
			t.Errorf("%s: got %s, want %s", field.Name, got, want)
		}
	}
}

// An ownID is an ID type of the caller.
type ownID struct{ idtype.Snowflake }
