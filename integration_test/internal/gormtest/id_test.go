package gormtest

import (
	"reflect"
	"testing"

	"github.com/sortkey/sortkey/idtype"
)

var kinds = []*Kind{Snowflake, SnowflakeSI, UID60, Spread64, Sno, TypedSnowflake, TypedSno, UUID, TypedUUID, OwnSnowflake, OwnSno}

// GORM gets no ID: the models of each ID type have its Go type.
func TestRealTypes(t *testing.T) {
	for _, k := range kinds {
		id := k.types.realOf(typeID)
		seen := map[reflect.Type]bool{}
		var check func(typ reflect.Type, path string)
		check = func(typ reflect.Type, path string) {
			if seen[typ] {
				return
			}
			seen[typ] = true
			switch typ.Kind() {
			case reflect.Pointer, reflect.Slice:
				check(typ.Elem(), path)
			case reflect.Struct:
				for f := range typ.Fields() {
					check(f.Type, path+"."+f.Name)
				}
			}
			if typ == typeID {
				t.Errorf("%s: GORM gets an ID in %s", k.Name, path)
			}
		}
		for _, model := range append(graphModels(), append(k.formModels(), &thing{}, &contact{}, &sender{}, &hooked{}, []struct{ Who *ID }{})...) {
			typ := k.types.realOf(reflect.TypeOf(model))
			check(typ, typ.String())
		}
		if !seen[id] {
			t.Errorf("%s: no model has a field of type %v", k.Name, id)
		}
	}
}

// A copying keeps the test's pointers, slices and maps, and changes what they refer to.
func TestCopying(t *testing.T) {
	type real = thingOf[idtype.Snowflake]
	seven, nine := ID{idtype.Snowflake(7)}, ID{idtype.Snowflake(9)}
	shared := &thing{Name: "shared"}
	rows, pointers, m, id := []thing{{}, {ID: seven}}, []*thing{shared, shared, nil}, map[string]any{"id": nil}, seven
	alias, first := m, &rows[0]
	c := newCopying(Snowflake.types, nil)
	realRows := c.real(&rows).(*[]real)
	realPointers := c.real(pointers).([]*real)
	realMap := c.real(&m).(*map[string]any)
	realID := c.real(&id).(*idtype.Snowflake)
	if realPointers[0] != realPointers[1] || realPointers[2] != nil || (*realRows)[1].ID != 7 || *realID != 7 {
		t.Fatalf("got %v, %v and %v", realRows, realPointers, realID)
	}
	(*realRows)[0].ID, realPointers[1].ID, (*realMap)["id"], *realID = 9, 9, idtype.Snowflake(9), 0
	*realRows = (*realRows)[:1]
	c.copyBack()
	if len(rows) != 1 || first.ID != nine || shared.ID != nine || pointers[0] != shared || alias["id"] != nine || m["id"] != nine || !id.IsZero() {
		t.Errorf("got %v, %v, %v, %v and %v", rows, shared, alias, m, id)
	}
}
