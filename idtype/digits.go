package idtype

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// The alphabets of the text forms.
const (
	hexDigits    = "0123456789abcdef"
	base32Digits = "23456789abcdefghijklmnopqrstuvwx"                                 // for Sno; in ASCII order, so that text and bytes sort alike
	base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" // base64url, RFC 4648 section 5
)

// digitFlaw returns the flaw for the first byte of b outside the alphabet.
func digitFlaw(alphabet string, b []byte) flaw {
	for i, c := range b {
		if strings.IndexByte(alphabet, c) < 0 {
			return badCharacter(i, c)
		}
	}
	panic("idtype: no invalid character in " + strconv.Quote(string(b)))
}

// appendDecimal appends the decimal form of v, which must not be negative. It takes half as
// long as strconv.AppendInt.
func appendDecimal(b []byte, v int64) []byte {
	const zeros = '0' * octetOnes
	const room = 19
	n := len(b)
	b = slices.Grow(b, room)[:n+room]
	w := (*[room]byte)(b[n:])
	u := uint64(v)
	top := u / 1e16 // at most 922
	u -= top * 1e16
	first := u / 1e8
	hi, lo := eightDigits(first), eightDigits(u-first*1e8)
	size := 0 // of the digits before hi and lo
	switch {
	case top >= 100:
		w[0], w[1], w[2] = byte('0'+top/100), byte('0'+top/10%10), byte('0'+top%10)
		size = 3
	case top >= 10:
		w[0], w[1] = byte('0'+top/10), byte('0'+top%10)
		size = 2
	case top > 0:
		w[0] = byte('0' + top)
		size = 1
	case hi > 0:
		zeroBits := bits.TrailingZeros64(hi) &^ 7 // of the leading zeros
		binary.LittleEndian.PutUint64(w[:8], (hi|zeros)>>zeroBits)
		size = 8 - zeroBits/8
		binary.LittleEndian.PutUint64(w[size:size+8], lo|zeros)
		return b[:n+size+8]
	default:
		zeroBits := min(bits.TrailingZeros64(lo)&^7, 56) // zero has one digit
		binary.LittleEndian.PutUint64(w[:8], (lo|zeros)>>zeroBits)
		return b[:n+8-zeroBits/8]
	}
	binary.LittleEndian.PutUint64(w[size:size+8], hi|zeros)
	binary.LittleEndian.PutUint64(w[size+8:size+16], lo|zeros)
	return b[:n+size+16]
}

// eightDigits returns the values of the eight decimal digits of v, which is below 1e8, one
// per byte, the first in the lowest byte.
func eightDigits(v uint64) uint64 {
	// Each step splits all parts in two at once, and keeps the lower digits above the upper
	// ones. The products with rounded reciprocals are exact for numbers this small.
	upper := v * 109951163 >> 40 // v / 10000
	v = upper | (v-upper*10000)<<32
	upper = v * 10486 >> 20 & 0x0000007f0000007f // v / 100
	v = upper | (v-upper*100)<<16
	upper = v * 103 >> 10 & 0x000f000f000f000f // v / 10
	return upper | (v-upper*10)<<8
}

// decimalString returns the decimal form of v.
func decimalString(v int64) string {
	if v < 0 {
		return strconv.FormatInt(v, 10)
	}
	var buf [19]byte
	return string(appendDecimal(buf[:0], v))
}

