//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

var (
	unsupported            error // why the store can't be used on this system
	errReadOnly, errNotDir error = syscall.EROFS, syscall.ENOTDIR
)

// tryLock opens and locks a file. It returns nil if the file is locked. The lock belongs to
// the open file, so it excludes other Stores of this process too. The kernel releases it when
// the process ends for any reason.
func tryLock(path string) (*os.File, error) {
	for {
		f, err := openOwn(path, os.O_RDWR|os.O_CREATE, fileMode)
		if err != nil {
			return nil, err
		}
		for {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			if err != syscall.EINTR {
				break
			}
		}
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil, f.Close()
		case err != nil:
			_ = f.Close()
			return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
		case current(f):
			return f, nil
		}
		_ = f.Close() // the file was replaced meanwhile
	}
}

// current reports whether the open file is still the one at its path.
func current(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, now)
}
