package idtype

import "testing"

// Eight digits are read in one word, where a byte could spill into the next:
// so all pairs of bytes, at all places, against the table.
func TestSnoDigitsInWords(t *testing.T) {
	text := []byte("brpk4q72xwf2m63l")
	for pos := range len(text) - 1 {
		for pair := range 1 << 16 {
			s := [snoDigits]byte(text)
			s[pos], s[pos+1] = byte(pair>>8), byte(pair)
			id, err := ParseSno(string(s[:]))
			valid := base32Value[s[pos]] != noDigit && base32Value[s[pos+1]] != noDigit
			if valid != (err == nil) || valid && id.String() != string(s[:]) {
				t.Fatalf("ParseSno(%q) = %v, %v", s, id, err)
			}
		}
	}
}
