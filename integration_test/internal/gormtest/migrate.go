package gormtest

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/sqltypes"
)

// A forms row has IDs in columns of types that a tag declares. The type "key" is a domain. The
// test of forms has the types of the other columns.
type formsOf[T sqltypes.ID] struct {
	ID      T
	Varchar sqltypes.Text[T] `gorm:"type:varchar(40)"`
	Char    sqltypes.Text[T] `gorm:"type:char(40)"`
	Bytes   sqltypes.SnoBytes
	Domain  T           `gorm:"type:key"`
	NullDom sql.Null[T] `gorm:"type:key"`
}

func (formsOf[T]) TableName() string { return "forms" }

// AutoMigrate creates columns of the types that the ID types declare. A second AutoMigrate
// changes nothing.
func (k *Kind) migrate(t *testing.T, g *database) {
	varchar, char := "varchar(40)", "char(40)"
	if isPostgres(g) {
		varchar, char = "character varying(40)", "character(40)"
		must(t, g.Exec("create domain key as "+k.Column).Error)
	}
	models := append(graphModels(), &owner{}, &profile{}, &account{}, &item{}, &forms{})
	must(t, g.AutoMigrate(models...))

	checkColumns(t, g, map[string]map[string]string{
		"forms": {
			"id": k.Column, "varchar": varchar, "char": char, "bytes": "bytea",
			"domain": "key", "null_dom": "key",
		},
		"people":      {"id": k.Column, "company_id": k.Column, "manager_id": k.Column},
		"passports":   {"id": k.Column, "person_id": k.Column},
		"profiles":    {"id": k.Column},
		"accounts":    {"owner_id": k.Column},
		"items":       {"id": k.Column, "owner_id": k.Column},
		"details":     {"id": k.Column},
		"pictures":    {"id": k.Column, "owner_id": k.Column},
		"person_tags": {"person_id": k.Column, "tag_id": k.Column},
		"friendships": {"person_id": k.Column, "friend_id": k.Column},
		"memberships": {"id": k.Column, "person_id": k.Column, "club_id": k.Column},
	})
	k.checkForeignKeys(t, g)

	for _, s := range alterations(t, g, models...) {
		// GORM doesn't support domains, and compares char(n) with another name.
		if !strings.Contains(s, "TYPE key USING") && !strings.Contains(s, "TYPE char(40) USING") {
			t.Errorf("the second AutoMigrate issued %s", s)
		}
	}

	// The columns store the values of their fields.
	id := k.ids(t, 1)[0]
	txt, null := sqltypes.TextOf(id), sql.Null[ID]{V: id, Valid: true}
	in := forms{Varchar: txt, Char: txt, Bytes: sqltypes.SnoBytesOf(idtype.Sno{9: 1}), Domain: id, NullDom: null}
	must(t, g.Create(&in).Error)
	finds(t, "stored", g.Where("id = ?", in.ID), in)
}

// checkForeignKeys compares the foreign keys, which exist only between columns
// of equal types.
func (k *Kind) checkForeignKeys(t *testing.T, g *database) {
	t.Helper()
	if !isPostgres(g) {
		return // SQLite has no catalog of the columns of foreign keys
	}
	want := []string{
		"accounts(owner_id) owners", "friendships(friend_id) people", "friendships(person_id) people",
		"items(owner_id) owners", "memberships(club_id) clubs", "memberships(person_id) people",
		"people(company_id) companies", "people(manager_id) people",
		"person_tags(person_id) people", "person_tags(tag_id) tags", "profiles(id) owners",
	}
	plucks(t, "foreign keys", g.Raw(`select distinct (conrelid::regclass || '(' || attname || ') ' || confrelid::regclass) collate "C" as key
		from pg_constraint join pg_attribute on attrelid = conrelid and attnum = conkey[1] where contype = 'f' order by key`), "key", want...)
}

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

// keyColumn returns the type and the default of a column in Postgres.
func keyColumn(t *testing.T, g *database, table, column string) string {
	t.Helper()
	var got string
	must(t, g.Raw(`select data_type || ' ' || coalesce(column_default, identity_generation, '')
		from information_schema.columns where table_name = ? and column_name = ?`, table, column).Scan(&got).Error)
	return got
}

