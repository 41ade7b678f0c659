package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
	"github.com/spf13/cobra"
)

// layoutFlags are the flags for layouts other than the default.
type layoutFlags struct {
	epoch, bits string
}

const layoutHelp = `--epoch and --bits describe another layout: for snowflake, the bits of
datacenter/worker/sequence (default: 5/5/12), and the epoch (2021-01-01); for
snowflake-si, the bits of machine/index (5/8), and the base clock (no default).`

func (l *layoutFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.epoch, "epoch", "", "fixed `time` at which the clock of the layout starts, such as 2026-01-01, or Unix milliseconds")
	cmd.Flags().StringVar(&l.bits, "bits", "", "`widths` of the layout's fields, such as 5/5/12 or 5/8")
}

// parseBits parses widths such as 5/5/12.
func parseBits(s string) ([]int, error) {
	if s == "" {
		return nil, nil
	}
	var widths []int
	for width := range strings.SplitSeq(s, "/") {
		n, err := strconv.ParseUint(width, 10, 8)
		if err != nil {
			return nil, cli.Usagef("--bits %q: want widths such as 5/5/12", s)
		}
		widths = append(widths, int(n))
	}
	if n := len(widths); n != 2 && n != 3 {
		return nil, cli.Usagef("--bits %q: want 3 widths for snowflake (datacenter/worker/sequence) or 2 for snowflake-si (machine/index)", s)
	}
	return widths, nil
}

// snowflakeLayout returns the layout with an epoch and widths, or, where these are zero,
// with the defaults.
func snowflakeLayout(epoch time.Time, widths []int) (idtype.SnowflakeLayout, error) {
	l := idtype.SnowflakeLayout{Epoch: epoch}
	if len(widths) == 3 {
		if slices.Max(widths) == 0 {
			return l, errAllZero("5/5/12")
		}
		l.DatacenterBits, l.WorkerBits, l.SequenceBits = widths[0], widths[1], widths[2]
	}
	return l, cli.Usage(l.Validate())
}

// snowflakeSILayout returns the layout with a base clock and widths.
func snowflakeSILayout(baseClock time.Time, widths []int) (idtype.SnowflakeSILayout, error) {
	l := idtype.SnowflakeSILayout{BaseClock: baseClock}
	if len(widths) == 2 {
		if slices.Max(widths) == 0 {
			return l, errAllZero("5/8")
		}
		l.MachineBits, l.IndexBits = widths[0], widths[1]
	}
	return l, cli.Usage(l.Validate())
}

// errAllZero returns the error for widths that package idtype takes for its default.
func errAllZero(example string) error {
	return cli.Usagef("widths 0%s: want at least one field with bits, such as %s", strings.Repeat("/0", strings.Count(example, "/")), example)
}

// format returns the format with this name.
func (c *app) format(name string, l layoutFlags) (*ids.Format, error) {
	widths, err := parseBits(l.bits)
	switch {
	case !slices.Contains(ids.Names(), name):
		return nil, cli.Usagef("type %q: want %s", name, strings.Join(ids.Names(), ", "))
	case err != nil:
		return nil, err
	case name != "snowflake" && name != "snowflake-si" && l != layoutFlags{}:
		return nil, cli.Usagef("%s has one fixed layout: omit --epoch and --bits", name)
	case name == "snowflake" && len(widths) == 2:
		return nil, cli.Usagef("--bits %q: want 3 widths for snowflake: datacenter/worker/sequence", l.bits)
	case name == "snowflake-si" && len(widths) == 3:
		return nil, cli.Usagef("--bits %q: want 2 widths for snowflake-si: machine/index", l.bits)
	}
	layouts, err := c.layouts(l)
	if err != nil {
		return nil, err
	}
	return ids.ByName(name, layouts), nil
}

// layouts returns the layouts of the flags. Three widths in --bits select the layout of
// snowflake, and two the one of snowflake-si. --epoch belongs to the same type, or to both
// without --bits.
func (c *app) layouts(l layoutFlags) (layouts ids.Layouts, err error) {
	widths, err := parseBits(l.bits)
	if err != nil {
		return layouts, err
	}
	epoch, err := c.epochFlag("epoch", l.epoch)
	if err != nil {
		return layouts, err
	}
	if len(widths) != 2 {
		if layouts.Snowflake, err = snowflakeLayout(epoch, widths); err != nil {
			return layouts, err
		}
	}
	if len(widths) != 3 {
		baseClock := epoch
		if epoch.IsZero() {
			baseClock = time.Unix(0, 0)
		}
		layouts.SnowflakeSI, err = snowflakeSILayout(baseClock, widths)
		layouts.SnowflakeSI.BaseClock = epoch // without one, the format is undated
	}
	return layouts, err
}

// candidateFormats returns the format with this name, or all formats if the name is
// empty.
func (c *app) candidateFormats(name string, l layoutFlags) ([]*ids.Format, error) {
	if name == "" {
		layouts, err := c.layouts(l)
		return ids.Formats(layouts), err
	}
	f, err := c.format(name, l)
	return []*ids.Format{f}, err
}

// datedFormat returns a format that has times.
func (c *app) datedFormat(name string, l layoutFlags) (*ids.Format, error) {
	f, err := c.format(name, l)
	if err == nil && f.Undated {
		err = cli.Usagef("%s: the base clock has no default: pass it as --epoch", name)
	}
	return f, err
}
