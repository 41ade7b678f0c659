package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/idtype"
)

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		want       ids.Parts
	}{
		{"snowflake", "--node 1022", ids.Parts{Node: 31<<5 | 30}},
		{"snowflake", "--node 5 --epoch 2025-01-01 --bits 0/6/10", ids.Parts{Node: 5}},
		{"snowflake-si", "--epoch 2024-01-01 --node 31", ids.Parts{Node: 31}},
		{"uid60", "", ids.Parts{}},
		{"spread64", "--node 201", ids.Parts{Node: 12<<4 | 9}},
		{"sno", "--node 16650 --meta 255", ids.Parts{Node: 16650, Meta: 255}},
		{"uuid7", "", ids.Parts{}},
	} {
		before := time.Now().Add(-time.Millisecond * 4)
		out, errs, code := execute(t, "", append([]string{"new", tt.name, "-n", "17000"}, strings.Fields(tt.args)...)...)
		if code != exitOK {
			t.Errorf("new %s %s: code %d, errors %s", tt.name, tt.args, code, errs)
			continue
		}
		c := newApp(nil, nil, nil)
		var l layoutFlags
		if _, rest, ok := strings.Cut(tt.args, "--epoch "); ok {
			l.epoch = strings.Fields(rest)[0]
		}
		if _, rest, ok := strings.Cut(tt.args, "--bits "); ok {
			l.bits = strings.Fields(rest)[0]
		}
		f, err := c.format(tt.name, l)
		if err != nil {
			t.Fatal(err)
		}
		seen := make(map[ids.ID]bool)
		for _, line := range strings.Fields(out) {
			id, err := f.FromText(line)
			if err != nil {
				t.Fatal(err)
			}
			p, err := f.Parts(id)
			if err != nil || p.Node != tt.want.Node || p.Meta != tt.want.Meta || p.Time.Before(before) || p.Time.After(time.Now()) {
				t.Fatalf("%s: got %+v, error %v; want %+v and the time now", line, p, err, tt.want)
			}
			seen[id] = true
		}
		if len(seen) != 17000 {
			t.Errorf("new %s: got %d different IDs, want 17000", tt.name, len(seen))
		}
	}
	out, _, code := execute(t, "", "new")
	if _, err := idtype.ParseSnowflake(strings.TrimSpace(out)); err != nil || code != exitOK {
		t.Errorf("new: code %d, %v", code, err)
	}
}

// TestNewNode checks that calls without --node use different nodes.
func TestNewNode(t *testing.T) {
	for _, name := range []string{"snowflake", "spread64", "sno"} {
		seen := make(map[string]bool)
		for range 10 {
			out, _, _ := execute(t, "", "new", name, "-o", "json", "--at", "2026-01-01")
			seen[out] = true
		}
		if len(seen) < 5 {
			t.Errorf("new %s: got %d different nodes in 10 calls: %v", name, len(seen), seen)
		}
	}
}

func TestNewAt(t *testing.T) {
	const at = " --at 2026-01-31T15:04:05.678Z"
	for _, tt := range []struct{ args, want string }{
		{"snowflake --node 37 -n 2" + at, "672819401417969664\n672819401417969665\n"},
		{"snowflake-si --node 5 --epoch 2024-01-01" + at, "539071657395456\n"},
		{"spread64 --node 201 -n 2" + at, "7494a928398000c9\n7494a928398100c9\n"},
		{"sno --node 16650 --meta 7 -n 2" + at, "9edd8o6o2v2im222\n9edd8o6o2v2im223\n"},
		{"sno --node 16650 -o json" + at, `{"type":"sno","id":"9edd8o6o232im222","uuid":"39656464-386f-366f-3233-32696d323232"}` + "\n"},
		{"snowflake --node 37 -o json" + at, `{"type":"snowflake","id":"672819401417969664","int64":"672819401417969664"}` + "\n"},
	} {
		out, errs, code := execute(t, "", append([]string{"new"}, strings.Fields(tt.args)...)...)
		if code != exitOK || out != tt.want {
			t.Errorf("new %s: code %d, errors %q, got\n%swant\n%s", tt.args, code, errs, out, tt.want)
		}
	}

	// The random bits of a UID60 differ between calls, and its sequence doesn't.
	random := make(map[int]bool)
	for range 10 {
		out, _, _ := execute(t, "", "new", "uid60", "-n", "2", "--at", "2026-01-31")
		for i, line := range strings.Fields(out) {
			id := idtype.Must(idtype.ParseUID60(line))
			if id.Sequence() != i || !id.Time().Equal(time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("%s: got sequence %d at %s, want %d at 2026-01-31", id, id.Sequence(), id.Time(), i)
			}
			random[id.Random()] = true
		}
	}
	if len(random) < 10 {
		t.Errorf("got %d random numbers in 20 IDs", len(random))
	}

	for _, f := range testFormats(t, layoutFlags{epoch: "2024-01-01"}) {
		args := []string{"new", f.Name, "--at", "2026-01-31"}
		if f.Name == "snowflake-si" {
			args = append(args, "--epoch", "2024-01-01")
		}
		out, errs, code := execute(t, "", append(args, "-n", fmt.Sprint(f.Sequences))...)
		if code != exitOK || strings.Count(out, "\n") != f.Sequences {
			t.Errorf("%s: code %d, errors %s, %d IDs; want %d", args, code, errs, strings.Count(out, "\n"), f.Sequences)
		}
		out, errs, code = execute(t, "", append(args, "-n", fmt.Sprint(f.Sequences+1))...)
		if code != exitError || out != "" || !strings.Contains(errs, fmt.Sprintf("-n %d: with --at, want at most %d", f.Sequences+1, f.Sequences)) {
			t.Errorf("%s: code %d, %d bytes, errors %s", args, code, len(out), errs)
		}
	}
}

