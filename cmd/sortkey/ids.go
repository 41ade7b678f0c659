package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/crockford"
	"github.com/spf13/cobra"
)

// idForms describes the inputs that readings recognizes, for help texts and errors.
const idForms = `a decimal bigint, a UUID (also urn:uuid:... and {...}), a TypeID, the text of a
sno (16 characters), a uid60 (4 to 10 characters) or a spread64 (16 hex digits),
any of these texts behind the prefix of a typed key (ord_...), and the 8, 10 or
16 bytes of an ID as 0x..., \x... or plain hex digits (digits without a letter
are a decimal: put 0x before them, or pass --from hex)`

// foreignForms describes the inputs of other makers that readings recognizes.
const foreignForms = "ULIDs, KSUIDs, xids and ObjectIds"

// acceptIDs lets a command take IDs as arguments. It explains the error for a negative
// number, which looks like a flag.
func acceptIDs(cmd *cobra.Command) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if negative.MatchString(err.Error()) {
			err = fmt.Errorf("%w; put -- before negative numbers", err)
		}
		return flagError(err)
	})
}

// negative matches pflag's error for a negative number.
var negative = regexp.MustCompile(`^unknown shorthand flag: '[0-9]'`)

// eachInput calls do with each argument or, without arguments, with each line of
// standard input that isn't blank. It calls flush before it waits for more input. do's
// errors should name the input; eachInput adds the number of the line.
func (c *cli) eachInput(ctx context.Context, args []string, flush func() error, do func(input string) error) error {
	for _, arg := range args {
		if err := do(arg); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		return ctx.Err()
	}
	lines := bufio.NewReaderSize(flushingReader{ctx, c.in, flush}, 1<<16)
	for number := 1; ; number++ {
		line, readErr := readLine(lines)
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // byte order mark
		}
		if input := strings.TrimSpace(line); input != "" && (readErr == nil || readErr == io.EOF) {
			if err := do(input); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		switch {
		case readErr == io.EOF:
			return nil
		case readErr != nil:
			return fmt.Errorf("standard input, after line %d: %w", number-1, readErr)
		}
	}
}

// readLine returns a line, or the beginning of a line that is longer than the buffer and
// thus than any ID.
func readLine(r *bufio.Reader) (string, error) {
	b, err := r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return string(b), err
	}
	line := string(b[:100]) + "…"
	for err == bufio.ErrBufferFull {
		_, err = r.ReadSlice('\n')
	}
	return line, err
}

// A flushingReader calls flush before each read. A read ends when ctx is done, even if
// it waits for a terminal.
type flushingReader struct {
	ctx   context.Context
	r     io.Reader
	flush func() error
}

