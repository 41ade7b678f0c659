//go:build unix && !linux

package nodelease

import "syscall"

// child protects a process from Ctrl-C, which goes to all processes of a terminal. If
// this process dies, the child's standard input ends. If the child is stopped at that
// time, the system sends SIGHUP to its orphaned process group.
func child() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
