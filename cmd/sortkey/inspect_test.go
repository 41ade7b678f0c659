package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
)

// executeAt is like execute, with the clock at testNow in a time zone.
func executeAt(t testing.TB, zone *time.Location, in string, args ...string) (out string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	c := newApp(strings.NewReader(in), &o, &e)
	c.Now = func() time.Time { return testNow.In(zone) }
	root := c.rootCommand()
	root.SetArgs(args)
	root.SetErr(&e)
	err = root.ExecuteContext(context.Background())
	if e.Len() > 0 {
		t.Errorf("sortkey %s prints errors itself: %s", strings.Join(args, " "), &e)
	}
	return o.String(), err
}

// kinds are inputs of every kind.
var kinds = []string{
	"779948984983728128",     // Snowflake
	"754321098765432",        // SnowflakeSI, or another type
	"9007199254740991999",    // implausible
	"vZEAoIJ8me",             // UID60
	"ord_vZEAoIJ8me",         // typed key
	"fd0a3f60458000c9",       // Spread64
	"-213288349631250231",    // the same
	"9pdbrg2223pfa222",       // Sno
	"2345678923456789",       // decimal, Sno or Spread64
	"0x0ad2ef7830e1b000",     // binary form
	`\x3dd69cb800006ed40000`, // binary form of a Sno
	"0", "1", "42", "1234567890",
	"39706462-7267-3232-3233-706661323232",
	"0190163d-8694-739b-aea5-966c26f8ad91",
	"0190163d8694739baea5966c26f8ad91",
	"c232ab00-9414-11ec-b3c8-9f6bdeced846",
	"1ec9414c-232a-6b00-b3c8-9f6bdeced846",
	"00000000-0000-0000-0000-000000000000",
	"ffffffff-ffff-ffff-ffff-ffffffffffff",
	"00000000-0000-0000-c000-000000000046",
	"17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8",
	"01ARZ3NDEKTSV4RRFFQ69G5FAV",
}

func TestInspect(t *testing.T) {
	const snowflake = `id         779948984983728128
type       Snowflake
time       2026-11-23 05:58:48.771 UTC (6 hours ago)
local time 2026-11-23 06:58:48.771 +01:00
node       539 (datacenter 16, worker 27)
sequence   0
int64      779948984983728128
hex        0x0ad2ef7830e1b000
bytea      \x0ad2ef7830e1b000
or         UID60, implausible: of 2112-06-11
`
	sno := strings.TrimPrefix(`
id         9pdbrg2223pfa222
type       Sno
time       2026-11-01 00:00:00.000 UTC (3 weeks ago)
local time 2026-11-01 01:00:00.000 +01:00
node       28372 (partition)
sequence   0
metabyte   0
tick-tock  false
text       9pdbrg2223pfa222
uuid       39706462-7267-3232-3233-706661323232
hex        0x3dd69cb800006ed40000
bytea      \x3dd69cb800006ed40000
`, "\n")
	for _, tt := range []struct{ args, want string }{
		{"779948984983728128", snowflake},
		{"0x0ad2ef7830e1b000", strings.Replace(snowflake, "779948984983728128", "0x0ad2ef7830e1b000", 1)},
		{"9pdbrg2223pfa222", sno},
		{"39706462-7267-3232-3233-706661323232", strings.Replace(sno, "9pdbrg2223pfa222", "39706462-7267-3232-3233-706661323232", 1)},
		{"754321098765432", `id         754321098765432
type       SnowflakeSI
time       unknown: pass the base clock as --epoch
node       20 (machine)
sequence   120
int64      754321098765432
hex        0x0002ae0d11237478
bytea      \x0002ae0d11237478

or         Snowflake
time       2021-01-03 01:57:24.164 UTC (5 years ago)
local time 2021-01-03 02:57:24.164 +01:00
node       567 (datacenter 17, worker 23)
sequence   1144
int64      754321098765432
hex        0x0002ae0d11237478
bytea      \x0002ae0d11237478

or         UID60
time       2018-04-03 07:18:26.632 UTC (8 years ago)
local time 2018-04-03 08:18:26.632 +01:00
sequence   442
random     120
text       R4Crg0RI3
int64      754321098765432
hex        0x0002ae0d11237478
bytea      \x0002ae0d11237478
`},
		{"--type snowflake-si --epoch 2024-01-01 --bits 4/9 754321098765432", `id         754321098765432
type       SnowflakeSI, implausible: of 2026-12-01
time       2026-12-01 17:50:12.251 UTC (1 week from now)
local time 2026-12-01 18:50:12.251 +01:00
node       10 (machine)
sequence   120
int64      754321098765432
hex        0x0002ae0d11237478
bytea      \x0002ae0d11237478
`},
		{"ord_779948984983728128 0190163d-8694-739b-aea5-966c26f8ad91", `id         ord_779948984983728128
type       Snowflake
prefix     ord
time       2026-11-23 05:58:48.771 UTC (6 hours ago)
local time 2026-11-23 06:58:48.771 +01:00
node       539 (datacenter 16, worker 27)
sequence   0
int64      779948984983728128
hex        0x0ad2ef7830e1b000
bytea      \x0ad2ef7830e1b000

id         0190163d-8694-739b-aea5-966c26f8ad91
type       UUIDv7
time       2024-06-14 10:14:09.300 UTC (2 years ago)
local time 2024-06-14 11:14:09.300 +01:00
uuid       0190163d-8694-739b-aea5-966c26f8ad91
typeid     01j0b3v1mmeedtx9cpdgkfhbch
hex        0x0190163d8694739baea5966c26f8ad91
bytea      \x0190163d8694739baea5966c26f8ad91
`},
		{"order_line_01h455vb4pex5vsknk084sn02q", `id         order_line_01h455vb4pex5vsknk084sn02q
type       UUIDv7
prefix     order_line
time       2023-06-30 03:34:18.518 UTC (3 years ago)
local time 2023-06-30 04:34:18.518 +01:00
uuid       01890a5d-ac96-774b-bcce-b302099a8057
typeid     order_line_01h455vb4pex5vsknk084sn02q
hex        0x01890a5dac96774bbcceb302099a8057
bytea      \x01890a5dac96774bbcceb302099a8057
`},
		{"17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8", `id         17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8
type       UUIDv4
uuid       17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8
typeid     0qyyq2tave8qdtgk31xamy5p6r
hex        0x17f7ae2d2b6e45dba84c61eaa9e2d8d8
bytea      \x17f7ae2d2b6e45dba84c61eaa9e2d8d8
`},
	} {
		out, err := executeAt(t, time.FixedZone("", 3600), "", append([]string{"inspect"}, strings.Fields(tt.args)...)...)
		if err != nil || out != tt.want {
			t.Errorf("inspect %s: error %v, got\n%swant\n%s", tt.args, err, out, tt.want)
		}
	}
}

