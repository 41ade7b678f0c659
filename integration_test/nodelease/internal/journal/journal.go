// Package journal is the format of the files in which the program minter records its
// claims and IDs, for the tests to check.
package journal

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// An ID holds the bytes of an ID of any format, left-padded with zeros to ten bytes.
type ID [10]byte

// The kinds of records.
const (
	// Granted: the store has granted a Claim or Renew.
	Granted = "granted"
	// Minted: the generator has created IDs.
	Minted = "minted"
)

// A Record is a line of a journal, in JSON.
type Record struct {
	Kind   string
	Number int
	Term   int64
	// After and Until are the range of the claim, in Unix milliseconds. From this
	// record on, the generator may create IDs up to Until.
	After, Until int64
	// TTL is the granted TTL.
	TTL time.Duration
	// Sent is the time at which the last granted call of the store was sent, since the
	// start of the process, by its monotonic clock.
	Sent time.Duration
	// Begun is the time at which the generator was called, like Sent.
	Begun time.Duration
	// IDs are the bytes of the IDs, one after the other.
	IDs []byte
}

// A Writer appends to a journal. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	file *os.File
}

// Create creates a journal.
func Create(name string) (*Writer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644)
	return &Writer{file: f}, err
}

// Append writes a record with one system call. After that the record stays even if the
// process is killed.
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

// Read calls f for each record of a journal. It ignores an incomplete last record: the
// process was killed while writing it, before the IDs were used.
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
