package gorm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// A library has patrons and their loans, with keys of type K.
type patron[K any] struct {
	ID    K
	Name  string
	Loans []loan[K] `gorm:"foreignKey:PatronID"`
}

type loan[K any] struct {
	ID       K
	Title    string
	PatronID K
	Patron   *patron[K]
	HeirID   *K // a second key, which may be NULL
	Heir     *patron[K]
}

func (patron[K]) TableName() string { return "patrons" }
func (loan[K]) TableName() string   { return "loans" }

// otherUUID is the key of a model whose UUIDs are not Snos.
type otherUUID string

func (otherUUID) GormDataType() string { return "uuid" }

var randomUUIDs = []otherUUID{"f47ac10b-58cc-4372-a567-0e02b2c3d479", "0b6ccd2c-9b56-4a5c-8ab4-4b4b5d6c1f0e"}

// The key of an existing model can get an ID type.
func (k of[T, N]) moved(t *testing.T, g *gorm.DB) {
	if k.Column == "uuid" {
		k.movedFromUUID(t, g)
		return
	}
	k.movedFromNumbers(t, g)
}

// alterations returns the statements of AutoMigrate that change something.
func alterations(t *testing.T, g *gorm.DB, models ...any) (s []string) {
	t.Helper()
	r := pgtest.NewRecorder()
	must(t, g.Session(&gorm.Session{Logger: r}).AutoMigrate(models...))
	for _, kind := range []string{"ALTER", "CREATE", "DROP", "INSERT", "COMMENT", "UPDATE"} {
		s = append(s, r.With(kind)...)
	}
	return s
}

// keyColumn returns the type and the default of a column in Postgres.
func keyColumn(t *testing.T, g *gorm.DB, table, column string) string {
	t.Helper()
	var got string
	must(t, g.Raw(`select data_type || ' ' || coalesce(column_default, identity_generation, '')
		from information_schema.columns where table_name = ? and column_name = ?`, table, column).Scan(&got).Error)
	return got
}

// The numbers of a sequence are valid IDs. They sort before all generated IDs, except with
// Spread64. AutoMigrate changes nothing, not even the default, which older programs still
// use.
func (k of[T, N]) movedFromNumbers(t *testing.T, g *gorm.DB) {
	must(t, g.AutoMigrate(&patron[int64]{}, &loan[int64]{}))
	old := patron[int64]{Name: "old", Loans: []loan[int64]{{Title: "old"}}}
	must(t, g.Create(&old).Error)
	if old.ID != 1 || old.Loans[0].PatronID != 1 {
		t.Fatalf("got %+v, want IDs 1", old)
	}

	if s := alterations(t, g, &patron[T]{}, &loan[T]{}); isPostgres(g) && len(s) > 0 {
		t.Errorf("AutoMigrate changed %q", s)
	}
	if s := alterations(t, g, &patron[T]{}, &loan[T]{}); len(s) > 0 {
		t.Errorf("a second AutoMigrate changed %q", s)
	}

	fresh := patron[T]{Name: "new", Loans: []loan[T]{{Title: "new"}}}
	must(t, g.Create(&fresh).Error)
	var before []patron[T]
	must(t, g.Preload("Loans").Find(&before, "name = ?", "old").Error)
	if len(before) != 1 || fmt.Sprint(k.Stored(before[0].ID)) != "1" || len(before[0].Loans) != 1 || before[0].Loans[0].PatronID != before[0].ID {
		t.Fatalf("got %+v, want the old row with ID 1 and its loan", before)
	}
	first := before[0]
	if isPostgres(g) {
		for table := range map[string]bool{"patrons": true, "loans": true} {
			if got, want := keyColumn(t, g, table, "id"), "bigint nextval('"+table+"_id_seq'::regclass)"; got != want {
				t.Errorf("%s.id is %s, want %s", table, got, want)
			}
			var last int
			must(t, g.Raw("select last_value from "+table+"_id_seq").Scan(&last).Error)
			if last != 1 {
				t.Errorf("%s: the sequence is at %d, want 1", table, last)
			}
		}
		late := patron[int64]{Name: "late"}
		must(t, g.Create(&late).Error)
		var n patron[T]
		if err := g.First(&n, "name = ?", "late").Error; err != nil || late.ID != 2 || k.Stored(n.ID) != "2" {
			t.Errorf("older program: got %d and %v, %v, want 2", late.ID, n.ID, err)
		}
		must(t, g.Delete(&late).Error)
	}

	// Queries treat old and new rows alike.
	must(t, g.Create(&loan[T]{Title: "mixed", PatronID: first.ID, HeirID: &fresh.ID}).Error)
	must(t, g.Model(&first).Update("name", "renamed").Error)
	var loans []loan[T]
	must(t, g.Joins("Heir").Order("loans.id").Find(&loans, "patron_id = ?", first.ID).Error)
	if len(loans) != 2 || (loans[0].Heir == nil) == (loans[1].Heir == nil) {
		t.Errorf("got loans %+v, want one with an heir", loans)
	}
	if err := g.Create(&loan[T]{Title: "of nobody", PatronID: k.ids(t, 1)[0]}).Error; err == nil {
		t.Error("loan without a patron: want an error of the foreign key")
	}
	var ids []T
	must(t, g.Model(&patron[T]{}).Order("id").Pluck("id", &ids).Error)
	if want := []T{first.ID, fresh.ID}; len(ids) != 2 || !slices.Contains(ids, fresh.ID) || k.Layout != nil && !slices.Equal(ids, want) {
		t.Errorf("got IDs %v, want %v", ids, want)
	}
}

