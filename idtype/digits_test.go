package idtype

import (
	"encoding"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// eachPair calls f with text in which two adjacent bytes are replaced, at every position and
// with all pairs of values, or a sample of them if scaledAlone is short. Parsers read whole
// words, so a byte could carry into its neighbour.
func eachPair(text string, f func(s []byte)) {
	s := []byte(text)
	for pos := range len(s) - 1 {
		for pair := pos; pair < 1<<16; pair += scaledAlone(13, 1) {
			s[pos], s[pos+1] = byte(pair>>8), byte(pair)
			f(s)
		}
		copy(s, text)
	}
}

func TestSnoDigitsInWords(t *testing.T) {
	eachPair("brpk4q72xwf2m63l", func(s []byte) {
		valid := true
		for _, c := range s {
			valid = valid && strings.IndexByte(base32Digits, c) >= 0
		}
		id, err := ParseSno(string(s))
		if valid != (err == nil) || valid && id.String() != string(s) {
			t.Fatalf("ParseSno(%q) = %v, %v", s, id, err)
		}
	})
}

func TestSpread64DigitsInWords(t *testing.T) {
	eachPair("cb54ecf2840a0015", func(s []byte) {
		valid := true
		for _, c := range s {
			valid = valid && strings.IndexByte(hexDigits, c) >= 0
		}
		want, _ := strconv.ParseUint(string(s), 16, 64)
		valid = valid && want&spread64Reserved == 0
		id, err := ParseSpread64(string(s))
		if valid != (err == nil) || valid && id != Spread64(want) {
			t.Fatalf("ParseSpread64(%q) = %x, %v", s, uint64(id), err)
		}
	})
}

// appendDecimal and decimalString agree with strconv, at all lengths and for all values of
// each group of digits.
func TestDecimalText(t *testing.T) {
	check := func(v int64) {
		want := strconv.FormatInt(v, 10)
		if got := decimalString(v); got != want {
			t.Fatalf("decimalString(%d) = %q", v, got)
		}
		if v < 0 {
			return
		}
		if got := string(appendDecimal([]byte("x"), v)); got != "x"+want {
			t.Fatalf("appendDecimal(%d) = %q", v, got)
		}
	}
	for p := int64(1); p < 1e18; p *= 10 {
		for _, v := range []int64{p, 9 * p, 10*p - 1, 5*p + 5, 2*p - 1} {
			check(v - 1)
			check(v)
			check(v + 1)
		}
		for n := range int64(922) {
			check(n * p)
		}
	}
	for shift := range 63 {
		check(1<<shift - 1)
		check(1 << shift)
		check(math.MaxInt64 - 1<<shift)
	}
	for n := int64(0); n < 1e8; n += scaledAlone[int64](9973, 97) {
		check(n)
		check(n*1e8 + n)
		check(n*9e10 + 1)
	}
	r := rand.New(rand.NewPCG(11, 12))
	for range scaledAlone(1_000_000, 20_000_000) {
		check(r.Int64() >> r.IntN(63))
	}
	check(math.MaxInt64)
	check(math.MinInt64)
}

// readUUID and uuidString agree with package uuid.
func TestUUIDTextInWords(t *testing.T) {
	eachPair("f47ac10b-58cc-4372-a567-0e02b2c3d479", func(s []byte) {
		want, err := uuid.ParseBytes(s)
		hi, lo, ok := readUUID((*[uuidTextSize]byte)(s))
		if ok != (err == nil) {
			t.Fatalf("readUUID(%q) = %v, want %v", s, ok, err)
		}
		if !ok {
			return
		}
		if got := uuidString((*[16]byte)(&want)); got != want.String() {
			t.Fatalf("%q reads and writes as %s, want %v", s, got, want)
		}
		if wantHi, wantLo := octets(want[:]); hi != wantHi || lo != wantLo {
			t.Fatalf("readUUID(%q) = %x, %x, want %v", s, hi, lo, want)
		}
	})
}

// Sno also writes whole words. The test tries every pair of digits at every position,
// among random digits, and sets the expected bits one by one.
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
			if id, err := SnoFromUUID(uuid.UUID(text)); err != nil || id != want {
				t.Fatalf("SnoFromUUID(%s) = %x, %v, want %x", text, [10]byte(id), err, [10]byte(want))
			}
		}
	}
}

// This is TestSnoWordsInDigits for Spread64. String also writes reserved bits.
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

// Appending two octets to an empty slice would allocate twice.
func TestMarshalTextAllocatesOnce(t *testing.T) {
	for _, id := range []encoding.TextMarshaler{snoFormat.other(), spread64Format.other()} {
		if n := testing.AllocsPerRun(100, func() { _, _ = id.MarshalText() }); n != 1 {
			t.Errorf("%T: %v allocations, want 1", id, n)
		}
	}
}
