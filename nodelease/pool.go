package nodelease

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sortkey/sortkey/idtype"
)

// A Pool is a set of node numbers, 0 to Size-1. At most one generator at a time holds
// each number. [ForSnowflake], [ForSnowflakeSI], [ForSpread64], [ForSno] and
// [ForSnoRanges] return the pool of a layout. A program may change the Name and
// Reserved of that pool. All programs that share a pool must use the same Size and
// Layout. Stores reject a different Size or Layout with [ErrPoolMismatch].
type Pool struct {
	// Name identifies the pool in its store: a lower-case letter, followed by up to
	// 62 lower-case letters, digits, hyphens and underscores. Generators of different
	// pools can create equal IDs, so all generators for one table need the same pool.
	Name string
	// Size is the number of node numbers, 1 to 65536.
	Size int
	// Layout describes the meaning of the numbers, in up to 1000 bytes of text. A pool
	// that ForSnowflake or a similar function returned rejects generators of any other
	// layout. For a pool that the program composed itself, the generator's layout isn't
	// checked.
	Layout string
	// Reserved lists numbers that this program doesn't claim because something else
	// uses them, such as a machine with a fixed number, or another site. Each program
	// that shares the pool lists them itself; no store keeps the list. In Postgres,
	// reserve_node of package migrations reserves a number for all programs.
	Reserved []int

	checked bool // Attach rejects generators of another layout
	cluster int
	spread  bool
	err     error
}

// maxLayout is the maximum length of Layout, in bytes.
const maxLayout = 1000

// maxSize is the largest pool: all partitions of Sno.
const maxSize = 1 << 16

// ForSnowflake returns the pool of a layout's datacenters and workers: 1024 numbers by
// default. A number consists of the bits of datacenter and worker. In the default
// layout, datacenter 3 and worker 7 are the number 3<<5 | 7. The column defaults of a
// database use a number of the same pool, in the setting sortkey.node: reserve it.
func ForSnowflake(l idtype.SnowflakeLayout) Pool {
	ones, err := l.Parts(idtype.MaxSnowflake) // all bits of each field are set
	return Pool{
		Name: "snowflake", Size: (ones.Datacenter + 1) * (ones.Worker + 1),
		Layout: "snowflake: " + l.Fingerprint(), checked: true, err: err,
	}
}

// ForSnowflakeSI returns the pool of a layout's machines, 32 by default.
func ForSnowflakeSI(l idtype.SnowflakeSILayout) Pool {
	ones, err := l.Parts(idtype.MaxSnowflakeSI)
	return Pool{
		Name: "snowflake-si", Size: ones.Machine + 1,
		Layout: "snowflake_si: " + l.Fingerprint(), checked: true, err: err,
	}
}

// ForSpread64 returns the pool of a cluster's 64 generators. The caller chooses the
// cluster, 0 to 15; stores don't assign it. Installations with different clusters never
// create the same ID.
func ForSpread64(cluster int) Pool {
	_, err := idtype.Spread64Layout{}.Compose(idtype.Spread64Parts{Time: time.UnixMilli(1), Cluster: cluster})
	return Pool{
		Name: fmt.Sprintf("spread64-%d", cluster), Size: 64,
		Layout: fmt.Sprintf("spread64: cluster %d", cluster), checked: true,
		cluster: cluster, spread: true, err: err,
	}
}

// ForSno returns the pool of all 65536 partitions. A generator for it leaves
// SnoConfig.Partition nil.
func ForSno() Pool {
	return Pool{Name: "sno", Size: maxSize, Layout: "sno: partitions", checked: true}
}

// ForSnoRanges returns the pool of the ranges of one partition's sequence. ranges is
// SnoConfig.Ranges, 1 to 16384. If other processes claim partitions from [ForSno],
// reserve this partition there.
func ForSnoRanges(p idtype.SnoPartition, ranges int) Pool {
	pool := Pool{
		Name: fmt.Sprintf("sno-%04x", p.Uint16()), Size: ranges,
		Layout: fmt.Sprintf("sno: partition %d in %d ranges of its sequence", p.Uint16(), ranges), checked: true,
	}
	if ranges < 1 || ranges > maxRanges {
		pool.err = fmt.Errorf("want 1 to %d ranges of the sequence, got %d: %w", maxRanges, ranges, idtype.ErrRange)
	}
	return pool
}

// maxRanges leaves each range of a partition four sequence numbers, the minimum.
const maxRanges = maxSize / 4

// Cluster returns the cluster of a pool from [ForSpread64]. For other pools, ok is
// false.
func (p Pool) Cluster() (cluster int, ok bool) { return p.cluster, p.spread }

var poolName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Validate returns an error if the pool is invalid. [Acquire] and stores call it.
func (p Pool) Validate() error {
	switch {
	case p.err != nil:
		return fmt.Errorf("nodelease: pool %q: %w", p.Name, p.err)
	case !poolName.MatchString(p.Name):
		return fmt.Errorf("nodelease: Pool.Name: want up to 63 lower-case letters, digits, hyphens and underscores, the first a letter, got %q: %w", p.Name, idtype.ErrConfig)
	case p.Size < 1 || p.Size > maxSize:
		return fmt.Errorf("nodelease: pool %q: want a Size of 1 to %d, got %d; choose a layout with at most 16 bits of node numbers: %w", p.Name, maxSize, p.Size, idtype.ErrNode)
	case !printable(p.Layout) || len(p.Layout) > maxLayout:
		return fmt.Errorf("nodelease: pool %q: want a Layout of at most %d bytes of printable UTF-8, got %d bytes: %.50q: %w", p.Name, maxLayout, len(p.Layout), p.Layout, idtype.ErrConfig)
	}
	for _, n := range p.Reserved {
		if n < 0 || n >= p.Size {
			return fmt.Errorf("nodelease: pool %q: reserved number %d is out of range; want 0 to %d: %w", p.Name, n, p.Size-1, idtype.ErrNode)
		}
	}
	return nil
}

// reserves reports whether the number is in Reserved.
func (p Pool) reserves(n int) bool { return slices.Contains(p.Reserved, n) }

// printable reports whether the text is UTF-8 without control characters, which every
// store can keep.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func stamp(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
