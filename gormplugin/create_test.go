package gormplugin

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

// A map has the ID under its own name for the key, or else under the column's name.
func TestMaps(t *testing.T) {
	var zero idtype.Snowflake
	nine := idtype.Snowflake(9)
	into := func(model, value any, want string) {
		t.Helper()
		wantSQL(t, create(t, open(t, For(snowflakes())).Model(model), value), "INSERT INTO `contacts` "+want)
	}
	for _, key := range []string{"id", "ID", "Id"} {
		for _, empty := range []any{nil, zero, &zero, (*idtype.Snowflake)(nil), sql.Null[idtype.Snowflake]{}, sql.Null[idtype.Snowflake]{Valid: true},
			sql.Null[idtype.Snowflake]{V: 9}, optional[idtype.Snowflake]{}} {
			m := map[string]any{"name": "a", key: empty}
			into(&contact{}, m, "(`id`,`name`) VALUES (1,\"a\")")
			if want := map[string]any{"name": "a", key: idtype.Snowflake(1)}; !reflect.DeepEqual(m, want) {
				t.Errorf("%#v under %s: got %v, want %v", empty, key, m, want)
			}
		}
		// An ID in another form is kept.
		for _, id := range []any{nine, &nine, sql.Null[idtype.Snowflake]{V: 9, Valid: true}, text[idtype.Snowflake]{9}} {
			m := map[string]any{"name": "a", key: id}
			create(t, open(t, For(snowflakes())).Model(&contact{}), m)
			if want := map[string]any{"name": "a", key: id}; !reflect.DeepEqual(m, want) {
				t.Errorf("%#v under %s: became %v", id, key, m)
			}
		}
		into(&contact{}, map[string]any{"name": "a", key: &nine}, "(`id`,`name`) VALUES (9,\"a\")")
		into(&contact{}, []map[string]any{{"name": "a", key: zero}, {"name": "b", key: nil}}, "(`id`,`name`) VALUES (1,\"a\"),(2,\"b\")")
		mixed := []map[string]any{{"name": "a", key: nine}, {"name": "b"}, {"name": "c", key: nil}}
		into(&contact{}, mixed, "(`id`,`name`) VALUES (9,\"a\"),(1,\"b\"),(2,\"c\")")
		if want := []map[string]any{{"name": "a", key: nine}, {"name": "b", "id": idtype.Snowflake(1)}, {"name": "c", key: idtype.Snowflake(2)}}; !reflect.DeepEqual(mixed, want) {
			t.Errorf("mixed: got %v, want %v", mixed, want)
		}
	}
	if zero != 0 || nine != 9 {
		t.Errorf("the caller's variables became %v and %v", zero, nine)
	}
	var made map[string]any
	several := make([]map[string]any, 2)
	into(contact{}, map[string]any{"name": "a"}, "(`id`,`name`) VALUES (1,\"a\")")
	into(&[]contact{}, map[string]any{"name": "a"}, "(`id`,`name`) VALUES (1,\"a\")")
	into(&contact{}, &made, "(`id`) VALUES (1)")
	into(&contact{}, &several, "(`id`) VALUES (1),(2)")
	if want := []map[string]any{{"id": idtype.Snowflake(1)}, {"id": idtype.Snowflake(2)}}; !reflect.DeepEqual(made, want[0]) || !reflect.DeepEqual(several, want) {
		t.Errorf("nil maps became %v and %v", made, several)
	}

	// Without a model, the plugin doesn't know the key. With a model, the table may be another one.
	db := open(t, For(snowflakes()))
	m := map[string]any{"name": "a"}
	wantSQL(t, create(t, db.Table("things"), m), "INSERT INTO `things` (`name`) VALUES (\"a\")")
	if len(m) != 1 {
		t.Errorf("without a model, the map became %v", m)
	}
	wantSQL(t, create(t, db.Table("things"), []map[string]any{{"name": "a"}, {"name": "b", "id": nil}}), "INSERT INTO `things` (`id`,`name`) VALUES (NULL,\"a\"),(NULL,\"b\")")
	wantSQL(t, create(t, db.Table("things").Model(&contact{}), m), "INSERT INTO `things` (`id`,`name`) VALUES (1,\"a\")")
	if m["id"] != idtype.Snowflake(1) {
		t.Errorf("in another table: got %v, want the ID 1", m)
	}
}

