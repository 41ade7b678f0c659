package idtype

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
