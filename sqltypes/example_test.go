package sqltypes_test

import (
	"encoding/json"
	"fmt"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

// A table with a text key and an optional reference to itself.
func Example() {
	type Page struct {
		ID     sqltypes.Text[idtype.Sno]
		Parent sqltypes.Optional[sqltypes.Text[idtype.Sno]]
	}
	page := Page{ID: sqltypes.TextOf(idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")))}
	id, _ := page.ID.Value()
	parent, _ := page.Parent.Value()
	fmt.Printf("%#v %#v\n", id, parent)

	b, _ := json.Marshal(page)
	fmt.Println(string(b))
	// Output:
	// "brpk4q72xwf2m63l" <nil>
	// {"ID":"brpk4q72xwf2m63l","Parent":null}
}

// A column of type bigint[], and the parameter of id = ANY($1).
func ExampleArray() {
	type Basket struct {
		Items sqltypes.Array[idtype.Snowflake]
	}
	var b Basket
	err := b.Items.Scan("{7,132271570944274432}") // from the driver
	parameter, _ := sqltypes.ArrayOf(b.Items[:1]).Value()
	text, _ := json.Marshal(b)
	fmt.Println(len(b.Items), err, parameter, string(text))
	// Output: 2 <nil> {7} {"Items":["7","132271570944274432"]}
}

// A caller's own ID type embeds a type of package idtype.
func ExampleText() {
	type OrderID struct{ idtype.UID60 }

	v := sqltypes.TextOf(OrderID{11093174944930914})
	fmt.Println(v)

	// A char(10) column pads an ID of 9 characters.
	err := v.Scan("xinaS8QBh ")
	fmt.Println(int64(v.ID.UID60), err)
	// Output:
	// xinaS8QBh
	// 11093174944930914 <nil>
}

func ExampleOptional() {
	var parent sqltypes.Optional[idtype.Snowflake]
	v, _ := parent.Value()
	fmt.Println(v)

	if err := parent.Scan(int64(132271570944274432)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(parent.ID, parent.IsZero())
	// Output:
	// <nil>
	// 132271570944274432 false
}

func ExampleSnoBytes() {
	v := sqltypes.SnoBytesOf(idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")))
	b, _ := v.Value()
	fmt.Printf("%x %v\n", b, v)
	// Output: 4e6f2160a0ff9a0a1033 brpk4q72xwf2m63l
}