func TestInspectJSON(t *testing.T) {
	out, err := executeAt(t, time.UTC, "9pdbrg2223pfa222\n\n 779948984983728128 \n17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8\n", "inspect", "-o", "json")
	want := `{"input":"9pdbrg2223pfa222","candidates":[{"type":"sno","plausible":true,"time":"2026-11-01T00:00:00Z","node":28372,"node_fields":{"partition":28372},"sequence":0,"metabyte":0,"tick_tock":false,"forms":{"bytea":"\\x3dd69cb800006ed40000","hex":"0x3dd69cb800006ed40000","text":"9pdbrg2223pfa222","uuid":"39706462-7267-3232-3233-706661323232"}}]}
{"input":"779948984983728128","candidates":[{"type":"snowflake","plausible":true,"time":"2026-11-23T05:58:48.771Z","node":539,"node_fields":{"datacenter":16,"worker":27},"sequence":0,"forms":{"bytea":"\\x0ad2ef7830e1b000","hex":"0x0ad2ef7830e1b000","int64":"779948984983728128","text":"779948984983728128"}},{"type":"uid60","plausible":false,"time":"2112-06-11T23:41:00.344Z","sequence":216,"random":0,"forms":{"bytea":"\\x0ad2ef7830e1b000","hex":"0x0ad2ef7830e1b000","int64":"779948984983728128","text":"AArS73gw4b"}}]}
{"input":"17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8","candidates":[{"type":"uuid4","plausible":true,"forms":{"bytea":"\\x17f7ae2d2b6e45dba84c61eaa9e2d8d8","hex":"0x17f7ae2d2b6e45dba84c61eaa9e2d8d8","text":"17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8","typeid":"0qyyq2tave8qdtgk31xamy5p6r","uuid":"17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8"}}]}
`
	if err != nil || out != want {
		t.Errorf("error %v, got\n%swant\n%s", err, out, want)
	}
	out, err = executeAt(t, time.UTC, "", "inspect", "-o", "json", "ffffffff-ffff-7fff-bfff-ffffffffffff")
	if err != nil || !strings.Contains(out, `"time":"10889-08-02T05:31:50.655Z"`) {
		t.Errorf("the largest time: error %v, got %s", err, out)
	}
}