func TestNewJSON(t *testing.T) {
	out, _, _ := execute(t, "", "new", "uid60", "-n", "2", "-o", "json")
	for line := range strings.Lines(out) {
		var got struct{ Type, ID, Int64, UUID string }
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if id := idtype.Must(idtype.ParseUID60(got.ID)); got.Type != "uid60" || got.Int64 != fmt.Sprint(id.Int64()) || got.UUID != "" {
			t.Errorf("got %s, want uid60 %d", line, id.Int64())
		}
	}
}

func TestNewErrors(t *testing.T) {
	checkUsage(t, "new", []usageTest{
		{"ulid", `type "ulid": want snowflake, snowflake-si`},
		{"snowflake sno", "accepts at most 1 arg(s), received 2"},
		{"-n 0", "-n 0: want 1 or more"},
		{"--node 1024", "--node 1024: want 0 to 1023 for snowflake"},
		{"--node -1", "--node -1: want 0 to 1023 for snowflake"},
		{"--node 64 --bits 0/6/12", "--node 64: want 0 to 63 for snowflake"},
		{"uid60 --node 0", "--node: uid60 has no node number"},
		{"uuid7 --node 0", "--node: uuid7 has no node number"},
		{"uuid7 --at 2026-01-31 -n 4097", "want at most 4096"},
		{"uuid7 --at 1969-12-31", "before"},
		{"uid60 --meta 0", "--meta: uid60 has no metabyte"},
		{"sno --meta 256", `invalid argument "256" for "--meta"`},
		{"snowflake-si", "snowflake-si: the base clock has no default: pass it as --epoch"},
		{"--at 2020-01-01", "--at 2020-01-01T00:00:00Z: want 2021-01-01T00:00:00.000Z to 2090-09-07T15:47:35.551Z"},
		{"--at 2021-01-01 --node 0", "--at: the first ID of snowflake at node 0 is zero"},
		{"--at then", `--at: time "then": want a time such as`},
		{"sno --at 1990-01-01", "--at 1990-01-01T00:00:00Z: want 2010-01-01"},
		{"--bits 20/20/20", "--bits 20/20/20: widths datacenter 20"},
		{"--epoch 2999-01-01", "--epoch 2999-01-01: the current time is outside"},
		{"sno --bits 5/8", "sno has one fixed layout"},
	})
}

func TestCompleteIDs(t *testing.T) {
	const types = "snowflake\nsnowflake-si\nuid60\nspread64\nsno\nuuid7\n"
	const conversions = "text\nint64\nuuid\ntypeid\nhex\nbytea\n"
	for _, tt := range []struct{ args, want string }{
		{"new|", types},
		{"range|", "snowflake\nsnowflake-si\nuid60\nsno\nuuid7\n"},
		{"inspect|--type|", types},
		{"inspect|", ":4"},
		{"inspect|--type|", types},
		{"inspect|--form|", conversions},
		{"inspect|--from|", conversions},
		{"nodes|list|", "snowflake\nsnowflake-si\nspread64\nsno\n:4"},
		{"nodes|reserve|", "snowflake\nsnowflake-si\nspread64\nsno\n:4"},
		{"nodes|release|", "snowflake\nsnowflake-si\nspread64\nsno\n:4"},
		{"nodes|list|sno|", ":4"},
		{"doctor|--ignore|", "server-version\n"},
		{"doctor|", ":4"},
		{"new|--node|", ":4"},
		{"partitions|list|", ":4"},
		{"rekey|expand|", "json\n:8"},  // files
		{"rekey|inspect|", "json\n:8"}, // files
		{"migrate|export|", ":16"},     // directories
	} {
		out, _, _ := execute(t, "", append([]string{"__complete"}, strings.Split(tt.args, "|")...)...)
		if !strings.HasPrefix(out, tt.want) {
			t.Errorf("complete %s: got %q, want %q", tt.args, out, tt.want)
		}
	}
}
