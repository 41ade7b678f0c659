package filelease

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sortkey/sortkey/internal/strictjson"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/internal/stores"
)

// The names of a number's files are the number with a suffix.
const (
	suffix     = ".json" // the record
	lockSuffix = ".lock" // an empty file, which the holder keeps locked
)

// Only the user of the process has access. With read access, another user could lock a file,
// and with it block all claims.
const (
	fileMode = 0o600
	dirMode  = fs.ModeDir | 0o700
)

// A record is the content of the file of a number.
type record struct {
	number int    // the name of the file
	Size   int    `json:"size"` // of the pool, as Layout
	Layout string `json:"layout"`
	stores.Record
}

// read reads the record of a number, and checks that it is one of the pool.
func (s *Store) read(p nodelease.Pool, n int) (record, error) {
	path := s.numberPath(p, n, suffix)
	f, err := openOwn(path, os.O_RDONLY, fileMode)
	if err != nil {
		return record{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return record{}, err
	}
	rec, err := decode(data)
	if err != nil {
		return record{}, fmt.Errorf("filelease: decode %s: %w; stop the program, restore the file or set its \"until\" to a time, in Unix milliseconds, after the last ID with number %d; got %.200q: %w",
			path, err, n, data, nodelease.ErrMisconfigured)
	}
	if err := stores.CheckLayout(fmt.Sprintf("filelease: open pool %q in %s", p.Name, s.dir), p, rec.Size, rec.Layout); err != nil {
		return record{}, err
	}
	rec.number = n
	return rec, nil
}

// decode parses a record, written by write or by hand. All fields are required, and unknown
// fields are an error.
func decode(data []byte) (record, error) {
	rec, err := strictjson.Decode[record](data)
	if err == nil {
		err = rec.Validate()
	}
	if err != nil {
		return record{}, err
	}
	return rec, nil
}

// write replaces the record of a number. The new one is on the disk when write returns. After
// a crash, the file has the old or the new record.
func (s *Store) write(p nodelease.Pool, rec record) (err error) {
	path := s.numberPath(p, rec.number, suffix)
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	temporary := path + ".new"
	// A process that ended during a write may have left its file. With O_EXCL, a symbolic link
	// at this path is an error.
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir writes the names of the directory's files to the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
