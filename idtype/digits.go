package idtype

import (
	"encoding/binary"
	"strconv"
)

// The alphabets of the text forms, and for each the value of every byte.
const (
	hexDigits    = "0123456789abcdef"
	base32Digits = "23456789abcdefghijklmnopqrstuvwx"                                 // Sno's: in the order of ASCII, so that text orders as bytes do
	base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" // base64url's, RFC 4648 section 5
)

var (
	hexValue    = digitValues(hexDigits)
	base32Value = digitValues(base32Digits)
	base64Value = digitValues(base64Digits)
)

// noDigit is the value of a byte that isn't in the alphabet.
const noDigit = 0xff

// digitFlaw is the flaw of a text that has a byte outside an alphabet: the
// first of them.
func digitFlaw(values *[256]byte, b []byte) flaw {
	for i, c := range b {
		if values[c] == noDigit {
			return badCharacter(i, c)
		}
	}
	panic("idtype: no invalid character in " + strconv.Quote(string(b)))
}

func digitValues(alphabet string) (t [256]byte) {
	for i := range t {
		t[i] = noDigit
	}
	for v := range len(alphabet) {
		t[alphabet[v]] = byte(v)
	}
	return t
}

// An octet is eight digits, one in each byte of a word, the first in the
// highest. All eight are read or written at once. The alphabet has 2^width
// digits: as many decimal ones as decimals says, from first on, then letters
// from a on. Callers give these three as constants, and inlining folds them.

// A one in each of eight bytes: times a byte, that byte in all of them.
const octetOnes = 0x0101010101010101

// octetValues gives the value of each digit in its byte, and whether all were
// digits.
func octetValues(x, first, decimals uint64, width int) (v uint64, ok bool) {
	// Bit 6 tells letters from decimal digits. If all are digits, no byte
	// borrows from its neighbour, and v is right. If not, v is some values or
	// other, whose digits can't be x.
	letters := x >> 6 & octetOnes
	v = (x - first*octetOnes - letters*('a'-first-decimals)) & ((1<<width - 1) * octetOnes)
	return v, octetDigits(v, first, decimals) == x
}

// octetDigits gives the digit of each value in its byte.
func octetDigits(v, first, decimals uint64) uint64 {
	// The sum takes the values of letters to 128 or more, and none to 256, nor
	// does the next: nothing carries into a neighbour.
	letters := (v + (128-decimals)*octetOnes) >> 7 & octetOnes
	return v + first*octetOnes + letters*('a'-first-decimals)
}

// octets are the two octets of 16 digits.
func octets(b []byte) (hi, lo uint64) {
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:16])
}

// octetPack puts eight values of width bits, one in each byte, side by side:
// by pairs, then by fours, then all.
func octetPack(v uint64, width int) uint64 {
	v = v&0x00ff00ff00ff00ff | v>>8&0x00ff00ff00ff00ff<<width
	v = v&0x0000ffff0000ffff | v>>16&0x0000ffff0000ffff<<(2*width)
	return uint64(uint32(v)) | v>>32<<(4*width)
}

// octetSpread is the inverse of octetPack. It ignores the bits of v above the
// eight values.
func octetSpread(v uint64, width int) uint64 {
	four := uint64(1)<<(4*width) - 1
	v = v&four | v>>(4*width)&four<<32
	pair := uint64(1<<(2*width)-1) * 0x0000000100000001
	v = v&pair | v>>(2*width)&pair<<16
	one := uint64(1<<width-1) * 0x0001000100010001
	return v&one | v>>width&one<<8
}
