package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
)

func TestNodesUsage(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	t.Setenv("PGHOST", "")
	for _, tt := range []struct{ args, want string }{
		{"list a 1 c", "accepts at most 2 arg(s), received 3"},
		{"list snowflake --all", "--all lists the numbers of all pools"},
		{"list snowflake x", `node number "x": want 0 to 65535`},
		{"reserve snowflake 65536", `node number "65536": want 0 to 65535`},
		{"reserve snowflake --while-held", "--while-held: want a NUMBER"},
		{"release snowflake", "accepts 2 arg(s), received 1"},
		{"release snowflake 7 --used-until soon", `--used-until: time "soon": want a time such as`},
		{"list", "no database: pass --database"},
		{"lists", `unknown command "lists" for "sortkey nodes"`},
	} {
		out, errs, code := execute(t, "", append([]string{"nodes"}, strings.Fields(tt.args)...)...)
		if code != exitError || out != "" || !strings.Contains(errs, tt.want) || !strings.Contains(errs, "--help for the usage") {
			t.Errorf("nodes %s: code %d, output %q, errors %q; want code 2 and %q", tt.args, code, out, errs, tt.want)
		}
	}
}

// The number in the setting consists of the number in the pool and the cluster.
func TestFormatOfPool(t *testing.T) {
	n := &nodes{Config: migrations.Config{
		Snowflake:   idtype.DefaultSnowflakeLayout(),
		SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.UnixMilli(0)},
	}}
	for _, tt := range []struct {
		pool, layout string
		number       int
		format       string // "": none
		node         int
	}{
		{"snowflake", "", 7, "snowflake", 7},
		{"orders", "snowflake: epoch 2021-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12", 7, "snowflake", 7},
		{"snowflake", "snowflake: epoch 2020-01-01T00:00:00.000Z; bits: datacenter 5, worker 5, sequence 12", 7, "", 0},
		{"snowflake-si", "", 31, "snowflake-si", 31},
		{"spread64", "", 162, "spread64", 162},
		{"spread64-2", "", 10, "spread64", 162},
		{"own", "spread64: cluster 15", 63, "spread64", 1023},
		{"sno", "sno: partitions", 65535, "sno", 65535},
		{"own", "", 7, "", 0},
	} {
		f := n.formatOf(tt.pool, tt.layout)
		switch {
		case f == nil && tt.format != "", f != nil && f.Name != tt.format:
			t.Errorf("pool %s of layout %q: got %v, want format %q", tt.pool, tt.layout, f, tt.format)
		case f != nil && f.node(tt.number) != tt.node:
			t.Errorf("number %d of pool %s: got node %d, want %d", tt.number, tt.pool, f.node(tt.number), tt.node)
		}
	}
}

func TestSkew(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                    "+0s",
		26912 * time.Millisecond:             "+26.9s",
		-240 * time.Millisecond:              "-200ms",
		time.Hour + 500*time.Millisecond:     "+1h0m1s",
		-50 * time.Hour:                      "-2d",
		10 * 365 * 24 * time.Hour:            "+3650d",
		-(47*time.Hour + 59*time.Minute):     "-47h59m0s",
		59*time.Second + 40*time.Millisecond: "+59s",
	} {
		now := time.Now()
		mark := now.Add(d)
		seconds := d.Seconds()
		if got := skew(dbhealth.Number{Mark: &dbhealth.Moment{Time: mark}, Skew: &seconds, Now: now}); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
