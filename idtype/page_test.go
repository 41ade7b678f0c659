package idtype

import (
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each example in the tables of docs/formats.md is a vector.
func TestFormatsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]int{}
	var name string
	var head []string
	for line := range strings.Lines(string(page)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			name = strings.Fields(title)[0]
		}
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			head = nil
		case head == nil:
			head = cells
		case head[0] == "text" && cells[0] != "---":
			all := vectors(t, name)
			i := slices.IndexFunc(all, func(v vector) bool { return v.Text == cells[0] })
			if i < 0 {
				t.Errorf("%s %s isn't a vector", name, cells[0])
				continue
			}
			examples[name]++
			for j, cell := range cells {
				if err := all[i].shows(head[j], cell); err != nil {
					t.Errorf("%s %s: %s %v", name, cells[0], head[j], err)
				}
			}
		}
	}
	for _, name := range []string{"Snowflake", "SnowflakeSI", "UID60", "Spread64", "Sno", "UUID"} {
		if examples[name] < 2 {
			t.Errorf("%d examples of %s", examples[name], name)
		}
	}

	nineteen := DefaultSnowflakeLayout().Time(1e18).Format("2006-01-02T15:04:05.000Z")
	eighteen := DefaultSnowflakeLayout().Time(1e17).Format("January 2006")
	sixteen := fmt.Sprintf("%.2f years", SnowflakeSILayout{BaseClock: time.UnixMilli(0)}.Time(1e15).Sub(time.UnixMilli(0)).Hours()/24/365.25)
	for _, want := range []string{nineteen, eighteen, sixteen} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page doesn't contain %s", want)
		}
	}
}

// shows returns an error if a cell of the page, in the column head, isn't the vector's.
func (v vector) shows(head, cell string) error {
	want := ""
	switch head {
	case "text":
		want = v.Text
	case "padded", "TypeID":
		want = v.Padded
	case "column":
		want = v.SQL
	case "bytes":
		if _, err := hex.DecodeString(cell); err != nil {
			return err
		}
		want = v.Binary
	case "time":
		if want = v.Time.Format("2006-01-02T15:04:05.000Z"); v.Time.IsZero() {
			want = "none: version 4"
		}
	case "fields":
		fields := map[string]string{}
		for field := range strings.SplitSeq(cell, ", ") {
			name, value, _ := strings.Cut(field, " ")
			fields[name] = value
		}
		p := v.Parts
		for name, value := range map[string]any{
			"datacenter": p.Datacenter, "worker": p.Worker, "machine": p.Machine, "index": p.Index, "random": p.Random, "generator": p.Generator,
			"cluster": p.Cluster, "sequence": p.Sequence, "meta": p.Meta, "partition": p.Partition, "tickTock": p.TickTock,
		} {
			if shown, ok := fields[name]; ok && shown != fmt.Sprint(value) {
				return fmt.Errorf("%s is %v", name, value)
			}
			delete(fields, name)
		}
		if len(fields) > 0 {
			return fmt.Errorf("unknown fields %v", fields)
		}
		return nil
	default:
		return fmt.Errorf("isn't a field of a vector")
	}
	if cell != want {
		return fmt.Errorf("is %s, not %s", want, cell)
	}
	return nil
}

// Time windows have the bounds in the vectors.
func TestRangeVectors(t *testing.T) {
	var windows map[string][]struct {
		From, To time.Time
		Lo, Hi   string
	}
	readVectors(t, "ranges", &windows)
	si := SnowflakeSILayout{BaseClock: vectors(t, "SnowflakeSI")[0].Layout.BaseClock}
	for name, bounds := range map[string]func(from, to time.Time) (lo, hi anyID, err error){
		"Snowflake":   anyRange(SnowflakeLayout{}.Range),
		"SnowflakeSI": anyRange(si.Range),
		"UID60":       anyRange(UID60Layout{}.Range),
		"Sno":         anyRange(SnoLayout{}.Range),
		"UUID":        anyRange(UUIDLayout{}.Range),
	} {
		if len(windows[name]) < 2 {
			t.Errorf("%d ranges of %s", len(windows[name]), name)
		}
		for _, w := range windows[name] {
			if lo, hi, err := bounds(w.From, w.To); err != nil || lo.String() != w.Lo || hi.String() != w.Hi {
				t.Errorf("%s: got %v to %v, %v, want %+v", name, lo, hi, err, w)
			}
		}
	}
}

// IDs with a prefix have the forms in the vectors.
func TestPrefixedVectors(t *testing.T) {
	var all map[string]vector
	readVectors(t, "prefixed", &all)
	for name, parse := range map[string]func(string) (anyID, error){
		"Snowflake": parseAs[SnowflakeOf[order]], "SnowflakeSI": parseAs[SnowflakeSIOf[order]], "UID60": parseAs[UID60Of[order]],
		"Spread64": parseAs[Spread64Of[order]], "Sno": parseAs[SnoOf[order]], "UUID": parseAs[UUIDOf[order]],
	} {
		v := all[name]
		id, err := parse(v.Text)
		text, _ := id.MarshalText()
		encoded, _ := id.MarshalJSON()
		column, _ := id.Value()
		binary, _ := id.MarshalBinary()
		if err != nil || string(text) != v.Text || string(encoded) != v.JSON || fmt.Sprint(column) != v.SQL || hex.EncodeToString(binary) != v.Binary {
			t.Errorf("%+v: got %s, %s, %v, %x, %v", v, text, encoded, column, binary, err)
		}
	}
}

func parseAs[T value[T], P pointer[T]](s string) (anyID, error) { return Parse[T, P](s) }
