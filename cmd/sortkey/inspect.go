package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
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
		RunE: func(cmd *cobra.Command, args []string) error {
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
					return c.printInspected(input, found)
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
	choiceFlag(cmd, &name, "type", "t", "`type` of the IDs: "+strings.Join(ids.Names(), ", ")+" (default: any)", ids.Names())
	choiceFlag(cmd, &form, "form", "", "the only `form` to print: "+strings.Join(ids.Forms, ", "), ids.Forms)
	choiceFlag(cmd, &from, "from", "", "`form` of the input (default: any)", ids.Forms)
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the TypeIDs (default: that of the input)")
	return cmd
}

// describe returns the readings of an input as a text.
func (c *app) describe(input string, found []ids.Reading) string {
	var b strings.Builder
	line := func(label, value string) {
		if value != "" {
			b.WriteString(c.Paint(text.Faint, fmt.Sprintf("%-11s", label)) + value + "\n")
		}
	}
	line("id", c.Paint(text.Bold, input))
	plausible := found[0].Plausible(c.Now())
	label := "type"
	for i, r := range found {
		note := ""
		switch {
		case r.Title == ids.ZeroTitle:
			note = ", which is not an ID"
		case !r.Plausible(c.Now()):
			note = ", implausible"
			if !r.Time.IsZero() {
				note += ": of " + r.Time.Format(time.DateOnly)
			}
			if plausible {
				line(label, r.Title+note)
				continue
			}
		}
		if i > 0 {
			b.WriteString("\n")
		}
		line(label, c.Paint(text.Bold, r.Title)+note)
		label = "or"
		c.describeParts(r, line)
	}
	return b.String()
}

// describeParts calls line with the labels and values of a reading. Values can be empty.
func (c *app) describeParts(r ids.Reading, line func(label, value string)) {
	line("prefix", r.Prefix)
	switch {
	case !r.Time.IsZero():
		line("time", fmt.Sprintf("%s (%s)", stamp(r.Time), c.ago(r.Time)))
		local := r.Time.In(c.Now().Location())
		if _, offset := local.Zone(); offset != 0 {
			line("local time", local.Format("2006-01-02 15:04:05.000 -07:00"))
		}
	case r.Format != nil && r.Format.Undated:
		line("time", "unknown: pass the base clock as --epoch")
	}
	id := newInspectedID(r, c.Now())
	if id.Node != nil {
		_, fields := r.Format.NodeFields(*id.Node)
		if len(r.Format.Nodes) == 1 {
			fields = r.Format.Nodes[0].Name
		}
		line("node", fmt.Sprintf("%d (%s)", *id.Node, fields))
	}
	line("sequence", fmt.Sprint(cli.Cell(id.Sequence)))
	line("random", fmt.Sprint(cli.Cell(id.Random)))
	line("metabyte", fmt.Sprint(cli.Cell(id.Metabyte)))
	line("tick-tock", fmt.Sprint(cli.Cell(id.TickTock)))
	for _, form := range ids.Forms {
		if value := id.Forms[form]; form != "text" || value != id.Forms["int64"] && value != id.Forms["uuid"] {
			line(form, value)
		}
	}
}

// inspected is the JSON form of an inspected input.
type inspected struct {
	Input      string        `json:"input"`
	Candidates []inspectedID `json:"candidates"`
}

// inspectedID is the JSON form of a reading.
type inspectedID struct {
	Type       string            `json:"type"`
	Plausible  bool              `json:"plausible"`
	Prefix     string            `json:"prefix,omitempty"`
	Time       *ids.Time         `json:"time,omitempty"`
	Node       *int              `json:"node,omitempty"`
	NodeFields map[string]int    `json:"node_fields,omitempty"`
	Sequence   *int              `json:"sequence,omitempty"`
	Random     *int64            `json:"random,omitempty"`
	Metabyte   *byte             `json:"metabyte,omitempty"`
	TickTock   *bool             `json:"tick_tock,omitempty"`
	Forms      map[string]string `json:"forms,omitempty"`
}

func (c *app) printInspected(input string, found []ids.Reading) error {
	result := inspected{Input: input}
	for _, r := range found {
		result.Candidates = append(result.Candidates, newInspectedID(r, c.Now()))
	}
	return c.PrintJSON(result)
}

func newInspectedID(r ids.Reading, now time.Time) inspectedID {
	row := inspectedID{Type: r.Title, Plausible: r.Plausible(now), Prefix: r.Prefix}
	if !r.Time.IsZero() {
		row.Time = &ids.Time{Time: r.Time}
	}
	if r.Format == nil {
		return row
	}
	row.Type = r.Format.Name
	if r.Parts.Version != 0 {
		row.Type = fmt.Sprintf("uuid%d", r.Parts.Version)
	}
	if r.Format.Nodes != nil {
		row.Node = &r.Parts.Node
		row.NodeFields, _ = r.Format.NodeFields(r.Parts.Node)
	}
	if r.Parts.Version == 0 {
		row.Sequence = &r.Parts.Sequence
	}
	switch r.Format.Name {
	case "uid60":
		row.Random = &r.Parts.Random
	case "sno":
		row.Metabyte, row.TickTock = &r.Parts.Meta, &r.Parts.TickTock
	}
	row.Forms = ids.AllForms(r.ID, r.Prefix)
	return row
}
