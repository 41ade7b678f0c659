package idtype

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/google/uuid"
)

// As TestSnoDigitsInWords.
func TestSpread64DigitsInWords(t *testing.T) {
	text := []byte("cb54ecf2840a0015")
	for pos := range len(text) - 1 {
		for pair := range 1 << 16 {
			s := [spread64Digits]byte(text)
			s[pos], s[pos+1] = byte(pair>>8), byte(pair)
			valid := hexValue[s[pos]] != noDigit && hexValue[s[pos+1]] != noDigit
			want, _ := strconv.ParseUint(string(s[:]), 16, 64)
			valid = valid && want&spread64Reserved == 0
			id, err := ParseSpread64(string(s[:]))
			if valid != (err == nil) || valid && id != Spread64(want) {
				t.Fatalf("ParseSpread64(%q) = %x, %v", s, uint64(id), err)
			}
		}
	}
}

// As TestSnoWordsInDigits. Reserved bits are written too.
func TestSpread64WordsInDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for shift := 0; shift <= 56; shift += 4 {
		for pair := range uint64(256) {
			v := r.Uint64()&^(255<<shift) | pair<<shift
			if s := Spread64(v).String(); s != fmt.Sprintf("%016x", v) {
				t.Fatalf("%#x: String %s", v, s)
			}
		}
	}
}

// The text of a UUID is taken and given as package uuid does.
func TestUUIDTextInWords(t *testing.T) {
	text := []byte("f47ac10b-58cc-4372-a567-0e02b2c3d479")
	for pos := range len(text) - 1 {
		for pair := range 1 << 16 {
			s := [uuidTextSize]byte(text)
			s[pos], s[pos+1] = byte(pair>>8), byte(pair)
			want, err := uuid.ParseBytes(s[:])
			hi, lo, ok := readUUID(&s)
			if ok != (err == nil) {
				t.Fatalf("readUUID(%q) = %v, want %v", s, ok, err)
			}
			if !ok {
				continue
			}
			if got := uuidString(hi, lo); got != want.String() {
				t.Fatalf("%q reads and writes as %s, want %v", s, got, want)
			}
			if wantHi, wantLo := octets(want[:]); hi != wantHi || lo != wantLo {
				t.Fatalf("readUUID(%q) = %x, %x, want %v", s, hi, lo, want)
			}
		}
	}
}
