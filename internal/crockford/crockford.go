// Package crockford has the text form of 16 bytes in a TypeID: 26 lower-case digits of
// Douglas Crockford's base32. Text and bytes sort alike.
package crockford

import "encoding/binary"

const (
	// Digits is the number of digits of a text. They hold 130 bits, so the first is at
	// most '7'.
	Digits = 26

	alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	noDigit  = 0xff
)

var values = func() (t [256]byte) {
	for i := range t {
		t[i] = noDigit
	}
	for v := range len(alphabet) {
		t[alphabet[v]] = byte(v)
	}
	return t
}()

// pairs are the two digits of each number of 10 bits, in the order of memory.
var pairs = func() (t [1 << 10]uint16) {
	for v := range t {
		t[v] = uint16(alphabet[v>>5]) | uint16(alphabet[v&31])<<8
	}
	return t
}()

// Append appends the digits of b16.
func Append(b []byte, b16 *[16]byte) []byte {
	hi, lo := binary.BigEndian.Uint64(b16[:8]), binary.BigEndian.Uint64(b16[8:])
	var text [Digits]byte
	text[13] = alphabet[(hi<<4|lo>>60)&31]
	hi >>= 1
	// The halves don't depend on each other, so the processor works on both at once.
	for i := 11; i > 0; i -= 2 {
		binary.LittleEndian.PutUint16(text[i:], pairs[hi&1023])
		binary.LittleEndian.PutUint16(text[i+13:], pairs[lo&1023])
		hi, lo = hi>>10, lo>>10
	}
	text[0] = alphabet[hi]
	return append(b, text[:]...)
}

// Parse returns the bytes of a text. bad is the offset of the first byte that isn't allowed
// there, or -1. Parse panics if the text doesn't have 26 bytes.
func Parse(text []byte) (b16 [16]byte, bad int) {
	digits := (*[Digits]byte)(text)
	var hi, lo uint64
	var all byte
	// The halves have 13 digits, 65 bits. The first bit of the lower one belongs to the upper one.
	for i := range Digits / 2 {
		h, l := values[digits[i]], values[digits[i+Digits/2]]
		all |= h | l
		hi, lo = hi<<5|uint64(h), lo<<5|uint64(l)
	}
	hi = hi<<1 | uint64(values[digits[Digits/2]]>>4)
	if all == noDigit || digits[0] > '7' {
		return b16, firstBad(text)
	}
	binary.BigEndian.PutUint64(b16[:8], hi)
	binary.BigEndian.PutUint64(b16[8:], lo)
	return b16, -1
}

func firstBad(text []byte) int {
	for i, c := range text {
		if values[c] == noDigit || i == 0 && c > '7' {
			return i
		}
	}
	return -1
}
