package idtype

// A byte of ones, and of high bits, in each of eight bytes.
const (
	octetOnes  = 0x0101010101010101
	octetHighs = 0x8080808080808080
)

// octet reads eight base32 digits at once, one in each byte of x, as 40 bits.
// In bad the high bit of a byte is set if that byte is no digit: the caller
// masks it, which leaves octet small enough to be inlined.
func octet(x uint64) (v, bad uint64) {
	letters := x >> 6 & octetOnes
	lo := '2'*octetOnes + letters*('a'-'2')
	v = x - lo
	// Digits give 0 to 7, letters 0 to 23; 8 and 24 set the high bit.
	bad = x | ^((x | octetHighs) - lo) | (v + 0x78*octetOnes - letters*16)
	v += letters * 8
	v = v&0x00ff00ff00ff00ff | v>>3&0x03e003e003e003e0
	v = v&0x0000ffff0000ffff | v>>6&0x000ffc00000ffc00
	return v&0xffffffff | v>>32<<20, bad
}
