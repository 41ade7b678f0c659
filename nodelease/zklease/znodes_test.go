package zklease

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// Ticket names have the Java program's form and sort by time.
func TestTicketName(t *testing.T) {
	at := time.UnixMilli(1763784000123)
	if got, want := ticketName(at, 42), "nr-01763784000123-0042"; got != want {
		t.Errorf("expected %s, got %s", want, got)
	}
	first, second := ticketName(at, 9999), ticketName(at.Add(time.Millisecond), 0)
	if first >= second || lockName >= first || !ticketPattern.MatchString(first) {
		t.Errorf("expected %s, %s and %s in this order", lockName, first, second)
	}
}

func TestInFront(t *testing.T) {
	const a, b, c = "nr-00000000000001-0000", "nr-00000000000001-0001", "nr-00000000000002-0000"
	for _, test := range []struct {
		names    []string
		ticket   string
		before   string
		position int
	}{
		{[]string{a}, a, "", 0},
		{[]string{c, a, b}, a, "", 0},
		{[]string{c, a, b}, b, a, 1},
		{[]string{c, a, b}, c, b, 2},
		{[]string{b, lockName, c}, b, "", 0}, // the lock is no ticket
		{[]string{c, "a", "nr-", lockName}, c, "", 0},
		{[]string{a, b}, c, "", notInQueue},
		{nil, c, "", notInQueue},
	} {
		before, position := inFront(test.names, test.ticket)
		if before != test.before || position != test.position {
			t.Errorf("%q in %q: expected %q and %d, got %q and %d", test.ticket, test.names, test.before, test.position, before, position)
		}
	}
}

// A record is readable JSON, and decode accepts records that were edited by hand.
func TestRecord(t *testing.T) {
	m := record{Term: 3, Holder: `web-3 "<ä>"`, After: -5, Until: 1763784000123}
	data := encode(m)
	if want := `{"term":3,"holder":"web-3 \"\u003cä\u003e\"","after":-5,"until":1763784000123}`; string(data) != want {
		t.Errorf("expected %s, got %s", want, data)
	}
	if got, err := decode[record]("/x", data); err != nil || got != m {
		t.Errorf("expected %+v, got %+v, %v", m, got, err)
	}
	if got, err := decode[record]("/x", []byte(" { \"until\": 7, \"after\": 0,\n\"holder\": \"\", \"term\": 9}\n")); err != nil || got != (record{Term: 9, Until: 7}) {
		t.Errorf("written by hand: got %+v, %v", got, err)
	}
	for _, bad := range []string{
		"", "7", "null", "{}", `{"term":3,"holder":"","after":0}`, `{"term":3,"holder":"","after":0,"untill":7}`,
		`{"term":3,"holder":"","after":0,"until":"7"}`, `{"term":3,"holder":"","after":0,"until":7,"x":1}`,
		`{"term":3,"holder":"","after":0,"until":7} 8`, `{"term":3,"holder":"","after":0,"until":7.5}`,
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

func TestByAge(t *testing.T) {
	used := func(number int, until int64) spot {
		return spot{number: number, used: true, record: record{Until: until}}
	}
	spots := []spot{used(0, 9), used(1, 5), used(2, -5), {number: 4}, used(5, 5), {number: 3}}
	slices.SortFunc(spots, byAge)
	var got []int
	for _, s := range spots {
		got = append(got, s.number)
	}
	if want := []int{3, 4, 2, 1, 5, 0}; !slices.Equal(got, want) {
		t.Errorf("expected %v, got %v", want, got)
	}
}

func TestConfig(t *testing.T) {
	c, err := Config{}.normal()
	if err != nil || c.Root != "/sortkey" || c.SessionTimeout != 30*time.Second || len(c.ACL) != 1 {
		t.Errorf("the zero value: got %+v, %v", c, err)
	}
	for _, bad := range []Config{
		{SessionTimeout: time.Millisecond}, {SessionTimeout: 2 * time.Hour}, {SessionTimeout: -1},
		{Root: "x"}, {Root: "/"}, {Root: "/x/"}, {Root: "/x//y"}, {Root: "/x/../y"}, {Root: "/x\x00"}, {Root: "/zookeeper/x"},
		{Roots: map[string]string{"p": "x"}},
	} {
		if _, err := Connect([]string{"127.0.0.1:1"}, bad); err == nil {
			t.Errorf("%+v: expected an error, got none", bad)
		}
	}
	if _, err := Connect(nil, Config{}); err == nil {
		t.Error("no servers: expected an error, got none")
	}
}

func TestTransient(t *testing.T) {
	if transient(nil) || transient(errors.New("x")) {
		t.Error("expected nil and unknown errors not to be transient")
	}
}
