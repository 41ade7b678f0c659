package valuer_test

import (
	"database/sql"
	"database/sql/driver"
	"reflect"
	"testing"

	"github.com/sortkey/sortkey/internal/valuer"
)

// number and code are IDs of two formats.
type (
	number int64
	code   [10]byte
)

func (number) Value() (driver.Value, error) { return int64(1), nil }
func (*code) Value() (driver.Value, error)  { return "1", nil }

// A loop can point to itself.
type loop struct {
	Next *loop
	number
}

type extra struct{ Code code }

func TestID(t *testing.T) {
	n, c := number(1), code{}
	null, one := reflect.Type(nil), reflect.TypeFor[number]()
	type embeds struct{ number }
	type points struct{ *number }
	self := &loop{}
	self.Next = self
	for _, tt := range []struct {
		src  driver.Valuer
		want reflect.Type
		null bool
	}{
		{n, one, false},
		{&n, one, false},
		{embeds{n}, one, false},
		{&embeds{n}, one, false},
		{points{&n}, one, false},
		{struct{ points }{points{&n}}, one, false},
		{sql.Null[*embeds]{V: &embeds{n}, Valid: true}, one, false},
		{sql.Null[any]{V: &n, Valid: true}, one, false},
		{struct{ driver.Valuer }{embeds{n}}, one, false},
		{struct{ *sql.Null[number] }{&sql.Null[number]{}}, one, false},
		{&c, reflect.TypeFor[code](), false},
		{sql.Null[code]{}, reflect.TypeFor[code](), false},
		{struct{ *sql.Null[code] }{&sql.Null[code]{}}, reflect.TypeFor[code](), false},
		{struct {
			embeds
			*extra // not a driver.Valuer, though its field is one
			err    error
		}{embeds{n}, &extra{}, nil}, one, false},
		{sql.NullInt64{}, reflect.TypeFor[sql.NullInt64](), false},

		{(*number)(nil), null, true},
		{(*loop)(nil), null, true},
		{points{}, null, true},
		{struct{ points }{}, null, true},
		{struct{ driver.Valuer }{}, null, true},
		{sql.Null[*number]{}, null, true},

		{struct {
			number
			Other sql.Null[code]
		}{n, sql.Null[code]{}}, null, false},
		{struct {
			*number
			Other number
		}{nil, n}, null, false},
		{&loop{Next: self}, null, false},
	} {
		if id, isNull := valuer.ID(tt.src); id != tt.want || isNull != tt.null {
			t.Errorf("ID(%T) = %v, %v, want %v, %v", tt.src, id, isNull, tt.want, tt.null)
		}
	}
}
