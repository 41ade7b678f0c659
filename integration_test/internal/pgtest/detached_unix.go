//go:build unix

package pgtest

import "syscall"

// detached protects a child process from signals that end this process, such as that of
// Ctrl-C, which the terminal sends to all its processes.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
