package ids

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/crockford"
)

var (
	xid      = regexp.MustCompile(`^[0-9a-v]{20}$`)
	ulid     = regexp.MustCompile(`^(?i)[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	ksuid    = regexp.MustCompile(`^[0-9A-Za-z]{27}$`)
	objectID = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)
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
	if xid.MatchString(input) && !onlyDigits.MatchString(input) {
		if b, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(input)); err == nil {
			found = append(found, Reading{Title: "xid", Time: seconds(b, 0)})
		}
	}
	if ulid.MatchString(input) {
		u := ulidUUID(input)
		found = append(found, Reading{Title: "ULID", Time: time.UnixMilli(int64(binary.BigEndian.Uint64(u[:]) >> 16)).UTC()})
	}
	if objectID.MatchString(input) {
		b, _ := hex.DecodeString(input)
		found = append(found, Reading{Title: "ObjectId", Time: seconds(b, 0)})
	}
	if ksuid.MatchString(input) {
		// KSUIDs sort upper case before lower case, and math/big the reverse.
		n, _ := new(big.Int).SetString(strings.Map(swapCase, input), 62)
		if n.BitLen() <= 160 {
			found = append(found, Reading{Title: "KSUID", Time: seconds(n.FillBytes(make([]byte, 20)), 1_400_000_000)})
		}
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

// seconds returns the time in an ID's first 4 bytes, in seconds since an epoch.
func seconds(id []byte, epoch int64) time.Time {
	return time.Unix(epoch+int64(binary.BigEndian.Uint32(id)), 0).UTC()
}

// ulidUUID returns the 16 bytes of a text that matches ulid: a ULID, or a TypeID without its
// prefix.
func ulidUUID(s string) (u uuid.UUID) {
	u, _ = crockford.Parse([]byte(strings.ToLower(s)))
	return u
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}
