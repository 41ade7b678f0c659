package ids

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
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

// Texts describes the inputs that Find recognizes, for help texts and errors.
const Texts = `a decimal bigint, a UUID (also urn:uuid:... and {...}), a TypeID, the text of a
sno (16 characters), a uid60 (4 to 10 characters) or a spread64 (16 hex digits),
any of these texts behind the prefix of a typed key (ord_...), and the 8, 10 or
16 bytes of an ID as 0x..., \x... or plain hex digits (digits without a letter
are a decimal: put 0x before them, or pass --from hex)`

// A Reading is one meaning of an input.
type Reading struct {
	Title  string
	Prefix string    // of a typed key
	Time   time.Time // zero if it is unknown
	Parts  Parts

	Format *Format // nil for an ID of another maker
	Form   string  // one of Forms
	ID     ID
}

// ZeroTitle is the title of zero, which the columns of several types can hold, although
// no generator creates it.
const ZeroTitle = "zero"

const (
	// maxAhead is the most that the time of a plausible ID is ahead of the clock.
	maxAhead = 24 * time.Hour
	// unknownAge is the distance from now that orders an ID without a known time.
	unknownAge = 5 * 365 * 24 * time.Hour
)

// Plausible reports whether the ID can have been created by now. A generator creates the
// smallest bigints in the first minutes after its epoch.
func (r Reading) Plausible(now time.Time) bool {
	if id, ok := r.ID.(interface{ Int64() int64 }); ok && r.Form == "int64" && uint64(id.Int64()) < smallest {
		return false
	}
	return r.Title != ZeroTitle && !r.Time.After(now.Add(maxAhead))
}

const (
	// smallest is the first bigint that isn't taken for the value of a serial column.
	smallest = 1 << 32
	// smallestHinted is the first Snowflake whose time could be after another epoch: 99 days
	// later.
	smallestHinted = 1 << 55
	// oldest is the age from which a Snowflake is more likely of another epoch.
	oldest = 365 * 24 * time.Hour
)

// epochs are epochs of other makers of Snowflakes with the default bits.
var epochs = []struct {
	maker string
	ms    int64
}{{"Discord", 1420070400000}, {"Twitter", 1288834974657}}

// distance returns the distance of the ID's time from now.
func (r Reading) distance(now time.Time) time.Duration {
	if r.Time.IsZero() {
		return unknownAge
	}
	return now.Sub(r.Time).Abs()
}

// Find returns the meanings of an input as IDs of the formats, the most plausible
// first: plausible ones before others, and then those near now before others. With
// foreign, it also returns meanings as IDs of other makers. form restricts the input to
// one of Forms, unless it is empty.
func Find(input, form string, formats []*Format, foreign bool, now time.Time) []Reading {
	found := Own(input, form, formats)
	if ids := withoutZero(found); len(ids) < len(found) {
		found = append(ids, Reading{Title: ZeroTitle})
	}
	if foreign && !slices.ContainsFunc(found, func(r Reading) bool { return r.Form == "typeid" && r.Prefix != "" }) {
		found = append(found, foreignReadings(input)...)
	}
	found = sorted(found, now)
	if foreign && len(found) > 0 && (!found[0].Plausible(now) || found[0].distance(now) > oldest) {
		for _, r := range found {
			id, ok := r.ID.(idtype.Snowflake)
			if !ok || id < smallestHinted || !r.Time.Equal(idtype.SnowflakeLayout{}.Time(id)) {
				continue
			}
			for _, e := range epochs {
				other := Reading{Title: fmt.Sprintf("Snowflake of %s (--epoch %d)", e.maker, e.ms), Time: time.UnixMilli(e.ms + int64(id)>>22).UTC()}
				if other.Plausible(now) {
					found = append(found, other)
				}
			}
		}
		found = sorted(found, now)
	}
	return found
}

// sorted returns readings in the order of Find.
func sorted(found []Reading, now time.Time) []Reading {
	implausible := map[bool]int{false: 1}
	return slices.SortedStableFunc(slices.Values(found), func(a, b Reading) int {
		return cmp.Or(implausible[a.Plausible(now)]-implausible[b.Plausible(now)], cmp.Compare(a.distance(now), b.distance(now)))
	})
}

// withoutZero removes the zero IDs of a list.
func withoutZero(found []Reading) []Reading {
	return slices.DeleteFunc(slices.Clone(found), func(r Reading) bool { return r.ID.IsZero() })
}

var (
	typedKey = regexp.MustCompile(`^([a-z][a-z0-9]*)_(.+)$`)

	typeID = regexp.MustCompile(`^(?:([a-z](?:[a-z_]{0,61}[a-z])?)_)?([0-7][0-9a-hjkmnp-tv-z]{25})$`)

	// Only hex digits follow, so the input can't be meant as the text of a UID60.
	hexForm = regexp.MustCompile(`^0[xX][0-9a-fA-F]*$`)

	braced = regexp.MustCompile(`^(?i:urn:uuid:(.{36})|\{(.{36})\})$`)
)

