package idtype

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sortkey/sortkey/internal/typename"
)

// Functions of this package return these sentinels wrapped. Compare with [errors.Is].
var (
	// ErrSyntax: the input doesn't have the format's syntax.
	ErrSyntax = errors.New("invalid syntax")
	// ErrRange: a number, a time or the width of a field is out of range.
	ErrRange = errors.New("value out of range")
	// ErrNull: NULL was scanned into an ID.
	ErrNull = errors.New("unexpected NULL")
	// ErrNotSno: the 16 bytes of a UUID are not the 16 characters of a Sno.
	ErrNotSno = errors.New("not a Sno")
	// ErrVersion: the UUID isn't of version 7, so it has no time.
	ErrVersion = errors.New("not a UUID of version 7")

	// ErrClockBackwards: the clock is behind the last ID, NotBefore or a lease's After,
	// by more than the call may wait, or it stayed behind for that long.
	ErrClockBackwards = errors.New("clock behind the last ID")
	// ErrSequenceExhausted: all sequence numbers of a unit of time are used, and within
	// MaxWait either the clock didn't advance or earlier calls in the queue took all
	// new numbers.
	ErrSequenceExhausted = errors.New("sequence exhausted")
	// ErrTimeExhausted: the time is after the last instant of the format.
	ErrTimeExhausted = errors.New("time past the end of the format")
	// ErrBeforeEpoch: the time is before the first instant of the format.
	ErrBeforeEpoch = errors.New("time before the epoch")
	// ErrNode: a node number (datacenter, worker, machine, generator, cluster,
	// partition) doesn't fit its field.
	ErrNode = errors.New("node number out of range")
	// ErrConfig: a required field of a config or layout isn't set, two fields contradict
	// each other, a generator doesn't fit other generators of the process, or a model
	// declares another layout than its generator has. A value out of range is [ErrRange]
	// instead, or [ErrNode].
	ErrConfig = errors.New("invalid config")
	// ErrLeaseLost: the lease of a node number has ended. The generator creates no more
	// IDs: claim a number again, and create a new generator with it. A Generator of
	// package nodelease does both. The error also wraps the reason.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseNotRenewed: the lease continues, but its last renewal doesn't cover the
	// clock's time, for example after the clock was set forward. Try again after the
	// next renewal.
	ErrLeaseNotRenewed = errors.New("lease not renewed yet")
	// ErrPartitionsExhausted: the process uses all 65,536 Sno partitions, so none is
	// left to assign automatically.
	ErrPartitionsExhausted = errors.New("Sno partitions exhausted")
)

// maxErrorInput is the number of bytes of a rejected input that an error keeps.
const maxErrorInput = 64

// A ParseError reports that an input is not an ID. It wraps [ErrSyntax],
// [ErrRange], [ErrNull], [ErrNotSno] or [ErrVersion], or the error of a scanned
// [database/sql/driver.Valuer].
type ParseError struct {
	Type   string // the ID type, such as "Snowflake"
	Want   string // the accepted input
	Input  string // the input, cut at 64 bytes
	Pos    int    // offset of the first invalid byte; -1 if no single byte is invalid
	Reason string // the reason, and the remedy if Want isn't enough
	Err    error  // the sentinel, or the error of a Valuer

	number  bool   // Input is an ID or a number, not text
	scanned bool   // Scan failed
	public  string // the problem for PublicMessage, if Want and Reason name Go types or advise a programmer
}

// Error returns the operation, the input, the reason and the accepted input.
func (e *ParseError) Error() string {
	problem := e.problem()
	input := strconv.Quote(e.Input)
	if e.number {
		input = e.Input
	}
	switch {
	case e.Err == ErrNull:
		return "idtype: scan NULL into " + e.Type + ": " + problem
	case e.scanned:
		return "idtype: scan " + input + " into " + e.Type + ": " + problem
	case e.number:
		return "idtype: convert " + input + " to " + e.Type + ": " + problem
	}
	return "idtype: parse " + input + " as " + e.Type + ": " + problem
}

// problem returns the reason, its position and the accepted input.
func (e *ParseError) problem() string {
	problem := e.Reason
	if e.Pos >= 0 {
		problem += " at byte " + strconv.Itoa(e.Pos)
	}
	switch {
	case !e.aboutInput():
		return problem
	case strings.HasPrefix(problem, "got "):
		return "want " + e.Want + ", " + problem
	}
	return problem + "; want " + e.Want
}