// AutoMigrate doesn't alter primary keys, so keys of 32 bits keep their type. Inserts fail until
// an ALTER TABLE changes it to bigint.
func (k of[T, N]) movedFromSerial(t *testing.T, g *gorm.DB) {
	if k.Column == "uuid" || !isPostgres(g) {
		return // integers have 64 bits in SQLite
	}
	must(t, g.AutoMigrate(&patron[int32]{}, &loan[int32]{}))
	must(t, g.Create(&patron[int32]{Name: "old", Loans: []loan[int32]{{Title: "old"}}}).Error)
	want := []string{
		`ALTER TABLE "loans" ALTER COLUMN "patron_id" TYPE bigint USING "patron_id"::bigint`,
		`ALTER TABLE "loans" ALTER COLUMN "heir_id" TYPE bigint USING "heir_id"::bigint`,
	}
	if s := alterations(t, g, &patron[T]{}, &loan[T]{}); !slices.Equal(s, want) {
		t.Errorf("AutoMigrate changed %q, want %q", s, want)
	}
	if got := keyColumn(t, g, "patrons", "id"); !strings.HasPrefix(got, "integer nextval") {
		t.Errorf("the key is %s, want integer", got)
	}
	p := patron[T]{Name: "new"}
	if err := g.Create(&p).Error; err == nil {
		t.Errorf("Create with ID %v in a column of type integer: want an error", p.ID)
	}
	must(t, g.Exec("alter table patrons alter column id type bigint").Error)
	must(t, g.Create(&p).Error)
	var names []string
	must(t, g.Model(&patron[T]{}).Where("id = ? OR id = 1", p.ID).Order("name").Pluck("name", &names).Error)
	if !slices.Equal(names, []string{"new", "old"}) {
		t.Errorf("got %q, want both rows", names)
	}
}

// An identity column accepts IDs, unless it is GENERATED ALWAYS.
func (k of[T, N]) movedFromIdentity(t *testing.T, g *gorm.DB) {
	if k.Column == "uuid" || !isPostgres(g) {
		return // SQLite has none
	}
	must(t, g.Exec("create table patrons (id bigint generated always as identity primary key, name text)").Error)
	if s := alterations(t, g, &patron[T]{}); len(s) > 0 {
		t.Errorf("AutoMigrate changed %q", s)
	}
	p := patron[T]{Name: "new"}
	if err := g.Create(&p).Error; err == nil || !strings.Contains(err.Error(), "non-DEFAULT value") {
		t.Errorf("GENERATED ALWAYS: %v", err)
	}
	must(t, g.Exec("alter table patrons alter column id set generated by default").Error)
	must(t, g.Create(&p).Error)
	var n patron[T]
	if err := g.First(&n, p.ID).Error; err != nil || n.ID != p.ID {
		t.Errorf("GENERATED BY DEFAULT: got %v, %v, want %v", n.ID, err, p.ID)
	}
}

