package zklease

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/sortkey/sortkey/internal/strictjson"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/internal/stores"
)

// The names of znodes below a pool's root.
const (
	poolName   = "pool"
	recordName = "high-water-mark"
	layoutName = "layout"
)

var pathPattern = regexp.MustCompile(`^(/[^/\x00-\x1f\x7f]+)+$`)

func checkPath(path string) error {
	if !pathPattern.MatchString(path) || strings.HasPrefix(path, "/zookeeper") ||
		slices.ContainsFunc(strings.Split(path, "/"), func(name string) bool { return name == "." || name == ".." }) {
		return fmt.Errorf("zklease: Config.Root or Config.Roots: want the path of a znode such as %s, got %q: %w", defaultRoot, path, nodelease.ErrMisconfigured)
	}
	return nil
}

// A record is the content of the znode of a number's high-water mark.
type record = stores.Record

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
	v, err := strictjson.Decode[T](data)
	if r, ok := any(v).(record); err == nil && ok {
		err = r.Validate()
	}
	if err != nil {
		var example T
		return example, fmt.Errorf("zklease: decode %s: want content such as %s, got %q: %w: %w", path, encode(example), data, err, nodelease.ErrMisconfigured)
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

// A candidate is a number with its record.
type candidate struct {
	number int
	record record   // zero if the number was never used
	stat   *zk.Stat // stat of the record's znode, or nil
}

// byMark sorts by high-water mark, lowest first.
func byMark(a, b candidate) int {
	return cmp.Or(cmp.Compare(a.record.Until, b.record.Until), cmp.Compare(a.number, b.number))
}