// TestInspectWidth checks that the screen has room for every line.
func TestInspectWidth(t *testing.T) {
	for _, input := range kinds {
		out, err := executeAt(t, time.FixedZone("", -12600), input, "inspect")
		if err != nil {
			t.Errorf("%s: %v", input, err)
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: a line of %d columns: %s", input, n, line)
			}
		}
	}
}

func TestInspectBadInput(t *testing.T) {
	out, errs, code := execute(t, "", "inspect", "9pdbrg2223pfa222", "no!", "AHAA", "", "é")
	if code != exitError || strings.Count(out, "\nid ")+1 != 2 ||
		!strings.Contains(errs, `not an ID: "no!", "", "é"; want a decimal bigint, a UUID (also urn:uuid:... and {...}), a TypeID, the text of a sno`) {
		t.Errorf("code %d, errors %q, output\n%s", code, errs, out)
	}
	if !strings.Contains(errs, "; or a ULID\n") {
		t.Errorf("errors %q; want all recognized forms", errs)
	}
	_, errs, code = execute(t, strings.Repeat("?\n", 1000), "inspect")
	if code != exitError || !strings.Contains(errs, `"?", "?" and 995 more; want`) {
		t.Errorf("code %d, errors %q", code, errs)
	}
	out, errs, code = execute(t, "", "inspect", "--type", "sno", "779948984983728128")
	if code != exitError || out != "" || !strings.Contains(errs, `not an ID of type sno: "779948984983728128"`) {
		t.Errorf("code %d, errors %q, output\n%s", code, errs, out)
	}
}

