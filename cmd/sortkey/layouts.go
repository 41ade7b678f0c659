package main

import (
	"cmp"
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
	prefix      string // of the names of the flags
}

const layoutHelp = `--epoch and --bits describe another layout: for snowflake, the bits of
datacenter/worker/sequence (default: 5/5/12), and the epoch (2021-01-01); for
snowflake-si, the bits of machine/index (5/8), and the base clock (no default).`

func (l *layoutFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.epoch, "epoch", "", "fixed `time` at which the clock of the layout starts, such as 2026-01-01, or Unix milliseconds")
	cmd.Flags().StringVar(&l.bits, "bits", "", "`widths` of the layout's fields, such as 5/5/12 or 5/8")
}

// set reports whether the flags select a layout.
func (l *layoutFlags) set() bool { return l.epoch != "" || l.bits != "" }

// The fields of the types with several layouts, for parseBits.
const (
	snowflakeBits   = "datacenter/worker/sequence, such as 5/5/12"
	snowflakeSIBits = "machine/index, such as 5/8"
)

// parseBits parses the widths of the fields of one of the types, or nil if the flag is empty.
func (l *layoutFlags) parseBits(fields ...string) (widths []int, err error) {
	if l.bits == "" {
		return nil, nil
	}
	for width := range strings.SplitSeq(l.bits, "/") {
		n, parseErr := strconv.ParseUint(width, 10, 8)
		if parseErr != nil {
			err = parseErr
		}
		widths = append(widths, int(n))
	}
	counts := func(f string) bool { return strings.Count(f[:strings.Index(f, ",")], "/")+1 == len(widths) }
	switch {
	case err != nil || !slices.ContainsFunc(fields, counts):
		return nil, cli.Usagef("--%sbits %q: want the widths of %s", l.prefix, l.bits, strings.Join(fields, ", or of "))
	case slices.Max(widths) == 0: // which package idtype takes for its default
		return nil, cli.Usagef("--%sbits %q: want at least one field with bits", l.prefix, l.bits)
	}
	return widths, nil
}

// layouts returns the layouts of the flags. Three widths in --bits select the layout of
// snowflake, and two the one of snowflake-si. --epoch belongs to the same type, or to both
// without --bits.
func (c *app) layouts(l layoutFlags, fields ...string) (layouts ids.Layouts, err error) {
	widths, err := l.parseBits(fields...)
	if err != nil {
		return layouts, err
	}
	var epoch time.Time
	if l.epoch != "" {
		if epoch, err = c.parseEpoch(l.epoch); err != nil {
			return layouts, cli.Usagef("--%sepoch: %w", l.prefix, err)
		}
	}
	if len(widths) != 2 {
		layouts.Snowflake = idtype.SnowflakeLayout{Epoch: epoch}
		if widths != nil {
			layouts.Snowflake.DatacenterBits, layouts.Snowflake.WorkerBits, layouts.Snowflake.SequenceBits = widths[0], widths[1], widths[2]
		}
		if err := layouts.Snowflake.Validate(); err != nil {
			return layouts, l.error(err)
		}
	}
	if len(widths) != 3 {
		si := idtype.SnowflakeSILayout{BaseClock: cmp.Or(epoch, time.Unix(0, 0))}
		if widths != nil {
			si.MachineBits, si.IndexBits = widths[0], widths[1]
		}
		if err := si.Validate(); err != nil {
			return layouts, l.error(err)
		}
		si.BaseClock = epoch // without one, the format is undated
		layouts.SnowflakeSI = si
	}
	return layouts, nil
}

// error returns an error of package idtype or migrations as one of the flags.
func (l *layoutFlags) error(err error) error {
	if l.bits == "" {
		return ofFlag(l.prefix+"epoch", l.epoch, err)
	}
	return ofFlag(l.prefix+"bits", l.bits, err)
}

// format returns the format with this name.
func (c *app) format(name string, l layoutFlags) (*ids.Format, error) {
	fields := map[string]string{"snowflake": snowflakeBits, "snowflake-si": snowflakeSIBits}[name]
	switch {
	case !slices.Contains(ids.Names(), name):
		return nil, cli.Usagef("type %q: want %s", name, strings.Join(ids.Names(), ", "))
	case fields == "" && l.set():
		return nil, cli.Usagef("%s has one fixed layout: omit --epoch and --bits", name)
	}
	layouts, err := c.layouts(l, fields)
	if err != nil {
		return nil, err
	}
	return ids.ByName(name, layouts), nil
}

// candidateFormats returns the format with this name, or all formats if the name is
// empty.
func (c *app) candidateFormats(name string, l layoutFlags) ([]*ids.Format, error) {
	if name == "" {
		layouts, err := c.layouts(l, snowflakeBits, snowflakeSIBits)
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