// The key of an existing model can get an ID type. The numbers of a sequence are valid IDs. They
// sort before all generated IDs, except with Spread64. AutoMigrate changes nothing, not even the
// default, which older programs still use.
func (k *Kind) movedFromNumbers(t *testing.T, g *database) {
	must(t, g.AutoMigrate(&patron[int64]{}, &loan[int64]{}))
	old := patron[int64]{Name: "old", Loans: []loan[int64]{{Title: "old"}}}
	must(t, g.Create(&old).Error)
	equal(t, "the first IDs of the sequences", []int64{old.ID, old.Loans[0].ID}, []int64{1, 1})

	if s := alterations(t, g, &patron[ID]{}, &loan[ID]{}); isPostgres(g) && len(s) > 0 {
		t.Errorf("AutoMigrate changed %q", s)
	}
	equal(t, "a second AutoMigrate", alterations(t, g, &patron[ID]{}, &loan[ID]{}), nil)

	fresh := patron[ID]{Name: "new", Loans: []loan[ID]{{Title: "new"}}}
	must(t, g.Create(&fresh).Error)
	var first patron[ID]
	must(t, g.Preload("Loans").Take(&first, "name = ?", "old").Error)
	equal(t, "the old row", []string{k.stored(first.ID), k.stored(first.Loans[0].ID), k.stored(first.Loans[0].PatronID)}, []string{"1", "1", "1"})
	if isPostgres(g) {
		for _, table := range []string{"patrons", "loans"} {
			equal(t, table, keyColumn(t, g, table, "id"), "bigint nextval('"+table+"_id_seq'::regclass)")
			plucks(t, table, g.Table(table+"_id_seq"), "last_value", 1)
		}
		// An older program still uses the sequence.
		late := patron[int64]{Name: "late"}
		must(t, g.Create(&late).Error)
		var n patron[ID]
		must(t, g.Take(&n, "name = ?", "late").Error)
		equal(t, "older program", []string{fmt.Sprint(late.ID), k.stored(n.ID)}, []string{"2", "2"})
		must(t, g.Delete(&late).Error)
	}

	// Queries treat old and new rows alike.
	must(t, g.Create(&loan[ID]{Title: "mixed", PatronID: first.ID, HeirID: &fresh.ID}).Error)
	must(t, g.Model(&first).Update("name", "renamed").Error)
	var loans []loan[ID]
	must(t, g.Joins("Heir").Order("title").Find(&loans, "patron_id = ?", first.ID).Error)
	if len(loans) != 2 || loans[0].Heir == nil || loans[1].Heir != nil {
		t.Errorf("got loans %+v, want one with an heir", loans)
	}
	fails(t, "loan without a patron", g.Create(&loan[ID]{Title: "of nobody", PatronID: k.ids(t, 1)[0]}).Error, nil, "")
	if k.byTime() {
		plucks(t, "IDs", g.Model(&patron[ID]{}).Order("id"), "id", first.ID, fresh.ID)
	}
	plucks(t, "the new ID", g.Model(&patron[ID]{}).Where("name = ?", "new"), "id", fresh.ID)
	counts(t, g, "patrons", 2)
}

// AutoMigrate doesn't alter primary keys, so keys of 32 bits keep their type. Inserts fail until
// an ALTER TABLE changes it to bigint.
func (k *Kind) movedFromSerial(t *testing.T, g *database) {
	must(t, g.AutoMigrate(&patron[int32]{}, &loan[int32]{}))
	must(t, g.Create(&patron[int32]{Name: "old", Loans: []loan[int32]{{Title: "old"}}}).Error)
	want := []string{
		`ALTER TABLE "loans" ALTER COLUMN "patron_id" TYPE bigint USING "patron_id"::bigint`,
		`ALTER TABLE "loans" ALTER COLUMN "heir_id" TYPE bigint USING "heir_id"::bigint`,
	}
	equal(t, "AutoMigrate", alterations(t, g, &patron[ID]{}, &loan[ID]{}), want)
	if got := keyColumn(t, g, "patrons", "id"); !strings.HasPrefix(got, "integer nextval") {
		t.Errorf("the key is %s, want integer", got)
	}
	p := patron[ID]{Name: "new"}
	fails(t, "Create in a column of type integer", g.Create(&p).Error, nil, "")
	must(t, g.Exec("alter table patrons alter column id type bigint").Error)
	must(t, g.Create(&p).Error)
	plucks(t, "both rows", g.Model(&patron[ID]{}).Where("id = ? OR id = 1", p.ID).Order("name"), "name", "new", "old")
}