// A uuid column with other UUIDs keeps its type. Reading such a UUID as a Sno fails with a clear
// error. New rows work, and so do statements that don't read IDs.
func (k of[T, N]) movedFromUUID(t *testing.T, g *gorm.DB) {
	must(t, g.AutoMigrate(&patron[otherUUID]{}, &loan[otherUUID]{}))
	if isPostgres(g) {
		must(t, g.Exec("alter table patrons alter column id set default gen_random_uuid()").Error)
	}
	must(t, g.Create(&patron[otherUUID]{ID: randomUUIDs[0], Name: "old", Loans: []loan[otherUUID]{{ID: randomUUIDs[1], Title: "old"}}}).Error)

	for range 2 {
		if s := alterations(t, g, &patron[T]{}, &loan[T]{}); len(s) > 0 {
			t.Errorf("AutoMigrate changed %q", s)
		}
	}
	if isPostgres(g) {
		if got, want := keyColumn(t, g, "patrons", "id"), "uuid gen_random_uuid()"; got != want {
			t.Errorf("the key is %s, want %s", got, want)
		}
	}
	p := patron[T]{Name: "new", Loans: []loan[T]{{Title: "new"}}}
	must(t, g.Create(&p).Error)
	var found patron[T]
	if err := g.Preload("Loans").First(&found, p.ID).Error; err != nil || found.ID != p.ID || len(found.Loans) != 1 || found.Loans[0].ID != p.Loans[0].ID {
		t.Errorf("new: got %+v, %v, want %+v", found, err, p)
	}

	var (
		all   []patron[T]
		loans []loan[T]
		ids   []T
	)
	for name, err := range map[string]error{
		"Find":        g.Find(&all).Error,
		"First":       g.First(&patron[T]{}, "name = ?", "old").Error,
		"Pluck":       g.Model(&patron[T]{}).Pluck("id", &ids).Error,
		"foreign key": g.Select("patron_id").Find(&loans).Error,
	} {
		if !errors.Is(err, idtype.ErrNotSno) || !strings.Contains(err.Error(), string(randomUUIDs[0])) {
			t.Errorf("%s: got %v, want %v and the value", name, err, idtype.ErrNotSno)
		}
	}
	var count int64
	must(t, g.Model(&patron[T]{}).Count(&count).Error)
	must(t, g.Model(&patron[T]{}).Where("name = ?", "old").Update("name", "renamed").Error)
	var old patron[otherUUID]
	must(t, g.Preload("Loans").First(&old, "name = ?", "renamed").Error)
	if count != 2 || old.ID != randomUUIDs[0] || len(old.Loans) != 1 || old.Loans[0].ID != randomUUIDs[1] {
		t.Errorf("got %d rows and %+v, want 2 and the old row", count, old)
	}
	// The old program can read the new rows.
	var everyone []patron[otherUUID]
	must(t, g.Order("name").Find(&everyone).Error)
	if len(everyone) != 2 || string(everyone[0].ID) != k.Stored(p.ID) {
		t.Errorf("got %+v, want ID %s and the old row", everyone, k.Stored(p.ID))
	}
}

// The tags of a field take precedence over the column type of its Go type.
func (k of[T, N]) columnTags(t *testing.T, g *gorm.DB) {
	type noIncrement struct {
		ID T `gorm:"primaryKey;autoIncrement:false"`
	}
	type increment struct {
		ID T `gorm:"primaryKey;autoIncrement"`
	}
	type sized struct {
		ID   T `gorm:"size:32"`
		Code T `gorm:"size:16;not null"`
	}
	type typed struct {
		ID    sqltypes.Text[T]                    `gorm:"type:varchar(40)"`
		Code  T                                   `gorm:"type:varchar(50)"`
		Other sqltypes.Optional[sqltypes.Text[T]] `gorm:"type:varchar(60)"`
		None  *sqltypes.Text[T]                   `gorm:"type:varchar(70);not null"`
	}
	serial := "bigserial"
	if k.Column == "uuid" {
		serial = "smallserial" // a type that isn't a number has size 0
	}
	if !isPostgres(g) {
		serial = k.Column
	}
	for table, c := range map[string]struct {
		model any
		want  []string
	}{
		"not_counted": {&noIncrement{}, []string{"id", k.Column}},
		"counted":     {&increment{}, []string{"id", serial}},
		"sized":       {&sized{}, []string{"id", k.Column, "code", k.Column + " NOT NULL"}},
		"typed":       {&typed{}, []string{"id", "varchar(40)", "code", "varchar(50)", "other", "varchar(60)", "none", "varchar(70) NOT NULL"}},
	} {
		s := alterations(t, g.Table(table), c.model)
		if len(s) != 1 {
			t.Errorf("%s: AutoMigrate ran %q, want one CREATE TABLE", table, s)
			continue
		}
		definition := strings.ReplaceAll(strings.ReplaceAll(s[0], `"`, ""), "`", "")
		want := "CREATE TABLE " + table + " ("
		for i := 0; i < len(c.want); i += 2 {
			want += c.want[i] + " " + c.want[i+1] + ","
		}
		if want += "PRIMARY KEY (id))"; definition != want {
			t.Errorf("%s: AutoMigrate ran %q, want %q", table, definition, want)
		}
		// GORM mistakes the 64 bits of a number for the length of the column.
		if s := alterations(t, g.Table(table), c.model); len(s) > 0 && (table != "typed" || k.Column == "uuid") {
			t.Errorf("%s: a second AutoMigrate ran %q", table, s)
		}
	}

	// The plugin fills the key, so the sequence isn't used.
	if k.Column == "bigint" {
		row := increment{}
		must(t, g.Table("counted").Create(&row).Error)
		var found increment
		if err := g.Table("counted").First(&found).Error; err != nil || found != row || row.ID.IsZero() || k.Stored(row.ID) == "1" {
			t.Errorf("autoIncrement: got %v, %v, want %v, from the generator", found, err, row)
		}
	}
}
