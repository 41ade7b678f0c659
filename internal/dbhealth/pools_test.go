package dbhealth

import (
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
)

// The number in the setting consists of the number in the pool and the cluster.
func TestFormatOfPool(t *testing.T) {
	c := migrations.Config{
		Snowflake:   idtype.DefaultSnowflakeLayout(),
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.UnixMilli(0)},
	}
	for _, tt := range []struct {
		pool, layout string
		number       int
		format       string // "": none
		node         int
	}{
		{"snowflake", "", 7, "snowflake", 7},
		{"orders", "snowflake: epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12", 7, "snowflake", 7},
		{"snowflake", "snowflake: epoch 2020-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12", 7, "", 0},
		{"snowflake-si", "", 31, "snowflake_si", 31},
		{"spread64", "", 162, "spread64", 162},
		{"spread64-2", "", 10, "spread64", 162},
		{"own", "spread64: cluster 15", 63, "spread64", 1023},
		{"sno", "sno: partitions", 65535, "sno", 65535},
		{"own", "", 7, "", 0},
	} {
		f := FormatOf(c, tt.pool, tt.layout)
		switch {
		case f == nil && tt.format != "", f != nil && f.Name != tt.format:
			t.Errorf("pool %s of layout %q: got %v, want format %q", tt.pool, tt.layout, f, tt.format)
		case f != nil && f.Node(tt.number) != tt.node:
			t.Errorf("number %d of pool %s: got node %d, want %d", tt.number, tt.pool, f.Node(tt.number), tt.node)
		}
	}
}