// parseDecimal parses a decimal integer from lo to hi: only digits, without a
// leading zero. A minus sign is valid only if lo is negative.
func parseDecimal(s []byte, lo, hi int64) (v int64, ok bool) {
	negative := lo < 0 && len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	// 19 digits fit a uint64, and every int64 has at most 19.
	if len(s) == 0 || len(s) > 19 || s[0] == '0' && (len(s) > 1 || negative) {
		return 0, false
	}
	var n uint64
	for i := 0; i < len(s); i++ {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	if negative {
		return -int64(n), n <= uint64(-lo)
	}
	return int64(n), n <= uint64(hi)
}

// decimalFlaw returns the reason why parseDecimal rejected s.
func decimalFlaw(s []byte, lo int64) flaw {
	first := 0
	if lo < 0 && len(s) > 0 && s[0] == '-' {
		first = 1
	}
	if len(s) == first {
		return flaw{-1, "no digits", ErrSyntax}
	}
	for i := first; i < len(s); i++ {
		if s[i]-'0' > 9 {
			return badCharacter(i, s[i])
		}
	}
	if s[first] == '0' && len(s) > 1 {
		return flaw{first, "leading zero", ErrSyntax}
	}
	return outOfRange()
}

func outOfRange() flaw { return flaw{-1, "out of range", ErrRange} }

// noDigit is the value of a byte that isn't in the alphabet.
const noDigit = 0xff

// base64Value has the values of the digits.
var base64Value = func() (t [256]byte) {
	for i := range t {
		t[i] = noDigit
	}
	for v := range len(base64Digits) {
		t[base64Digits[v]] = byte(v)
	}
	return t
}()

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

// readHex parses 16 digits [0-9a-f] in two octets.
func readHex(hi, lo uint64) (v uint64, ok bool) {
	hi, ok1 := octetValues(hi, '0', 10, 4)
	lo, ok2 := octetValues(lo, '0', 10, 4)
	return octetPack(hi, 4)<<32 | octetPack(lo, 4), ok1 && ok2
}

// writeHex is the inverse of readHex.
func writeHex(v uint64) (hi, lo uint64) {
	hi, lo = octetSpread(v>>32, 4), octetSpread(v, 4)
	return octetDigits(hi, '0', 10), octetDigits(lo, '0', 10)
}

// digits returns the 16 digits [2-9a-x] in two octets, each for five of the ten bytes.
// The 16 bytes are the ID's text, and also its UUID.
func (id *Sno) digits() (hi, lo uint64) {
	head, tail := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint16(id[8:])
	hi, lo = octetSpread(head>>24, 5), octetSpread(head<<16|uint64(tail), 5)
	return octetDigits(hi, '2', 8), octetDigits(lo, '2', 8)
}

// setDigits is the inverse of digits. It returns false, and leaves *id unchanged, if a
// byte is not a digit.
func (id *Sno) setDigits(hi, lo uint64) bool {
	hi, ok1 := octetValues(hi, '2', 8, 5)
	lo, ok2 := octetValues(lo, '2', 8, 5)
	if !ok1 || !ok2 {
		return false
	}
	hi, lo = octetPack(hi, 5), octetPack(lo, 5)
	binary.BigEndian.PutUint64(id[:8], hi<<24|lo>>16)
	binary.BigEndian.PutUint16(id[8:], uint16(lo))
	return true
}

// uuidTextSize is the length of a UUID's text, 8-4-4-4-12 hex digits.
const uuidTextSize = 36

// readUUID parses the text of a UUID, in either case, and returns the two halves of its
// bytes.
func readUUID(b *[uuidTextSize]byte) (hi, lo uint64, ok bool) {
	if b[8] != '-' || b[13] != '-' || b[18] != '-' || b[23] != '-' {
		return 0, 0, false
	}
	four := func(i int) uint64 { return uint64(binary.BigEndian.Uint32(b[i:])) }
	hi, ok1 := readHex(lower(binary.BigEndian.Uint64(b[:])), lower(four(9)<<32|four(14)))
	lo, ok2 := readHex(lower(four(19)<<32|four(24)), lower(binary.BigEndian.Uint64(b[28:])))
	return hi, lo, ok1 && ok2
}

// lower converts an octet to lower case: it sets bit 5 where bit 6 is set. It doesn't
// change decimal digits or lower-case letters, and turns only A to F into hex digits.
func lower(x uint64) uint64 { return x | x>>1&(0x20*octetOnes) }

// hexPairs has the two digits of each byte, the first in the lower half.
var hexPairs = func() (pairs [256]uint16) {
	for v := range pairs {
		pairs[v] = uint16(hexDigits[v>>4]) | uint16(hexDigits[v&15])<<8
	}
	return pairs
}()

// writeUUID writes the text of a UUID in lower case. That takes 0.6 of the time of writeHex.
func writeUUID(b *[uuidTextSize]byte, id *[16]byte) {
	pair := func(at int, v byte) { binary.LittleEndian.PutUint16(b[at:], hexPairs[v]) }
	pair(0, id[0])
	pair(2, id[1])
	pair(4, id[2])
	pair(6, id[3])
	b[8] = '-'
	pair(9, id[4])
	pair(11, id[5])
	b[13] = '-'
	pair(14, id[6])
	pair(16, id[7])
	b[18] = '-'
	pair(19, id[8])
	pair(21, id[9])
	b[23] = '-'
	pair(24, id[10])
	pair(26, id[11])
	pair(28, id[12])
	pair(30, id[13])
	pair(32, id[14])
	pair(34, id[15])
}

// uuidString returns the text of a UUID in lower case.
func uuidString(id *[16]byte) string {
	var b [uuidTextSize]byte
	writeUUID(&b, id)
	return string(b[:])
}
