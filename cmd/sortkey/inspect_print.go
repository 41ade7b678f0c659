package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
)

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
	id := newInspectedID(r, c.Now())
	if id.Node != nil {
		_, fields := r.Format.NodeFields(*id.Node)
		if len(r.Format.Nodes) == 1 {
			fields = r.Format.Nodes[0].Name
		}
		add("node", fmt.Sprintf("%d (%s)", *id.Node, fields))
	}
	if id.Sequence != nil {
		add("sequence", fmt.Sprint(*id.Sequence))
	}
	if id.Random != nil {
		add("random", fmt.Sprint(*id.Random))
	}
	if id.Metabyte != nil {
		add("metabyte", fmt.Sprint(*id.Metabyte))
		add("tick-tock", fmt.Sprint(*id.TickTock))
	}
	for _, form := range ids.Forms {
		value, ok := id.Forms[form]
		if ok && (form != "text" || value != id.Forms["int64"] && value != id.Forms["uuid"]) {
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
