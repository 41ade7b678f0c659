package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"crypto/subtle"
	"encoding"
	"errors"
	"fmt"
	"reflect"
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
	keys []cipher.Block
	tags sync.Map // from a reflect.Type to its tag
}

// An ID is an ID type of package idtype, except UUID: its 16 bytes leave no room for a tag.
type ID interface {
	~int64 | ~[10]byte
	encoding.BinaryAppender
	IsZero() bool
}

// New returns a Sealer that seals with key, and opens texts that were sealed with key or one
// of the old keys. A key has 16, 24 or 32 random bytes, for AES-128, AES-192 or AES-256.
//
// To replace a key, first start all instances with the new one as an old key. Then start them
// with the new one as key. Remove the replaced one when its texts need no longer open.
func New(key []byte, oldKeys ...[]byte) (*Sealer, error) {
	s := &Sealer{}
	for i, k := range append([][]byte{key}, oldKeys...) {
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("seal: key %d has %d bytes; want 16, 24 or 32 random bytes, decoded from hex or base64", i, len(k))
		}
		s.keys = append(s.keys, block)
	}
	return s, nil
}

// Text returns the sealed text of an ID: the prefix of its model, if it has one, and 26
// characters [0-9a-hjkmnp-tv-z]. It returns an empty text for the zero ID, and for a number
// that isn't an ID of the type, such as a negative Snowflake.
func Text[V ID](s *Sealer, id V) string {
	var block [aes.BlockSize]byte
	plain, err := id.AppendBinary(block[:0])
	if err != nil || id.IsZero() {
		return ""
	}
	t := tagOf[V](s, len(plain))
	copy(block[len(plain):], t.bytes)
	s.keys[0].Encrypt(block[:], block[:])
	return string(crockford.Append([]byte(t.prefix), &block))
}

// Parse returns the ID of a sealed text. For any other text it returns [ErrUnreadable]. The
// error names the type, but neither the text nor an ID.
func Parse[V ID, P interface {
	*V
	encoding.BinaryUnmarshaler
}](s *Sealer, text string) (id V, err error) {
	size := reflect.TypeFor[V]().Size()
	t := tagOf[V](s, int(size))
	rest, ok := strings.CutPrefix(text, t.prefix)
	if ok && len(rest) == crockford.Digits {
		if sealed, bad := crockford.Parse([]byte(rest)); bad < 0 {
			for _, key := range s.keys {
				var block [aes.BlockSize]byte
				key.Decrypt(block[:], sealed[:])
				// If it fails, UnmarshalBinary leaves id zero.
				if subtle.ConstantTimeCompare(block[size:], t.bytes) == 1 && P(&id).UnmarshalBinary(block[:size]) == nil && !id.IsZero() {
					return id, nil
				}
			}
		}
	}
	return id, fmt.Errorf("seal: open a text as %s: want %s26 characters of Text: %w",
		typename.Of(reflect.TypeFor[V]()), wantPrefix(t.prefix), ErrUnreadable)
}

func wantPrefix(prefix string) string {
	if prefix == "" {
		return ""
	}
	return `"` + prefix + `" and `
}

// A tag distinguishes the sealed IDs of a type.
type tag struct {
	prefix string // of the text, with its underscore; empty if there is none
	bytes  []byte
}

// tagOf returns the tag of a type whose IDs have this many bytes. It fills the block.
func tagOf[V ID](s *Sealer, size int) tag {
	key := reflect.TypeFor[V]()
	if t, ok := s.tags.Load(key); ok {
		return t.(tag)
	}
	var zero V
	t, name := tag{}, "type "+typename.Of(key)
	if m, ok := any(zero).(interface{ ModelPrefix() string }); ok && m.ModelPrefix() != "" {
		t.prefix = m.ModelPrefix() + "_"
		name = "prefix " + m.ModelPrefix()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "sortkey sealed ID, %d bytes, %s", size, name))
	t.bytes = sum[:aes.BlockSize-size]
	s.tags.Store(key, t)
	return t
}
