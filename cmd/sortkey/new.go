package main

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/spf13/cobra"
)

func (c *app) newCommand() *cobra.Command {
	var (
		layout layoutFlags
		count  int
		p      ids.Parts
	)
	cmd := &cobra.Command{
		Use:   "new [" + strings.Join(ids.Names(), "|") + "]",
		Short: "Generate IDs",
		Long: `New generates IDs of a type, by default snowflake, and prints their text form.

Without --node, it uses a random node number, which a running instance can have,
too. To insert rows beside running instances, reserve a number with "sortkey
nodes reserve" and pass it as --node. It is one number, as in sortkey.node:

    snowflake     datacenter << 5 | worker, in the default layout
    snowflake-si  machine
    spread64      generator << 4 | cluster
    sno           partition

With --at, the IDs have the sequence numbers from 0, so that the same command
with the same --node prints the same IDs, except for the random bits of a uid60
and a uuid7. The sequence numbers of a unit of time limit -n.

` + layoutHelp,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(ids.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "snowflake"
			if len(args) > 0 {
				name = args[0]
			}
			f, err := c.datedFormat(name, layout)
			if err != nil {
				return err
			}
			if count < 1 {
				return cli.Usagef("-n %d: want 1 or more", count)
			}
			switch flags := cmd.Flags(); {
			case flags.Changed("meta") && f.Name != "sno":
				return cli.Usagef("--meta: %s has no metabyte; only sno has one", f.Name)
			case !flags.Changed("node"):
				p.Node = rand.IntN(f.NodeLimit())
			case f.Nodes == nil:
				return cli.Usagef("--node: %s has no node number", f.Name)
			case p.Node < 0 || p.Node >= f.NodeLimit():
				return cli.Usagef("--node %d: want 0 to %d for %s", p.Node, f.NodeLimit()-1, f.Name)
			}
			return c.Buffer(func(func() error) error {
				emit := func(id ids.ID) error { return c.printID(f, id) }
				if p.Time.IsZero() {
					err := f.Generate(cmd.Context(), p, count, emit)
					if layout.epoch != "" && errors.Is(err, idtype.ErrRange) {
						err = cli.Usagef("--epoch %s: the current time is outside the times of this layout; want an epoch in the past, or pass --at", layout.epoch)
					}
					return err
				}
				return emitAt(f, p, count, emit)
			})
		},
	}
	layout.add(cmd)
	cmd.Flags().IntVarP(&count, "count", "n", 1, "`number` of IDs")
	cmd.Flags().IntVar(&p.Node, "node", 0, "node `number` (default: random)")
	c.timeFlag(cmd, &p.Time, "at", "`time` of the IDs (default: the current time of each)")
	cmd.Flags().Uint8Var(&p.Meta, "meta", 0, "`metabyte` of a sno, 0 to 255")
	return cmd
}

func (c *app) printID(f *ids.Format, id ids.ID) error {
	if !c.JSON() {
		return c.note("%s\n", id)
	}
	all := ids.AllForms(id, "")
	return c.PrintJSON(struct {
		Type  string `json:"type"`
		ID    string `json:"id"`
		Int64 string `json:"int64,omitempty"`
		UUID  string `json:"uuid,omitempty"`
	}{f.Name, all["text"], all["int64"], all["uuid"]})
}

// emitAt emits IDs of one time.
func emitAt(f *ids.Format, p ids.Parts, count int, emit func(ids.ID) error) error {
	if count > f.Sequences {
		return cli.Usagef("-n %d: with --at, want at most %d: the number of IDs of a %s node at one time", count, f.Sequences, f.Name)
	}
	for p.Sequence = range count {
		p.Random = rand.Int64N(1 << f.RandomBits)
		id, err := f.Compose(p)
		if err != nil {
			return ofFlag("at", p.Time.Format(time.RFC3339), err)
		}
		if id.IsZero() {
			return cli.Usagef("--at: the first ID of %s at node 0 is zero, which is not an ID; pass another --node or a later time", f.Name)
		}
		if err := emit(id); err != nil {
			return err
		}
	}
	return nil
}
