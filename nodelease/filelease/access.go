//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/sortkey/sortkey/nodelease"
)

// trustDir returns an error if another user could replace the directory of a pool in dir.
// The group of dir may write to it: a Kubernetes fsGroup has that right to a volume.
func trustDir(dir string) error {
	link, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir) // dir may be a link to a volume
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: dir, Err: errNotDir}
	}
	for _, i := range []fs.FileInfo{link, info} {
		if user := os.Geteuid(); !trusted(i, user) {
			return foreign(dir, i, user)
		}
	}
	// In a sticky directory such as /tmp, other users can create files, but can't rename or
	// remove ours.
	if info.Mode()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return writable(dir, info)
	}
	return nil
}

// openOwn opens a file with the type and permissions of mode, which are dirMode or fileMode.
// It returns an error if the file is a symbolic link, if another user owns it, or if all users
// can write to it. If this process owns the file and its mode allows more than mode, openOwn
// changes it.
func openOwn(path string, flag int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != mode.Type() {
		return nil, fmt.Errorf("filelease: open %s: want a file or directory with mode %v, got mode %v of user %d, such as a symbolic link; move the file itself to this path: %w",
			path, mode, info.Mode(), owner(info), nodelease.ErrMisconfigured)
	}
	f, err := os.OpenFile(path, flag|syscall.O_NOFOLLOW, mode.Perm())
	if err != nil {
		return nil, err
	}
	if err := restrict(f, mode, os.Geteuid()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// restrict removes the access of other users to a file.
func restrict(f *os.File, mode fs.FileMode, user int) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !trusted(info, user), owner(info) != user && info.Mode()&0o020 != 0:
		return foreign(f.Name(), info, user)
	case info.Mode()&0o002 != 0:
		return writable(f.Name(), info)
	case owner(info) != user || info.Mode()&0o077 == 0:
		return nil
	}
	return f.Chmod(mode.Perm())
}

// trusted reports whether the owner of a file is the user of this process or root.
func trusted(info fs.FileInfo, user int) bool { return owner(info) == user || owner(info) == 0 }

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func foreign(path string, info fs.FileInfo, user int) error {
	return fmt.Errorf("filelease: open %s: user %d owns it, with mode %v, but this process runs as user %d; run all processes that use the directory as one user, which owns it, or choose another directory: %w",
		path, owner(info), info.Mode(), user, nodelease.ErrMisconfigured)
}

func writable(path string, info fs.FileInfo) error {
	return fmt.Errorf("filelease: open %s: all users can write to it: its owner is user %d and its mode is %v; check that nobody has changed its content, then run chmod o-w, or choose another directory: %w",
		path, owner(info), info.Mode(), nodelease.ErrMisconfigured)
}
