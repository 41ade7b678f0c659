package ids

import (
	"cmp"
	"context"
	"encoding"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/crockford"
)

// An ID is an ID of any type of package idtype.
type ID interface {
	encoding.BinaryAppender
	String() string
	IsZero() bool
}

// A Format is an ID type with its layout.
type Format struct {
	Name   string // on the command line and in JSON
	Title  string // as in Go
	Column string // the column type
	Nodes  []Field
	// Sequences is the number of IDs per node and unit of time.
	Sequences int
	// RandomBits is the number of random bits beside the sequence number.
	RandomBits int
	// Undated is set if the layout has no epoch, so that IDs have no time.
	Undated bool

	FromText   func(string) (ID, error)
	FromInt64  func(int64) ID              // nil unless the column type is bigint
	FromUUID   func(uuid.UUID) (ID, error) // nil unless the column type is uuid
	FromBinary func([]byte) (ID, error)

	Parts   func(ID) (Parts, error)
	Compose func(Parts) (ID, error)
	// Window returns the bounds of the IDs between two times. It is nil if the IDs don't
	// sort by time.
	Window func(from, to time.Time) (lo, hi ID, err error)
	// Generate generates n IDs and calls emit with each of them.
	Generate func(ctx context.Context, p Parts, n int, emit func(ID) error) error
}

// A Field is a field of a node number.
type Field struct {
	Name string
	Bits int
}

// Parts are the parts of an ID of any type.
type Parts struct {
	Time     time.Time // zero if the ID has none
	Node     int       // the fields of the node number, concatenated; 0 if there are none
	Sequence int
	Random   int64 // UID60 and UUID only
	Meta     byte  // Sno only
	TickTock bool  // Sno only
	Version  int   // UUID only; the other parts are of version 7, the time also of 1 and 6
}

// A Time is the time of an ID in JSON. Unlike a time.Time, it can be after the year 9999, as in a
// UUID.
type Time struct{ time.Time }

// MarshalJSON returns the time in the form of RFC 3339.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.Format(`"` + time.RFC3339Nano + `"`)), nil
}

// NodeLimit returns the number of node numbers: 1 if the format has none.
func (f *Format) NodeLimit() int {
	width := 0
	for _, field := range f.Nodes {
		width += field.Bits
	}
	return 1 << width
}

// NodeFields returns the fields of a node number by name, and as a text such as
// "datacenter 1, worker 5".
func (f *Format) NodeFields(node int) (byName map[string]int, text string) {
	byName = map[string]int{}
	var texts []string
	for i, value := range f.split(node) {
		byName[f.Nodes[i].Name] = value
		texts = append(texts, fmt.Sprintf("%s %d", f.Nodes[i].Name, value))
	}
	return byName, strings.Join(texts, ", ")
}

// split returns the values of the node number's fields.
func (f *Format) split(node int) []int {
	values := make([]int, len(f.Nodes))
	for i, field := range slices.Backward(f.Nodes) {
		values[i] = node & (1<<field.Bits - 1)
		node >>= field.Bits
	}
	return values
}

// join is the inverse of split for two fields.
func (f *Format) join(first, second int) int { return first<<f.Nodes[1].Bits | second }

// Forms are the forms of AllForms.
var Forms = []string{"text", "int64", "uuid", "typeid", "hex", "bytea"}

// PrefixOfTypeID matches the prefix of a TypeID, also an empty one.
var PrefixOfTypeID = regexp.MustCompile(`^([a-z]([a-z_]{0,61}[a-z])?)?$`)

// AllForms returns the forms that the ID's type has, by name. hex and bytea are the
// big-endian bytes in the notations 0x... and \x.... The prefix is that of a TypeID, which
// can be empty.
func AllForms(id ID, prefix string) map[string]string {
	all := map[string]string{"text": id.String()}
	if id, ok := id.(interface{ Int64() int64 }); ok {
		all["int64"] = strconv.FormatInt(id.Int64(), 10)
	}
	switch id := id.(type) {
	case idtype.Sno:
		all["uuid"] = id.UUID().String()
	case idtype.UUID:
		all["uuid"] = id.String()
		if PrefixOfTypeID.MatchString(prefix) {
			if prefix != "" {
				prefix += "_"
			}
			all["typeid"] = string(crockford.Append([]byte(prefix), (*[16]byte)(&id)))
		}
	}
	if binary, err := id.AppendBinary(nil); err == nil {
		all["hex"], all["bytea"] = fmt.Sprintf("0x%x", binary), fmt.Sprintf(`\x%x`, binary)
	}
	return all
}

// ColumnText returns the value of the ID's column.
func ColumnText(id ID) string {
	all := AllForms(id, "")
	return cmp.Or(all["int64"], all["uuid"])
}
