package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
)

func (c *cli) inspectCommand() *cobra.Command {
	var (
		layout             layoutFlags
		name               string
		form, from, prefix string
	)
	cmd := &cobra.Command{
		Use:   "inspect [ID...]",
		Short: "Print the type, time, node number and other forms of IDs",
		Long: `Inspect prints the parts and all forms of each ID. It recognizes
` + idForms + `.
It also names IDs of other makers, with their time:
` + foreignForms + `.
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
				if value != "" && !slices.Contains(forms, value) {
					return usagef("--%s %q: want %s", flag, value, strings.Join(forms, ", "))
				}
			}
			switch {
			case prefix != "" && form != "typeid":
				return usagef("--prefix needs --form typeid")
			case !typeIDPrefix.MatchString(prefix):
				return usagef("--prefix %q: want up to 63 lower-case letters and underscores, with a letter at both ends", prefix)
			}
			formats, err := c.candidateFormats(name, layout)
			if err != nil {
				return err
			}
			out := bufio.NewWriterSize(c.out, 1<<16)
			show, encoder := c.inspector(out), json.NewEncoder(out)
			var bad badInputs
			err = c.eachInput(cmd.Context(), args, out.Flush, func(input string) error {
				if form != "" {
					result, err := converted(input, from, form, name, prefix, formats)
					switch {
					case err != nil:
					case c.json():
						err = encoder.Encode(map[string]string{"input": input, form: result})
					default:
						_, err = out.WriteString(result + "\n")
					}
					return err
				}
				found := readings(input, from, formats, name+from == "", c.now())
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
	for flag, values := range map[string][]string{"type": formatNames(), "form": forms, "from": forms} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	acceptIDs(cmd)
	return cmd
}

// candidateFormats returns the format with this name, or all formats if the name is
// empty.
func (c *cli) candidateFormats(name string, layout layoutFlags) ([]*format, error) {
	if name == "" {
		return c.formats(layout)
	}
	f, err := c.format(name, layout)
	return []*format{f}, err
}

// valueWidth is the width of values, beside labels of 11 columns.
const valueWidth = 80 - 11

// inspector returns a function that prints the readings of an input to out.
func (c *cli) inspector(out *bufio.Writer) func(input string, found []reading) error {
	now := c.now
	if c.json() {
		encoder := json.NewEncoder(out)
		return func(input string, found []reading) error {
			result := inspected{Input: input}
			for _, r := range found {
				result.Candidates = append(result.Candidates, r.json(now()))
			}
			return encoder.Encode(result)
		}
	}
	// Look once whether the output is a terminal, not for each ID.
	bold, faint := c.paint(text.Bold, "%s"), c.paint(text.Faint, "%s")
	first := true
	return func(input string, found []reading) error {
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
		plausible := found[0].plausible(now())
		for i, r := range found {
			label, note := "type", ""
			if i > 0 {
				label = "or"
			}
			switch {
			case r.title == zeroTitle:
				note = ", which is not an ID"
			case !r.plausible(now()):
				note = ", implausible"
				if !r.time.IsZero() {
					note += ": of " + r.time.Format(time.DateOnly)
				}
				if plausible {
					line(label, "%s"+note, r.title)
					continue
				}
			}
			if i > 0 {
				fmt.Fprintln(out)
			}
			line(label, bold+note, r.title)
			for _, row := range c.rows(r) {
				line(row[0], "%s", row[1])
			}
		}
		return nil
	}
}

// rows returns the labels and values of a reading.
func (c *cli) rows(r reading) (rows [][2]string) {
	add := func(label, value string) { rows = append(rows, [2]string{label, value}) }
	if r.prefix != "" {
		add("prefix", r.prefix)
	}
	switch {
	case !r.time.IsZero():
		add("time", fmt.Sprintf("%s (%s)", stamp(r.time), c.ago(r.time)))
		local := r.time.In(c.now().Location())
		if _, offset := local.Zone(); offset != 0 {
			add("local time", local.Format("2006-01-02 15:04:05.000 -07:00"))
		}
	case r.format != nil && r.format.undated:
		add("time", "unknown: pass the base clock as --epoch")
	}
	if r.format == nil {
		return rows
	}
	switch _, fields := r.format.nodeFields(r.parts.node); len(r.format.nodes) {
	case 0:
	case 1:
		add("node", fmt.Sprintf("%d (%s)", r.parts.node, r.format.nodes[0].name))
	default:
		add("node", fmt.Sprintf("%d (%s)", r.parts.node, fields))
	}
	if r.parts.version == 0 {
		add("sequence", fmt.Sprint(r.parts.sequence))
	}
	switch r.format.name {
	case "uid60":
		add("random", fmt.Sprint(r.parts.random))
	case "sno":
		add("metabyte", fmt.Sprint(r.parts.meta))
		add("tick-tock", fmt.Sprint(r.parts.ticktock))
	}
	all := allForms(r.id, r.prefix)
	for _, form := range forms {
		if value, ok := all[form]; ok && (form != "text" || value != all["int64"] && value != all["uuid"]) {
			add(form, value)
		}
	}
	return rows
}

// allForms returns the forms that the ID's type has, by name.
func allForms(id anyID, prefix string) map[string]string {
	all := make(map[string]string, len(forms))
	for _, form := range forms {
		if b, err := appendForm(nil, id, form, prefix); err == nil {
			all[form] = string(b)
		}
	}
	return all
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
	Time       *idTime           `json:"time,omitempty"`
	Node       *int              `json:"node,omitempty"`
	NodeFields map[string]int    `json:"node_fields,omitempty"`
	Sequence   *int              `json:"sequence,omitempty"`
	Random     *int64            `json:"random,omitempty"`
	Metabyte   *byte             `json:"metabyte,omitempty"`
	TickTock   *bool             `json:"tick_tock,omitempty"`
	Forms      map[string]string `json:"forms,omitempty"`
}

func (r reading) json(now time.Time) inspectedID {
	row := inspectedID{Type: r.title, Plausible: r.plausible(now), Prefix: r.prefix}
	if !r.time.IsZero() {
		row.Time = &idTime{r.time}
	}
	if r.format == nil {
		return row
	}
	row.Type = r.format.name
	if r.parts.version != 0 {
		row.Type = fmt.Sprintf("uuid%d", r.parts.version)
	}
	if r.format.nodes != nil {
		row.Node = &r.parts.node
		row.NodeFields, _ = r.format.nodeFields(r.parts.node)
	}
	if r.parts.version == 0 {
		row.Sequence = &r.parts.sequence
	}
	switch r.format.name {
	case "uid60":
		row.Random = &r.parts.random
	case "sno":
		row.Metabyte, row.TickTock = &r.parts.meta, &r.parts.ticktock
	}
	row.Forms = allForms(r.id, r.prefix)
	return row
}
