package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
)

// testFormats returns all formats, with the layouts of the flags.
func testFormats(t testing.TB, l layoutFlags) []*ids.Format {
	t.Helper()
	formats, err := newApp(nil, nil, nil).candidateFormats("", l)
	if err != nil {
		t.Fatal(err)
	}
	return formats
}

func TestLayoutFlags(t *testing.T) {
	formats := testFormats(t, layoutFlags{epoch: "2024-01-01", bits: "3/4/10"})
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	if f := formats[0]; f.NodeLimit() != 1<<7 || f.Sequences != 1<<10 {
		t.Errorf("snowflake: got %d node numbers and %d sequence numbers, want 128 and 1024", f.NodeLimit(), f.Sequences)
	}
	if p, err := formats[0].Parts(idtype.Snowflake(1)); err != nil || !p.Time.Equal(start) {
		t.Errorf("snowflake: got epoch %s, error %v; want %s", p.Time, err, start)
	}
	if !formats[1].Undated {
		t.Error("snowflake-si takes the epoch of three widths; want none")
	}
	formats = testFormats(t, layoutFlags{epoch: "2024-01-01", bits: "4/9"})
	if p, err := formats[0].Parts(idtype.Snowflake(1)); err != nil || p.Time.Equal(start) {
		t.Errorf("snowflake: got epoch %s, error %v; want the default", p.Time, err)
	}
	if p, err := formats[1].Parts(idtype.SnowflakeSI(1)); err != nil || !p.Time.Equal(start) || formats[1].Sequences != 1<<9 {
		t.Errorf("snowflake-si: got epoch %s and %d indexes, error %v; want %s and 512", p.Time, formats[1].Sequences, err, start)
	}

	discord := testFormats(t, layoutFlags{epoch: "1420070400000"})[0]
	if p, err := discord.Parts(idtype.Snowflake(1)); err != nil || !p.Time.Equal(time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("Unix milliseconds: got epoch %s, error %v; want 2015-01-01", p.Time, err)
	}

	c := newApp(nil, nil, nil)
	for _, tt := range []struct {
		name string
		l    layoutFlags
		want string
	}{
		{"ulid", layoutFlags{}, `type "ulid": want snowflake, snowflake-si, uid60, spread64, sno, uuid7`},
		{"uid60", layoutFlags{epoch: "2024-01-01"}, "uid60 has one fixed layout"},
		{"uuid7", layoutFlags{bits: "5/8"}, "uuid7 has one fixed layout"},
		{"snowflake", layoutFlags{bits: "5/8"}, `--bits "5/8": want the widths of datacenter/worker/sequence, such as 5/5/12`},
		{"snowflake-si", layoutFlags{bits: "5/5/12"}, "want the widths of machine/index, such as 5/8"},
		{"snowflake", layoutFlags{bits: "5"}, "want the widths"},
		{"snowflake", layoutFlags{bits: "5/x/12"}, "want the widths"},
		{"snowflake", layoutFlags{bits: "20/20/20"}, "at most 31 in total"},
		{"snowflake-si", layoutFlags{bits: "5/9"}, "13 in total"},
		{"snowflake", layoutFlags{bits: "0/0/0"}, `--bits "0/0/0": want at least one field with bits`},
		{"snowflake-si", layoutFlags{epoch: "2024-01-01", bits: "0/0"}, `--bits "0/0": want at least one field with bits`},
		{"snowflake", layoutFlags{epoch: "0001-01-01"}, `--epoch: time "0001-01-01": want a time after 0001-01-01`},
		{"snowflake", layoutFlags{epoch: "now"}, `--epoch: epoch "now": want a fixed time such as 2026-01-01`},
		{"snowflake-si", layoutFlags{epoch: "-7d"}, `--epoch: epoch "-7d": want a fixed time`},
		{"snowflake", layoutFlags{epoch: "then"}, `--epoch: time "then"`},
		{"snowflake", layoutFlags{epoch: "1420070400"}, "or 12 or 13 digits of Unix milliseconds"},
	} {
		if _, err := c.format(tt.name, tt.l); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s with %+v: got error %v, want %q", tt.name, tt.l, err, tt.want)
		}
	}
}
