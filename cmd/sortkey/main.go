package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/spf13/cobra"
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
	fmt.Fprintln(c.Errs, "sortkey:", strings.ReplaceAll(cli.ExplainConnection(err).Error(), "\n", "\n  | "))
	if errors.As(err, &usage) {
		fmt.Fprintf(c.Errs, "Run %s --help for the usage.\n", command.CommandPath())
	}
	return exitError
}

// An app holds the terminal of all commands.
type app struct {
	*cli.Terminal
	started bool // the command line is right so far: a command has begun
}

func newApp(in io.Reader, out, errs io.Writer) *app {
	return &app{Terminal: cli.NewTerminal(in, out, errs)}
}

func (c *app) rootCommand() *cobra.Command {
	root := group("sortkey", "Work with time-sortable primary keys in Postgres", `sortkey generates, explains and converts IDs, and installs, maintains and checks
their SQL in a Postgres database.

Results go to standard output, errors and progress to standard error.
The exit code is 0, or 1 if a check found a problem, or 2 if the command line
is wrong or the command failed, or 130 after an interrupt.`)
	root.Version = version()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		c.started = true
		if c.Output != "table" && c.Output != "json" {
			return cli.Usagef("--output %q: want table or json", c.Output)
		}
		return nil
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetOut(c.Out) // InitDefaultCompletionCmd reads it
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVarP(&c.Output, "output", "o", "table", "`format` of results: table or json (one object per line)")
	completeFlag(root, "output", []string{"table", "json"})
	root.AddGroup(&cobra.Group{ID: "ids", Title: "IDs:"}, &cobra.Group{ID: "database", Title: "Databases:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add("ids", c.newCommand(), c.inspectCommand(), c.rangeCommand())
	add("database", c.migrateCommand(), c.partitionsCommand(), c.nodesCommand(), c.doctorCommand(), c.auditCommand(), c.rekeyCommand(), c.sqlcCommand())
	// cobra prints the help for any argument of these two.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		switch command.Name() {
		case "help":
			command.Args = knownCommand
		case "completion":
			command.Args = cobra.NoArgs
			command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// group returns a command that only has other commands.
func group(use, short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// note prints a text for people, which isn't a result in JSON.
func (c *app) note(format string, args ...any) error {
	if c.JSON() {
		return nil
	}
	_, err := fmt.Fprintf(c.Out, format, args...)
	return err
}

// choiceFlag adds a flag whose value is "" or one of several.
func choiceFlag(cmd *cobra.Command, value *string, flag, short, usage string, choices []string) {
	cmd.Flags().FuncP(flag, short, usage, func(v string) error {
		if v != "" && !slices.Contains(choices, v) {
			return cli.Usagef("--%s %q: want %s", flag, v, strings.Join(choices, ", "))
		}
		*value = v
		return nil
	})
	completeFlag(cmd, flag, choices)
}

// completeFlag sets the completions of a flag's value.
func completeFlag(cmd *cobra.Command, flag string, values []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// completePools completes the first argument with the names of the pools of the formats.
func completePools(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []cobra.Completion{"snowflake", "snowflake-si", "spread64", "sno"}, cobra.ShellCompDirectiveNoFileComp
}

// completeJSON and completeFolder complete an argument with the names of files and directories.
var (
	completeJSON   = cobra.FixedCompletions([]cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt)
	completeFolder = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
)

// knownCommand checks that the arguments are the path of a command.
func knownCommand(cmd *cobra.Command, args []string) error {
	_, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %q for %q", rest[0], cmd.Root().Name())
	}
	return err
}

// negative matches pflag's error for a negative number, which looks like a flag.
var negative = regexp.MustCompile(`^unknown shorthand flag: '[0-9]'`)

// flagError returns the error for an error in a flag. Errors in numbers don't name
// the function of package strconv.
func flagError(_ *cobra.Command, err error) error {
	var usage *cli.UsageError
	var number *strconv.NumError
	switch {
	case errors.As(err, &usage): // of a flag of this package
		return usage
	case errors.As(err, &number):
		return fmt.Errorf("%s%w", strings.TrimSuffix(err.Error(), number.Error()), number.Err)
	case negative.MatchString(err.Error()):
		return fmt.Errorf("%w; put -- before negative numbers", err)
	}
	return err
}

// goNames matches the names that the packages of the module put before an error.
var goNames = regexp.MustCompile(`^(idtype|migrations): (convert times? .+? to (a range|\w+): |Config\.\w+: |\w+Layout: )?(idtype: \w+: )?`)

// ofFlag returns the error of a package as one of a flag, without the Go names in it.
func ofFlag(flag, value string, err error) error {
	return cli.Usagef("--%s %s: %s", flag, value, goNames.ReplaceAllString(err.Error(), ""))
}

// version returns the version of the module that the command was installed from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