// An identity column accepts IDs, unless it is GENERATED ALWAYS.
func (k *Kind) movedFromIdentity(t *testing.T, g *database) {
	must(t, g.Exec("create table patrons (id bigint generated always as identity primary key, name text)").Error)
	equal(t, "AutoMigrate", alterations(t, g, &patron[ID]{}), nil)
	p := patron[ID]{Name: "new"}
	fails(t, "GENERATED ALWAYS", g.Create(&p).Error, nil, "non-DEFAULT value")
	must(t, g.Exec("alter table patrons alter column id set generated by default").Error)
	must(t, g.Create(&p).Error)
	plucks(t, "GENERATED BY DEFAULT", g.Model(&patron[ID]{}), "id", p.ID)
}

// A uuid column with other UUIDs keeps its type. Reading such a UUID as a Sno fails with a clear
// error, and as a UUID it succeeds. New rows work, and so do statements that don't read IDs.
func (k *Kind) movedFromUUID(t *testing.T, g *database) {
	must(t, g.AutoMigrate(&patron[otherUUID]{}, &loan[otherUUID]{}))
	if isPostgres(g) {
		must(t, g.Exec("alter table patrons alter column id set default gen_random_uuid()").Error)
	}
	must(t, g.Create(&patron[otherUUID]{ID: randomUUIDs[0], Name: "old", Loans: []loan[otherUUID]{{ID: randomUUIDs[1], Title: "old"}}}).Error)

	for range 2 {
		equal(t, "AutoMigrate", alterations(t, g, &patron[ID]{}, &loan[ID]{}), nil)
	}
	if isPostgres(g) {
		equal(t, "the key", keyColumn(t, g, "patrons", "id"), "uuid gen_random_uuid()")
	}
	p := patron[ID]{Name: "new", Loans: []loan[ID]{{Title: "new"}}}
	must(t, g.Create(&p).Error)
	finds(t, "new", g.Preload("Loans").Where("id = ?", p.ID), p)

	var (
		all   []patron[ID]
		loans []loan[ID]
		ids   []ID
	)
	for name, err := range map[string]error{
		"Find":        g.Find(&all).Error,
		"First":       g.First(&patron[ID]{}, "name = ?", "old").Error,
		"Pluck":       g.Model(&patron[ID]{}).Pluck("id", &ids).Error,
		"foreign key": g.Select("patron_id").Find(&loans).Error,
	} {
		if k.holdsAnyUUID() {
			must(t, err)
		} else {
			fails(t, name, err, idtype.ErrNotSno, string(randomUUIDs[0]))
		}
	}
	if k.holdsAnyUUID() && (len(all) != 2 || !slices.ContainsFunc(ids, func(id ID) bool { return k.stored(id) == string(randomUUIDs[0]) }) || len(loans) != 2) {
		t.Errorf("got %+v, the IDs %v and %+v, want the old and the new row", all, ids, loans)
	}
	counts(t, g, "patrons", 2)
	affects(t, "Update", g.Model(&patron[ID]{}).Where("name = ?", "old").Update("name", "renamed"), 1)
	// The old program can read all rows.
	plucks(t, "patrons", g.Model(&patron[otherUUID]{}).Order("name"), "id", otherUUID(k.stored(p.ID)), randomUUIDs[0])
	var old patron[otherUUID]
	must(t, g.Preload("Loans").First(&old, "name = ?", "renamed").Error)
	equal(t, "the old row", []otherUUID{old.ID, old.Loans[0].ID}, randomUUIDs)
}

// holdsAnyUUID reports whether the ID type holds UUIDs that are no Snos.
func (k *Kind) holdsAnyUUID() bool {
	return k.real(new(ID)).(sql.Scanner).Scan(string(randomUUIDs[0])) == nil
}