func TestConvert(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--form hex 779948984983728128", "0x0ad2ef7830e1b000\n"},
		{"--form bytea 779948984983728128 9pdbrg2223pfa222", "\\x0ad2ef7830e1b000\n\\x3dd69cb800006ed40000\n"},
		{"--form uuid 9pdbrg2223pfa222", "39706462-7267-3232-3233-706661323232\n"},
		{"--form text 39706462-7267-3232-3233-706661323232", "9pdbrg2223pfa222\n"},
		{"--form int64 usr_vZEAoIJ8me", "72234076334582745\n"},
		{"--form text --type uid60 72234076334582745", "vZEAoIJ8me\n"},
		{"--form int64 --type spread64 --from text 5227869755540023", "5919848219731558435\n"},
		{"--form text --type spread64 --from int64 5227869755540023", "001292b847b60237\n"},
		{"--form int64 -- -213288349631250231", "-213288349631250231\n"},
		{"--form hex --from hex 16446744073709551615", "0x16446744073709551615\n"},
		{"--form int64 --from hex --type spread64 5227869755540023", "5919848219731558435\n"},
		{"--form uuid 2345678923456789", "32333435-3637-3839-3233-343536373839\n"}, // only a Sno has one
		{"--form int64 --type uid60 --from text 0x0ad27290", "944198390361050417\n"},
		{"--form hex --type uid60 deadbeef12", "0x069d6de79fd7675e\n"},
		{"--form hex --from text deadbeef12", "0x069d6de79fd7675e\n"},
		{"--form hex dEadbeef12", "0x069d6de79fd76744\n"},
		{"--form uuid user_01h455vb4pex5vsknk084sn02q", "01890a5d-ac96-774b-bcce-b302099a8057\n"},
		{"--form typeid --prefix my_user 01890A5D-AC96-774B-BCCE-B302099A8057", "my_user_01h455vb4pex5vsknk084sn02q\n"},
		{"--form typeid {01890a5d-ac96-774b-bcce-b302099a8057} user_01h455vb4pex5vsknk084sn02q", "01h455vb4pex5vsknk084sn02q\nuser_01h455vb4pex5vsknk084sn02q\n"},
		{"--form typeid --prefix b a_01h455vb4pex5vsknk084sn02q", "b_01h455vb4pex5vsknk084sn02q\n"},
		{"--form uuid --type uuid7 0qyyq2tave8qdtgk31xamy5p6r", "17f7ae2d-2b6e-45db-a84c-61eaa9e2d8d8\n"},
		{"--form bytea 0x01890a5dac96774bbcceb302099a8057", "\\x01890a5dac96774bbcceb302099a8057\n"},
		{"--form hex -o json AHAA", `{"hex":"0x0000000000000007","input":"AHAA"}` + "\n"},
	} {
		out, errs, code := execute(t, "", append([]string{"inspect"}, strings.Fields(tt.args)...)...)
		if code != exitOK || errs != "" || out != tt.want {
			t.Errorf("convert %s: code %d, errors %q, got %q, want %q", tt.args, code, errs, out, tt.want)
		}
	}
	for _, tt := range []struct{ in, args, out, want string }{
		{"AHAA\n\n72234076334582745\nAHAA\n", "--form text", "AHAA\n", `line 3: convert "72234076334582745" to text: the result is 72234076334582745 if it is the int64 of a snowflake, or vZEAoIJ8me if it is the int64 of a uid60; pass --type
`},
		{"", "--form int64 --type spread64 5227869755540023", "", "the result is 5227869755540023 if it is the int64 of a spread64, or 5919848219731558435 if it is the text of a spread64; pass --from\n"},
		{"", "--form hex --type uid60 4096", "", `the result is 0x0000000000001000 if it is the int64 of a uid60, or 0x0000000000f7ae34 if it is the text of a uid60; pass --from` + "\n"},
		{"", "--form hex 18446744073709551615", "", `not an ID: "18446744073709551615"; want a decimal bigint`},
		{"", "--form hex 01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "got a ULID"},
		{"", "--form typeid 779948984983728128", "", `convert "779948984983728128" to typeid: an ID of type snowflake or uid60 has no such form`},
		{"", "--form typeid --prefix Ord 0190163d-8694-739b-aea5-966c26f8ad91", "", `--prefix "Ord": want up to 63 lower-case letters`},
		{"", "--form uuid ord_81h455vb4pex5vsknk084sn02q", "", `not an ID: "ord_81h455vb4pex5vsknk084sn02q"`}, // 129 bits
		{"", "--form hex 00000000-0000-0000-c000-000000000046", "", "got a UUID of an unknown variant"},
		{"", "--form hex --type uuid7 00000000-0000-0000-0000-000000000000", "", "got a nil UUID"},
		{"", "--form text 1234567890", "", "; pass --type, --from or both\n"},
		{"", "--form uuid 4096", "", "an ID of type snowflake or snowflake-si or uid60 has no such form"},
		{"", "--form int64 0x0ad27290", "", `not an ID: "0x0ad27290"`},
		{"", "--form int64 --type uid60 0x0ad27290", "", `not an ID of type uid60: "0x0ad27290"`},
		{"", "--form hex deadbeef12", "", `convert "deadbeef12": want --type or --from, since this can be the text of a uid60, or the rest of 16 or 20 hex digits`},
		{"", "--form hex DEAD", "", `want --type or --from`},
		{"", "--form hex 0", "", `convert "0": zero, which is not an ID`},
		{"", "--form uuid --type sno 2222222222222222", "", `zero, which is not an ID`},
		{"", "--form text --from bytea \\x0000000000000000", "", `zero, which is not an ID`},
		{"", "--form int64 --from hexadecimal 7", "", `--from "hexadecimal": want text, int64`},
		{"", "--form hex --from text --type snowflake 0x0ad2ef7830e1b000", "", `not an ID of type snowflake in the form text: "0x0ad2ef7830e1b000"`},
		{"", "--form int64 9pdbrg2223pfa222", "", `convert "9pdbrg2223pfa222" to int64: an ID of type sno has no such form`},
		{"", "--form int64 0190163d-8694-739b-aea5-966c26f8ad91", "", "to int64: an ID of type uuid7 has no such form"},
		{"", "--form uuid --type uid60 9pdbrg2223pfa222", "", `not an ID of type uid60: "9pdbrg2223pfa222"`},
		{"", "--form hex -213288349631250231", "", "unknown shorthand flag: '2' in -213288349631250231; put -- before negative numbers"},
		{"", "--form decimal 7", "", `--form "decimal": want text, int64, uuid, typeid, hex, bytea`},
		{"", "--prefix a 7", "", "--prefix needs --form typeid"},
		{"", "--from hex 7", "", `not an ID in the form hex: "7"`},
	} {
		out, errs, code := execute(t, tt.in, append([]string{"inspect"}, strings.Fields(tt.args)...)...)
		if code != exitError || out != tt.out || !strings.Contains(errs, tt.want) {
			t.Errorf("convert %s: code %d, output %q, errors %q; want %q", tt.args, code, out, errs, tt.want)
		}
	}
}

