//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package filelease

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/sortkey/sortkey/nodelease"
)

var (
	unsupported            = fmt.Errorf("filelease: not supported on %s, which has no flock; use package pglease, or configure the number: %w", runtime.GOOS, nodelease.ErrMisconfigured)
	errReadOnly, errNotDir = fs.ErrPermission, fs.ErrNotExist
)

// All calls return unsupported before they open a file.

func tryLock(string) (*os.File, error)                   { return nil, unsupported }
func current(*os.File) bool                              { return false }
func trustDir(string) error                              { return unsupported }
func openOwn(string, int, fs.FileMode) (*os.File, error) { return nil, unsupported }
