package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/spf13/cobra"
)

// An app holds the terminal and the flags of all commands.
type app struct {
	*cli.Terminal
	help *helpWriter
}

func newApp(in io.Reader, out, errs io.Writer) *app {
	t := cli.NewTerminal(in, out, errs)
	return &app{Terminal: t, help: &helpWriter{Writer: t.Out}}
}

func (c *app) rootCommand() *cobra.Command {
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
			if c.Output != "table" && c.Output != "json" {
				return cli.Usagef("--output %q: want table or json", c.Output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(c.help) // InitDefaultCompletionCmd reads it
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.PersistentFlags().StringVarP(&c.Output, "output", "o", "table", "`format` of results: table or json (one object per line)")
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
		return cli.Usagef("%s%w", strings.TrimSuffix(err.Error(), number.Error()), number.Err)
	}
	return cli.Usage(err)
}

// version returns the version of the module that the command was installed from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
