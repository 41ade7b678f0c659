//go:build unix && !linux

package nodelease

import "syscall"

// child keeps a process out of reach of Ctrl-C, which goes to all processes of a
// terminal. If this one dies, its standard input ends; if it is stopped then,
// the system sends SIGHUP to its group, which has lost its parent.
func child() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
