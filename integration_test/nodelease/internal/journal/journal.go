// Package journal is what the minting program writes down, and what the tests
// read and check.
package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// An ID is one of any format: its bytes, with zeros before those that have
// fewer than ten.
type ID [10]byte

// The kinds of records.
const (
	// Granted: the store has answered a Claim or Renew.
	Granted byte = iota + 1
	// Minted: the generator has given IDs.
	Minted
)

// A Record is an entry of a journal. Times with a clock are in Unix
// milliseconds, the others since the process began, by its monotonic clock.
type Record struct {
	Kind   byte
	Number int32
	Term   int64
	// After is the mark that the claim found, Until the one it was granted: up to
	// there the generator may mint from here on in the journal.
	After, Until int64
	// TTL is for how long the claim was granted.
	TTL time.Duration
	// Sent is when the call of the store was begun that was granted last.
	Sent time.Duration
	// Begun is when the generator was called that has minted.
	Begun time.Duration
	Count int32
}

// An Entry is a record with the IDs that it counts.
type Entry struct {
	Record
	IDs []ID
}

// A Writer appends to a journal. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
	buf  bytes.Buffer
}

// Create begins a journal.
func Create(name string) (*Writer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return &Writer{file: f}, nil
}

// Append writes a record with one call of the system: from then on it is there,
// also if the process is killed.
func (w *Writer) Append(r Record, ids []ID) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Count = int32(len(ids))
	w.buf.Reset()
	if err := binary.Write(&w.buf, binary.BigEndian, r); err != nil {
		return err
	}
	for _, id := range ids {
		w.buf.Write(id[:])
	}
	_, err := w.file.Write(w.buf.Bytes())
	return err
}

// Read gives a journal to f, entry by entry; f may not keep the IDs. A last
// entry that isn't complete is one on which the process was killed: nobody
// has used its IDs.
func Read(name string, f func(Entry)) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	r := bytes.NewReader(b)
	var ids []ID
	for {
		var e Entry
		err := binary.Read(r, binary.BigEndian, &e.Record)
		if err == nil && (e.Kind != Granted && e.Kind != Minted || e.Count < 0) {
			return fmt.Errorf("%s: expected a record at byte %d, got %+v", name, len(b)-r.Len(), e.Record)
		}
		if err == nil {
			if cap(ids) < int(e.Count) {
				ids = make([]ID, e.Count)
			}
			e.IDs = ids[:e.Count]
			for i := range e.IDs {
				if _, err = io.ReadFull(r, e.IDs[i][:]); err != nil {
					break
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		f(e)
	}
}
