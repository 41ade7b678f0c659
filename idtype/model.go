package idtype

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/sortkey/sortkey/internal/typename"
)

// traits holds the declarations of a model about the IDs of its table.
type traits struct {
	prefix  string // of the text, with its underscore; empty if there is none
	meta    byte   // of its Snos, if hasMeta is set
	hasMeta bool
	layout  any // of its Snowflakes or SnowflakeSIs; nil if none is declared
}

// The methods by which a model declares its traits.
type (
	prefixer      interface{ IDPrefix() string }
	metaDeclarer  interface{ IDMeta() byte }
	snowflaker    interface{ IDLayout() SnowflakeLayout }
	snowflakeSIer interface{ IDLayout() SnowflakeSILayout }
)

var (
	known    sync.Map // from a nil *P, or a nil *[1]P for TypeIDs, to *traits
	noTraits traits
)

// traitsOf returns the traits of the model of a typed key with the type argument P, a *K.
func traitsOf[P any]() *traits {
	return lookUp[P]((*P)(nil), &ownPrefix) // P itself may be a type that can't be a key
}

// typeIDTraits is like traitsOf, for a key whose text is a TypeID.
func typeIDTraits[P any]() *traits { return lookUp[P]((*[1]P)(nil), &typeIDPrefix) }

// lookUp returns the traits that are known under key.
func lookUp[P any](key any, rule *prefixRule) *traits {
	k := any(*new(P)) // a nil pointer, so this allocates nothing, however large K is
	switch k.(type) {
	case prefixer, metaDeclarer, snowflaker, snowflakeSIer:
		if m, ok := known.Load(key); ok {
			return m.(*traits)
		}
		return learn[P](key, rule)
	}
	return &noTraits
}

// learn calls the methods of the model and stores the result under key.
func learn[P any](key any, rule *prefixRule) *traits {
	t := modelType[P]()
	m := declared(t)
	if m.prefix != "" {
		if !rule.valid(m.prefix) {
			panic(fmt.Sprintf("idtype: method IDPrefix of %s returns %q; want %s", typename.Of(t), m.prefix, rule.want))
		}
		m.prefix += "_"
	}
	if l, ok := m.layout.(interface{ Validate() error }); ok {
		if err := l.Validate(); err != nil {
			panic(fmt.Sprintf("idtype: method IDLayout of %s returns an invalid layout: %v", typename.Of(t), err))
		}
	}
	known.Store(key, m)
	return m
}

// A prefixRule says which prefixes a key accepts.
type prefixRule struct {
	valid func(string) bool
	want  string
}

var (
	ownPrefix    = prefixRule{validPrefix, "lower-case letters and digits, beginning with a letter, without the underscore"}
	typeIDPrefix = prefixRule{validTypeIDPrefix, "a prefix of a TypeID: up to 63 lower-case letters and underscores, with a letter at both ends"}
)

// validTypeIDPrefix reports whether a prefix is [a-z]([a-z_]{0,61}[a-z])?.
func validTypeIDPrefix(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c != '_' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// declared returns the results of a model's methods. It calls them on a new value, because
// methods of K can't be called on a nil pointer.
func declared(t reflect.Type) *traits {
	defer func() {
		if r := recover(); r != nil {
			panic(fmt.Sprintf("idtype: methods IDPrefix, IDMeta and IDLayout of %s panic on a new value: %v; declare them on the type itself", typename.Of(t), r))
		}
	}()
	k := reflect.New(t).Interface()
	m := new(traits)
	if p, ok := k.(prefixer); ok {
		m.prefix = p.IDPrefix()
	}
	if p, ok := k.(metaDeclarer); ok {
		m.meta, m.hasMeta = p.IDMeta(), true
	}
	switch p := k.(type) {
	case snowflaker:
		m.layout = p.IDLayout()
	case snowflakeSIer:
		m.layout = p.IDLayout()
	}
	return m
}

// modelType returns the model K of a *K.
func modelType[P any]() reflect.Type {
	t := reflect.TypeFor[P]()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// validPrefix reports whether a prefix is [a-z][a-z0-9]*.
func validPrefix(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', i > 0 && '0' <= c && c <= '9':
		default:
			return false
		}
	}
	return s != ""
}

// cut returns a text without the model's prefix.
func (m *traits) cut(text []byte) (rest []byte, ok bool) {
	n := len(m.prefix)
	if len(text) < n || string(text[:n]) != m.prefix {
		return text, false
	}
	return text[n:], true
}

// wrongPrefix returns the error for a text without the model's prefix. longest is the
// length of the format's texts, which may contain an underscore themselves.
func (m *traits) wrongPrefix(text []byte, want string, longest int) *ParseError {
	reason := "got no prefix"
	start := string(text[:min(len(text), maxErrorInput)])
	switch i := strings.IndexByte(start, '_'); {
	case start == "":
		reason = "got an empty text"
	case i > 0 && len(text) > longest && validPrefix(strings.ToLower(start[:i])):
		reason = "got the prefix " + strconv.Quote(start[:i+1])
	}
	return flaw{-1, reason, ErrSyntax}.in("", m.want(want), text)
}

// modelPrefix returns the prefix without its underscore.
func (m *traits) modelPrefix() string { return strings.TrimSuffix(m.prefix, "_") }

func (m *traits) want(want string) string {
	if m.prefix == "" {
		return want
	}
	return strconv.Quote(m.prefix) + " and " + want
}

// textError changes the error for the text after the prefix into the error for the whole
// text.
func (m *traits) textError(err error, text []byte) error {
	var e *ParseError
	if m.prefix != "" && errors.As(err, &e) {
		e.Want, e.Input = m.want(e.Want), string(text[:min(len(text), maxErrorInput)])
		if e.Pos >= 0 {
			e.Pos += len(m.prefix)
		}
	}
	return err
}

// typedError puts the name of a typed key into an error: of base for the model P.
func typedError[P any](base string, err error) error {
	var e *ParseError
	if errors.As(err, &e) {
		e.Type = typedName[P](base)
		if e.Err == ErrNull {
			e.Reason = nullReason(e.Type)
		}
	}
	return err
}

// typedName returns a name such as "SnowflakeOf[shop.Order]".
func typedName[P any](base string) string {
	return base + "Of[" + typename.Of(modelType[P]()) + "]"
}
