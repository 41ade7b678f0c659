// Package journal is what the minting program writes down, and what the tests
// read and check.
package journal

import (
	"encoding/json"
	"errors"
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
	Granted = "granted"
	// Minted: the generator has given IDs.
	Minted = "minted"
)

// A Record is a line of a journal, in JSON. Times with a clock are in Unix
// milliseconds, the others since the process began, by its monotonic clock.
type Record struct {
	Kind   string
	Number int
	Term   int64
	// After is the high-water mark that the claim found, Until the one it was
	// granted: up to there the generator may mint from here on in the journal.
	After, Until int64
	// TTL is for how long the claim was granted.
	TTL time.Duration
	// Sent is when the call of the store was begun that was granted last.
	Sent time.Duration
	// Begun is when the generator was called that has minted.
	Begun time.Duration
	// IDs are the bytes of the IDs, one after the other.
	IDs []byte
}

// A Writer appends to a journal. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Create begins a journal.
func Create(name string) (*Writer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	return &Writer{file: f}, err
}

// Append writes a record with one call of the system: from then on it is there,
// also if the process is killed.
func (w *Writer) Append(r Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.file.Write(append(line, '\n'))
	return err
}

// Read gives a journal to f, record by record. A last one that isn't complete is
// one on which the process was killed: nobody has used its IDs.
func Read(name string, f func(Record)) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	for d := json.NewDecoder(file); ; {
		var r Record
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		f(r)
	}
}