// Own returns the meanings of an input as IDs of the formats. form restricts them
// to one of Forms, unless it is empty.
func Own(input, form string, formats []*Format) (found []Reading) {
	all := form == ""
	n, isInt := parseDecimal(input)
	u, isUUID := parseUUID(input)
	bytes := hexBytes(input, form)
	typed, typeIDParts := typedKey.FindStringSubmatch(input), typeID.FindStringSubmatch(input)
	// A user who passes the type and the form can have such a UID60.
	isText := !hexForm.MatchString(input) || form == "text" && len(formats) == 1
	for _, f := range formats {
		add := func(form, prefix string, id ID, err error) {
			if err == nil {
				found = f.append(found, Reading{Form: form, Prefix: prefix, ID: id})
			}
		}
		if isInt && f.FromInt64 != nil && (all || form == "int64") {
			add("int64", "", f.FromInt64(n), nil)
		}
		if isUUID && f.FromUUID != nil && (all || form == "uuid") {
			id, err := f.FromUUID(u)
			add("uuid", "", id, err)
		}
		if m := typeIDParts; m != nil && f.Name == "uuid7" && (all || form == "typeid") {
			id, err := f.FromUUID(ulidUUID(m[2]))
			// Without a prefix, it can be a ULID.
			if m[1] != "" || err == nil && id.(idtype.UUID).Version() == 7 || len(formats) == 1 {
				add("typeid", m[1], id, err)
			}
		}
		if bytes != nil && (all || form == "hex" || form == "bytea") {
			id, err := f.FromBinary(bytes)
			add("hex", "", id, err)
		}
		if isText && (all || form == "text") {
			id, err := f.FromText(input)
			add("text", "", id, err)
			// Behind a prefix, a UID60 always has 10 characters.
			if typed != nil && (f.Name != "uid60" || len(typed[2]) == 10) {
				id, err := f.FromText(typed[2])
				add("text", typed[1], id, err)
			}
		}
	}
	return found
}

// parseDecimal parses the value of a bigint column.
func parseDecimal(s string) (n int64, ok bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s // without leading zeros or a plus
}

// parseUUID parses the value of a uuid column, or its 16 bytes.
func parseUUID(s string) (u uuid.UUID, ok bool) {
	if b := hexBytes(s, ""); len(b) == len(u) {
		return uuid.UUID(b), true
	}
	if m := braced.FindStringSubmatch(s); m != nil {
		s = m[1] + m[2]
	}
	u, err := uuid.Parse(s)
	return u, err == nil && len(s) == 36
}

// append completes and appends a reading, unless the list has the same ID.
func (f *Format) append(list []Reading, r Reading) []Reading {
	if slices.ContainsFunc(list, func(other Reading) bool { return other.ID == r.ID }) {
		return list
	}
	p, err := f.Parts(r.ID)
	if err != nil {
		return list
	}
	r.Title, r.Time, r.Parts, r.Format = f.Title, p.Time, p, f
	if p.Version != 0 {
		r.Title = fmt.Sprintf("UUIDv%d", p.Version)
	}
	return append(list, r)
}

// hexBytes returns the bytes of 0x..., \x... or, for the sizes of IDs, plain hex digits. An
// input of digits alone is a decimal unless form is hex or bytea, or it has the size of a
// UUID.
func hexBytes(s, form string) []byte {
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok {
		digits, ok = strings.CutPrefix(s, `\x`)
	}
	if n := len(digits); !ok && n != 32 && (n != 16 && n != 20 || form != "hex" && form != "bytea" && strings.Trim(s, "0123456789") == "") {
		return nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return b
}

// Convert returns a form of the input. from restricts the form of the input, and name is the
// type that the caller restricted the formats to; both can be empty. prefix is that of a
// TypeID instead of the one of the input.
func Convert(input, from, to, name, prefix string, formats []*Format) (string, error) {
	found := Own(input, from, formats)
	if len(found) == 0 {
		if foreign := foreignReadings(input); len(foreign) > 0 {
			return "", fmt.Errorf("convert %q: want an ID of type %s, got a %s", input, strings.Join(Names(), ", "), foreign[0].Title)
		}
		return "", NotID(fmt.Sprintf("%.60q", input), name, from)
	}
	if found = withoutZero(found); len(found) == 0 {
		return "", fmt.Errorf("convert %q: zero, which is not an ID", input)
	}
	if name == "" && from == "" && found[0].Format.Name == "uid60" && found[0].Form == "text" && hexDigits.MatchString(input) {
		return "", fmt.Errorf("convert %q: want --type or --from, since this can be the text of a uid60, or the rest of 16 or 20 hex digits", input)
	}
	var results, types, list []string
	for _, r := range found {
		if !slices.Contains(types, r.Format.Name) {
			types = append(types, r.Format.Name)
		}
		result, ok := AllForms(r.ID, cmp.Or(prefix, r.Prefix))[to]
		if ok && !slices.Contains(results, result) {
			results = append(results, result)
			list = append(list, fmt.Sprintf("%s if it is the %s of a %s", result, r.Form, r.Format.Name))
		}
	}
	switch len(results) {
	case 0:
		return "", fmt.Errorf("convert %q to %s: an ID of type %s has no such form", input, to, strings.Join(types, " or "))
	case 1:
		return results[0], nil
	}
	flags := "--type"
	if slices.ContainsFunc(found, func(r Reading) bool { return r.Form != found[0].Form }) {
		flags = "--type, --from or both"
		if len(formats) == 1 {
			flags = "--from"
		}
	}
	return "", fmt.Errorf("convert %q to %s: the result is %s; pass %s", input, to, strings.Join(list, ", or "), flags)
}

// hexDigits matches digits as hex encoders print them. Of the UID60s of 10 characters,
// one in half a million matches.
var hexDigits = regexp.MustCompile(`^([0-9a-f]+|[0-9A-F]+)$`)

// NotID returns an error about a list of inputs. typeName and form are empty unless the
// user restricted them.
func NotID(list, typeName, form string) error {
	what := "an ID"
	if typeName != "" {
		what += " of type " + typeName
	}
	if form != "" {
		what += " in the form " + form
	}
	return fmt.Errorf("not %s: %s; want %s", what, list, strings.ReplaceAll(Texts, "\n", " "))
}

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
