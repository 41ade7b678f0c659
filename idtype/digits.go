package idtype

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
func digitFlaw(values *[256]byte, s string) flaw {
	for i := range len(s) {
		if values[s[i]] == noDigit {
			return badCharacter(i, s[i])
		}
	}
	panic("idtype: no flaw in " + s)
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