// aboutInput reports whether the error is about the form of the input, not about NULL or a
// Valuer that failed.
func (e *ParseError) aboutInput() bool {
	switch e.Err {
	case ErrSyntax, ErrRange, ErrNotSno, ErrVersion:
		return true
	}
	return false
}

// Unwrap returns Err.
func (e *ParseError) Unwrap() error { return e.Err }

// maxPublicInput is the number of bytes of a rejected input that PublicMessage quotes.
const maxPublicInput = 40

// asciiHTML escapes the characters that start a tag or an entity.
var asciiHTML = strings.NewReplacer("<", `\x3c`, ">", `\x3e`, "&", `\x26`)

// PublicMessage returns a text about a rejected ID for the client that sent it:
//
//	"abc" is not a valid ID: want 16 characters [2-9a-x], got 3 bytes
//
// Unlike the text of the error, it names no Go type. It quotes at most 40 bytes of the input,
// and escapes everything but printable ASCII, and also <, > and &. If err wraps no
// [*ParseError], or one with [ErrNull] or the error of a Valuer, PublicMessage returns
// "invalid input".
func PublicMessage(err error) string {
	var e *ParseError
	if !errors.As(err, &e) || !e.aboutInput() {
		return "invalid input"
	}
	input, rest := e.Input, ""
	if n := maxPublicInput; len(input) > n {
		for n > maxPublicInput-utf8.UTFMax && !utf8.RuneStart(input[n]) {
			n--
		}
		input, rest = input[:n], "..."
	}
	return asciiHTML.Replace(strconv.QuoteToASCII(input) + rest + " is not a valid ID: " + cmp.Or(e.public, e.problem()))
}

// scanError marks the error of a failed Scan.
func scanError(err error) error {
	var e *ParseError
	if errors.As(err, &e) {
		e.scanned = true
	}
	return err
}

// A flaw is the reason to reject an input. Parsers look for it only after their fast
// path has failed.
type flaw struct {
	pos    int
	reason string
	err    error
}

func (f flaw) in(typeName, want string, input []byte) *ParseError {
	return &ParseError{Type: typeName, Want: want, Input: string(input[:min(len(input), maxErrorInput)]),
		Pos: f.pos, Reason: f.reason, Err: f.err}
}

// badCharacter returns the flaw for the byte c at pos.
func badCharacter(pos int, c byte) flaw {
	return flaw{pos, "invalid character " + strconv.Quote(string([]byte{c})), ErrSyntax}
}

// badLength returns the flaw for an input of the wrong length, n bytes.
func badLength(n int) flaw {
	return flaw{-1, "got " + strconv.Itoa(n) + " bytes", ErrSyntax}
}

// badType returns the error for a Scan from a Go type that Scan doesn't accept.
func badType(typeName, want string, src any) error {
	e := flaw{-1, "got " + typename.OfValue(src) + "; scan a column of the format's type", ErrSyntax}.in(typeName, want, fmt.Append(nil, src))
	e.public = "want " + want
	return scanError(e)
}

// nullError returns the error for a Scan from NULL.
func nullError(typeName, want string) error {
	return &ParseError{Type: typeName, Want: want, Pos: -1, Err: ErrNull, Reason: nullReason(typeName)}
}

func nullReason(typeName string) string {
	return fmt.Sprintf("NULL is not an ID; scan a nullable column into *idtype.%[1]s, sql.Null[idtype.%[1]s] or sqltypes.Optional[idtype.%[1]s]", typeName)
}

// A limitError reports a value outside the limits of its format. It wraps [ErrRange]
// and, if there is one, a more specific sentinel.
type limitError struct {
	msg string
	err error
}

func (e *limitError) Error() string   { return e.msg }
func (e *limitError) Unwrap() []error { return []error{e.err, ErrRange} }

// A configError reports a config that can't work. It wraps [ErrConfig].
type configError struct{ msg string }

func (e *configError) Error() string { return e.msg }
func (e *configError) Unwrap() error { return ErrConfig }

// checkField returns an error if v doesn't fit the bits of a field.
func checkField(typeName, field string, v, bits int, sentinel error) error {
	if v >= 0 && int64(v) < 1<<bits {
		return nil
	}
	return &limitError{fmt.Sprintf("idtype: %s %s: %d is out of range; want 0 to %d", typeName, field, v, int64(1)<<bits-1), sentinel}
}
