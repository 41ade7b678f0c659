package main

import (
	"slices"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/spf13/cobra"
)

func (c *app) inspectCommand() *cobra.Command {
	var (
		layout             layoutFlags
		name               string
		form, from, prefix string
	)
	cmd := &cobra.Command{
		Use:   "inspect [ID...]",
		Short: "Print the type, time, node number and other forms of IDs",
		Long: `Inspect prints the parts and all forms of each ID. It recognizes
` + ids.Texts + `.
It also names ULIDs, with their time.

If an input can be an ID of several types, Inspect prints all of them, the one
whose time is nearest to now first. It calls a type implausible if its time is
more than a day ahead, or if a decimal is below 2^32, as in a serial column. If
no meaning is of the last year, Inspect adds the times at which Discord and
Twitter would have created the Snowflake: their epochs differ.

If it doesn't recognize an input, Inspect continues with the others and then
fails with exit code 2.

With --form, it prints one form of each ID, and stops at the first ID without
it. It never guesses then: if an input can be several IDs whose results differ,
pass --type, --from or both, as scripts always should. The text of a uid60 that
can be a part of another ID's hex digits also needs them.

` + layoutHelp,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			for flag, value := range map[string]string{"form": form, "from": from} {
				if value != "" && !slices.Contains(ids.Forms, value) {
					return cli.Usagef("--%s %q: want %s", flag, value, strings.Join(ids.Forms, ", "))
				}
			}
			switch {
			case prefix != "" && form != "typeid":
				return cli.Usagef("--prefix needs --form typeid")
			case !ids.PrefixOfTypeID.MatchString(prefix):
				return cli.Usagef("--prefix %q: want up to 63 lower-case letters and underscores, with a letter at both ends", prefix)
			}
			formats, err := c.candidateFormats(name, layout)
			if err != nil {
				return err
			}
			var bad badInputs
			separator := ""
			inspect := func(input string) error {
				if form != "" {
					result, err := ids.Convert(input, from, form, name, prefix, formats)
					if err != nil {
						return err
					}
					return c.Print(map[string]string{"input": input, form: result}, "%s\n", result)
				}
				found := ids.Find(input, from, formats, name+from == "", c.Now())
				if len(found) == 0 {
					bad.add(input)
					return nil
				}
				if c.JSON() {
					return c.PrintJSON(newInspected(input, found, c.Now()))
				}
				err := c.note("%s%s", separator, c.describe(input, found))
				separator = "\n"
				return err
			}
			err = c.Buffer(func(flush func() error) error { return c.eachInput(cmd.Context(), args, flush, inspect) })
			if err == nil {
				err = bad.error(name, from)
			}
			return err
		},
	}
	layout.add(cmd)
	cmd.Flags().StringVarP(&name, "type", "t", "", "`type` of the IDs: "+strings.Join(ids.Names(), ", ")+" (default: any)")
	cmd.Flags().StringVar(&form, "form", "", "the only `form` to print: "+strings.Join(ids.Forms, ", "))
	cmd.Flags().StringVar(&from, "from", "", "`form` of the input (default: any)")
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the TypeIDs (default: that of the input)")
	for flag, values := range map[string][]string{"type": ids.Names(), "form": ids.Forms, "from": ids.Forms} {
		completeFlag(cmd, flag, values)
	}
	return cmd
}
