package idtype

import (
	"encoding"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

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

// And they are written in one word: so all pairs of digits, at all places,
// among random ones, against bits set one by one.
func TestSnoWordsInDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for pos := range snoDigits - 1 {
		for pair := range 32 * 32 {
			var want Sno
			var text [snoDigits]byte
			for i := range text {
				v := r.IntN(32)
				switch i {
				case pos:
					v = pair / 32
				case pos + 1:
					v = pair % 32
				}
				text[i] = base32Digits[v]
				for bit := range 5 {
					n := 5*i + bit
					want[n/8] |= byte(v>>(4-bit)&1) << (7 - n%8)
				}
			}
			if want.String() != string(text[:]) || want.UUID() != text {
				t.Fatalf("%x: String %v, UUID %v, want %s", [10]byte(want), want, want.UUID(), text)
			}
			if id, err := ParseSno(string(text[:])); err != nil || id != want {
				t.Fatalf("ParseSno(%s) = %x, %v, want %x", text, [10]byte(id), err, [10]byte(want))
			}
			if id, err := SnoFromUUID(uuid.UUID(text)); err != nil || id != want {
				t.Fatalf("SnoFromUUID(%s) = %x, %v, want %x", text, [10]byte(id), err, [10]byte(want))
			}
		}
	}
}

// Two octets appended to nothing would be two allocations.
func TestMarshalTextAllocatesOnce(t *testing.T) {
	for _, id := range []encoding.TextMarshaler{snoFormat.other(), spread64Format.other()} {
		if n := testing.AllocsPerRun(100, func() { _, _ = id.MarshalText() }); n != 1 {
			t.Errorf("%T: %v allocations, want 1", id, n)
		}
	}
}
