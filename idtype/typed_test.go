package idtype

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/internal/typename"
)

// Models of the typed keys.
type (
	order       struct{ _ [512]int64 }
	customer    struct{}
	page        struct{ customer }
	badModel    struct{}
	shortModel  struct{ _ []int }
	inheriting  struct{ *page }
	list[M any] struct{}
)

func (order) IDPrefix() string      { return "ord" }
func (*customer) IDPrefix() string  { return "c1" }
func (*customer) IDMeta() byte      { return 'c' }
func (page) IDPrefix() string       { return "" }
func (badModel) IDPrefix() string   { return "Bad_" }
func (shortModel) IDPrefix() string { return "o" }

type plain struct{}

// derived derives the format of a typed key, without its badText and badJSON, from its base
// type's. The functions untyped and typed convert the keys.
func derived(base format, name, prefix string, untyped, typed func(anyID) anyID) format {
	v := base
	v.name, v.file, v.prefix, v.badText, v.badJSON = name, base.name, prefix, nil, nil
	v.parts = func(t *testing.T, v vector, id anyID) { base.parts(t, unprefixed(v, prefix), untyped(id)) }
	v.random = func(r *rand.Rand) anyID { return typed(base.random(r)) }
	v.orderKey = func(id anyID) []byte { return base.orderKey(untyped(id)) }
	v.noIDs = nil
	for _, id := range base.noIDs {
		v.noIDs = append(v.noIDs, typed(id))
	}
	return v
}

// typedInteger derives the format of a typed key from its base type's.
func typedInteger[K any, T interface {
	Integer
	value[T]
}](f format) format {
	type V = Typed[*K, T]
	v := derived(f, typedName[*K](f.name), traitsOf[*K]().prefix,
		func(id anyID) anyID { return id.(V).Untyped() }, func(id anyID) anyID { return V(id.(T)) })
	return formatOf(prefixedInteger(f, v), Parse[V, *V])
}

// prefixedInteger adds texts to the format of a key, which is derived from f.
func prefixedInteger(f, v format) format {
	prefix := v.prefix
	v.badText, v.badJSON = withPrefix(f.badText, f.badJSON, prefix)
	if prefix == "" {
		return v
	}
	padded := func(text string) string { return text }
	if f.name == "UID60" {
		padded = func(text string) string {
			return string(Must(Must(ParseUID60(text)).appendDigits(nil, uid60MaxDigits)))
		}
		v.badText = append(v.badText, bad{prefix + "AABA", ErrSyntax, -1}, bad{prefix + "xinaS8QBh", ErrSyntax, -1})
	}
	v.goodScan, v.goodJSON = nil, map[string]string{}
	for _, g := range f.goodScan {
		v.goodScan = append(v.goodScan, goodSource{g.src, padded(g.text)})
	}
	for in, text := range f.goodJSON {
		v.badJSON = append(v.badJSON, bad{`"` + text + `"`, ErrSyntax, -1})
		if strings.HasPrefix(in, `"`) {
			v.badJSON = append(v.badJSON, bad{in, ErrSyntax, -1})
		} else {
			v.goodJSON[in] = padded(text)
		}
	}
	return v
}

// typedSno derives the format of a typed key from Sno's.
func typedSno[K any]() format {
	type V = SnoOf[K]
	untyped := func(id anyID) anyID { return id.(V).Untyped() }
	v := derived(snoFormat, typedName[*K](snoFormat.name), traitsOf[*K]().prefix, untyped, func(id anyID) anyID { return V(id.(Sno)) })
	parts := v.parts
	v.parts = func(t *testing.T, v vector, boxed anyID) {
		parts(t, v, boxed)
		id := boxed.(V)
		if got, want := [...]any{id.UUID(), id.Time()}, [...]any{id.Untyped().UUID(), id.Untyped().Time()}; got != want {
			t.Errorf("parts %v, want %v", got, want)
		}
	}
	return formatOf(taggedSno(v, traitsOf[*K](), func(id Sno) anyID { return V(id) }), Parse[V, *V])
}

