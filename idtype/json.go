package idtype

// jsonNull is the JSON form of the zero ID.
const jsonNull = "null"

// quote returns an ID's text as a JSON string.
func quote(appendText func([]byte) ([]byte, error), size int) ([]byte, error) {
	b, err := appendText(append(make([]byte, 0, size+2), '"'))
	if err != nil {
		return nil, err
	}
	return append(b, '"'), nil
}

// unquote returns the text of a JSON string. No format's text needs an escape, so
// unquote keeps backslashes, and the parser rejects them.
func unquote(b []byte) (s []byte, quoted bool) {
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		return b[1 : len(b)-1], true
	}
	return b, false
}

// notQuoted returns the error for JSON other than a string.
func notQuoted(name, want string, b []byte) error {
	return flaw{-1, "not a JSON string", ErrSyntax}.in(name, want+" in quotes", b)
}