// The tags of a field take precedence over the column type of its Go type.
func (k *Kind) columnTags(t *testing.T, g *database) {
	type noIncrement struct {
		ID ID `gorm:"primaryKey;autoIncrement:false"`
	}
	type increment struct {
		ID ID `gorm:"primaryKey;autoIncrement"`
	}
	type sized struct {
		ID   ID `gorm:"size:32"`
		Code ID `gorm:"size:16;not null"`
	}
	type typed struct {
		ID    sqltypes.Text[ID]                    `gorm:"type:varchar(40)"`
		Code  ID                                   `gorm:"type:varchar(50)"`
		Other sqltypes.Optional[sqltypes.Text[ID]] `gorm:"type:varchar(60)"`
		None  *sqltypes.Text[ID]                   `gorm:"type:varchar(70);not null"`
	}
	serial := "bigserial"
	if k.Column == "uuid" || !k.plain() {
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
		equal(t, "AutoMigrate", definition, want+"PRIMARY KEY (id))")
		// GORM mistakes the 64 bits of a number for the length of the column.
		if s := alterations(t, g.Table(table), c.model); len(s) > 0 && (table != "typed" || k.Column == "uuid") {
			t.Errorf("%s: a second AutoMigrate ran %q", table, s)
		}
	}

	// The plugin fills the key, so the sequence isn't used.
	if serial != "smallserial" && k.Column == "bigint" {
		row := increment{}
		must(t, g.Table("counted").Create(&row).Error)
		var found increment
		if err := g.Table("counted").First(&found).Error; err != nil || found != row || row.ID.IsZero() || k.stored(row.ID) == "1" {
			t.Errorf("autoIncrement: got %v, %v, want %v, from the generator", found, err, row)
		}
	}
}

// Models with columns of the domains of schema sortkey, and defaults. AutoMigrate compares a
// default with its text in Postgres, so a tag with a node number has a space after the comma.
type (
	domainSnowflake struct {
		ID       idtype.Snowflake
		Name     string
		ParentID *idtype.Snowflake
		Parent   *domainSnowflake
		Made     idtype.Snowflake `gorm:"default:sortkey.next_snowflake()"`
	}
	domainSno struct {
		ID       idtype.Sno
		Name     string
		ParentID *idtype.Sno
		Parent   *domainSno
		Made     idtype.Sno `gorm:"default:sortkey.next_sno(1, 0)"`
	}
	domainSnoText struct {
		ID       sqltypes.Text[idtype.Sno]
		Name     string
		ParentID *sqltypes.Text[idtype.Sno]
		Parent   *domainSnoText
		Made     sqltypes.Text[idtype.Sno] `gorm:"default:sortkey.sno_text(sortkey.next_sno())"`
	}
)

// A model can have columns of domains: AutoMigrate creates them, the plugin fills the keys,
// and the database fills the columns that have defaults.
func domainDefaults(t *testing.T, g *database) {
	g.use(t, bindings(t)...)
	must(t, g.real.Use(gormplugin.Domains{}))
	domainModel(t, g, &domainSnowflake{}, "snowflake")
	domainModel(t, g, &domainSno{}, "sno")
	domainModel(t, g, &domainSnoText{}, "sno_as_text")
}

func domainModel(t *testing.T, g *database, model any, domain string) {
	t.Helper()
	blank := func() any { return reflect.New(reflect.TypeOf(model).Elem()).Interface() }
	must(t, g.AutoMigrate(blank()))
	stmt := &gorm.Statement{DB: g.real}
	must(t, stmt.Parse(blank()))
	table := stmt.Schema.Table
	for _, column := range []string{"id", "parent_id", "made"} {
		equal(t, table+"."+column, typeOf(t, g, table, column), "sortkey."+domain)
	}

	field := func(m any, name string) reflect.Value { return reflect.ValueOf(m).Elem().FieldByName(name) }
	// The plugin generates the parent's ID first. The server generates Made.
	child, parent := blank(), blank()
	field(parent, "Name").SetString("parent")
	field(child, "Name").SetString("child")
	field(child, "Parent").Set(reflect.ValueOf(parent))
	must(t, g.Create(child).Error)
	if field(child, "ID").IsZero() || field(parent, "ID").IsZero() || field(child, "Made").IsZero() || field(parent, "Made").IsZero() {
		t.Errorf("%s: Create left %+v and %+v", domain, child, parent)
	}
	found := blank()
	must(t, g.Preload("Parent").First(found, "id = ?", field(child, "ID").Interface()).Error)
	equal(t, domain, found, child)
	equal(t, domain, field(found, "ParentID").Elem().Interface(), field(parent, "ID").Interface())
	plucks(t, domain, g.Model(blank()).Where("id IN ?", []any{field(child, "ID").Interface(), field(parent, "ID").Interface()}).Order("name"), "name", "child", "parent")
	// Columns of the domain reject values that aren't IDs, such as zero.
	err := g.Table(table).Where("name = ?", "child").Update("parent_id", reflect.Zero(field(child, "ID").Type()).Interface()).Error
	fails(t, domain+": zero ID", err, nil, "23514")

	equal(t, domain+": a second AutoMigrate", alterations(t, g, blank()), nil)
}

