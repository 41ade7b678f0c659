package zklease

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// A record is readable JSON, and decode accepts records that were edited by hand.
func TestRecord(t *testing.T) {
	m := record{Term: 3, Holder: `web-3 "<ä>"`, Nonce: "KJ", After: 5, Until: 1763784000123}
	data := encode(m)
	if want := `{"term":3,"holder":"web-3 \"\u003cä\u003e\"","nonce":"KJ","after":5,"until":1763784000123}`; string(data) != want {
		t.Errorf("expected %s, got %s", want, data)
	}
	if got, err := decode[record]("/x", data); err != nil || got != m {
		t.Errorf("expected %+v, got %+v, %v", m, got, err)
	}
	if got, err := decode[record]("/x", []byte(" { \"until\": 7, \"after\": 0,\n\"holder\": \"\", \"nonce\": \"\", \"term\": 9}\n")); err != nil || got != (record{Term: 9, Until: 7}) {
		t.Errorf("written by hand: got %+v, %v", got, err)
	}
	for _, bad := range []string{
		"", "7", "null", "{}", `{"term":3,"holder":"","nonce":"","after":0}`, `{"term":3,"holder":"","nonce":"","after":0,"untill":7}`,
		`{"term":3,"holder":"","nonce":"","after":0,"until":"7"}`, `{"term":3,"holder":"","nonce":"","after":0,"until":7,"x":1}`,
		`{"term":3,"holder":"","nonce":"","after":0,"until":7} 8`, `{"term":3,"holder":"","nonce":"","after":0,"until":7.5}`,
		`{"term":3,"holder":"","nonce":"","after":0,"until":null}`, `{"term":3,"holder":"","nonce":"","UNTIL":9,"until":7}`, `{"term":3,"holder":"","nonce":"","after":0,"until":7,"until":0}`,
		`{"term":0,"holder":"","nonce":"","after":0,"until":7}`, `{"term":9223372036854775807,"holder":"","nonce":"","after":0,"until":7}`, `{"term":3,"holder":"","nonce":"","after":-1,"until":7}`, `{"term":3,"holder":"","nonce":"","after":8,"until":7}`,
	} {
		if got, err := decode[record]("/x/high-water-mark/5", []byte(bad)); err == nil || !strings.Contains(err.Error(), "/x/high-water-mark/5") {
			t.Errorf("%s: expected an error that names the znode, got %+v, %v", bad, got, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	got := numbers([]string{"0", "3", "4", "-1", "03", "+2", "x", ""}, 4)
	if len(got) != 2 || !got[0] || !got[3] {
		t.Errorf("expected 0 and 3, got %v", got)
	}
}

func TestByMark(t *testing.T) {
	used := func(number int, until int64) candidate {
		return candidate{number: number, record: record{Until: until}}
	}
	candidates := []candidate{used(0, 9), used(1, 5), used(4, 0), used(5, 5), used(3, 0)}
	slices.SortFunc(candidates, byMark)
	var got []int
	for _, c := range candidates {
		got = append(got, c.number)
	}
	if want := []int{3, 4, 1, 5, 0}; !slices.Equal(got, want) {
		t.Errorf("expected %v, got %v", want, got)
	}
}

func TestConfig(t *testing.T) {
	c, err := Config{}.normal()
	if err != nil || c.Root != "/sortkey" || c.SessionTimeout != 30*time.Second || len(c.ACL) != 1 || c.Logger != slog.Default() {
		t.Errorf("the zero value: got %+v, %v", c, err)
	}
	for _, bad := range []Config{
		{SessionTimeout: time.Millisecond}, {SessionTimeout: 2 * time.Hour}, {SessionTimeout: -1},
		{Root: "x"}, {Root: "/"}, {Root: "/x/"}, {Root: "/x//y"}, {Root: "/x/../y"}, {Root: "/x\x00"}, {Root: "/zookeeper/x"},
		{Roots: map[string]string{"p": "x"}},
	} {
		if _, err := Connect([]string{"127.0.0.1:1"}, bad); !errors.Is(err, nodelease.ErrMisconfigured) {
			t.Errorf("%+v: expected ErrMisconfigured, got %v", bad, err)
		}
	}
	for _, servers := range [][]string{nil, {""}, {"127.0.0.1:1", ""}} {
		if _, err := Connect(servers, Config{}); !errors.Is(err, nodelease.ErrMisconfigured) {
			t.Errorf("servers %q: expected ErrMisconfigured, got %v", servers, err)
		}
	}
}

func TestTransient(t *testing.T) {
	if transient(nil) || transient(errors.New("x")) {
		t.Error("expected nil and unknown errors not to be transient")
	}
}
