package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
)

// eachInput calls do with each argument or, without arguments, with each line of
// standard input that isn't blank. It calls flush before it waits for more input. do's
// errors should name the input; eachInput adds the number of the line.
func (c *app) eachInput(ctx context.Context, args []string, flush func() error, do func(input string) error) error {
	for _, arg := range args {
		if err := do(arg); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		return ctx.Err()
	}
	lines := bufio.NewReaderSize(interruptedReader{ctx, c.In}, 1<<16)
	for number := 1; ; number++ {
		if next, _ := lines.Peek(lines.Buffered()); !bytes.Contains(next, []byte("\n")) {
			if err := flush(); err != nil {
				return err
			}
		}
		line, readErr := readLine(lines)
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // byte order mark
		}
		if input := strings.TrimSpace(line); input != "" && (readErr == nil || readErr == io.EOF) {
			if err := do(input); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		switch {
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			return fmt.Errorf("standard input, after line %d: %w", number-1, readErr)
		}
	}
}

// readLine returns a line, or the beginning of a line that is longer than the buffer and
// thus than any ID.
func readLine(r *bufio.Reader) (string, error) {
	b, err := r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return string(b), err
	}
	line := string(b[:100]) + "…"
	for err == bufio.ErrBufferFull {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}

// In an interruptedReader, a read ends when ctx is done, even if it waits for a terminal.
type interruptedReader struct {
	ctx context.Context
	r   io.Reader
}

func (r interruptedReader) Read(p []byte) (int, error) {
	var n int
	var err error
	done := make(chan struct{})
	go func() {
		n, err = r.r.Read(p)
		close(done)
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case <-done:
		return n, err
	}
}

// badInputs collects the inputs that have no reading.
type badInputs struct {
	first []string
	count int
}

func (b *badInputs) add(input string) {
	const named = 5
	if b.count++; b.count <= named {
		b.first = append(b.first, fmt.Sprintf("%.60q", input))
	}
}

// error returns an error that names the first inputs, or nil if there are none.
// typeName and form are their expected type and form, or empty.
func (b *badInputs) error(typeName, form string) error {
	if b.count == 0 {
		return nil
	}
	list := strings.Join(b.first, ", ")
	if more := b.count - len(b.first); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	err := ids.NotID(list, typeName, form)
	if typeName+form == "" {
		err = fmt.Errorf("%w; or a ULID", err)
	}
	return err
}