// TestPipe generates, converts and inspects IDs of each type through text.
func TestPipe(t *testing.T) {
	count := 3000
	if testing.Short() {
		count = 300
	}
	for _, name := range ids.Names() {
		layout := []string{}
		if name == "snowflake-si" {
			layout = []string{"--epoch", "2026-01-01"}
		}
		ids, errs, code := execute(t, "", append([]string{"new", name, "-n", fmt.Sprint(count)}, layout...)...)
		if code != exitOK || strings.Count(ids, "\n") != count {
			t.Fatalf("new %s: code %d, errors %s, %d lines", name, code, errs, strings.Count(ids, "\n"))
		}
		for _, form := range []string{"hex", "bytea"} {
			converted, errs, code := execute(t, ids, "inspect", "--form", form, "--type", name, "--from", "text")
			if code != exitOK {
				t.Fatalf("convert %s: code %d, errors %s", name, code, errs)
			}
			back, errs, code := execute(t, converted, "inspect", "--form", "text", "--type", name)
			if code != exitOK || back != ids {
				t.Errorf("%s through %s: code %d, errors %s; the IDs differ", name, form, code, errs)
			}
			out, errs, code := execute(t, converted, append([]string{"inspect", "-o", "json"}, layout...)...)
			if code != exitOK || strings.Count(out, fmt.Sprintf(`"candidates":[{"type":%q,`, name)) < count*29/30 {
				t.Errorf("inspect %s as %s: code %d, errors %s; want %s as the most plausible type, got %.1000s", name, form, code, errs, name, out)
			}
		}
	}
}

// TestStreams checks that a result appears before the next line of input, and that an
// interrupt ends the wait for input.
func TestStreams(t *testing.T) {
	for _, command := range [][]string{{"inspect"}, {"inspect", "--form", "hex"}} {
		in, lines, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		results, out := io.Pipe()
		var errs bytes.Buffer
		ctx, interrupt := context.WithCancel(t.Context())
		code := make(chan int)
		go func() { code <- run(ctx, command, in, out, &errs) }()
		deadline := time.AfterFunc(time.Minute, func() { out.CloseWithError(errors.New("no result within a minute")) })
		fmt.Fprintln(lines, "779948984983728128")
		if n, err := results.Read(make([]byte, 1000)); n == 0 || err != nil {
			t.Errorf("%s: got %d bytes, error %v", command, n, err)
		}
		deadline.Stop()
		interrupt()
		if got := <-code; got != exitInterrupted || errs.String() != "sortkey: interrupted\n" {
			t.Errorf("%s: got code %d, errors %q", command, got, &errs)
		}
		lines.Close()
		in.Close()
	}
}

// TestLines checks inputs that only lines have.
func TestLines(t *testing.T) {
	long := strings.Repeat("7", 200_000)
	for _, tt := range []struct {
		in, want string
		results  int
	}{
		{"\ufeff779948984983728128\r\n9pdbrg2223pfa222", "", 2},
		{long + "\n779948984983728128\n", `not an ID: "` + strings.Repeat("7", 60) + `"; want`, 1},
		{"779948984983728128\n" + long, `not an ID: "777`, 1},
		{"x\n\ufeff779948984983728128\n", `not an ID: "x", "\ufeff779948984983728128"; want`, 0},
		{strings.Repeat(" ", 1<<16) + "779948984983728128\n779948984983728128", `not an ID: "`, 1},
	} {
		out, errs, code := execute(t, tt.in, "inspect", "-o", "json")
		if strings.Count(out, "\n") != tt.results || !strings.Contains(errs, tt.want) || (code == exitOK) != (tt.want == "") {
			t.Errorf("%.60q: code %d, errors %q, output %s; want %d results and %q", tt.in, code, errs, out, tt.results, tt.want)
		}
	}
	_, errs, code := execute(t, "779948984983728128\n"+long, "inspect", "--form", "hex")
	if code != exitError || !strings.Contains(errs, `line 2: not an ID: "7777`) || len(errs) > 500 {
		t.Errorf("code %d, errors %q", code, errs)
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

func TestInputError(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"inspect"}, brokenReader{errors.New("disk on fire")}, &out, &errs)
	if code != exitError || !strings.Contains(errs.String(), "standard input, after line 0: disk on fire") {
		t.Errorf("code %d, errors %q", code, &errs)
	}
}
