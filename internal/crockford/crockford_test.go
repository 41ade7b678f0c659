package crockford

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string][16]byte{
		"00000000000000000000000000": {},
		"00000000000000000000000001": {15: 1},
		"0000000000000000000000000z": {15: 31},
		"00000000000000000000000010": {15: 32},
		"7zzzzzzzzzzzzzzzzzzzzzzzzz": {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
	} {
		if got := string(Append(nil, &want)); got != text {
			t.Errorf("Append(%x) = %s, want %s", want, got, text)
		}
		if got, bad := Parse([]byte(text)); got != want || bad != -1 {
			t.Errorf("Parse(%s) = %x, %d, want %x", text, got, bad, want)
		}
	}
}

func TestRandom(t *testing.T) {
	var earlier [16]byte
	for range 10_000 {
		var b [16]byte
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		text := Append([]byte("x"), &b)
		if got, bad := Parse(text[1:]); got != b || bad != -1 {
			t.Fatalf("Parse(%s) = %x, %d, want %x", text[1:], got, bad, b)
		}
		if got, want := bytes.Compare(text[1:], Append(nil, &earlier)), bytes.Compare(b[:], earlier[:]); got != want {
			t.Fatalf("the texts of %x and %x compare as %d, want %d", b, earlier, got, want)
		}
		earlier = b
	}
}

func TestInvalid(t *testing.T) {
	for at := range Digits {
		for c := range 256 {
			text := []byte(strings.Repeat("0", Digits))
			text[at] = byte(c)
			want := -1
			if strings.IndexByte(alphabet, byte(c)) < 0 || at == 0 && c > '7' {
				want = at
			}
			if _, bad := Parse(text); bad != want {
				t.Fatalf("Parse(%q) rejects the byte at %d, want %d", text, bad, want)
			}
		}
	}
}
