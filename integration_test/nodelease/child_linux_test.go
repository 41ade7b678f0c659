package nodelease

import "syscall"

// child keeps a process out of reach of Ctrl-C, which goes to all processes of a
// terminal, and has it die with this one, even if it is stopped then.
func child() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