// typeOf returns the type of a column in Postgres.
func typeOf(t *testing.T, g *database, table, column string) string {
	t.Helper()
	var got string
	must(t, g.Raw("select format_type(atttypid, atttypmod) from pg_attribute where attrelid = ?::regclass and attname = ?", table, column).Scan(&got).Error)
	return got
}

// The models of the test of domains.
type (
	// A parcel has each ID type. The tags say which column type it gets in Postgres.
	parcel struct {
		ID       idtype.SnowflakeOf[parcel]                    `want:"sortkey.snowflake"`
		SI       idtype.SnowflakeSI                            `want:"sortkey.snowflake_si" gorm:"not null"`
		Short    idtype.UID60                                  `want:"sortkey.uid60" gorm:"idgen;uniqueIndex"`
		Spread   *idtype.Spread64                              `want:"sortkey.spread64"`
		Sno      idtype.SnoOf[parcel]                          `want:"sortkey.sno"`
		Text     sqltypes.Text[idtype.Sno]                     `want:"sortkey.sno_as_text"`
		UUID     idtype.UUID                                   `want:"sortkey.uuid7"`
		Null     sql.Null[idtype.Sno]                          `want:"sortkey.sno"`
		Optional sqltypes.Optional[sqltypes.Text[idtype.Sno]]  `want:"sortkey.sno_as_text"`
		Own      sqltypes.Optional[idtype.UUIDOf[parcel]]      `want:"sortkey.uuid7"`
		Plain    idtype.Snowflake                              `want:"bigint" gorm:"type:bigint"`
		Digits   sqltypes.Text[idtype.Snowflake]               `want:"text"`
		Bytes    sqltypes.SnoBytes                             `want:"bytea"`
		Count    int64                                         `want:"bigint"`
		ParentID sqltypes.Optional[idtype.SnowflakeOf[parcel]] `want:"sortkey.snowflake"`
		Parent   *parcel                                       `want:"-"`
	}

	// The earlier and the later version of a model.
	earlierBox struct {
		ID    idtype.Snowflake
		Order idtype.Snowflake
	}
	laterBox struct {
		ID    idtype.Snowflake
		Order idtype.Snowflake `gorm:"not null"`
		Label idtype.UID60
		Named idtype.UID60 `gorm:"type:sortkey.uid60"`
		Lists sqltypes.Array[idtype.Snowflake]
	}
)

func (earlierBox) TableName() string { return "boxes" }
func (laterBox) TableName() string   { return "boxes" }

