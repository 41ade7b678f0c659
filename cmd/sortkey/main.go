package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
)

// The exit codes.
const (
	exitOK          = 0
	exitFound       = 1   // a check found a problem
	exitError       = 2   // wrong usage, or the command failed
	exitInterrupted = 130 // as in shells: 128 + SIGINT
)

// errFound makes the command exit with exitFound. The command has printed the
// problems as its result.
var errFound = errors.New("problems found")

// found returns the error of printing results, or errFound if they have problems.
func found(printed error, problems bool) error {
	if printed == nil && problems {
		return errFound
	}
	return printed
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal, a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	c := newApp(in, out, errs)
	root := c.rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetErr(c.Errs)
	command, err := root.ExecuteContextC(ctx)
	switch failed := c.Err(); {
	case failed == nil && !c.started:
		err = cli.Usage(err)
	case failed != nil && (err == nil || errors.Is(err, errFound)):
		err = failed
	}
	var usage *cli.UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFound):
		return exitFound
	case ctx.Err() != nil:
		fmt.Fprintln(c.Errs, "sortkey: interrupted")
		return exitInterrupted
	}
	// If the reader of standard output ends, SIGPIPE has ended the process. EPIPE is thus
	// an error of a connection.
	// Marked, so that a name with a newline can't begin a line.
	fmt.Fprintln(c.Errs, "sortkey:", strings.ReplaceAll(cli.ExplainFailed(err).Error(), "\n", "\n  | "))
	if errors.As(err, &usage) {
		fmt.Fprintf(c.Errs, "Run %s --help for the usage.\n", command.CommandPath())
	}
	return exitError
}
