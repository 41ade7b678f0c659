package migrations

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/sortkey/sortkey/idtype"
)

var (
	someClock = idtype.SnowflakeSILayout{BaseClock: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)}

	// configs are configurations whose SQL differs in more than numbers.
	configs = map[string]Config{
		"default":          {},
		"with SnowflakeSI": {Schema: "other", SnowflakeSI: someClock},
		"early epoch":      {Schema: "_3", Snowflake: idtype.SnowflakeLayout{Epoch: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)}},
	}
)

func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 54)
	for _, name := range []string{"", "sortkey", "public", "ids", "_", "_1", "a_2", "name", "pgids", "pg", "internal", long} {
		if err := (Config{Schema: name}).Validate(); err != nil {
			t.Errorf("expected schema %q to be valid, got %v", name, err)
		}
	}
	for _, name := range []string{
		long + "a", "Ids", "ids;", `"ids"`, "a b", "a.b", "a-b", "a$b", "1a", "ä", " ids", "ids ", "ids\n", "a'b", "{{", "--",
		"pg_", "pg_ids", "pg_catalog", "information_schema", "plpgsql", "_internal", "ids_internal", "user", "all", "table", "left", "binary", "bigint", "values", "system_user", "loop", "begin", "while",
	} {
		err := Config{Schema: name}.Validate()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("Config.Schema: %q", name)) {
			t.Errorf("expected an error that names schema %q, got %v", name, err)
		}
	}
}

func TestValidateLayouts(t *testing.T) {
	layout := func(datacenter, worker, sequence int) Config {
		return Config{Snowflake: idtype.SnowflakeLayout{DatacenterBits: datacenter, WorkerBits: worker, SequenceBits: sequence}}
	}
	for name, c := range map[string]struct {
		config Config
		want   string // part of the error; "": none
	}{
		"46 bits of time":       {layout(0, 5, 12), ""},
		"47 bits of time":       {layout(0, 4, 12), "want at most 46"},
		"62 bits of time":       {layout(0, 0, 1), "time has 62 bits (epoch 2021-01-01T00:00:00.000Z; bits: datacenter 0, worker 0, sequence 1)"},
		"32 bits of time":       {layout(10, 10, 11), ""},
		"31 bits of time":       {layout(10, 10, 12), "SnowflakeLayout: widths"},
		"no sequence":           {layout(5, 5, 0), "SnowflakeLayout: widths"},
		"negative width":        {layout(-1, 5, 12), "SnowflakeLayout: widths"},
		"epoch of microseconds": {Config{Snowflake: idtype.SnowflakeLayout{Epoch: time.UnixMicro(1)}}, "epoch"},
		"base clock":            {Config{SnowflakeSI: someClock}, ""},
		"no base clock":         {Config{SnowflakeSI: idtype.SnowflakeSILayout{MachineBits: 3}}, "BaseClock"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.config.Validate()
			if c.want == "" {
				if err != nil {
					t.Errorf("expected no error, got %v", err)
				}
			} else if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) {
				t.Errorf("expected an error with %q, got %v", c.want, err)
			}
			// All functions return the error of Validate.
			for name, render := range map[string]func(Config) error{
				"List":           func(c Config) error { _, err := List(c); return err },
				"Goose":          func(c Config) error { _, err := Goose(c); return err },
				"GolangMigrate":  func(c Config) error { _, err := GolangMigrate(c); return err },
				"Tern":           func(c Config) error { _, err := Tern(c); return err },
				"SQL":            func(c Config) error { _, err := SQL(c); return err },
				"AddSnowflakeSI": func(c Config) error { _, err := AddSnowflakeSI(c); return err },
				"Up":             func(c Config) error { return Up(t.Context(), nil, c) },
				"Down":           func(c Config) error { return Down(t.Context(), nil, c) },
				"Check":          func(c Config) error { return Check(t.Context(), nil, c) },
				"Status":         func(c Config) error { _, err := Status(t.Context(), nil, c); return err },
			} {
				if c.want == "" {
					continue // some of these would need a database
				}
				if got := render(c.config); got == nil || got.Error() != err.Error() {
					t.Errorf("expected %s to return the error of Validate, %v, got %v", name, err, got)
				}
			}
		})
	}
}

// Each migration records its version and name, and Down deletes the record.
func TestList(t *testing.T) {
	for name, c := range configs {
		list, err := List(c)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i, m := range list {
			if m.Version != i+1 {
				t.Errorf("%s: expected version %d, got %d", name, i+1, m.Version)
			}
			names = append(names, m.Name)
			if want := fmt.Sprintf("INSERT INTO %s.revision (version, name) VALUES (%d, '%s');", c.schema(), m.Version, m.Name); !strings.Contains(m.Up, want) {
				t.Errorf("%s: expected %s to contain %s", name, m.Name, want)
			}
			if want := fmt.Sprintf("DELETE FROM %s.revision WHERE version = %d;", c.schema(), m.Version); i > 0 && !strings.Contains(m.Down, want) {
				t.Errorf("%s: expected Down of %s to contain %s", name, m.Name, want)
			}
		}
		if want := []string{"schema", "nodes", "snowflake", "snowflake_si", "uid60", "spread64", "sno", "uuid7", "partitions"}; !slices.Equal(names[:len(want)], want) {
			t.Errorf("%s: expected the migrations %v, since databases have recorded their versions, got %v", name, want, names)
		}
	}
}

