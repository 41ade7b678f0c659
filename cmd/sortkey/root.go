package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A cli holds the streams of the process and the flags of all commands.
type cli struct {
	in     io.Reader
	out    io.Writer // results
	errs   io.Writer // errors and progress
	help   *helpWriter
	output string // table or json
	now    func() time.Time
}

func newCLI(in io.Reader, out, errs io.Writer) *cli {
	visible := newVisibleWriter(out)
	c := &cli{in: in, out: visible, errs: newVisibleWriter(errs), help: &helpWriter{Writer: visible}, now: time.Now}
	visible.colors = c.paints()
	return c
}

func (c *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sortkey",
		Short: "Work with time-sortable primary keys in Postgres",
		Long: `sortkey generates, explains and converts IDs, and installs, maintains and checks
their SQL in a Postgres database.

Results go to standard output, errors and progress to standard error.
The exit code is 0, or 1 if a check found a problem, or 2 if the command line
is wrong or the command failed, or 130 after an interrupt. If the reader of the
results ends early, such as head, the shell shows 141, as for other commands.`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          asUsage(cobra.NoArgs),
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if c.output != "table" && c.output != "json" {
				return usagef("--output %q: want table or json", c.output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(c.help) // InitDefaultCompletionCmd reads it
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.PersistentFlags().StringVarP(&c.output, "output", "o", "table", "`format` of results: table or json (one object per line)")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	root.AddGroup(
		&cobra.Group{ID: "ids", Title: "IDs:"},
		&cobra.Group{ID: "database", Title: "Databases:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add("ids", c.newCommand(), c.inspectCommand(), c.rangeCommand())
	add("database", c.migrateCommand(), c.partitionsCommand(), c.nodesCommand(), c.doctorCommand(), c.auditCommand(), c.rekeyCommand())
	// cobra prints the help for any argument of these two.
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		switch command.Name() {
		case "help":
			command.Args = asUsage(knownCommand)
		case "completion":
			command.Args = asUsage(cobra.NoArgs)
			command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// knownCommand checks that the arguments are the path of a command.
func knownCommand(cmd *cobra.Command, args []string) error {
	_, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unknown command %q for %q", rest[0], cmd.Root().Name())
	}
	return err
}

// flagError returns the usage error for an error in a flag. Errors in numbers don't name
// the function of package strconv.
func flagError(err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		return usagef("%s%w", strings.TrimSuffix(err.Error(), number.Error()), number.Err)
	}
	return &usageError{err}
}

// version returns the version of the module that the command was installed from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// terminal reports whether a stream is a terminal.
func terminal(stream any) bool {
	f, ok := file(stream)
	return ok && term.IsTerminal(int(f.Fd()))
}
