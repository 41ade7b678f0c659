package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/rekey"
	"github.com/spf13/cobra"
)

// A rekeyStatus is the result of status.
type rekeyStatus struct {
	Tables    []string   `json:"tables"`
	Step      rekey.Step `json:"step,omitempty"`
	Next      rekey.Step `json:"next"`
	Action    string     `json:"action,omitempty"`
	Left      int        `json:"actions_left"`
	Findings  []string   `json:"findings,omitempty"`
	StartedAt *time.Time `json:"started_at"`
	UpdatedAt *time.Time `json:"updated_at"`
}

func (c *app) rekeyStatusCommand() *cobra.Command {
	var flags rekeyFlags
	return flags.command(c, &cobra.Command{
		Use:   "status",
		Short: "Print the next step",
		Long: `Status prints the tables of the rekey, the last step, and the step to run now. If
they are equal, the step is incomplete, and ACTION is the action that comes next.`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, db database, _ []string) error {
		s, err := rekey.ReadStatus(ctx, db.std)
		if err != nil {
			return err
		}
		return c.printRekeyStatus(s)
	})
}

func (c *app) printRekeyStatus(s rekey.Status) error {
	if s.Step == "" && !c.JSON() {
		return c.note("no rekey; the next step is expand\n")
	}
	status := rekeyStatus{Tables: []string{}, Step: s.Step, Next: s.Next, Action: s.Action, Findings: s.Findings}
	for _, k := range s.Spec.Keys {
		status.Tables = append(status.Tables, k.Table)
	}
	for _, a := range s.Actions {
		if a.Step == s.Next {
			status.Left++
		}
	}
	if s.Step != "" {
		status.StartedAt, status.UpdatedAt = &s.StartedAt, &s.UpdatedAt
	}
	if c.JSON() {
		return c.PrintJSON(status)
	}
	action := ""
	if status.Action != "" {
		action = fmt.Sprintf("%s (%d left)", status.Action, status.Left)
	}
	return c.PrintBlock([]table.Row{
		{"tables", strings.Join(status.Tables, ", ")},
		{"last step", string(s.Step)},
		{"next step", string(s.Next)},
		{"next action", action},
		{"started", fmt.Sprintf("%s (%s)", stamp(s.StartedAt), c.ago(s.StartedAt))},
		{"updated", fmt.Sprintf("%s (%s)", stamp(s.UpdatedAt), c.ago(s.UpdatedAt))},
		{"problem", strings.Join(s.Findings, "; ")},
	})
}