// taggedSno adds texts to the format of a key, which is derived from Sno's.
func taggedSno(v format, m *traits, typed func(Sno) anyID) format {
	f := snoFormat
	v.random = func(r *rand.Rand) anyID {
		id := f.random(r).(Sno)
		if m.hasMeta {
			id = id.WithMeta(m.meta)
		}
		return typed(id)
	}
	v.badText, v.badJSON = withPrefix(f.badText, f.badJSON, m.prefix)
	if m.hasMeta {
		// Other metabytes are rejected; the zero ID isn't.
		v.meta, v.goodScan, v.goodJSON = &m.meta, nil, map[string]string{}
		for in, text := range f.goodJSON {
			if id := Must(ParseSno(text)); id.IsZero() || id.Meta() == m.meta {
				v.goodJSON[in] = text
			} else {
				v.badJSON = append(v.badJSON, bad{in, ErrRange, -1})
			}
		}
		for _, g := range f.goodScan {
			if id := Must(ParseSno(g.text)); id.IsZero() || id.Meta() == m.meta {
				v.goodScan = append(v.goodScan, g)
			} else {
				v.badScan = append(v.badScan, badSource{g.src, ErrRange})
			}
		}
		other := Sno{9: 1}.WithMeta(m.meta + 1)
		v.noIDs = []anyID{typed(other)}
		v.badText = append(v.badText, bad{m.prefix + other.String(), ErrRange, -1})
		v.badScan = append(v.badScan, badSource{other.UUID(), ErrRange}, badSource{other[:], ErrRange})
	}
	return v
}

func unprefixed(v vector, prefix string) vector {
	v.Text = strings.TrimPrefix(v.Text, prefix)
	return v
}

// withPrefix puts a prefix before bad texts, and adds texts with other prefixes.
func withPrefix(badText, badJSON []bad, prefix string) (text, inJSON []bad) {
	if prefix == "" {
		return badText, badJSON
	}
	for _, b := range badText {
		if text = append(text, bad{b.in, ErrSyntax, -1}); b.pos >= 0 {
			b.pos += len(prefix)
		}
		text = append(text, bad{prefix + b.in, b.err, b.pos})
	}
	for _, in := range []string{"x" + prefix + "7", "cus_7", prefix[:len(prefix)-1] + "7", strings.ToUpper(prefix) + "7", "_7", prefix + prefix + "7"} {
		if in == prefix+prefix+"7" {
			continue
		}
		text = append(text, bad{in, ErrSyntax, -1})
	}
	for _, b := range badJSON {
		if b.in != `"\u0031"` {
			inJSON = append(inJSON, bad{b.in, b.err, -1})
		}
	}
	return text, inJSON
}

func TestTypedConformance(t *testing.T) {
	typedConformance[plain](t)
	typedConformance[order](t)
	typedConformance[customer](t)
	typedConformance[list[order]](t)
}

func typedConformance[K any](t *testing.T) {
	t.Run(typename.Of(reflect.TypeFor[K]()), func(t *testing.T) {
		t.Run("Snowflake", typedInteger[K, Snowflake](snowflakeFormat).test)
		t.Run("SnowflakeSI", typedInteger[K, SnowflakeSI](snowflakeSIFormat).test)
		t.Run("UID60", typedInteger[K, UID60](uid60Format).test)
		t.Run("Spread64", typedInteger[K, Spread64](spread64Format).test)
		t.Run("Sno", typedSno[K]().test)
	})
}

