package cli

import "fmt"

// A UsageError is an error in the command line.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns an error in the command line.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

// Usage returns err as an error in the command line, or nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}
