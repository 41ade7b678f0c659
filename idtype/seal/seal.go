package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/sortkey/sortkey/internal/crockford"
	"github.com/sortkey/sortkey/internal/typename"
)

// ErrUnreadable means that the text is not a sealed ID of the type under one of the keys. It
// wasn't sealed, it was changed, or it was sealed for another type or with another key.
var ErrUnreadable = errors.New("not a sealed ID of this type and these keys")

// A Sealer seals IDs and opens sealed ones. It is safe for concurrent use.
type Sealer struct {
	keys  [][]byte
	kinds sync.Map // from a reflect.Type to its *kind
}

// An ID is an ID type of package idtype.
type ID interface {
	~int64 | ~[10]byte | ~[16]byte
	encoding.BinaryAppender
	IsZero() bool
}

// New returns a Sealer that seals with key, and opens texts that were sealed with key or one
// of the old keys. A key has 16, 24 or 32 random bytes, for AES-128, AES-192 or AES-256. New
// rejects other lengths, and bytes that aren't random: a text, such as a password or the hex
// digits of a key, and a key with fewer than 8 different bytes.
//
// To replace a key, first start all instances with the new one as an old key. Then start them
// with the new one as key. Remove the replaced one when its texts need no longer open.
func New(key []byte, oldKeys ...[]byte) (*Sealer, error) {
	s := &Sealer{}
	for i, k := range append([][]byte{key}, oldKeys...) {
		if err := check(k); err != nil {
			return nil, fmt.Errorf("seal: key %d %w; want 16, 24 or 32 random bytes, such as 32 of crypto/rand, decoded from hex or base64", i, err)
		}
		s.keys = append(s.keys, slices.Clone(k))
	}
	return s, nil
}

// check returns the reason why a key isn't usable. It rejects one of seven million random keys of
// 16 bytes, which have printable characters only.
func check(key []byte) error {
	if n := len(key); n != 16 && n != 24 && n != 32 {
		return fmt.Errorf("has %d bytes", n)
	}
	text, different := true, map[byte]bool{}
	for _, b := range key {
		text = text && b >= ' ' && b <= '~'
		different[b] = true
	}
	switch {
	case len(different) < 8:
		return fmt.Errorf("has %d different bytes", len(different))
	case text:
		return errors.New("is a text")
	}
	return nil
}

// Text returns the sealed text of an ID: the prefix of its model, if it has one, and 26
// characters [0-9a-hjkmnp-tv-z]. It returns an empty text for the zero ID, for a number
// that isn't an ID of the type, such as a negative Snowflake, and for a UUID that has another
// variant than RFC 9562 or none of its versions 1 to 8.
func Text[V ID](s *Sealer, id V) string {
	k := kindOf[V](s)
	b := scratch.Get().(*block)
	defer scratch.Put(b)
	*b = block{}
	plain, err := id.AppendBinary(b.plain[:0])
	if err != nil || id.IsZero() || !b.isPlain(len(plain)) {
		return ""
	}
	k.ciphers[0].Encrypt(b.sealed[:], b.plain[:])
	var text [64]byte
	return string(crockford.Append(append(text[:0], k.prefix...), &b.sealed))
}

// Parse returns the ID of a sealed text. For any other text it returns [ErrUnreadable]. The
// error names the type, but neither the text nor an ID.
func Parse[V ID, P interface {
	*V
	encoding.BinaryUnmarshaler
}](s *Sealer, text string) (id V, err error) {
	k := kindOf[V](s)
	rest, ok := strings.CutPrefix(text, k.prefix)
	if ok && len(rest) == crockford.Digits {
		if sealed, bad := crockford.Parse([]byte(rest)); bad < 0 {
			b := scratch.Get().(*block)
			defer scratch.Put(b)
			b.sealed = sealed
			size := int(reflect.TypeFor[V]().Size())
			for _, c := range k.ciphers {
				c.Decrypt(b.plain[:], b.sealed[:])
				// If it fails, UnmarshalBinary leaves id zero.
				if b.isPlain(size) && P(&id).UnmarshalBinary(b.plain[:size]) == nil && !id.IsZero() {
					return id, nil
				}
			}
		}
	}
	return id, fmt.Errorf("seal: open a text as %s: want %s26 characters of Text: %w",
		typename.Of(reflect.TypeFor[V]()), wantPrefix(k.prefix), ErrUnreadable)
}

func wantPrefix(prefix string) string {
	if prefix == "" {
		return ""
	}
	return `"` + prefix + `" and `
}

// A block is an ID before and after encryption. Calls through an interface would allocate it.
type block struct{ plain, sealed [aes.BlockSize]byte }

var scratch = sync.Pool{New: func() any { return new(block) }}

// isPlain reports whether the block has what follows an ID of this many bytes: zero bytes, or in
// a UUID the variant and a version of RFC 9562.
func (b *block) isPlain(size int) bool {
	if size == aes.BlockSize {
		version := b.plain[6] >> 4
		return b.plain[8]>>6 == 0b10 && version >= 1 && version <= 8
	}
	var rest byte
	for _, c := range b.plain[size:] {
		rest |= c
	}
	return rest == 0
}

// A kind has what distinguishes the sealed IDs of a type.
type kind struct {
	prefix  string // of the text, with its underscore; empty if there is none
	ciphers []cipher.Block
}

// kindOf returns the kind of a type. Its keys are derived from the Sealer's, so that the text of
// one type opens as no other.
func kindOf[V ID](s *Sealer) *kind {
	t := reflect.TypeFor[V]()
	if k, ok := s.kinds.Load(t); ok {
		return k.(*kind)
	}
	var zero V
	k, info := &kind{}, "sortkey sealed ID, type "+t.PkgPath()+"."+t.Name()
	if m, ok := any(zero).(interface{ ModelPrefix() string }); ok && m.ModelPrefix() != "" {
		k.prefix = m.ModelPrefix() + "_"
		info = "sortkey sealed ID, format " + format(t) + ", prefix " + m.ModelPrefix()
	}
	for _, key := range s.keys {
		k.ciphers = append(k.ciphers, derive(key, info))
	}
	known, _ := s.kinds.LoadOrStore(t, k)
	return known.(*kind)
}

// format returns the name of the format of a typed key.
func format(t reflect.Type) string {
	if m, ok := t.MethodByName("Untyped"); ok {
		t = m.Type.Out(0)
	}
	return t.Name()
}

// derive returns AES with the key for info, as long as the given one.
func derive(key []byte, info string) cipher.Block {
	derived, err := hkdf.Key(sha256.New, key, nil, info, len(key))
	if err != nil {
		panic("seal: derive a key: " + err.Error()) // only for lengths that New rejects
	}
	c, err := aes.NewCipher(derived)
	if err != nil {
		panic("seal: use a derived key: " + err.Error())
	}
	return c
}
