package idtype

import (
	"encoding/binary"
	"strconv"
)

// The alphabets of the text forms, and the values of their digits.
const (
	hexDigits    = "0123456789abcdef"
	base32Digits = "23456789abcdefghijklmnopqrstuvwx"                                 // for Sno; in ASCII order, so that text and bytes sort alike
	base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" // base64url, RFC 4648 section 5
)

var (
	hexValue    = digitValues(hexDigits)
	base32Value = digitValues(base32Digits)
	base64Value = digitValues(base64Digits)
)

// noDigit is the value of a byte that isn't in the alphabet.
const noDigit = 0xff

// digitFlaw returns the flaw for the first byte of b outside the alphabet.
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

// An octet is a word of eight digits, one per byte, the first in the highest byte. The
// functions below read or write all eight digits at once. The alphabet has 2^width digits:
// the decimal digits from first to '9', then letters from 'a' on. decimals is the number of
// decimal digits. Callers pass width, first and decimals as constants, so that the compiler
// can fold them after inlining.

// octetOnes has a one in each of eight bytes. Its product with a byte has that byte in all
// eight.
const octetOnes = 0x0101010101010101

// octetValues returns the value of each digit in its byte, and whether all bytes are
// digits.
func octetValues(x, first, decimals uint64, width int) (v uint64, ok bool) {
	// Bit 6 distinguishes letters from decimal digits. If all bytes are digits, no byte
	// borrows from its neighbour, and v is correct. Otherwise v holds other values, and
	// their digits differ from x.
	letters := x >> 6 & octetOnes
	v = (x - first*octetOnes - letters*('a'-first-decimals)) & ((1<<width - 1) * octetOnes)
	return v, octetDigits(v, first, decimals) == x
}

// octetDigits returns the digit of each value in its byte.
func octetDigits(v, first, decimals uint64) uint64 {
	// The sum reaches 128 exactly for the values of letters. Neither it nor the result
	// reaches 256, so no byte carries into its neighbour.
	letters := (v + (128-decimals)*octetOnes) >> 7 & octetOnes
	return v + first*octetOnes + letters*('a'-first-decimals)
}

// octets returns 16 digits as two octets.
func octets(b []byte) (hi, lo uint64) {
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:16])
}

// octetPack joins eight values of width bits, one per byte, without gaps: first pairs,
// then fours, then all.
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