func (r flushingReader) Read(p []byte) (int, error) {
	if err := r.flush(); err != nil {
		return 0, err
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func() {
		n, err := r.r.Read(p)
		done <- result{n, err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case read := <-done:
		return read.n, read.err
	}
}

// A reading is one meaning of an input.
type reading struct {
	title  string
	prefix string    // of a typed key
	time   time.Time // zero if it is unknown
	parts  parts

	format *format // nil for an ID of another maker
	form   string  // one of forms
	id     anyID
}

// zeroTitle is the title of zero, which the columns of several types can hold, although
// no generator creates it.
const zeroTitle = "zero"

const (
	// maxAhead is the most that the time of a plausible ID is ahead of the clock.
	maxAhead = 24 * time.Hour
	// unknownAge is the distance from now that orders an ID without a known time.
	unknownAge = 5 * 365 * 24 * time.Hour
)

// plausible reports whether the ID can have been created by now. A generator creates the
// smallest bigints in the first minutes after its epoch.
func (r reading) plausible(now time.Time) bool {
	if id, ok := r.id.(interface{ Int64() int64 }); ok && r.form == "int64" && uint64(id.Int64()) < smallest {
		return false
	}
	return r.title != zeroTitle && !r.time.After(now.Add(maxAhead))
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
func (r reading) distance(now time.Time) time.Duration {
	if r.time.IsZero() {
		return unknownAge
	}
	return now.Sub(r.time).Abs()
}

// readings returns the meanings of an input as IDs of the formats, the most plausible
// first: plausible ones before others, and then those near now before others. With
// foreign, it also returns meanings as IDs of other makers. form restricts the input to
// one of forms, unless it is empty.
func readings(input, form string, formats []*format, foreign bool, now time.Time) []reading {
	found := ownReadings(input, form, formats)
	if ids := withoutZero(found); len(ids) < len(found) {
		found = append(ids, reading{title: zeroTitle})
	}
	if foreign && !slices.ContainsFunc(found, func(r reading) bool { return r.form == "typeid" && r.prefix != "" }) {
		found = append(found, foreignReadings(input)...)
	}
	found = sorted(found, now)
	if foreign && len(found) > 0 && (!found[0].plausible(now) || found[0].distance(now) > oldest) {
		for _, r := range found {
			id, ok := r.id.(idtype.Snowflake)
			if !ok || id < smallestHinted || !r.time.Equal(idtype.SnowflakeLayout{}.Time(id)) {
				continue
			}
			for _, e := range epochs {
				other := reading{title: fmt.Sprintf("Snowflake of %s (--epoch %d)", e.maker, e.ms), time: time.UnixMilli(e.ms + int64(id)>>22).UTC()}
				if other.plausible(now) {
					found = append(found, other)
				}
			}
		}
		found = sorted(found, now)
	}
	return found
}

// sorted returns readings in the order of readings.
func sorted(found []reading, now time.Time) []reading {
	return slices.SortedStableFunc(slices.Values(found), func(a, b reading) int {
		if p := a.plausible(now); p != b.plausible(now) {
			if p {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.distance(now), b.distance(now))
	})
}

// withoutZero removes the zero IDs of a list.
func withoutZero(found []reading) []reading {
	return slices.DeleteFunc(slices.Clone(found), func(r reading) bool { return r.id.IsZero() })
}

var (
	decimal  = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)
	typedKey = regexp.MustCompile(`^([a-z][a-z0-9]*)_(.+)$`)

	typeIDPrefix = regexp.MustCompile(`^([a-z]([a-z_]{0,61}[a-z])?)?$`)
	typeID       = regexp.MustCompile(`^(?:([a-z](?:[a-z_]{0,61}[a-z])?)_)?([0-7][0-9a-hjkmnp-tv-z]{25})$`)

	// Only hex digits follow, so the input can't be meant as the text of a UID60.
	hexForm = regexp.MustCompile(`^0[xX][0-9a-fA-F]*$`)

	onlyDigits = regexp.MustCompile(`^[0-9]+$`)

	xid      = regexp.MustCompile(`^[0-9a-v]{20}$`)
	ulid     = regexp.MustCompile(`^(?i)[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	ksuid    = regexp.MustCompile(`^[0-9A-Za-z]{27}$`)
	objectID = regexp.MustCompile(`^[0-9a-fA-F]{24}$`)
	prefixed = regexp.MustCompile(`^([a-z][a-z0-9_]*)_([^_]+)$`)
	braced   = regexp.MustCompile(`^(?i:urn:uuid:(.{36})|\{(.{36})\})$`)
)

// ownReadings returns the meanings of an input as IDs of the formats. form restricts them
// to one of forms, unless it is empty.
func ownReadings(input, form string, formats []*format) (found []reading) {
	all := form == ""
	n, isInt := parseDecimal(input)
	u, isUUID := parseUUID(input)
	bytes := hexBytes(input, form)
	typed, typeIDParts := typedKey.FindStringSubmatch(input), typeID.FindStringSubmatch(input)
	// A user who passes the type and the form can have such a UID60.
	isText := !hexForm.MatchString(input) || form == "text" && len(formats) == 1
	for _, f := range formats {
		add := func(form, prefix string, id anyID, err error) {
			if err == nil {
				found = f.append(found, reading{form: form, prefix: prefix, id: id})
			}
		}
		if isInt && f.parseInt64 != nil && (all || form == "int64") {
			id, err := f.parseInt64(n)
			add("int64", "", id, err)
		}
		if isUUID && f.parseUUID != nil && (all || form == "uuid") {
			id, err := f.parseUUID(u)
			add("uuid", "", id, err)
		}
		if m := typeIDParts; m != nil && f.name == "uuid7" && (all || form == "typeid") {
			id, err := f.parseUUID(ulidUUID(m[2]))
			// Without a prefix, it can be a ULID.
			if m[1] != "" || err == nil && id.(idtype.UUID).Version() == 7 || len(formats) == 1 {
				add("typeid", m[1], id, err)
			}
		}
		if bytes != nil && (all || form == "hex" || form == "bytea") {
			id, err := f.parseBinary(bytes)
			add("hex", "", id, err)
		}
		if isText && (all || form == "text") {
			id, err := f.parseText(input)
			add("text", "", id, err)
			// Behind a prefix, a UID60 always has 10 characters.
			if typed != nil && (f.name != "uid60" || len(typed[2]) == 10) {
				id, err := f.parseText(typed[2])
				add("text", typed[1], id, err)
			}
		}
	}
	return found
}

// parseDecimal parses the value of a bigint column.
func parseDecimal(s string) (n int64, ok bool) {
	if !decimal.MatchString(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
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
func (f *format) append(list []reading, r reading) []reading {
	if slices.ContainsFunc(list, func(other reading) bool { return other.id == r.id }) {
		return list
	}
	p, err := f.parts(r.id)
	if err != nil {
		return list
	}
	r.title, r.time, r.parts, r.format = f.title, p.time, p, f
	if p.version != 0 {
		r.title = fmt.Sprintf("UUIDv%d", p.version)
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
	if n := len(digits); !ok && n != 32 && (n != 16 && n != 20 || form != "hex" && form != "bytea" && onlyDigits.MatchString(s)) {
		return nil
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil
	}
	return b
}

// foreignReadings returns the meanings of an input as an ID of another maker, also behind
// a prefix.
func foreignReadings(input string) (found []reading) {
	if m := prefixed.FindStringSubmatch(input); m != nil {
		found = foreignReadings(m[2])
		for i := range found {
			found[i].prefix = m[1]
		}
		return found
	}
	if n, ok := parseDecimal(input); ok && 0 < n && n < smallest {
		found = append(found, reading{title: "small number, as of a serial column"})
	}
	if u, ok := parseUUID(input); ok && u.Variant() != uuid.RFC4122 {
		if _, err := idtype.SnoFromUUID(u); err != nil {
			found = append(found, reading{title: uuidTitle(u)})
		}
	}
	if xid.MatchString(input) && !onlyDigits.MatchString(input) {
		if b, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(input)); err == nil {
			found = append(found, reading{title: "xid", time: seconds(b, 0)})
		}
	}
	if ulid.MatchString(input) {
		u := ulidUUID(input)
		found = append(found, reading{title: "ULID", time: time.UnixMilli(int64(binary.BigEndian.Uint64(u[:]) >> 16)).UTC()})
	}
	if objectID.MatchString(input) {
		b, _ := hex.DecodeString(input)
		found = append(found, reading{title: "ObjectId", time: seconds(b, 0)})
	}
	if ksuid.MatchString(input) {
		// KSUIDs sort upper case before lower case, and math/big the reverse.
		n, _ := new(big.Int).SetString(strings.Map(swapCase, input), 62)
		if n.BitLen() <= 160 {
			found = append(found, reading{title: "KSUID", time: seconds(n.FillBytes(make([]byte, 20)), 1_400_000_000)})
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

// badInputs collects the inputs that have no reading.
type badInputs struct {
	first []string
	count int
}

func (b *badInputs) add(input string) {
	const named = 5
	if b.count++; b.count <= named {
		b.first = append(b.first, fmt.Sprintf("%.60q", input))
	}
}

// error returns an error that names the first inputs, or nil if there are none.
// typeName and form are their expected type and form, or empty.
func (b *badInputs) error(typeName, form string) error {
	if b.count == 0 {
		return nil
	}
	list := strings.Join(b.first, ", ")
	if more := b.count - len(b.first); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	err := notID(list, typeName, form)
	if typeName+form == "" {
		err = fmt.Errorf("%w; or an ID of another maker: %s", err, foreignForms)
	}
	return err
}

// notID returns an error about a list of inputs. typeName and form are empty unless the
// user restricted them.
func notID(list, typeName, form string) error {
	what := "an ID"
	if typeName != "" {
		what += " of type " + typeName
	}
	if form != "" {
		what += " in the form " + form
	}
	return fmt.Errorf("not %s: %s; want %s", what, list, strings.ReplaceAll(idForms, "\n", " "))
}
