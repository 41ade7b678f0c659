//go:build unix

package pgtest

import "syscall"

// detached keeps a child process out of reach of the signals that end this
// one, such as those of Ctrl-C, which go to all processes of a terminal.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
