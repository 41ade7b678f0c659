package pgtest

import "syscall"

// Child returns attributes for a child process. They protect it from Ctrl-C, which goes
// to all processes of a terminal, and kill it when this process dies, even if the child
// is stopped at that time.
func Child() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
