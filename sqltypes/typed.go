package sqltypes

import (
	"database/sql/driver"
	"encoding"
	"errors"
	"reflect"
	"strings"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/typename"
)

// An untyper is a typed key of idtype, or a struct that embeds one.
type untyper[T any] interface{ Untyped() T }

// columnText returns the text of an ID as a text column stores it: without the prefix of
// a typed key.
func columnText[T ID](id T) ([]byte, error) {
	var untyped encoding.TextAppender
	switch id := any(id).(type) {
	case untyper[idtype.Snowflake]:
		untyped = id.Untyped()
	case untyper[idtype.SnowflakeSI]:
		untyped = id.Untyped()
	case untyper[idtype.UID60]:
		untyped = id.Untyped()
	case untyper[idtype.Spread64]:
		untyped = id.Untyped()
	case untyper[idtype.Sno]:
		untyped = id.Untyped()
	case untyper[idtype.UUID]:
		untyped = id.Untyped()
	default:
		return id.(encoding.TextAppender).AppendText(nil)
	}
	// AppendText also checks the metabyte of an [idtype.SnoOf].
	if _, err := id.AppendText(nil); err != nil {
		return nil, err
	}
	return untyped.AppendText(nil)
}

// scanColumnText sets *dst from the text that columnText returns.
func scanColumnText[T ID](dst *T, text []byte) error {
	switch any(*dst).(type) {
	case untyper[idtype.Snowflake]:
		return scanUntyped[idtype.Snowflake](dst, text)
	case untyper[idtype.SnowflakeSI]:
		return scanUntyped[idtype.SnowflakeSI](dst, text)
	case untyper[idtype.UID60]:
		return scanUntyped[idtype.UID60](dst, text)
	case untyper[idtype.Spread64]:
		return scanUntyped[idtype.Spread64](dst, text)
	case untyper[idtype.Sno]:
		return scanUntyped[idtype.Sno](dst, text)
	case untyper[idtype.UUID]:
		return scanUntyped[idtype.UUID](dst, text)
	}
	return unmarshalText(dst, text)
}

// scanUntyped sets *dst, a typed key of the base type B, from B's text.
func scanUntyped[B driver.Valuer, P interface {
	*B
	encoding.TextUnmarshaler
}, T ID](dst *T, text []byte) error {
	var id B
	if err := P(&id).UnmarshalText(text); err != nil {
		var e *idtype.ParseError
		if errors.As(err, &e) {
			e.Type = strings.TrimPrefix(typename.Of(reflect.TypeFor[T]()), "idtype.")
		}
		return err
	}
	v, err := id.Value()
	if err != nil {
		return err
	}
	return scan(dst, v)
}