// The same models have columns of domains in Postgres, and of their base types in SQLite.
func domains(t *testing.T, g *database) {
	g.use(t, bindings(t)...)
	must(t, g.real.Use(gormplugin.Domains{}))
	must(t, g.AutoMigrate(&parcel{}))
	equal(t, "a second AutoMigrate", alterations(t, g, &parcel{}), nil)

	sno, uuid := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l")), idtype.Must(idtype.ParseUUID("0190163d-8694-739b-aea5-966c26f8ad91"))
	parent := parcel{SI: 1, Sno: idtype.SnoOf[parcel](sno), Text: sqltypes.TextOf(sno), UUID: uuid, Plain: 5, Digits: sqltypes.TextOf(idtype.Snowflake(6)), Bytes: sqltypes.SnoBytesOf(sno)}
	must(t, g.Create(&parent).Error)
	child := parent
	spread := idtype.Must(idtype.ParseSpread64("9234567890120123"))
	child.ID, child.Short, child.Spread, child.ParentID = 0, 0, &spread, sqltypes.OptionalOf(parent.ID)
	child.Null, child.Optional, child.Own = sql.Null[idtype.Sno]{V: sno, Valid: true}, sqltypes.OptionalOf(sqltypes.TextOf(sno)), sqltypes.OptionalOf(idtype.UUIDOf[parcel](uuid))
	must(t, g.Create(&child).Error)
	finds(t, "parcels", g.Order("id"), parent, child)
	// A failed statement needs the dialector's savepoint and its translation of errors.
	g.real.TranslateError = true
	must(t, g.Transaction(func(tx *database) error {
		fails(t, "the same parcel", tx.Transaction(func(tx *database) error {
			return tx.Create(&parcel{ID: parent.ID, SI: 1, Sno: parent.Sno, Text: parent.Text, UUID: uuid}).Error
		}), gorm.ErrDuplicatedKey, "")
		return tx.Model(&parcel{}).Where("id = ?", child.ID).Update("count", 2).Error
	}))
	if !isPostgres(g) {
		return
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[parcel]()) {
		if want := f.Tag.Get("want"); want != "-" {
			column := g.real.NamingStrategy.ColumnName("parcels", f.Name)
			equal(t, column, typeOf(t, g, "parcels", column), want)
		}
	}
	fails(t, "a zero ID", g.Model(&parcel{}).Where("id = ?", child.ID).Update("si", 0).Error, gorm.ErrCheckConstraintViolated, "")

	// AutoMigrate adds columns of domains, but keeps the type of existing columns.
	without := must1(t, g.real.DB)
	bare, err := gorm.Open(g.dialector(without), &gorm.Config{Logger: g.real.Logger})
	must(t, err)
	must(t, bare.AutoMigrate(&earlierBox{}))
	must(t, g.AutoMigrate(&laterBox{}))
	for column, want := range map[string]string{"id": "bigint", "order": "bigint", "label": "sortkey.uid60", "named": "sortkey.uid60", "lists": "bigint[]"} {
		equal(t, "boxes."+column, typeOf(t, g, "boxes", column), want)
	}
	equal(t, "a second AutoMigrate of boxes", alterations(t, g, &laterBox{}), nil)
	// Another change of a column keeps its domain.
	must(t, g.Exec("ALTER TABLE boxes ALTER label SET NOT NULL").Error)
	equal(t, "AutoMigrate of NOT NULL", alterations(t, g, &laterBox{}), []string{`ALTER TABLE "boxes" ALTER COLUMN "label" DROP NOT NULL`})
	equal(t, "boxes.label", typeOf(t, g, "boxes", "label"), "sortkey.uid60")
	// A program without Domains alters only columns whose domain is in a tag.
	equal(t, "AutoMigrate without Domains", alterations(t, plain(bare, g.dialector), &laterBox{}), []string{`ALTER TABLE "boxes" ALTER COLUMN "named" TYPE sortkey.uid60 USING "named"::sortkey.uid60`})
}

// DefaultNode is the node number of the defaults.
const DefaultNode = 1023

// The database can generate the keys: without the plugin, GORM omits a zero key from the
// INSERT, and reads the default's value back.
func domainDefaultKey(t *testing.T, g *database) {
	type ticket struct {
		ID   idtype.Snowflake `gorm:"default:sortkey.next_snowflake()"`
		Name string
	}
	type note struct {
		ID   idtype.Sno `gorm:"default:sortkey.next_sno_meta(7)"`
		Name string
	}
	must(t, g.real.Use(gormplugin.Domains{}))
	must(t, g.AutoMigrate(&ticket{}, &note{}))
	start := time.Now().Add(-time.Minute) // the server's clock may differ
	tickets, notes := []ticket{{Name: "a"}, {Name: "b"}}, []note{{Name: "a"}}
	must(t, g.Create(&tickets).Error)
	must(t, g.Create(&notes).Error)
	p, err := idtype.SnowflakeLayout{}.Parts(tickets[1].ID)
	if err != nil || p.Datacenter<<5|p.Worker != DefaultNode || p.Time.Before(start) || tickets[0].ID >= tickets[1].ID {
		t.Errorf("the server generated %v and %v, %+v", tickets[0].ID, tickets[1].ID, p)
	}
	if id := notes[0].ID; id.Meta() != 7 || id.Partition().Uint16() != DefaultNode || id.Time().Before(start) {
		t.Errorf("the server generated %v", id)
	}
	finds(t, "tickets", g.Order("id"), tickets...)
	// GORM doesn't alter the columns of primary keys.
	equal(t, "a second AutoMigrate", alterations(t, g, &ticket{}, &note{}), nil)
}

