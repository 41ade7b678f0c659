package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
)

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

func newInspected(input string, found []ids.Reading, now time.Time) inspected {
	result := inspected{Input: input}
	for _, r := range found {
		result.Candidates = append(result.Candidates, newInspectedID(r, now))
	}
	return result
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
