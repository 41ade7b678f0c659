package gormplugin

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
)

// A dated model declares a layout.
type dated struct{ ID idtype.SnowflakeOf[dated] }

func (dated) IDLayout() idtype.SnowflakeLayout {
	return idtype.SnowflakeLayout{Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), WorkerBits: 10, SequenceBits: 12}
}

type windowed struct {
	ID     idtype.SnowflakeOf[windowed]
	Typed  idtype.SnowflakeOf[dated]
	Base   idtype.Snowflake
	Own    lineID
	SI     idtype.SnowflakeSI
	UID    *idtype.UID60
	Sno    text[idtype.Sno]
	UUID   idtype.UUIDOf[windowed]
	Texts  text[idtype.UUID]
	Spread idtype.Spread64
	Int    int64
}

func generator[G any](t *testing.T, gen G, err error) G {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return gen
}

// A holder returns its generator, as the generators of package nodelease do.
type holder struct {
	idtype.Generator[idtype.Snowflake]
}

func (h holder) Current() idtype.Generator[idtype.Snowflake] { return h.Generator }

// A window has the layout of the bound generators, or the default layout of the format.
func TestCreatedBetweenLayouts(t *testing.T) {
	year := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	custom := dated{}.IDLayout()
	si := idtype.SnowflakeSILayout{BaseClock: year}
	snowflake, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: custom})
	gen := generator(t, snowflake, err)
	ofSI, err := idtype.NewSnowflakeSIGenerator(idtype.SnowflakeSIConfig{Layout: si})
	genSI := generator(t, ofSI, err)
	from, to := year.Add(time.Second), year.Add(time.Minute)
	pair := func(lo, hi any, err error) []any {
		if err != nil {
			t.Fatal(err)
		}
		return []any{lo, hi}
	}
	byDefault := pair(idtype.DefaultSnowflakeLayout().Range(from, to))
	byCustom := pair(custom.Range(from, to))
	lo, hi, err := idtype.SnoLayout{}.Range(from, to)
	bySno := []any{text[idtype.Sno]{lo}, text[idtype.Sno]{hi}}
	if err != nil {
		t.Fatal(err)
	}
	uuidLo, uuidHi, err := idtype.UUIDLayout{}.Range(from, to)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bindings []Binding
		column   string
		want     []any
	}{
		"none":                {nil, "", byDefault},
		"of another type":     {[]Binding{For(genSI)}, "base", byDefault},
		"without a layout":    {[]Binding{For(snowflakes())}, "", byDefault},
		"custom":              {[]Binding{For(gen)}, "base", byCustom},
		"declared":            {nil, "typed", byCustom},
		"declared, with it":   {[]Binding{For(gen)}, "typed", byCustom},
		"not declared":        {[]Binding{For(gen)}, "", byDefault},
		"custom, own":         {[]Binding{For(gen)}, "own", byCustom},
		"by name":             {[]Binding{Named("a", gen)}, "base", byCustom},
		"of a lease":          {[]Binding{For(holder{gen})}, "base", byCustom},
		"typed":               {[]Binding{For(idtype.GeneratorOf[idtype.SnowflakeOf[dated]](gen))}, "base", byCustom},
		"typed, of a lease":   {[]Binding{For(idtype.GeneratorOf[idtype.SnowflakeOf[dated]](holder{gen}))}, "base", byCustom},
		"mapped":              {[]Binding{For(idtype.MapGenerator(gen, func(id idtype.Snowflake) lineID { return lineID{id} }))}, "own", byCustom},
		"mapped to a number":  {[]Binding{For(idtype.MapGenerator(gen, idtype.Snowflake.Int64))}, "base", byDefault},
		"twice":               {[]Binding{For(gen), Named("a", gen), For(idtype.GeneratorOf[idtype.SnowflakeOf[dated]](gen))}, "base", byCustom},
		"SI":                  {[]Binding{For(genSI)}, "si", pair(si.Range(from, to))},
		"mapped SI":           {[]Binding{For(idtype.GeneratorOf[idtype.SnowflakeSIOf[windowed]](genSI))}, "si", pair(si.Range(from, to))},
		"UID60":               {nil, "uid", pair(idtype.UID60Layout{}.Range(from, to))},
		"Sno":                 {nil, "sno", bySno},
		"UUID":                {nil, "uuid", pair(idtype.UUIDLayout{}.Range(from, to))},
		"text of a UUID":      {nil, "texts", []any{text[idtype.UUID]{uuidLo}, text[idtype.UUID]{uuidHi}}},
		"name with the table": {nil, "windoweds.base", byDefault},
	} {
		stmt := open(t, c.bindings...).Scopes(CreatedBetween(c.column, from, to)).Find(&[]windowed{}).Statement
		if stmt.Error != nil || !slices.Equal(stmt.Vars, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, stmt.Vars, stmt.Error, c.want)
		}
	}

	plain, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{})
	two := []Binding{For(gen), Named("a", generator(t, plain, err))}
	for want, tx := range map[string]*gorm.DB{
		"have the layouts \"epoch 2024-01-01T00:00:00.000Z; bits: datacenter 0, worker 10, sequence 12\" and \"epoch 2021": open(t, two...).Scopes(CreatedBetween("base", from, to)).Find(&[]windowed{}),
		"the layout of windowed.SI of type idtype.SnowflakeSI is unknown; ":                                                open(t).Scopes(CreatedBetween("si", from, to)).Find(&[]windowed{}),
		"the layout of windowed.Spread of type idtype.Spread64 is unknown; ":                                               open(t).Scopes(CreatedBetween("spread", from, to)).Find(&[]windowed{}),
		"the layout of windowed.Int of type int64 is unknown; ":                                                            open(t).Scopes(CreatedBetween("int", from, to)).Find(&[]windowed{}),
		`the query has no model with the column "id"; `:                                                                    open(t).Table("t").Scopes(CreatedBetween("id", from, to)).Find(&[]map[string]any{}),
		`the query has no model with the column "others.id"; `:                                                             open(t).Scopes(CreatedBetween("others.id", from, to)).Find(&[]windowed{}),
	} {
		if !errors.Is(tx.Error, gorm.ErrInvalidField) || !strings.HasPrefix(tx.Error.Error(), "gormplugin: select by time: ") || !strings.Contains(tx.Error.Error(), want) {
			t.Errorf("%v, want %s", tx.Error, want)
		}
	}
}