// Scan rejects IDs of other models and formats, and IDs without a model.
func TestTypedScanRejectsOtherModels(t *testing.T) {
	id, sno := SnowflakeOf[order](7), SnoOf[order]{9: 7}
	for _, src := range []any{SnowflakeOf[customer](1), new(SnowflakeOf[customer](1)), embedder[SnowflakeOf[customer]]{1}, Snowflake(1), UID60Of[order](1)} {
		if err := id.Scan(src); !errors.Is(err, ErrSyntax) || id != 7 || !strings.Contains(err.Error(), "one ID of type idtype.SnowflakeOf[idtype.order]") {
			t.Errorf("Scan(%T) = %v, %v", src, id, err)
		}
	}
	for _, src := range []any{SnoOf[customer]{}, &SnoOf[customer]{}, embedder[SnoOf[customer]]{}, Sno{}, new(Sno)} {
		if err := sno.Scan(src); !errors.Is(err, ErrSyntax) || sno != (SnoOf[order]{9: 7}) {
			t.Errorf("Scan(%T) = %v, %v", src, sno, err)
		}
	}
}

func TestUntypedPointer(t *testing.T) {
	var id SnoOf[order]
	*id.UntypedPointer() = Sno{9: 7}
	if id != (SnoOf[order]{9: 7}) {
		t.Errorf("%v is set through its pointer", id)
	}
}

