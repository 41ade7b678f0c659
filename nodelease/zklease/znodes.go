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
		return fmt.Errorf("zklease: Config.Root or Config.Roots: want the path of a znode such as %s, got %q", defaultRoot, path)
	}
	return nil
}

// ticketName returns the name of a ticket in the queue. The queue is in the order of
// the names.
func ticketName(now time.Time, random int) string {
	return fmt.Sprintf("nr-%014d-%04d", now.UnixMilli(), random)
}

var ticketPattern = regexp.MustCompile(`^nr-[0-9]{14,}-[0-9]{4}$`)

// notInQueue is the position of a ticket that is gone.
const notInQueue = -1

// inFront returns the ticket directly before the given one in the queue, and the
// position: the number of tickets before the given one.
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

// A record is the content of the znode of a number's high-water mark.
type record struct {
	Term   int64  `json:"term"`
	Holder string `json:"holder"` // "" if the number was released
	After  int64  `json:"after"`  // in Unix milliseconds, like Until
	Until  int64  `json:"until"`
}

// A tag is the content of the znode of a claim.
type tag struct {
	Term   int64  `json:"term"`
	Holder string `json:"holder"`
}

// A layout is the content of the layout znode of a pool.
type layout struct {
	Size   int    `json:"size"`
	Layout string `json:"layout"`
}

// encode returns a record, tag or layout as JSON, which people can read and edit.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // can't happen: all fields are numbers and strings
	}
	return b
}

// decode parses a record, tag or layout, written by encode or by hand. All fields are
// required, and unknown fields are an error.
func decode[T any](path string, data []byte) (T, error) {
	var v, example T
	var names, wanted map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := errors.Join(d.Decode(&v), json.Unmarshal(data, &names), json.Unmarshal(encode(example), &wanted))
	if err == nil && len(names) != len(wanted) {
		err = fmt.Errorf("want %d fields, got %d", len(wanted), len(names))
	}
	if err != nil {
		return v, fmt.Errorf("zklease: decode %s: want content such as %s, got %q: %w: %w", path, encode(example), data, err, nodelease.ErrMisconfigured)
	}
	return v, nil
}

// numbers returns the names that are numbers of the pool.
func numbers(names []string, size int) map[int]bool {
	found := make(map[int]bool, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < size && strconv.Itoa(n) == name {
			found[n] = true
		}
	}
	return found
}

// A spot is a number with its record.
type spot struct {
	number int
	used   bool     // whether the number has a record
	record record   // zero if unused
	stat   *zk.Stat // stat of the record's znode
}

// byAge sorts unused numbers first, then by high-water mark, lowest first.
func byAge(a, b spot) int {
	if a.used != b.used {
		if a.used {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(a.record.Until, b.record.Until), cmp.Compare(a.number, b.number))
}
