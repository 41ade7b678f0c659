package ids

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// testNow is the time of the tests.
var testNow = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// dated are layouts with an epoch for each format.
var dated = Layouts{
	Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)},
	SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)},
}

// readingTests are inputs of every kind, with their types and times, the most plausible first.
var readingTests = []struct{ input, want string }{
	{"1152921504606846976", "Snowflake of Discord (--epoch 1420070400000) 2023-09-17, Snowflake of Twitter (--epoch 1288834974657) 2019-07-21, Spread64 1970-01-01, Snowflake 2029-09-17 implausible"}, // above the largest UID60
	{"72234076334582745", "UID60 2026-11-23, Snowflake 2021-07-19"},
	{"288230376151711744", "Snowflake 2023-03-07, Snowflake of Discord (--epoch 1420070400000) 2017-03-06, Snowflake of Twitter (--epoch 1288834974657) 2013-01-07, Spread64 1970-01-01, UID60 2053-01-01 implausible"},
	{"-213288349631250231", "Spread64 2026-11-23"},
	{"-213288349631249408", ""}, // reserved bits
	{"fd0a3f60458000c9", "Spread64 2026-11-23"},
	{"FD0A3F60458000C9", "Spread64 2026-11-23"}, // bytes, not text
	{"9223372036854775808", ""},
	{"-0", ""},
	{"007", ""},
	{"0", "zero implausible"},
	{"0x0000000000000000", "zero implausible"},
	{"AAAA", "zero implausible"},
	{"32323232-3232-3232-3232-323232323232", "zero implausible"},
	{"2222222222222222", "SnowflakeSI, Snowflake 2021-01-07, UID60 2018-06-07, zero implausible"}, // no hex digits
	{"0x00", ""},
	{"0X00", ""},
	{"0x0ad27290", ""},
	{"0x0ad2729g", "UID60 2132-04-19 implausible"},
	{"+7", ""},
	{"abc", ""},
	{"abcd", "UID60 2018-03-01"},
	{"39706462-7267-3232-3233-706661323232", "Sno 2026-11-01"},
	{"39706462726732323233706661323232", "Sno 2026-11-01"},
	{`\x3dd69cb800006ed40000`, "Sno 2026-11-01"},
	{"0x3dd69cb800006ed4", "Snowflake 2054-09-01 implausible"},
	{"usr_9pdbrg2223pfa222", "Sno 2026-11-01"},
	{"usr_fd0a3f60458000c9", "Spread64 2026-11-23"},
	{"Usr_9pdbrg2223pfa222", ""},
	{"usr__9pdbrg2223pfa222", ""},
	{"usr_AHAA", "UID60 2018-03-09"}, // not behind a prefix
	{"c232ab00-9414-11ec-b3c8-9f6bdeced846", "UUIDv1 2022-02-22"},
	{"1ec9414c-232a-6b00-b3c8-9f6bdeced846", "UUIDv6 2022-02-22"},
	{"0190163d-8694-739b-aea5-966c26f8ad91", "UUIDv7 2024-06-14"},
	{"0190163d8694739baea5966c26f8ad91", "UUIDv7 2024-06-14"},
	{"17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8", "UUIDv4"},
	{"00000000-0000-0000-0000-000000000000", "nil UUID"},
	{"00000000-0000-0000-c000-000000000046", "UUID of an unknown variant"},
	{"0190163d-8694-739b-aea5-966c26f8ad9", ""},
	{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "ULID 2016-07-30"},
	{"01arz3ndektsv4rrffq69g5fav", "ULID 2016-07-30"},
	{"81ARZ3NDEKTSV4RRFFQ69G5FAV", ""}, // more than 128 bits
	{"01ARZ3NDEKTSV4RRFFQ69G5FAU", ""},
	{"0ujtsYcgvSTl8PAuAdqWYSMnLOv", ""}, // a KSUID
	{"9m4e2mr0ui3e8a215n4g", ""},        // an xid
	{"175928847299117063", "Snowflake 2022-05-01, Snowflake of Discord (--epoch 1420070400000) 2016-04-30, Snowflake of Twitter (--epoch 1288834974657) 2012-03-03, Spread64 1987-11-17, UID60 2039-06-06 implausible"},
	{"ord_175928847299117063", "Snowflake 2022-05-01, Snowflake of Discord (--epoch 1420070400000) 2016-04-30, Snowflake of Twitter (--epoch 1288834974657) 2012-03-03"},
	{"42", "small number, as of a serial column, SnowflakeSI implausible, Snowflake 2021-01-01 implausible, UID60 2018-03-01 implausible, Spread64 1970-01-01 implausible"},
	{"4294967296", "SnowflakeSI, Snowflake 2021-01-01, UID60 2018-03-01, Spread64 1970-01-25, UID60 2152-12-08 implausible"},
	{"18446744073709551615", ""}, // a decimal, not hex digits
	{"user_01h455vb4pex5vsknk084sn02q", "UUIDv7 2023-06-30"},
	{"my_user_01h455vb4pex5vsknk084sn02q", "UUIDv7 2023-06-30"},
	{"01h455vb4pex5vsknk084sn02q", "UUIDv7 2023-06-30, ULID 2023-06-30"},
	{"01H455VB4PEX5VSKNK084SN02Q", "ULID 2023-06-30"},
	{"user_0qyyq2tave8qdtgk31xamy5p6r", "UUIDv4"},
	{"0qyyq2tave8qdtgk31xamy5p6r", "ULID 2805-01-29 implausible"},
	{"user_00000000000000000000000000", "ULID 1970-01-01"},
	{"user_01ARZ3NDEKTSV4RRFFQ69G5FAV", "ULID 2016-07-30"},
	{"507f1f77bcf86cd799439011", ""}, // an ObjectId
	{"urn:uuid:0190163d-8694-739b-aea5-966c26f8ad91", "UUIDv7 2024-06-14"},
	{"{39706462-7267-3232-3233-706661323232}", "Sno 2026-11-01"},
	{"(39706462-7267-3232-3233-706661323232)", ""},
	{"39706462-7267-3232-3233-706661323232}", ""},
}

