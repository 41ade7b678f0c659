package ids

import (
	"encoding/binary"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/crockford"
)

var (
	ulid     = regexp.MustCompile(`^(?i)[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	prefixed = regexp.MustCompile(`^([a-z][a-z0-9_]*)_([^_]+)$`)
)

// foreignReadings returns the meanings of an input as an ID of another maker, also behind
// a prefix.
func foreignReadings(input string) (found []Reading) {
	if m := prefixed.FindStringSubmatch(input); m != nil {
		found = foreignReadings(m[2])
		for i := range found {
			found[i].Prefix = m[1]
		}
		return found
	}
	if n, ok := parseDecimal(input); ok && 0 < n && n < smallest {
		found = append(found, Reading{Title: "small number, as of a serial column"})
	}
	if u, ok := parseUUID(input); ok && idtype.UUID(u).Version() == 0 {
		if _, err := idtype.SnoFromUUID(u); err != nil {
			found = append(found, Reading{Title: uuidTitle(u)})
		}
	}
	if ulid.MatchString(input) {
		u := ulidUUID(input)
		found = append(found, Reading{Title: "ULID", Time: time.UnixMilli(int64(binary.BigEndian.Uint64(u[:]) >> 16)).UTC()})
	}
	return found
}

// uuidTitle describes a UUID that isn't of a version of RFC 9562.
func uuidTitle(u uuid.UUID) string {
	switch u {
	case uuid.Nil:
		return "nil UUID"
	case uuid.Max:
		return "max UUID"
	}
	return "UUID of an unknown variant"
}

// ulidUUID returns the 16 bytes of a text that matches ulid: a ULID, or a TypeID without its
// prefix.
func ulidUUID(s string) (u uuid.UUID) {
	u, _ = crockford.Parse([]byte(strings.ToLower(s)))
	return u
}
