package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
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
It also names IDs of other makers, with their time:
` + ids.ForeignTexts + `.
Put -- before negative numbers.

If an input can be an ID of several types, Inspect prints all of them, the most
plausible one first: the one whose time is nearest to now. A type whose time is
more than a day ahead is implausible, and comes last, without its parts, and so
is a decimal below 2^32, which rather comes from a serial column. A snowflake-si
without --epoch has no time and counts as five years old. So does a UUID of
another version than 1, 6 and 7. --type excludes the other types. If no meaning
is of the last year, Inspect adds the times at which Discord and Twitter would
have created the Snowflake: their epochs differ.

` + layoutHelp + `

    node      the node number, as in nodelease and sortkey.node, and its fields
    sequence  the number of the ID within its node and unit of time
    text      the form in URLs and JSON, unless it equals int64 or uuid
    int64     the value of a bigint column
    uuid      the value of a uuid column
    typeid    the TypeID of a UUID, with the prefix of the input
    hex       the big-endian bytes of the binary form
    bytea     the same as a literal in SQL

JSON has an object per input, whose candidates have all parts and forms. The
int64 forms are strings, since JavaScript rounds numbers above 2^53.

Zero is not an ID of any type, and Inspect names it. If it doesn't recognize an
input, Inspect continues with the others and then fails with exit code 2.

With --form, Inspect prints one of these forms of each ID, one per line, and
stops at the first ID without it. --prefix is that of a typeid. It never guesses
then: if an input can be several IDs whose results differ, pass --type, --from
or both. Scripts should always pass them. The text of a uid60 that can be a part
of another ID's hex digits also needs them.`,
		Example: `  sortkey inspect 779300444248735744
  sortkey inspect ord_779300444248735744
  sortkey inspect 754321098765432 --type snowflake-si --epoch 2023-01-01
  sortkey inspect --form uuid 9edd8o6o2v2im222
  sortkey inspect --form uuid user_01h455vb4pex5vsknk084sn02q
  psql "$DATABASE_URL" -AtXc 'SELECT id FROM orders' | sortkey inspect -o json`,
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
			out := bufio.NewWriterSize(c.Out, 1<<16)
			show, encoder := c.inspector(out), json.NewEncoder(out)
			var bad badInputs
			err = c.eachInput(cmd.Context(), args, out.Flush, func(input string) error {
				if form != "" {
					result, err := ids.Convert(input, from, form, name, prefix, formats)
					switch {
					case err != nil:
					case c.JSON():
						err = encoder.Encode(map[string]string{"input": input, form: result})
					default:
						_, err = out.WriteString(result + "\n")
					}
					return err
				}
				found := ids.Find(input, from, formats, name+from == "", c.Now())
				if len(found) == 0 {
					bad.add(input)
					return nil
				}
				return show(input, found)
			})
			if flushed := out.Flush(); err == nil {
				err = flushed
			}
			if err == nil {
				err = bad.error(name, from)
			}
			return err
		},
	}
	layout.add(cmd)
	cmd.Flags().StringVarP(&name, "type", "t", "", "`type` of the IDs (default: any)")
	cmd.Flags().StringVar(&form, "form", "", "the only `form` to print")
	cmd.Flags().StringVar(&from, "from", "", "`form` of the input (default: any)")
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the TypeIDs (default: that of the input)")
	for flag, values := range map[string][]string{"type": ids.Names(), "form": ids.Forms, "from": ids.Forms} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	acceptIDs(cmd)
	return cmd
}

// valueWidth is the width of values, beside labels of 11 columns.
const valueWidth = 80 - 11

// inspector returns a function that prints the readings of an input to out.
func (c *app) inspector(out *bufio.Writer) func(input string, found []ids.Reading) error {
	now := c.Now
	if c.JSON() {
		encoder := json.NewEncoder(out)
		return func(input string, found []ids.Reading) error {
			result := inspected{Input: input}
			for _, r := range found {
				result.Candidates = append(result.Candidates, newInspectedID(r, now()))
			}
			return encoder.Encode(result)
		}
	}
	// Look once whether the output is a terminal, not for each ID.
	bold, faint := c.Paint(text.Bold, "%s"), c.Paint(text.Faint, "%s")
	first := true
	return func(input string, found []ids.Reading) error {
		if !first {
			fmt.Fprintln(out)
		}
		first = false
		line := func(label, format, value string) {
			for len(value) > valueWidth { // only a prefix, which is ASCII, can be so long
				fmt.Fprintf(out, faint+format+"\n", fmt.Sprintf("%-11s", label), value[:valueWidth])
				label, value = "", value[valueWidth:]
			}
			fmt.Fprintf(out, faint+format+"\n", fmt.Sprintf("%-11s", label), value)
		}
		line("id", bold, input)
		plausible := found[0].Plausible(now())
		for i, r := range found {
			label, note := "type", ""
			if i > 0 {
				label = "or"
			}
			switch {
			case r.Title == ids.ZeroTitle:
				note = ", which is not an ID"
			case !r.Plausible(now()):
				note = ", implausible"
				if !r.Time.IsZero() {
					note += ": of " + r.Time.Format(time.DateOnly)
				}
				if plausible {
					line(label, "%s"+note, r.Title)
					continue
				}
			}
			if i > 0 {
				fmt.Fprintln(out)
			}
			line(label, bold+note, r.Title)
			for _, row := range c.rows(r) {
				line(row[0], "%s", row[1])
			}
		}
		return nil
	}
}

// rows returns the labels and values of a reading.
func (c *app) rows(r ids.Reading) (rows [][2]string) {
	add := func(label, value string) { rows = append(rows, [2]string{label, value}) }
	if r.Prefix != "" {
		add("prefix", r.Prefix)
	}
	switch {
	case !r.Time.IsZero():
		add("time", fmt.Sprintf("%s (%s)", stamp(r.Time), c.ago(r.Time)))
		local := r.Time.In(c.Now().Location())
		if _, offset := local.Zone(); offset != 0 {
			add("local time", local.Format("2006-01-02 15:04:05.000 -07:00"))
		}
	case r.Format != nil && r.Format.Undated:
		add("time", "unknown: pass the base clock as --epoch")
	}
	if r.Format == nil {
		return rows
	}
	switch _, fields := r.Format.NodeFields(r.Parts.Node); len(r.Format.Nodes) {
	case 0:
	case 1:
		add("node", fmt.Sprintf("%d (%s)", r.Parts.Node, r.Format.Nodes[0].Name))
	default:
		add("node", fmt.Sprintf("%d (%s)", r.Parts.Node, fields))
	}
	if r.Parts.Version == 0 {
		add("sequence", fmt.Sprint(r.Parts.Sequence))
	}
	switch r.Format.Name {
	case "uid60":
		add("random", fmt.Sprint(r.Parts.Random))
	case "sno":
		add("metabyte", fmt.Sprint(r.Parts.Meta))
		add("tick-tock", fmt.Sprint(r.Parts.TickTock))
	}
	all := ids.AllForms(r.ID, r.Prefix)
	for _, form := range ids.Forms {
		if value, ok := all[form]; ok && (form != "text" || value != all["int64"] && value != all["uuid"]) {
			add(form, value)
		}
	}
	return rows
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
