//go:build unix && !linux

package pgtest

import "syscall"

// Child returns attributes for a child process. They protect it from Ctrl-C, which goes
// to all processes of a terminal. If this process dies, the child's standard input ends.
// If the child is stopped at that time, the system sends SIGHUP to its orphaned process
// group.
func Child() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
