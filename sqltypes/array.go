package sqltypes

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// An Array is a column of IDs, such as bigint[] or uuid[], or a parameter of ANY. Its
// elements have the column type of T. A nil Array is NULL, and an empty one is {}. The JSON
// form is an array of IDs.
//
// Without package pgxcodec, use it through [database/sql]: pgx itself would pass arrays in
// its binary format to Scan.
type Array[T ID] []T

// ArrayOf returns ids as an Array, without a copy.
func ArrayOf[T ID](ids []T) Array[T] { return ids }

// GormDataType returns the column type for GORM: that of T, followed by [].
func (Array[T]) GormDataType() string { return (*new(T)).GormDataType() + "[]" }

// Value returns the literal of a Postgres array, such as {1,2}. If the Value of an ID fails,
// Value returns that error.
func (a Array[T]) Value() (driver.Value, error) {
	if a == nil {
		return nil, nil
	}
	b := []byte{'{'}
	for i, id := range a {
		if i > 0 {
			b = append(b, ',')
		}
		v, err := id.Value()
		if err != nil {
			return nil, a.elementError(i, err)
		}
		switch v := v.(type) {
		case nil:
			b = append(b, null...)
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case []byte:
			b = append(hex.AppendEncode(append(b, `"\\x`...), v), '"')
		case string:
			b = appendElement(b, v)
		default:
			return nil, a.elementError(i, fmt.Errorf("want a Value of type int64, string or []byte, got %s; change the method Value", typename.OfValue(v)))
		}
	}
	return string(append(b, '}')), nil
}

// Scan accepts the literal of a Postgres array of one dimension, as a string or bytes. The
// elements must be values that T's Scan accepts. An array with NULLs needs an Array of
// [Optional], otherwise Scan returns [idtype.ErrNull]. NULL sets a to nil. If Scan fails, it
// leaves a unchanged.
func (a *Array[T]) Scan(src any) error {
	if isNull(src) {
		*a = nil
		return nil
	}
	switch src := src.(type) {
	case string:
		return a.parse(src)
	case []byte:
		return a.parse(string(src))
	}
	return typeError(arrayWant, src, *a)
}

const (
	// special are the characters that an element has only in quotes.
	special   = "{},\"\\ \t\n\v\f\r"
	arrayWant = "the literal of a Postgres array of one dimension, such as {1,2}"
	null      = "NULL"
)

// parse sets *a to the IDs in an array's literal.
func (a *Array[T]) parse(text string) error {
	elements, err := splitArray(text)
	if err != nil {
		return fmt.Errorf("sqltypes: scan %.64q into %s: want %s, got %v; with pgx, call pgxcodec.Register, which also reads the binary format: %w",
			text, typename.OfValue(*a), arrayWant, err, idtype.ErrSyntax)
	}
	column := columnOf[T]()
	ids := make(Array[T], len(elements))
	for i, e := range elements {
		v, err := e.value(column)
		if err == nil {
			err = scan(&ids[i], v)
		}
		if e.null && errors.Is(err, idtype.ErrNull) {
			err = fmt.Errorf("want an ID, got NULL; use an Array of sqltypes.Optional: %w", idtype.ErrNull)
		}
		if err != nil {
			return ids.elementError(i, err)
		}
	}
	*a = ids
	return nil
}

// columnOf returns the column type of a T.
func columnOf[T ID]() string {
	var zero T
	switch v, _ := zero.Value(); v.(type) {
	case int64:
		return "bigint"
	case []byte:
		return "bytea"
	}
	return zero.GormDataType() // the Value of an Optional is NULL
}

func (a Array[T]) elementError(i int, err error) error {
	return fmt.Errorf("sqltypes: element %d of %s: %w", i, typename.OfValue(a), err)
}

// An element is the text of an array's element, without quotes.
type element struct {
	text string
	null bool
}

// value returns an element as drivers return a column of its type.
func (e element) value(column string) (driver.Value, error) {
	switch {
	case e.null:
		return nil, nil
	case column == "bigint":
		n, err := strconv.ParseInt(e.text, 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != e.text {
			return nil, fmt.Errorf("want a bigint, got %.64q; check the column's type: %w", e.text, idtype.ErrSyntax)
		}
		return n, nil
	case column == "bytea":
		digits, ok := strings.CutPrefix(e.text, `\x`)
		b, err := hex.DecodeString(digits)
		if !ok || err != nil {
			return nil, fmt.Errorf("want a bytea in hex digits, got %.64q; check the column's type and the setting bytea_output: %w", e.text, idtype.ErrSyntax)
		}
		return b, nil
	}
	return e.text, nil
}

// bounds matches the first and the last index, which an array has if the first is not 1.
var bounds = regexp.MustCompile(`^\[(-?[0-9]+):(-?[0-9]+)\]=`)

// areBounds reports whether an array of n elements can have the indexes first and last.
func areBounds(first, last string, n int) bool {
	i, err := strconv.ParseInt(first, 10, 32)
	return err == nil && strconv.FormatInt(i+int64(n)-1, 10) == last
}

// splitArray returns the elements of an array's literal. Its error completes a sentence
// that begins with got.
func splitArray(text string) ([]element, error) {
	indexes := bounds.FindStringSubmatch(text)
	if indexes != nil {
		text = text[len(indexes[0]):]
	}
	rest, ok := strings.CutPrefix(text, "{")
	switch {
	case !ok:
		return nil, errors.New("no brace")
	case rest == "}" && indexes == nil:
		return nil, nil
	}
	elements := make([]element, 0, strings.Count(rest, ",")+1)
	for {
		e, after, err := cutElement(rest)
		if err != nil {
			return nil, err
		}
		elements = append(elements, e)
		if after == "}" {
			if indexes != nil && !areBounds(indexes[1], indexes[2], len(elements)) {
				return nil, fmt.Errorf("%d elements", len(elements))
			}
			return elements, nil
		}
		if rest, ok = strings.CutPrefix(after, ","); !ok {
			return nil, fmt.Errorf("%.64q after element %d", after, len(elements)-1)
		}
	}
}

// cutElement returns the first element and the text after it.
func cutElement(text string) (e element, after string, err error) {
	quoted, ok := strings.CutPrefix(text, `"`)
	if !ok {
		end := strings.IndexAny(text, special)
		if end < 0 {
			end = len(text)
		}
		e.text = text[:end]
		switch {
		case strings.HasPrefix(text, "{"):
			return e, "", errors.New("an array in an array")
		case e.text == "":
			return e, "", errors.New("an empty element")
		}
		e.null = strings.EqualFold(e.text, null)
		return e, text[end:], nil
	}
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		switch quoted[i] {
		case '"':
			e.text = b.String()
			return e, quoted[i+1:], nil
		case '\\':
			i++
		}
		if i < len(quoted) {
			b.WriteByte(quoted[i])
		}
	}
	return e, "", errors.New("a quote without an end")
}

// appendElement appends the text of an array's element, in quotes if the server would write
// them.
func appendElement(b []byte, text string) []byte {
	if text != "" && !strings.EqualFold(text, null) && !strings.ContainsAny(text, special) {
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, quotes.Replace(text)...)
	return append(b, '"')
}

var quotes = strings.NewReplacer(`"`, `\"`, `\`, `\\`)
