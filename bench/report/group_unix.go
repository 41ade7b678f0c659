//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endTogether has a command end with what it started: go doesn't pass signals on
// to the tests that it runs.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