// A program without the plugin can't store a zero key if the database rejects it.
func zeroKeyGuards(t *testing.T, g *database) {
	type checked struct {
		ID   idtype.SnowflakeOf[dated] `gorm:"check:id <> 0"`
		Name string
	}
	type checkedSno struct {
		ID   idtype.SnoOf[dated] `gorm:"check:id <> '32323232-3232-3232-3232-323232323232'"`
		Name string
	}
	type checkedUUID struct {
		ID   idtype.UUIDOf[dated] `gorm:"type:uuid;check:id <> '00000000-0000-0000-0000-000000000000'"`
		Name string
	}
	must(t, g.real.Use(gormplugin.Domains{}))
	g.real.TranslateError = true
	for name, row := range map[string]any{"CHECK": &checked{}, "CHECK of a Sno": &checkedSno{}, "CHECK of a UUID": &checkedUUID{}, "domain": &domainSnowflake{}, "domain of a Sno": &domainSno{}} {
		must(t, g.AutoMigrate(row))
		fails(t, name, g.Create(row).Error, gorm.ErrCheckConstraintViolated, "")
	}
	g.use(t, bindings(t)...)
	must(t, g.Create(&checked{Name: "with the plugin"}).Error)
	must(t, g.Create(&checkedSno{Name: "with the plugin"}).Error)
	must(t, g.Create(&checkedUUID{Name: "with the plugin"}).Error)
}

type (
	dated struct {
		ID   idtype.SnowflakeOf[dated]
		Name string
	}
	datedSno struct {
		ID      idtype.SnoOf[datedSno]
		OtherID *idtype.UID60
	}
)

func (datedSno) TableName() string { return "dated_snos" }

// A program that uses only GORM, without the project's SQL, finds out that its layout has a
// later epoch than the existing rows.
func checkNewest(t *testing.T, g *database) {
	layout := idtype.DefaultSnowflakeLayout()
	later := layout
	later.Epoch = later.Epoch.AddDate(3, 0, 0)
	g.use(t, bindings(t)...)
	must(t, g.AutoMigrate(&dated{}, &datedSno{}))
	pool := must1(t, g.real.DB)
	check := func(l idtype.SnowflakeLayout) error {
		return migrations.CheckNewest(t.Context(), pool, l, "dateds", "id")
	}
	ofUIDs := func() error {
		return migrations.CheckNewest(t.Context(), pool, idtype.UID60Layout{}, "dated_snos", "other_id")
	}

	must(t, check(later)) // no rows
	must(t, g.Create(&dated{Name: "a"}).Error)
	must(t, check(layout))
	fails(t, "a later epoch", check(later), migrations.ErrFuture, "")
	earlier := layout
	earlier.Epoch = earlier.Epoch.AddDate(-3, 0, 0)
	must(t, check(earlier)) // repeats nothing

	must(t, g.Create(&datedSno{}).Error)
	must(t, migrations.CheckNewest(t.Context(), pool, idtype.SnoLayout{}, "dated_snos", "id"))
	must(t, ofUIDs()) // NULL
	_, future, err := idtype.UID60Layout{}.Range(time.Time{}, time.Now().Add(time.Hour))
	must(t, err)
	must(t, g.Model(&datedSno{}).Where("1 = 1").Update("other_id", future).Error)
	fails(t, "a wrong clock", ofUIDs(), migrations.ErrFuture, "")
	if err := migrations.CheckNewest(t.Context(), pool, layout, `no"such.table`, "id"); err == nil || errors.Is(err, migrations.ErrFuture) {
		t.Errorf("no table: %v", err)
	}
	if isPostgres(g) {
		must(t, migrations.CheckNewest(t.Context(), pool, layout, "public.dateds", "id"))
	}
}
