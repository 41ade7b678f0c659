package sqltypes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/sqltypes"
)

type (
	shop     struct{}
	customer struct{}
	visitor  struct{}
	// A shopID embeds a typed key.
	shopID struct{ idtype.SnowflakeOf[shop] }
)

func (shop) IDPrefix() string     { return "shop" }
func (customer) IDPrefix() string { return "cus" }
func (customer) IDMeta() byte     { return 'c' }

// The column has the text without the prefix; text and JSON have the prefix.
func TestTypedText(t *testing.T) {
	number := sqltypes.TextOf(idtype.SnowflakeOf[shop](7))
	testType(t, number, "shop_7", `"shop_7"`, "7", "text", []scan{
		{[]byte("7 "), number}, {"shop_7", idtype.ErrSyntax}, {"07", idtype.ErrSyntax}, {int64(7), idtype.ErrSyntax}, {nil, idtype.ErrNull},
		{sqltypes.TextOf(idtype.Snowflake(7)), idtype.ErrSyntax}, {sqltypes.TextOf(idtype.SnowflakeOf[visitor](7)), idtype.ErrSyntax},
		{sqltypes.TextOf(shopID{7}), number},
	})
	testType(t, sqltypes.TextOf(shopID{7}), "shop_7", `"shop_7"`, "7", "text", nil)
	testType(t, sqltypes.TextOf(idtype.SnowflakeSIOf[shop](7)), "shop_7", `"shop_7"`, "7", "text", nil)
	// The texts of these could be decimals too.
	testType(t, sqltypes.TextOf(idtype.Must(idtype.Parse[idtype.UID60Of[shop]]("shop_1234567890"))), "shop_1234567890", `"shop_1234567890"`, "1234567890", "text", nil)
	testType(t, sqltypes.TextOf(idtype.Must(idtype.Parse[idtype.Spread64Of[visitor]]("1234567890120123"))), "1234567890120123", `"1234567890120123"`, "1234567890120123", "text", []scan{
		{"1234", idtype.ErrSyntax},
	})
	id := sno.WithMeta('c')
	tagged := sqltypes.TextOf(idtype.SnoOf[customer](id))
	testType(t, tagged, "cus_"+id.String(), `"cus_`+id.String()+`"`, id.String(), "text", []scan{
		{sno.String(), idtype.ErrRange}, {id.UUID().String(), idtype.ErrSyntax}, {"cus_" + id.String(), idtype.ErrSyntax},
	})
	if v, err := sqltypes.TextOf(idtype.SnoOf[customer](sno)).Value(); v != nil || !errors.Is(err, idtype.ErrRange) {
		t.Errorf("Value with another metabyte = %v, %v, want ErrRange", v, err)
	}
	u := idtype.Must(idtype.ParseUUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"))
	testType(t, sqltypes.TextOf(u), u.String(), `"`+u.String()+`"`, u.String(), "text", nil)
	testType(t, sqltypes.TextOf(idtype.UUIDOf[shop](u)), "shop_01fwhe4ydgfk1shh6w1g60eecf", `"shop_01fwhe4ydgfk1shh6w1g60eecf"`, u.String(), "text", []scan{
		{u.String(), sqltypes.TextOf(idtype.UUIDOf[shop](u))}, {"shop_01fwhe4ydgfk1shh6w1g60eecf", idtype.ErrSyntax}})
	testType(t, sqltypes.OptionalOf(idtype.UUIDOf[shop](u)), "shop_01fwhe4ydgfk1shh6w1g60eecf", `"shop_01fwhe4ydgfk1shh6w1g60eecf"`, u.String(), "uuid", []scan{
		{nil, sqltypes.Optional[idtype.UUIDOf[shop]]{}}, {[16]byte(u), sqltypes.OptionalOf(idtype.UUIDOf[shop](u))}})
	err := new(sqltypes.Text[idtype.SnowflakeOf[shop]]).Scan("x")
	if err == nil || !strings.HasPrefix(err.Error(), `idtype: parse "x" as SnowflakeOf[sqltypes_test.shop]: `) {
		t.Errorf("error %q", err)
	}
	for _, src := range []any{7, nil} {
		err := new(sqltypes.Text[idtype.SnowflakeOf[shop]]).Scan(src)
		if err == nil || !strings.Contains(err.Error(), "sqltypes.Text[idtype.SnowflakeOf[sqltypes_test.shop]]: want the text of an idtype.SnowflakeOf[sqltypes_test.shop]") {
			t.Errorf("error %q", err)
		}
	}
}

func TestTypedOptional(t *testing.T) {
	number := sqltypes.OptionalOf(idtype.SnowflakeOf[shop](7))
	testType(t, number, "shop_7", `"shop_7"`, int64(7), "bigint", []scan{
		{nil, sqltypes.Optional[idtype.SnowflakeOf[shop]]{}}, {"7", number}, {idtype.SnowflakeOf[shop](7), number},
		{"shop_7", idtype.ErrSyntax}, {idtype.Snowflake(7), idtype.ErrSyntax}, {idtype.SnowflakeOf[visitor](7), idtype.ErrSyntax},
	})
	id := sno.WithMeta('c')
	testType(t, sqltypes.OptionalOf(idtype.SnoOf[customer](id)), "cus_"+id.String(), `"cus_`+id.String()+`"`, id.UUID().String(), "uuid", []scan{
		{sno.UUID().String(), idtype.ErrRange},
	})
	text := sqltypes.OptionalOf(sqltypes.TextOf(idtype.SnowflakeOf[shop](7)))
	testType(t, text, "shop_7", `"shop_7"`, "7", "text", []scan{{"shop_7", idtype.ErrSyntax}})
}