// The rendered SQL is formatted as if written by hand.
func TestRendering(t *testing.T) {
	ugly := regexp.MustCompile(`(?m)[ \t]+$|\t|\n\n\n|\A\s|<no value>|%!|\{\{|\}\}`)
	for name, c := range configs {
		list, err := List(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list {
			for direction, text := range map[string]string{"up": m.Up, "down": m.Down} {
				if at := ugly.FindStringIndex(text); at != nil {
					t.Errorf("expected plain text, got %s %s (%s) with %q at:\n%s", m.Name, direction, name,
						text[at[0]:at[1]], text[max(0, at[0]-60):min(len(text), at[1]+60)])
				}
				// In a database of another encoding than UTF-8, psql and the server reject other characters.
				if i := strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }); i >= 0 {
					t.Errorf("expected ASCII, got %s %s with %q", m.Name, direction, text[i:])
				}
				if !strings.HasSuffix(text, ";\n") {
					t.Errorf("expected %s %s to end with a statement", m.Name, direction)
				}
				if c.Schema != "" && strings.Contains(text, "sortkey.") {
					t.Errorf("schema %s: expected no name of schema sortkey, got one in %s %s", c.Schema, m.Name, direction)
				}
			}
		}
	}
}

// The first migration rejects old servers before it creates anything.
func TestOldServer(t *testing.T) {
	list, err := List(Config{})
	if err != nil {
		t.Fatal(err)
	}
	check := strings.Index(list[0].Up, "IF current_setting('server_version_num')::integer < 150000 THEN\n        RAISE EXCEPTION")
	first := strings.Index(list[0].Up, "CREATE")
	if check < 0 || check > first {
		t.Errorf("expected the check of the server version before the first CREATE, got it at %d and a CREATE at %d", check, first)
	}
}

// pgError has the fields and methods of the errors of pgx and lib/pq.
type pgError struct{ Code, Detail string }

func (e *pgError) Error() string    { return "cannot drop it" }
func (e *pgError) SQLState() string { return e.Code }

// noDetail is an error of another driver, without details.
type noDetail string

func (noDetail) Error() string      { return "cannot drop it" }
func (e noDetail) SQLState() string { return string(e) }

func TestWithDependents(t *testing.T) {
	const advice = "; drop or change the dependent objects first"
	dependent := &pgError{"2BP01", "table t depends on it"}
	var many []string
	for n := range 22 {
		many = append(many, fmt.Sprint("view v", n))
	}
	for _, c := range []struct {
		err   error
		names []string
		want  string
	}{
		{dependent, []string{"table t", "view v"}, "cannot drop it (table t, view v)" + advice},
		{dependent, many, "cannot drop it (" + strings.Join(many[:20], ", ") + ", and 2 more)" + advice},
		{dependent, nil, "cannot drop it (table t depends on it)" + advice},
		{fmt.Errorf("wrapped: %w", dependent), nil, "wrapped: cannot drop it (table t depends on it)" + advice},
		{noDetail("2BP01"), nil, "cannot drop it" + advice},
	} {
		got := withDependents(c.err, c.names, nil)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("expected %q, got %q", c.want, got)
		}
	}
	if lost := errors.New("lost the connection"); !errors.Is(withDependents(dependent, nil, lost), lost) {
		t.Error("the error of reading the names is missing")
	}
}

func TestParseLayouts(t *testing.T) {
	for _, l := range []idtype.SnowflakeLayout{
		{}, idtype.DefaultSnowflakeLayout(),
		{Epoch: time.Date(2015, 1, 1, 2, 3, 4, 567_000_000, time.FixedZone("", 3600)), DatacenterBits: 0, WorkerBits: 10, SequenceBits: 12},
		{Epoch: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), DatacenterBits: 3, WorkerBits: 4, SequenceBits: 10},
	} {
		if got, err := parseSnowflakeLayout(l.Fingerprint()); err != nil || got.Fingerprint() != l.Fingerprint() {
			t.Errorf("parse %q: got %q, %v", l, got, err)
		}
	}
	if got, err := parseSnowflakeSILayout(someClock.Fingerprint()); err != nil || got.Fingerprint() != someClock.Fingerprint() {
		t.Errorf("parse %q: got %q, %v", someClock, got, err)
	}
	for _, s := range []string{"", "epoch yesterday; bits: datacenter 5, worker 5, sequence 12", someClock.Fingerprint(), idtype.DefaultSnowflakeLayout().Fingerprint() + ", x 3"} {
		if l, err := parseSnowflakeLayout(s); err == nil {
			t.Errorf("parse Snowflake layout %q: got %v, want an error", s, l)
		}
	}
	for _, s := range []string{"", idtype.DefaultSnowflakeLayout().Fingerprint(), "base clock 2024-05-06; bits: machine 5, index 8"} {
		if l, err := parseSnowflakeSILayout(s); err == nil {
			t.Errorf("parse SnowflakeSI layout %q: got %v, want an error", s, l)
		}
	}
}
