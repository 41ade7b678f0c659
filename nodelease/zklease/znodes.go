package zklease

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/nodelease"
)

// The names of znodes below a pool's root.
const (
	queueName  = "queue"
	poolName   = "pool"
	recordName = "high-water-mark"
	layoutName = "layout"
	// lockName sorts before all tickets.
	lockName = "nr-00000000000000"
)

var pathPattern = regexp.MustCompile(`^(/[^/\x00-\x1f\x7f]+)+$`)

func checkPath(path string) error {
	if !pathPattern.MatchString(path) || strings.HasPrefix(path, "/zookeeper") ||
		slices.ContainsFunc(strings.Split(path, "/"), func(name string) bool { return name == "." || name == ".." }) {
		return fmt.Errorf("zklease: expected the path of a znode such as %s, got %q", defaultRoot, path)
	}
	return nil
}

// ticketName is the name of a place in the queue: places are taken in the order
// of their names.
func ticketName(now time.Time, random int) string {
	return fmt.Sprintf("nr-%014d-%04d", now.UnixMilli(), random)
}

var ticketPattern = regexp.MustCompile(`^nr-[0-9]{14,}-[0-9]{4}$`)

// notInQueue is the position of a ticket that is gone.
const notInQueue = -1

// inFront is the ticket in front of another one, and how many there are.
func inFront(names []string, ticket string) (before string, position int) {
	if !slices.Contains(names, ticket) {
		return "", notInQueue
	}
	for _, name := range names {
		if name < ticket && ticketPattern.MatchString(name) {
			before = max(before, name)
			position++
		}
	}
	return before, position
}

// A record is what the znode of a number's high-water mark says.
type record struct {
	Term   int64  `json:"term"`
	Holder string `json:"holder"` // "" if the number was released
	After  int64  `json:"after"`  // in Unix milliseconds, as Until
	Until  int64  `json:"until"`
}

// A tag is what the znode of a claim says.
type tag struct {
	Term   int64  `json:"term"`
	Holder string `json:"holder"`
}

// A layout is what a pool was made with.
type layout struct {
	Size   int    `json:"size"`
	Layout string `json:"layout"`
}

// encode gives one of the three as people can read it.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // there are only numbers and strings in them
	}
	return b
}

// decode reads one of the three, as written by encode or by hand: with all of
// its names, and no others.
func decode[T any](path string, data []byte) (T, error) {
	var v, example T
	var names, wanted map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := errors.Join(d.Decode(&v), json.Unmarshal(data, &names), json.Unmarshal(encode(example), &wanted))
	if err == nil && len(names) != len(wanted) {
		err = fmt.Errorf("%d names instead of %d", len(names), len(wanted))
	}
	if err != nil {
		return v, fmt.Errorf("zklease: expected %s to have content such as %s, got %q: %w: %w", path, encode(example), data, err, nodelease.ErrMisconfigured)
	}
	return v, nil
}

// numbers are those of the names that are numbers of a pool.
func numbers(names []string, size int) map[int]bool {
	found := make(map[int]bool, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < size && strconv.Itoa(n) == name {
			found[n] = true
		}
	}
	return found
}

// A spot is a number that could be claimed.
type spot struct {
	number int
	used   bool // the others are zero if it never was
	record record
	stat   *zk.Stat // of the record
}

// byAge sorts numbers that were never used first, then the one that hasn't been
// for longest.
func byAge(a, b spot) int {
	if a.used != b.used {
		if a.used {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(a.record.Until, b.record.Until), cmp.Compare(a.number, b.number))
}