// TestReadings checks the types of an input, the most plausible first, and their times.
func TestReadings(t *testing.T) {
	formats := Formats(Layouts{})
	for _, tt := range readingTests {
		var got []string
		for _, r := range Find(tt.input, "", formats, true, testNow) {
			s := r.Title
			if !r.Time.IsZero() {
				s += r.Time.Format(" 2006-01-02")
			}
			if !r.Plausible(testNow) {
				s += " implausible"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: got %s; want %s", tt.input, s, tt.want)
		}
	}
}

// TestRoundTrip converts IDs of every type and layout to every form, and inspects each
// form.
func TestRoundTrip(t *testing.T) {
	count := 2000
	if testing.Short() {
		count = 200
	}
	for _, l := range []Layouts{
		dated,
		{Snowflake: idtype.SnowflakeLayout{Epoch: time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC), DatacenterBits: 3, WorkerBits: 9, SequenceBits: 11}},
		{SnowflakeSI: idtype.SnowflakeSILayout{BaseClock: time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC), MachineBits: 13}},
	} {
		for _, f := range Formats(l) {
			for range count {
				want := Parts{Node: rand.IntN(f.NodeLimit()), Sequence: rand.IntN(f.Sequences)}
				if !f.Undated {
					want.Time = time.UnixMilli(1_800_000_000_000 + rand.Int64N(100_000_000_000)*4).UTC()
				}
				want.Random = rand.Int64N(1 << f.RandomBits)
				switch f.Name {
				case "uuid7":
					want.Version = 7
				case "sno":
					want.Meta, want.TickTock = byte(rand.Uint32()), rand.IntN(2) == 0
				}
				composed := want
				if f.Undated {
					composed.Time = time.Unix(1_000_000_000, 0)
				}
				id, err := f.Compose(composed)
				if err != nil {
					t.Fatal(err)
				}
				all := AllForms(id, "")
				if n := len(all); n != 4 && (n != 5 || f.Name != "uuid7") { // an ID has an int64 or a uuid, and a UUID a typeid
					t.Fatalf("%s %s: got forms %v, want 4", f.Name, id, all)
				}
				if f.Name == "uid60" || f.Name == "sno" || f.Name == "spread64" {
					all["typed key"] = "ord_" + id.String()
				}
				if f.Name == "uid60" && len(id.String()) != 10 {
					t.Fatalf("UID60 %s: want 10 characters", id)
				}
				for name, form := range all {
					from := name
					if name == "typed key" {
						from = "text"
					}
					found := Own(form, from, []*Format{f})
					if len(found) != 1 || found[0].ID != id || found[0].Parts != want {
						t.Fatalf("%s: got %+v; want %s with %+v", form, found, id, want)
					}
					for to, result := range AllForms(id, "") {
						if got, err := Convert(form, from, to, f.Name, "", []*Format{f}); err != nil || got != result {
							t.Fatalf("%s from %s to %s: got %s, error %v; want %s", f.Name, name, to, got, err, result)
						}
					}
				}
			}
		}
	}
}

