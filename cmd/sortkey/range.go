package main

import (
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/spf13/cobra"
)

func (c *app) rangeCommand() *cobra.Command {
	var (
		layout       layoutFlags
		since, until time.Time
		column       string
	)
	dated := slices.DeleteFunc(ids.Names(), func(name string) bool { return name == "spread64" })
	cmd := &cobra.Command{
		Use:   "range --since TIME [--until TIME] TYPE",
		Short: "Print the bounds of the IDs of a time window",
		Long: `Range prints the bounds of the IDs that were created in a time window, and a
WHERE clause with them, which can use the index of the key. The IDs of a
spread64 don't sort by time. The window of a uuid7 also includes some UUIDs of
other versions.

The window includes --since and excludes --until, so adjacent windows have
adjacent bounds: hi is the lowest ID after the window. Range rounds both times
down to the type's unit of time, a millisecond, or 4 ms for sno. Without one of
them, the window is open on that side.

` + layoutHelp,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(dated, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			if since.IsZero() && until.IsZero() {
				return cli.Usagef("no window: pass --since, --until or both")
			}
			if args[0] == "spread64" {
				return cli.Usagef("spread64: the IDs don't sort by time, so a time window has no bounds: filter by sortkey.spread64_time(id), with an index on this expression")
			}
			f, err := c.datedFormat(args[0], layout)
			if err != nil {
				return err
			}
			w, err := newWindow(f, since, until, column)
			if err != nil {
				return ofFlag("until", until.Format(time.RFC3339), err)
			}
			if c.JSON() {
				return c.PrintJSON(w)
			}
			return c.PrintBlock([]table.Row{{"lo", w.Lo}, {"hi", w.Hi}, {"where", w.Where}})
		},
	}
	layout.add(cmd)
	c.timeFlag(cmd, &since, "since", "`time` at which the window starts, such as -24h or -7d")
	c.timeFlag(cmd, &until, "until", "`time` at which the window ends")
	cmd.Flags().StringVar(&column, "column", "id", "`name` of the column as in SQL, such as o.id")
	return cmd
}

// A window holds the bounds of a time window.
type window struct {
	Type  string     `json:"type"`
	Since *time.Time `json:"since"`
	Until *time.Time `json:"until"`
	Lo    string     `json:"lo"`
	Hi    string     `json:"hi"`
	Where string     `json:"where"`
}

// newWindow returns the bounds of the window between two times. A zero time leaves that
// side open.
func newWindow(f *ids.Format, from, to time.Time, column string) (*window, error) {
	lo, hi, err := f.Window(from, to)
	if err != nil {
		return nil, err
	}
	_, largest, err := f.Window(from, time.Time{})
	if err != nil {
		return nil, err
	}
	w := &window{Type: f.Name, Lo: ids.ColumnText(lo), Hi: ids.ColumnText(hi), Where: "true"}
	quote := map[string]string{"uuid": "'"}[f.Column]
	var conditions []string
	if !from.IsZero() {
		w.Since = &from
		conditions = append(conditions, column+" >= "+quote+w.Lo+quote)
	}
	if !to.IsZero() {
		w.Until = &to
		// If the window ends after the last time of the format, hi is the largest ID,
		// which belongs to the window.
		if hi != largest {
			conditions = append(conditions, column+" < "+quote+w.Hi+quote)
		}
	}
	if conditions != nil {
		w.Where = strings.Join(conditions, " AND ")
	}
	return w, nil
}