// If a key can't be filled, Create fails and inserts nothing.
func TestRowsThatCannotBeFilled(t *testing.T) {
	type embeds struct {
		*Base
		Note string
	}
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	for name, c := range map[string]struct {
		err  error
		want error
		text string
	}{
		"a struct by value":                {db.Create(order{}).Error, gorm.ErrInvalidValue, "order.ID: want a pointer to a gormplugin.order, got"},
		"a struct by value in Save":        {db.Save(order{}).Error, gorm.ErrInvalidValue, ""},
		"an array by value":                {db.Create([2]order{{ID: 7}, {}}).Error, gorm.ErrInvalidValue, "order.ID: want a pointer to a gormplugin.order, got"},
		"a nil element":                    {db.Create([]*order{{}, nil, {}}).Error, gorm.ErrInvalidData, "slice data #1 is invalid"},
		"a nil element, by a pointer":      {db.Create(&[]*order{nil}).Error, gorm.ErrInvalidData, "slice data #0 is invalid"},
		"a nil pointer":                    {db.Create((*order)(nil)).Error, gorm.ErrInvalidValue, ""},
		"an empty slice":                   {db.Create([]order{}).Error, gorm.ErrEmptySlice, ""},
		"an empty slice, by a pointer":     {db.Create(&[]*order{}).Error, gorm.ErrEmptySlice, ""},
		"a nil map":                        {db.Model(&order{}).Create(map[string]any(nil)).Error, gorm.ErrInvalidData, "order.ID: the map is nil"},
		"a nil embedded struct, by a copy": {db.Create(embeds{}).Error, gorm.ErrInvalidValue, ".ID: want a pointer to a gormplugin.embeds"},
	} {
		if !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", name, c.err, c.want, c.text)
		}
	}
	if got := s.inserts(); len(got) > 0 {
		t.Errorf("inserted %q", got)
	}
	// A row with an ID need not be addressable.
	db = open(t, For(snowflakes()))
	wantSQL(t, create(t, db, order{ID: 7}), "INSERT INTO `orders` (`id`,`note`) VALUES (7,\"\")")
	wantSQL(t, create(t, db, [2]order{{ID: 7}, {ID: 8}}), "INSERT INTO `orders` (`id`,`note`) VALUES (7,\"\"),(8,\"\")")
}