// A generator whose layout isn't the one in which the keys are read creates no rows.
func TestGeneratorOfAnotherLayout(t *testing.T) {
	standard, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{})
	plain := generator(t, standard, err)
	ofDated, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Layout: dated{}.IDLayout()})
	custom := generator(t, ofDated, err)
	type (
		named struct {
			ID     idtype.Snowflake
			Public *idtype.SnowflakeOf[dated] `gorm:"idgen:other"`
		}
		undeclared struct {
			ID optional[idtype.SnowflakeOf[undeclared]]
		}
	)
	create := func(row any, bindings ...Binding) error { return open(t, bindings...).Create(row).Error }
	for name, c := range map[string]struct {
		err  error
		want string // "" for success
	}{
		"declared":             {create(&dated{}, For(custom)), ""},
		"default":              {create(&Sale{}, For(plain)), ""},
		"a plain Snowflake":    {create(&order{}, For(custom)), ""},
		"without a layout":     {create(&dated{}, For(snowflakes())), ""},
		"default for declared": {create(&dated{}, For(plain)), "fill dated.ID: idtype: generate SnowflakeOf[gormplugin.dated]: "},
		"of a lease":           {create(&[]dated{{}}, For(holder{plain})), "fill dated.ID: "},
		"a key that is set":    {create(&dated{ID: 7}, For(plain)), "fill dated.ID: "},
		"declared for default": {create(&undeclared{}, For(custom)), "fill undeclared.ID: "},
		"public, by name":      {create(&named{}, For(custom), Named("other", plain)), "fill named.Public: "},
	} {
		switch {
		case c.want == "" && c.err == nil:
		case c.want == "", !errors.Is(c.err, idtype.ErrConfig), !strings.Contains(c.err.Error(), "gormplugin: "+c.want), !strings.Contains(c.err.Error(), "declare the generator's layout"):
			t.Errorf("%s: %v, want %q", name, c.err, c.want)
		}
	}
}

// UUIDs are filled and compared like the other IDs.
func TestUUIDs(t *testing.T) {
	type child struct {
		ID       idtype.UUIDOf[child]
		ParentID idtype.UUIDOf[windowed]
	}
	type parent struct {
		ID       idtype.UUIDOf[windowed]
		Public   *idtype.UUID `gorm:"idgen"`
		Children []child      `gorm:"foreignKey:ParentID"`
	}
	made, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
	gen := generator(t, made, err)
	db := open(t, For(gen))
	rows := []parent{{Children: []child{{}}}, {}}
	if err := db.Create(&rows).Error; err != nil {
		t.Fatal(err)
	}
	if rows[0].ID.IsZero() || rows[1].ID == rows[0].ID || rows[1].Public == nil || rows[0].Children[0].ID.IsZero() || rows[0].Children[0].ParentID != rows[0].ID {
		t.Errorf("rows = %v", rows)
	}
	if err := db.Scopes(PageAfter("", rows[0].ID)).Find(&rows).Error; err != nil {
		t.Error(err)
	}
	if err := db.Scopes(PageAfter("", idtype.Sno{1})).Find(&rows).Error; !errors.Is(err, gorm.ErrInvalidField) {
		t.Errorf("a Sno as the cursor: %v", err)
	}
}