// TestNodeNumbers checks that each pool of nodelease has a number per node, and that
// parts survive Compose and Parts.
func TestNodeNumbers(t *testing.T) {
	sizes := map[string]int{
		"snowflake":    nodelease.ForSnowflake(idtype.SnowflakeLayout{}).Size,
		"snowflake-si": nodelease.ForSnowflakeSI(idtype.SnowflakeSILayout{BaseClock: testNow}).Size,
		"uid60":        1,
		"spread64":     nodelease.ForSpread64(0).Size * 16,
		"sno":          nodelease.ForSno().Size,
		"uuid7":        1,
	}
	for i, f := range Formats(dated) {
		if f.Name != Names()[i] {
			t.Errorf("format %d: got %s, want %s", i, f.Name, Names()[i])
		}
		if f.NodeLimit() != sizes[f.Name] {
			t.Errorf("%s: got %d node numbers, want %d", f.Name, f.NodeLimit(), sizes[f.Name])
		}
		want := Parts{Time: testNow, Node: f.NodeLimit() * 2 / 3, Sequence: f.Sequences - 1}
		id, err := f.Compose(want)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name == "uuid7" {
			want.Version = 7
		}
		if got, err := f.Parts(id); err != nil || got != want {
			t.Errorf("%s: got %+v, error %v; want %+v", f.Name, got, err, want)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, tt := range readingTests {
		f.Add(tt.input)
	}
	f.Add("zzzzzzzzzzzzzzzzzzzzzzzzzzz")
	f.Add("7ſſſſſſſſſſſſ0")
	f.Add("0x")
	f.Add("a_0x000000A0")
	formats := Formats(dated)
	f.Fuzz(func(t *testing.T, input string) {
		for _, r := range Find(input, "", formats, true, testNow) {
			if r.Format == nil {
				continue
			}
			for form, value := range AllForms(r.ID, "") {
				from := ""
				if form == "text" && hexForm.MatchString(value) {
					from = form // otherwise the text of a UID60 is taken for hex digits
				}
				found := Find(value, from, []*Format{r.Format}, false, testNow)
				if len(found) == 0 || (len(found) == 1 && found[0].ID != r.ID) {
					t.Errorf("%q is %s %s, but not its %s %s", input, r.Title, r.ID, form, value)
				}
			}
			if _, err := Convert(input, "", "hex", r.Format.Name, "", []*Format{r.Format}); err != nil && !strings.Contains(err.Error(), "; pass --") && !strings.Contains(err.Error(), "zero") {
				t.Error(err)
			}
		}
	})
}
