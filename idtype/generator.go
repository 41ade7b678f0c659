package idtype

import (
	"context"
	"time"
)

// A Generator mints IDs and never the same one twice. It may be used by
// several goroutines at once.
type Generator[T any] interface {
	// Next mints one ID. It waits where the format's rate or a clock that
	// stepped back demand it, for [Options.MaxWait] at the longest.
	Next() (T, error)
	// Fill mints len(dst) IDs in order, for as long as that takes at the
	// format's rate. It gives the number it minted: fewer than len(dst) only
	// with an error, which may be that of ctx.
	Fill(ctx context.Context, dst []T) (n int, err error)
}

// Options are what all generators can be told. The zero value is what most
// programs want.
type Options struct {
	// Clock gives the time. Nil means [time.Now].
	Clock func() time.Time
	// MaxWait bounds how long a call waits while the sequence is full or the
	// clock is behind the last ID; a Fill, how long it waits for any progress.
	// 0 means one second; a negative value means not to wait but to fail at
	// once.
	MaxWait time.Duration
	// NotBefore is a time that may have been used already, by an earlier run
	// of the program: only later ones are. Zero means that there is none.
	NotBefore time.Time

	clock *clock // set by tests, instead of Clock: waits are scripted too
}
