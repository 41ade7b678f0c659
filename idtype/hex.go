package idtype

import "encoding/binary"

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

// uuidString returns the lower-case text of the UUID with these two halves.
func uuidString(hi, lo uint64) string {
	var b [uuidTextSize]byte
	writeUUID(&b, hi, lo)
	return string(b[:])
}

// writeUUID is the inverse of readUUID, in lower case.
func writeUUID(b *[uuidTextSize]byte, hi, lo uint64) {
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	four := func(i int, x uint64) { binary.BigEndian.PutUint32(b[i:], uint32(x)) }
	x, y := writeHex(hi)
	binary.BigEndian.PutUint64(b[:], x)
	four(9, y>>32)
	four(14, y)
	x, y = writeHex(lo)
	four(19, x>>32)
	four(24, x)
	binary.BigEndian.PutUint64(b[28:], y)
}
