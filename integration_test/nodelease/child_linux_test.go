package nodelease

import "syscall"

// child protects a process from Ctrl-C, which goes to all processes of a terminal, and
// kills it when this process dies, even if it is stopped at that time.
func child() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
