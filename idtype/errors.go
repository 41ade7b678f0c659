package idtype

import (
	"errors"
	"fmt"
	"strconv"
)

// The reasons for which this package refuses something. Errors wrap them, so
// compare with [errors.Is].
var (
	// ErrSyntax: the input isn't written the way the format writes its IDs.
	ErrSyntax = errors.New("invalid syntax")
	// ErrRange: a number or a time doesn't fit the place it is meant for.
	ErrRange = errors.New("value out of range")
	// ErrNull: NULL was scanned into an ID. NULL is not an ID.
	ErrNull = errors.New("NULL is not an ID")
	// ErrNotSno: a UUID whose 16 bytes are not the 16 characters of a Sno.
	ErrNotSno = errors.New("UUID is not a Sno")

	// ErrClockBackwards: the clock is further behind the last ID, or behind NotBefore
	// or a lease's After, than a generator was allowed to wait, or stayed behind it for
	// that long.
	ErrClockBackwards = errors.New("clock is behind the last ID")
	// ErrSequenceExhausted: a unit's sequence numbers were used up, and while a
	// call was allowed to wait, either the clock didn't move on or those that
	// waited before it got all that there was.
	ErrSequenceExhausted = errors.New("sequence exhausted")
	// ErrTimeExhausted: the time lies past the last instant of the format.
	ErrTimeExhausted = errors.New("time is past the end of the format")
	// ErrBeforeEpoch: the time lies before the first instant of the format.
	ErrBeforeEpoch = errors.New("time is before the epoch")
	// ErrNode: a node number (datacenter, worker, machine, generator, cluster,
	// partition) doesn't fit its field or comes from two sources, or, for a Sno, the
	// process has already assigned the partition automatically.
	ErrNode = errors.New("node number out of range")
	// ErrLeaseLost: the lease of a node number has ended. [ErrLeaseNotRenewed] wraps
	// it too. A generator creates nothing more under a lease that has ended: claim a
	// number again. The error wraps the reason too, if the [Lease] has an Err method.
	ErrLeaseLost = errors.New("lease lost")
	// ErrLeaseNotRenewed: the lease goes on, but isn't renewed up to the time that
	// the clock shows, such as after the clock was set forward. Try again: the next
	// renewal mends it. Errors that wrap it wrap ErrLeaseLost too.
	ErrLeaseNotRenewed error = notRenewed{}
	// ErrPartitionsExhausted: the process has used all 65,536 Sno partitions, so
	// that none is left for an automatic one.
	ErrPartitionsExhausted = errors.New("Sno partitions exhausted")
)

type notRenewed struct{}

func (notRenewed) Error() string { return "lease not renewed yet" }
func (notRenewed) Unwrap() error { return ErrLeaseLost }

// maxErrorInput is how much of a refused input an error keeps, in bytes.
const maxErrorInput = 64

// A ParseError says why an input is not an ID. It wraps one of [ErrSyntax],
// [ErrRange], [ErrNull] and [ErrNotSno], or the error of a
// [database/sql/driver.Valuer] that was scanned.
type ParseError struct {
	Type   string // the ID type that was expected, such as "Snowflake"
	Want   string // what that type accepts here
	Input  string // what was given, cut at 64 bytes
	Pos    int    // offset of the first byte that is wrong; -1 if it is the whole
	Reason string // what is wrong, and what to do where that isn't plain
	Err    error  // the sentinel, or the error of a Valuer
}

// Error gives what was expected, what came, and why it was refused.
func (e *ParseError) Error() string {
	got := "NULL"
	if e.Err != ErrNull {
		got = strconv.Quote(e.Input)
	}
	where := ""
	if e.Pos >= 0 {
		where = " at byte " + strconv.Itoa(e.Pos)
	}
	return "idtype: expected " + e.Type + " as " + e.Want + ", got " + got + ": " + e.Reason + where
}

// Unwrap returns Err.
func (e *ParseError) Unwrap() error { return e.Err }

// A flaw is what is wrong with an input, found once a fast parser has said no.
type flaw struct {
	pos    int
	reason string
	err    error
}

func (f flaw) in(typeName, want string, input []byte) *ParseError {
	return &ParseError{Type: typeName, Want: want, Input: string(input[:min(len(input), maxErrorInput)]),
		Pos: f.pos, Reason: f.reason, Err: f.err}
}

// badCharacter is the flaw of the byte c at pos.
func badCharacter(pos int, c byte) flaw {
	return flaw{pos, strconv.Quote(string([]byte{c})) + " is not a digit of this form", ErrSyntax}
}

// badLength is the flaw of an input of the wrong length.
func badLength(n int) flaw {
	return flaw{-1, "it has " + strconv.Itoa(n) + " bytes", ErrSyntax}
}

// badType is the error of a Scan from a value that no column of this type gives.
func badType(typeName, want string, src any) error {
	return flaw{-1, fmt.Sprintf("a column value of type %T can't be an ID: scan it from the column type that the format has", src), ErrSyntax}.
		in(typeName, want, fmt.Append(nil, src))
}

// nullError is the error of scanning NULL into an ID.
func nullError(typeName, want string) error {
	return &ParseError{Type: typeName, Want: want, Pos: -1, Err: ErrNull,
		Reason: fmt.Sprintf("NULL is not an ID; scan a nullable column into *idtype.%[1]s, sql.Null[idtype.%[1]s] or sqltypes.Optional[idtype.%[1]s]", typeName)}
}

// A limitError is a value past a limit of its format. It is an [ErrRange]
// and, where there is one, the more particular sentinel.
type limitError struct {
	msg string
	err error
}

func (e *limitError) Error() string   { return e.msg }
func (e *limitError) Unwrap() []error { return []error{e.err, ErrRange} }

// checkField refuses a field's value that needs more than its bits.
func checkField(typeName, field string, v, bits int, sentinel error) error {
	if v >= 0 && int64(v) < 1<<bits {
		return nil
	}
	return &limitError{fmt.Sprintf("idtype: expected a %s %s from 0 to %d, got %d: choose one in that range", typeName, field, int64(1)<<bits-1, v), sentinel}
}