// Error texts have the names of models, prefixes and metabytes.
func TestTypedErrors(t *testing.T) {
	for want, err := range map[string]error{
		`idtype: parse "cus_7" as SnowflakeOf[idtype.order]: want "ord_" and a decimal integer from 0 to 9223372036854775807, got the prefix "cus_"`:                                                                                            second(Parse[SnowflakeOf[order]]("cus_7")),
		`idtype: parse "7" as SnowflakeOf[idtype.order]: want "ord_" and a decimal integer from 0 to 9223372036854775807, got no prefix`:                                                                                                        second(Parse[SnowflakeOf[order]]("7")),
		`idtype: parse "ord_7x" as SnowflakeOf[idtype.order]: invalid character "x" at byte 5; want "ord_" and a decimal integer from 0 to 9223372036854775807`:                                                                                 second(Parse[SnowflakeOf[order]]("ord_7x")),
		`idtype: parse "" as SnowflakeOf[idtype.order]: want "ord_" and a decimal integer from 0 to 9223372036854775807, got an empty text`:                                                                                                     second(Parse[SnowflakeOf[order]]("")),
		`idtype: parse "ORD_7" as SnowflakeOf[idtype.order]: want "ord_" and a decimal integer from 0 to 9223372036854775807, got the prefix "ORD_"`:                                                                                            second(Parse[SnowflakeOf[order]]("ORD_7")),
		`idtype: parse "AB_D_" as UID60Of[idtype.order]: want "ord_" and 4 to 10 characters [A-Za-z0-9_-], got no prefix`:                                                                                                                       second(Parse[UID60Of[order]]("AB_D_")),
		`idtype: parse "7" as Spread64Of[idtype.plain]: want 16 hex digits [0-9a-f], got 1 bytes`:                                                                                                                                               second(Parse[Spread64Of[plain]]("7")),
		`idtype: convert c1_2222222222222223 to SnoOf[idtype.customer]: want the model's metabyte 99 ('c'), got the metabyte 0`:                                                                                                                 second(SnoOf[customer]{9: 1}.Value()),
		`idtype: parse "c1_2222222222222223" as SnoOf[idtype.customer]: want the model's metabyte 99 ('c'), got the metabyte 0`:                                                                                                                 second(Parse[SnoOf[customer]]("c1_2222222222222223")),
		`idtype: scan c1_2222222222222223 into SnoOf[idtype.customer]: want the model's metabyte 99 ('c'), got the metabyte 0`:                                                                                                                  new(SnoOf[customer]).Scan(Sno{9: 1}.UUID()),
		`idtype: scan -1 into SnowflakeOf[idtype.list[idtype.order]]: out of range; want a decimal integer from 0 to 9223372036854775807`:                                                                                                       new(SnowflakeOf[list[order]]).Scan(int64(-1)),
		`idtype: scan NULL into SnowflakeOf[idtype.order]: NULL is not an ID; scan a nullable column into *idtype.SnowflakeOf[idtype.order], sql.Null[idtype.SnowflakeOf[idtype.order]] or sqltypes.Optional[idtype.SnowflakeOf[idtype.order]]`: new(SnowflakeOf[order]).Scan(nil),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// IDs with a prefix work as map keys in JSON, in logs and with verbs of package fmt.
func TestTypedText(t *testing.T) {
	id, sno := SnowflakeOf[order](7), SnoOf[customer](Must(ParseSno("brpk4q72xwf2m63l")).WithMeta('c'))
	in := map[SnowflakeOf[order]][]SnoOf[customer]{id: {sno}}
	b, err := json.Marshal(in)
	if want := fmt.Sprintf(`{"ord_7":["c1_%s"]}`, sno.Untyped()); err != nil || string(b) != want {
		t.Errorf("JSON %s, %v, want %s", b, err, want)
	}
	var back map[SnowflakeOf[order]][]SnoOf[customer]
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, in) {
		t.Errorf("JSON reads back as %v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"cus_7":[]}`), &back); !errors.Is(err, ErrSyntax) {
		t.Errorf("a key of another model: %v", err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("", "id", id)
	if !strings.HasSuffix(log.String(), " id=ord_7\n") {
		t.Errorf("logs %q", log.String())
	}
	if got, want := fmt.Sprintf("%v %d", id, id), "ord_7 7"; got != want {
		t.Errorf("formatted as %q, want %q", got, want)
	}
	if b, err := json.Marshal(SnowflakeSIOf[order](7)); err != nil || string(b) != `"ord_7"` {
		t.Errorf("JSON of a SnowflakeSI with a prefix: %s, %v", b, err)
	}
	if SnowflakeOf[page](7).String() != "7" {
		t.Errorf("an empty prefix: %v", SnowflakeOf[page](7))
	}
}

// The option string of a field's tag removes the quotes of an integer kind before
// UnmarshalJSON. If what is left is no number, the error names the remedy.
func TestStringOption(t *testing.T) {
	stringOption(t, Must(ParseSnowflake("132271570944274432")), "")
	stringOption(t, SnowflakeOf[plain](132271570944274432), "")
	stringOption(t, Must(ParseSno("brpk4q72xwf2m63l")), "")
	stringOption(t, SnoOf[order](Must(ParseSno("brpk4q72xwf2m63l"))), "")
	const remedy = `not a JSON string or integer; write the field's tag without the option string: json:"id", not json:"id,string"; want `
	stringOption(t, Must(ParseUID60("xinaS8QBh")), remedy+"4 to 10 characters [A-Za-z0-9_-] in quotes, or a decimal integer from 0 to 1152921504606846975")
	stringOption(t, UID60Of[plain](7), remedy)
	stringOption(t, Must(ParseSpread64("cb54ecf2840a0015")), remedy)
	stringOption(t, Must(ParseSpread64("1234567890e20123")), remedy) // a JSON number, but not an integer
	stringOption(t, Must(ParseSpread64("0000000000000007")), remedy)
	stringOption(t, SnowflakeOf[order](7), remedy+`"ord_" and a decimal integer from 0 to 9223372036854775807 in quotes, or a decimal integer from 0 to 9223372036854775807`)
	stringOption(t, SnowflakeSIOf[order](7), remedy)
	stringOption(t, UID60Of[order](7), remedy)
	stringOption(t, Spread64Of[order](7), remedy)
	// Without quotes, encoding/json itself rejects it.
	stringOption(t, SnowflakeSI(7), "json: invalid use of ,string struct tag")
}

// stringOption writes an ID in a field whose tag has the option string, and reads it back.
func stringOption[T comparable](t *testing.T, id T, want string) {
	t.Helper()
	type document struct {
		ID T `json:"id,string"` //nolint:staticcheck // T is an integer or a struct
	}
	type pointer struct {
		ID *T `json:"id,string"`
	}
	b, err := json.Marshal(document{id})
	if err != nil {
		t.Fatal(err)
	}
	var got document
	var behind pointer
	if slices.Contains(build.Default.ReleaseTags, "go1.27") {
		want = "" // encoding/json ignores the option of a type with methods for JSON
	}
	for _, err := range []error{json.Unmarshal(b, &got), json.Unmarshal(b, &behind)} {
		if want == "" && (err != nil || got.ID != id) || want != "" && !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%T from %s: %v, %v, want %q", id, b, got.ID, err, want)
		}
	}
	if *new(T) != got.ID && want != "" {
		t.Errorf("%T from %s: %v after an error", id, b, got.ID)
	}
}

// A model whose declarations can't be used panics at first use, with its name.
func TestTypedBadModels(t *testing.T) {
	for want, use := range map[string]func(){
		`idtype: method IDPrefix of idtype.badModel returns "Bad_"; want lower-case letters and digits, beginning with a letter, without the underscore`: func() { _ = SnowflakeOf[badModel](7).String() },
		"idtype: methods IDPrefix, IDMeta and IDLayout of idtype.inheriting panic on a new value: ":                                                      func() { _ = SnowflakeOf[inheriting](7).String() },
		"idtype: MapGenerator or GeneratorOf: the generator or the function is nil":                                                                      func() { GeneratorOf[SnowflakeOf[order]](nil) },
		"idtype: MapGenerator or GeneratorOf: the generator or the function is nil;":                                                                     func() { GeneratorOf[SnoOf[order]](nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			use()
		}()
	}
}

// The text of a UID60 can contain an underscore, but no text is an ID with a prefix and
// another ID without it.
func TestTypedPrefixIsUnambiguous(t *testing.T) {
	type ID = UID60Of[shortModel]
	for _, text := range []string{"o_EAm6a_Rm", "o_AHAA", "o_EAm6a_RmA"} {
		if id, err := Parse[ID](text); !errors.Is(err, ErrSyntax) {
			t.Errorf("Parse(%q) = %v, %v", text, id, err)
		}
	}
	if text := Typed[shortModel, Snowflake](7).String(); text != "o_7" {
		t.Errorf("String of a key whose type argument is no pointer = %q", text)
	}
	if text := ID(7).String(); text != "o_AHAAAAAAAA" {
		t.Errorf("String = %q", text)
	}
	_, err := Parse[ID](strings.Repeat("a", 1<<20) + "_7")
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
	_, err = Parse[ID]("ab_123456")
	if err == nil || !strings.HasSuffix(err.Error(), "got no prefix") {
		t.Errorf("a text without a prefix: %v", err)
	}
}

func TestTypedCompare(t *testing.T) {
	type ID = SnowflakeOf[order]
	ids := []ID{3, 1, 2}
	slices.SortFunc(ids, ID.Compare)
	if !slices.Equal(ids, []ID{1, 2, 3}) || !slices.IsSorted(ids) || max(ids[0], ids[1]) != 2 {
		t.Errorf("sorted as %v", ids)
	}
	snos := []SnoOf[order]{{1}, {0}}
	if slices.SortFunc(snos, SnoOf[order].Compare); snos[0] != (SnoOf[order]{}) {
		t.Errorf("sorted as %v", snos)
	}
}

// scriptedGenerator generates given IDs.
type scriptedGenerator[T any] struct{ ids []T }

var errEmpty = errors.New("no IDs left")

func (g *scriptedGenerator[T]) Next() (id T, err error) {
	ids := []T{id}
	_, err = g.Fill(context.Background(), ids)
	return ids[0], err
}

func (g *scriptedGenerator[T]) Fill(_ context.Context, dst []T) (n int, err error) {
	if n = copy(dst, g.ids); n < len(dst) {
		err = errEmpty
	}
	g.ids = g.ids[n:]
	return n, err
}

func TestGeneratorOf(t *testing.T) {
	base := Must(NewSnowflakeGenerator(SnowflakeConfig{Worker: 3}))
	g := GeneratorOf[SnowflakeOf[order]](base)
	ids := make([]SnowflakeOf[order], 1000)
	ids[0] = Must(g.Next())
	if n, err := g.Fill(context.Background(), ids[1:]); n != 999 || err != nil {
		t.Fatal(n, err)
	}
	for i := range ids[1:] {
		if ids[i] >= ids[i+1] {
			t.Fatalf("%v before %v", ids[i], ids[i+1])
		}
	}
	if p, err := DefaultSnowflakeLayout().Parts(ids[999].Untyped()); err != nil || p.Worker != 3 {
		t.Errorf("parts %v, %v", p, err)
	}
	short := GeneratorOf[SnowflakeOf[order]](&scriptedGenerator[Snowflake]{[]Snowflake{1, 2}})
	if n, err := short.Fill(context.Background(), ids[:3]); n != 2 || err != errEmpty || ids[0] != 1 || ids[1] != 2 {
		t.Errorf("Fill = %d, %v, %v", n, err, ids[:3])
	}
	if _, err := short.Next(); err != errEmpty {
		t.Error(err)
	}
	if n, err := g.Fill(context.Background(), nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	noAllocations(t, func() { _, _ = g.Next() })
	noAllocations(t, func() { _, _ = g.Fill(context.Background(), ids[:10]) })
}

// A MapGenerator returns f of each ID, in order, and the errors of the other generator.
func TestMapGenerator(t *testing.T) {
	digits := func(id Snowflake) string { return id.String() }
	script := make([]Snowflake, 2*mappedBlock+3)
	for i := range script {
		script[i] = Snowflake(i + 1)
	}
	g := MapGenerator(&scriptedGenerator[Snowflake]{script}, digits)
	texts := make([]string, 2*mappedBlock+9)
	texts[2*mappedBlock+2] = "unchanged"
	if first, err := g.Next(); first != "1" || err != nil {
		t.Errorf("Next = %q, %v", first, err)
	}
	if n, err := g.Fill(context.Background(), texts); n != 2*mappedBlock+2 || err != errEmpty || texts[n] != "unchanged" {
		t.Errorf("Fill = %d, %v, then %q", n, err, texts[n])
	}
	for i, s := range texts[:2*mappedBlock+2] {
		if s != strconv.Itoa(i+2) {
			t.Fatalf("ID %d is %q", i, s)
		}
	}
	if s, err := g.Next(); s != "" || err != errEmpty {
		t.Errorf("Next = %q, %v, want no text", s, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	own := MapGenerator(Must(NewSnowflakeGenerator(SnowflakeConfig{})), func(id Snowflake) int64 { return int64(id) })
	if n, err := own.Fill(ctx, make([]int64, 3)); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Fill with a canceled context = %d, %v", n, err)
	}
	if n, err := MapGenerator(lazyGenerator{}, digits).Fill(context.Background(), texts); n != 2 || err != nil {
		t.Errorf("Fill of a generator that returns too few IDs = %d, %v", n, err)
	}
	ids := make([]int64, 10)
	noAllocations(t, func() { _, _ = own.Next() })
	noAllocations(t, func() { _, _ = own.Fill(context.Background(), ids) })
}

// A lazyGenerator returns two IDs at most.
type lazyGenerator struct{ Generator[Snowflake] }

func (lazyGenerator) Fill(_ context.Context, dst []Snowflake) (int, error) {
	return min(len(dst), 2), nil
}

// The metabyte is the model's, or the generator's if the model declares none.
func TestSnoGeneratorOf(t *testing.T) {
	base := Must(NewSnoGenerator(SnoConfig{Meta: 'g', Partition: &SnoPartition{1, 2}}))
	tagged, plain := GeneratorOf[SnoOf[customer]](base), GeneratorOf[SnoOf[order]](base)
	snos, others := make([]SnoOf[customer], 10), make([]SnoOf[order], 10)
	if n, err := tagged.Fill(context.Background(), snos[1:]); n != 9 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := plain.Fill(context.Background(), others[1:]); n != 9 || err != nil {
		t.Fatal(n, err)
	}
	snos[0], others[0] = Must(tagged.Next()), Must(plain.Next())
	for i := range snos {
		if snos[i].Untyped().Meta() != 'c' || others[i].Untyped().Meta() != 'g' || snos[i].Untyped().WithMeta('g') == others[i].Untyped() {
			t.Errorf("IDs %v and %v", snos[i], others[i])
		}
	}
	short, was := GeneratorOf[SnoOf[customer]](&scriptedGenerator[Sno]{[]Sno{{1}}}), snos[1]
	if n, err := short.Fill(context.Background(), snos[:2]); n != 1 || err != errEmpty || snos[0] != (SnoOf[customer]{1, 5: 'c'}) || snos[1] != was {
		t.Errorf("Fill = %d, %v, %v", n, err, snos[:2])
	}
	if id, err := short.Next(); err != errEmpty || !id.IsZero() {
		t.Error(id, err)
	}
	noAllocations(t, func() { _, _ = tagged.Next() })
	noAllocations(t, func() { _, _ = tagged.Fill(context.Background(), snos) })
}

func noAllocations(t *testing.T, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// UUIDOf can replace SnowflakeOf in a program: it has the same methods, with the same arguments
// and results. Int64 is of numbers, and CheckGenerator of types that have several layouts.
func TestUUIDOfReplacesSnowflakeOf(t *testing.T) {
	signature := func(m reflect.Method) (s string) {
		for i := 1; i < m.Type.NumIn(); i++ { // without the receiver
			s += m.Type.In(i).String() + " "
		}
		s += "->"
		for out := range m.Type.Outs() {
			s += " " + out.String()
		}
		return strings.NewReplacer(reflect.TypeFor[SnowflakeOf[order]]().String(), "ID", reflect.TypeFor[UUIDOf[order]]().String(), "ID", "idtype.Snowflake", "T", "idtype.UUID", "T").Replace(s)
	}
	other := reflect.TypeFor[*UUIDOf[order]]()
	for m := range reflect.TypeFor[*SnowflakeOf[order]]().Methods() {
		if m.Name == "Int64" || m.Name == "CheckGenerator" {
			continue
		}
		if got, ok := other.MethodByName(m.Name); !ok || signature(got) != signature(m) {
			t.Errorf("%s: %q, want %q", m.Name, signature(got), signature(m))
		}
	}
}

// A typed key has the methods of its type, except for the parts of an ID, which Untyped().… returns.
func TestTypedMethods(t *testing.T) {
	parts := map[string][]string{"UID60": {"Random", "Sequence"}, "Sno": {"Meta", "Partition", "Sequence", "TickTock", "WithMeta"}}
	for plain, typed := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[*Snowflake]():   reflect.TypeFor[*SnowflakeOf[order]](),
		reflect.TypeFor[*SnowflakeSI](): reflect.TypeFor[*SnowflakeSIOf[order]](),
		reflect.TypeFor[*UID60]():       reflect.TypeFor[*UID60Of[order]](),
		reflect.TypeFor[*Spread64]():    reflect.TypeFor[*Spread64Of[order]](),
		reflect.TypeFor[*Sno]():         reflect.TypeFor[*SnoOf[order]](),
		reflect.TypeFor[*UUID]():        reflect.TypeFor[*UUIDOf[order]](),
	} {
		name := plain.Elem().Name()
		for m := range plain.Methods() {
			if _, ok := typed.MethodByName(m.Name); !ok && !slices.Contains(parts[name], m.Name) {
				t.Errorf("%sOf has no method %s", name, m.Name)
			}
		}
	}
}
