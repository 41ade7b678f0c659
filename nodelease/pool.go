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

// A Pool is a set of node numbers, 0 to Size-1, of which each is held by one
// generator at a time. The functions from [ForSnowflake] to [ForSnoRanges] make
// the pool of a layout. A program may change Name and Reserved. All programs that
// share a pool must agree on Size and Layout; stores refuse others.
type Pool struct {
	// Name tells pools of one store apart: up to 63 lower-case letters, digits,
	// hyphens and underscores, of which the first is a letter. IDs of two pools
	// may be equal, so all that mint for one table need the same pool.
	Name string
	// Size is how many numbers there are, 1 to 65536.
	Size int
	// Layout says what the numbers mean, in up to 1000 bytes of words. A generator
	// of another layout is refused, unless the pool is of the program's own making.
	Layout string
	// Reserved are numbers that this program doesn't claim, since something else
	// uses them: a machine with a number of its own, or another site. Each program
	// that shares the pool names them itself; no store keeps them. In Postgres,
	// reserve_node of package migrations keeps a number from all programs.
	Reserved []int

	checked bool // generators have to have this very layout
	cluster int
	spread  bool
	err     error
}

// maxLayout is room for words, in bytes.
const maxLayout = 1000

// maxSize is the largest pool: all partitions of Sno.
const maxSize = 1 << 16

// ForSnowflake is the pool of a layout's datacenters and workers: 1024 numbers
// by default, of which each is the bits of datacenter and worker together. So
// datacenter 3 and worker 7, reserved for a default next_snowflake(3, 7), are the
// number 3<<5 | 7.
func ForSnowflake(l idtype.SnowflakeLayout) Pool {
	ones, err := l.Parts(idtype.MaxSnowflake) // of which each field has all bits
	return Pool{
		Name: "snowflake", Size: (ones.Datacenter + 1) * (ones.Worker + 1),
		Layout: "snowflake: " + l.String(), checked: true, err: err,
	}
}

// ForSnowflakeSI is the pool of a layout's machines, by default 32.
func ForSnowflakeSI(l idtype.SnowflakeSILayout) Pool {
	ones, err := l.Parts(idtype.MaxSnowflakeSI)
	return Pool{
		Name: "snowflake-si", Size: ones.Machine + 1,
		Layout: "snowflake_si: " + l.String(), checked: true, err: err,
	}
}

// ForSpread64 is the pool of a cluster's generators, 64. A cluster is configured,
// 0 to 15, and is what sets apart the IDs of two installations.
func ForSpread64(cluster int) Pool {
	_, err := idtype.Spread64Layout{}.Compose(idtype.Spread64Parts{Time: time.UnixMilli(1), Cluster: cluster})
	return Pool{
		Name: fmt.Sprintf("spread64-%d", cluster), Size: 64,
		Layout: fmt.Sprintf("spread64: cluster %d", cluster), checked: true,
		cluster: cluster, spread: true, err: err,
	}
}

// ForSno is the pool of all partitions, 65536. Claim from it with a SnoConfig
// whose Partition is nil.
func ForSno() Pool {
	return Pool{Name: "sno", Size: maxSize, Layout: "sno: partitions", checked: true}
}

// ForSnoRanges is the pool of the sequence ranges of one partition, as many as
// SnoConfig.Ranges says, 1 to 16384. If other processes claim partitions with
// [ForSno], this one has to be reserved there.
func ForSnoRanges(p idtype.SnoPartition, ranges int) Pool {
	pool := Pool{
		Name: fmt.Sprintf("sno-%04x", p.Uint16()), Size: ranges,
		Layout: fmt.Sprintf("sno: partition %d in %d ranges of its sequence", p.Uint16(), ranges), checked: true,
	}
	if ranges < 1 || ranges > maxRanges {
		pool.err = fmt.Errorf("expected a Sno partition of 1 to %d ranges, got %d: %w", maxRanges, ranges, idtype.ErrRange)
	}
	return pool
}

// maxRanges of a partition have four sequence numbers each, the fewest.
const maxRanges = maxSize / 4

// Cluster is the cluster of a pool that [ForSpread64] made.
func (p Pool) Cluster() (cluster int, ok bool) { return p.cluster, p.spread }

var poolName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)

// Validate tells whether numbers can be claimed from the pool. [Acquire] and
// stores look themselves.
func (p Pool) Validate() error {
	switch {
	case p.err != nil:
		return fmt.Errorf("nodelease: %w", p.err)
	case !poolName.MatchString(p.Name):
		return fmt.Errorf("nodelease: expected a pool with a name of up to 63 lower-case letters, digits, hyphens and underscores, the first a letter, got %q: %w", p.Name, idtype.ErrNode)
	case p.Size < 1 || p.Size > maxSize:
		return fmt.Errorf("nodelease: expected pool %q to have 1 to %d numbers, got %d: choose a layout with at most 16 bits of node numbers: %w", p.Name, maxSize, p.Size, idtype.ErrNode)
	case !printable(p.Layout) || len(p.Layout) > maxLayout:
		return fmt.Errorf("nodelease: expected pool %q to have a layout of at most %d bytes of printable UTF-8, got %d bytes: %.50q: %w", p.Name, maxLayout, len(p.Layout), p.Layout, idtype.ErrNode)
	}
	for _, n := range p.Reserved {
		if n < 0 || n >= p.Size {
			return fmt.Errorf("nodelease: expected the reserved numbers of pool %q from 0 to %d, got %d: %w", p.Name, p.Size-1, n, idtype.ErrNode)
		}
	}
	return nil
}

// reserves reports whether Reserved has the number.
func (p Pool) reserves(n int) bool { return slices.Contains(p.Reserved, n) }

// printable says whether every store can keep the text.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func stamp(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