// gorm.G creates rows with IDs, also from assignments, which GORM converts to a map that it
// doesn't return.
func TestGenericCreate(t *testing.T) {
	s := &server{affected: 1}
	db := openServer(t, s, For(snowflakes()))
	ctx, rows := t.Context(), gorm.G[order](db)
	note := clause.Assignment{Column: clause.Column{Name: "note"}, Value: "a"}
	key := clause.Assignment{Column: clause.Column{Name: "id"}, Value: idtype.Snowflake(77)}
	one, selected, omitted, inside, elsewhere, batch := order{}, order{}, order{}, order{}, order{}, make([]order, 3)
	for _, err := range []error{
		rows.Create(ctx, &one), rows.Select("Note").Create(ctx, &selected), rows.Omit("Note").Create(ctx, &omitted),
		db.Transaction(func(tx *gorm.DB) error { return gorm.G[order](tx).Create(ctx, &inside) }),
		rows.Set(note).Create(ctx), rows.Set(clause.Set{note}).Create(ctx), rows.Set(clause.Assignments(map[string]any{"note": "a"})).Create(ctx), rows.Set(key, note).Create(ctx),
		rows.Table("archive").Create(ctx, &elsewhere), rows.Table("archive").Omit("Note").CreateInBatches(ctx, &batch, 2), rows.Table("archive").Set(note).Create(ctx),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	var got []string
	for _, table := range []string{"orders", "archive"} {
		for _, row := range s.inserted(table) {
			got = append(got, fmt.Sprint(row))
		}
	}
	want := []string{"map[id:1 note:]", "map[id:2 note:]", "map[id:3]", "map[id:4 note:]", "map[id:5 note:a]", "map[id:6 note:a]", "map[id:7 note:a]", "map[id:77 note:a]",
		"map[id:8 note:]", "map[id:9]", "map[id:10]", "map[id:11]", "map[id:12 note:a]"}
	if !slices.Equal(got, want) {
		t.Errorf("inserted %q, want %q", got, want)
	}
	if ids := []idtype.Snowflake{one.ID, selected.ID, omitted.ID, inside.ID, elsewhere.ID, batch[0].ID, batch[1].ID, batch[2].ID}; !slices.Equal(ids, []idtype.Snowflake{1, 2, 3, 4, 8, 9, 10, 11}) {
		t.Errorf("IDs = %v", ids)
	}
}

type (
	letter struct {
		ID       idtype.Snowflake
		Name     string
		Weight   int
		SenderID *idtype.Snowflake
		Sender   *order
		Stamps   []stamp
	}
	stamp struct {
		ID       idtype.Snowflake
		LetterID idtype.Snowflake
		Text     string
	}
)

// Struct and row have the same ID with every Select, and with every Omit that keeps the key.
func TestSelectAndOmit(t *testing.T) {
	type saved struct{ name, weight, sender, stamps bool }
	for name, c := range map[string]struct {
		tx   func(*gorm.DB) *gorm.DB
		want saved
	}{
		"a field":                     {func(g *gorm.DB) *gorm.DB { return g.Select("Name") }, saved{name: true}},
		"a column":                    {func(g *gorm.DB) *gorm.DB { return g.Select("weight") }, saved{weight: true}},
		"a column of the table":       {func(g *gorm.DB) *gorm.DB { return g.Select("letters.name") }, saved{name: true}},
		"the key as well":             {func(g *gorm.DB) *gorm.DB { return g.Select("ID", "Name") }, saved{name: true}},
		"a list":                      {func(g *gorm.DB) *gorm.DB { return g.Select([]string{"Name", "weight"}) }, saved{name: true, weight: true}},
		"all columns":                 {func(g *gorm.DB) *gorm.DB { return g.Select("*") }, saved{true, true, true, true}},
		"all of the table":            {func(g *gorm.DB) *gorm.DB { return g.Select("letters.*") }, saved{name: true, weight: true}},
		"all columns but one":         {func(g *gorm.DB) *gorm.DB { return g.Select("*").Omit("Weight") }, saved{name: true, sender: true, stamps: true}},
		"associations":                {func(g *gorm.DB) *gorm.DB { return g.Select("SenderID", clause.Associations) }, saved{sender: true, stamps: true}},
		"a field and its association": {func(g *gorm.DB) *gorm.DB { return g.Select("Name", "SenderID", "Sender") }, saved{name: true, sender: true}},
		"an association alone":        {func(g *gorm.DB) *gorm.DB { return g.Select("Stamps") }, saved{stamps: true}},
		"a column of an association":  {func(g *gorm.DB) *gorm.DB { return g.Select("Name", "Stamps", "Stamps.LetterID") }, saved{name: true, stamps: true}},
		"but a field":                 {func(g *gorm.DB) *gorm.DB { return g.Omit("Weight") }, saved{name: true, sender: true, stamps: true}},
		"but a column":                {func(g *gorm.DB) *gorm.DB { return g.Omit("name") }, saved{weight: true, sender: true, stamps: true}},
		"but the associations":        {func(g *gorm.DB) *gorm.DB { return g.Omit(clause.Associations) }, saved{name: true, weight: true}},
		"but an association":          {func(g *gorm.DB) *gorm.DB { return g.Omit("Stamps") }, saved{name: true, weight: true, sender: true}},
		"but an association's column": {func(g *gorm.DB) *gorm.DB { return g.Omit("Stamps.Text") }, saved{true, true, true, true}},
	} {
		s := &server{affected: 1}
		tx := c.tx(openServer(t, s, For(snowflakes()))).Session(&gorm.Session{})
		letters := make([]letter, 3)
		for i := range letters {
			letters[i] = letter{Name: "a", Weight: 1, Sender: &order{}, Stamps: make([]stamp, 2)}
		}
		rest, m := letters[1:], map[string]any{"name": "a", "weight": 1}
		for _, err := range []error{tx.Create(&letters[0]).Error, tx.Create(&rest).Error, tx.Model(&letter{}).Create(m).Error} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		id, _ := m["id"].(idtype.Snowflake)
		rows := s.inserted("letters")
		if len(rows) != 4 {
			t.Fatalf("%s: inserted %v", name, rows)
		}
		stamps, senders := s.inserted("stamps"), s.inserted("orders")
		for i, l := range append(letters, letter{ID: id}) {
			row := rows[i]
			want := c.want
			_, hasName := row["name"]
			_, hasWeight := row["weight"]
			if l.ID == 0 || row["id"] != int64(l.ID) || hasName != want.name || hasWeight != want.weight {
				t.Errorf("%s: %d: got row %v, want %v and %+v", name, i, row, l.ID, want)
			}
			if want.sender && l.Sender != nil && (l.Sender.ID == 0 || row["sender_id"] != int64(l.Sender.ID) || senders[i]["id"] != int64(l.Sender.ID)) {
				t.Errorf("%s: %d: got row %v of sender %v, want %v", name, i, row, senders[i], l.Sender)
			}
			for j, v := range l.Stamps {
				if want.stamps && (v.ID == 0 || v.LetterID != l.ID || stamps[2*i+j]["id"] != int64(v.ID) || stamps[2*i+j]["letter_id"] != int64(l.ID)) {
					t.Errorf("%s: %d: got stamp %v, want %v", name, i, stamps[2*i+j], v)
				}
			}
		}
		if c.want.stamps != (len(stamps) == 6) || c.want.sender != (len(senders) == 3) {
			t.Errorf("%s: inserted stamps %v and senders %v, want %+v", name, stamps, senders, c.want)
		}
	}
}

// inserted returns the rows of the INSERT statements for a table that ran.
func (s *server) inserted(table string) (rows []map[string]any) {
	for i, q := range s.ran {
		list, insert := strings.CutPrefix(q, "INSERT INTO `"+table+"` (`")
		if !insert {
			continue
		}
		list, _, _ = strings.Cut(list, "`)")
		columns := strings.Split(list, "`,`")
		for j, a := range s.args[i] {
			if j%len(columns) == 0 {
				rows = append(rows, map[string]any{})
			}
			rows[len(rows)-1][columns[j%len(columns)]] = a.Value
		}
	}
	return rows
}
