package idtype

import "encoding/binary"

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
