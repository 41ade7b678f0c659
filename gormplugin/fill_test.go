package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/sortkey/sortkey/idtype"
)

type order struct {
	ID   idtype.Snowflake
	Note string
}

// create runs a Create, and returns its SQL.
func create(t *testing.T, db *gorm.DB, value any) string {
	t.Helper()
	tx := db.Create(value)
	if tx.Error != nil {
		t.Fatalf("Create: %v", tx.Error)
	}
	return sqlOf(tx)
}

func wantSQL(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("SQL\n got %s\nwant %s", got, want)
	}
}

// A numeric is an integer ID, with or without a model.
type numeric interface {
	~int64
	columnID
}

func TestShapes(t *testing.T) {
	t.Run("base", shapes[idtype.Snowflake])
	t.Run("typed", shapes[idtype.SnowflakeOf[Sale]])
}

func shapes[ID numeric](t *testing.T) {
	type row = keyed[ID]
	one := func(v any) []ID { return []ID{v.(*row).ID} }
	two, three := &row{}, &row{}
	for name, c := range map[string]struct {
		value any
		ids   func(any) []ID
		want  []ID
	}{
		"*struct":         {&row{}, one, []ID{1}},
		"*struct, set":    {&row{ID: 7}, one, []ID{7}},
		"**struct":        {&two, func(v any) []ID { return []ID{two.ID} }, []ID{1}},
		"[]struct":        {[]row{{}, {}, {}}, func(v any) []ID { return idsOf(v.([]row)) }, []ID{1, 2, 3}},
		"*[]struct":       {&[]row{{}, {}, {}}, func(v any) []ID { return idsOf(*v.(*[]row)) }, []ID{1, 2, 3}},
		"[]struct, mixed": {[]row{{}, {ID: 9}, {}, {ID: 8}, {}}, func(v any) []ID { return idsOf(v.([]row)) }, []ID{1, 9, 2, 8, 3}},
		"*[2]struct":      {&[2]row{{}, {}}, func(v any) []ID { return idsOf(v.(*[2]row)[:]) }, []ID{1, 2}},
		"[]*struct":       {[]*row{{}, {ID: 5}, {}}, func(v any) []ID { return idsOfPtrs(v.([]*row)) }, []ID{1, 5, 2}},
		"*[]*struct":      {&[]*row{{}, {}}, func(v any) []ID { return idsOfPtrs(*v.(*[]*row)) }, []ID{1, 2}},
		"[2]*struct":      {[2]*row{{}, {}}, func(v any) []ID { a := v.([2]*row); return idsOfPtrs(a[:]) }, []ID{1, 2}},
		"[]**struct":      {[]**row{&three}, func(v any) []ID { return []ID{three.ID} }, []ID{1}},
		"*[2]*struct":     {&[2]*row{{}, {}}, func(v any) []ID { return idsOfPtrs(v.(*[2]*row)[:]) }, []ID{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			tx := open(t, For(snowflakes())).Create(c.value)
			if tx.Error != nil {
				t.Fatal(tx.Error)
			}
			got := c.ids(c.value)
			if !slices.Equal(got, c.want) {
				t.Errorf("IDs = %v, want %v", got, c.want)
			}
			for i, id := range got {
				if v := tx.Statement.Vars[2*i]; v != id {
					t.Errorf("row %d: INSERT has ID %v, struct has %v", i, v, id)
				}
			}
		})
	}
}

func ids(v ...idtype.Snowflake) []idtype.Snowflake { return v }

func idsOf[ID any](rows []keyed[ID]) (ids []ID) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

func idsOfPtrs[ID any](rows []*keyed[ID]) (ids []ID) {
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// IDs are in the order of the rows, even if the rows need several blocks and some keys are set.
func TestManyRows(t *testing.T) {
	t.Run("base", manyRows[idtype.Snowflake])
	t.Run("typed", manyRows[idtype.SnowflakeOf[Sale]])
}

func manyRows[ID numeric](t *testing.T) {
	rows := make([]keyed[ID], 3*blockSize+17)
	want := ID(0)
	for i := range rows {
		if i%7 == 3 {
			rows[i].ID = ID(1_000_000 + i)
		}
	}
	create(t, open(t, For(snowflakes())), &rows)
	for i := range rows {
		if i%7 == 3 {
			if rows[i].ID != ID(1_000_000+i) {
				t.Fatalf("row %d: an ID that was set became %d", i, rows[i].ID)
			}
			continue
		}
		if want++; rows[i].ID != want {
			t.Fatalf("row %d: ID = %d, want %d", i, rows[i].ID, want)
		}
	}
}

func TestCreateInBatches(t *testing.T) {
	t.Run("base", createInBatches[idtype.Snowflake])
	t.Run("typed", createInBatches[idtype.SnowflakeOf[Sale]])
}

func createInBatches[ID numeric](t *testing.T) {
	rows := make([]keyed[ID], 25)
	db := openServer(t, &server{affected: 10}, For(snowflakes()))
	if err := db.CreateInBatches(&rows, 10).Error; err != nil {
		t.Fatal(err)
	}
	other := make([]keyed[ID], 25)
	if err := db.Session(&gorm.Session{CreateBatchSize: 10}).Create(other).Error; err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].ID != ID(i+1) || other[i].ID != ID(i+26) {
			t.Fatalf("row %d: %d and %d", i, rows[i].ID, other[i].ID)
		}
	}
}

func TestUnaddressableRows(t *testing.T) {
	gen := snowflakes()
	db := open(t, For(gen))
	for _, value := range []any{order{}, [2]order{{ID: 1}, {}}} {
		err := db.Create(value).Error
		if !errors.Is(err, gorm.ErrInvalidValue) || !strings.Contains(err.Error(), "gormplugin: fill order.ID: want a pointer to a gormplugin.order, ") {
			t.Errorf("%T: %v", value, err)
		}
	}
	if err := db.Create(struct{ ID idtype.Snowflake }{}).Error; !errors.Is(err, gorm.ErrInvalidValue) {
		t.Errorf("an unnamed struct: %v", err)
	}
	// A row with an ID need not be addressable.
	create(t, db, order{ID: 4})
	create(t, db, [2]order{{ID: 4}, {ID: 5}})
	if gen.n != 0 {
		t.Errorf("%d generated IDs, want 0", gen.n)
	}
}

func TestNilElements(t *testing.T) {
	rows := []*order{{}, nil, {}}
	err := open(t, For(snowflakes())).Create(&rows).Error
	if !errors.Is(err, gorm.ErrInvalidData) || !strings.Contains(err.Error(), "slice data #1 is invalid") {
		t.Errorf("error = %v, want GORM's own", err)
	}
	var none *order
	if err := open(t, For(snowflakes())).Create(none).Error; !errors.Is(err, gorm.ErrInvalidValue) {
		t.Errorf("error = %v, want GORM's own", err)
	}
	if err := open(t, For(snowflakes())).Create(&[]order{}).Error; !errors.Is(err, gorm.ErrEmptySlice) {
		t.Errorf("error = %v, want GORM's own", err)
	}
}

func TestMaps(t *testing.T) {
	db := open(t, For(snowflakes()))
	m := map[string]any{"Note": "a"}
	wantSQL(t, create(t, db.Model(&order{}), m), "INSERT INTO `orders` (`note`,`id`) VALUES (\"a\",1)")
	if m["id"] != idtype.Snowflake(1) {
		t.Errorf("map = %v", m)
	}
	wantSQL(t, create(t, db.Model(&order{}), &map[string]any{"note": "a"}), "INSERT INTO `orders` (`id`,`note`) VALUES (2,\"a\")")
	wantSQL(t, create(t, db.Model(&order{}), []map[string]any{{"note": "a"}, {"note": "b"}, {"id": idtype.Snowflake(9), "note": "c"}}),
		"INSERT INTO `orders` (`id`,`note`) VALUES (3,\"a\"),(4,\"b\"),(9,\"c\")")
	wantSQL(t, create(t, db.Model(&order{}), &[]map[string]any{{"note": "a"}, nil}),
		"INSERT INTO `orders` (`id`,`note`) VALUES (5,\"a\"),(6,NULL)")
	var made map[string]any
	wantSQL(t, create(t, db.Model(&order{}), &made), "INSERT INTO `orders` (`id`) VALUES (7)")
	for _, name := range []string{"id", "ID", "Id"} {
		wantSQL(t, create(t, db.Model(&order{}), map[string]any{name: idtype.Snowflake(99)}), "INSERT INTO `orders` (`id`) VALUES (99)")
		wantSQL(t, create(t, db.Model(&order{}), map[string]any{name: "98"}), "INSERT INTO `orders` (`id`) VALUES (\"98\")")
	}
	// The order of iteration over a map varies.
	for range 20 {
		wantSQL(t, create(t, db.Model(&order{}), map[string]any{"id": idtype.Snowflake(99), "note": "a"}), "INSERT INTO `orders` (`id`,`note`) VALUES (99,\"a\")")
	}
	nine := idtype.Snowflake(9)
	for _, set := range []any{&nine, sql.Null[idtype.Snowflake]{V: 9, Valid: true}, struct{ V, N int }{V: 9}, sql.RawBytes("9")} {
		m := map[string]any{"id": set}
		if create(t, db.Model(&order{}), m); !reflect.DeepEqual(m["id"], set) {
			t.Errorf("the key of the caller's map became %v", m["id"])
		}
	}
	// The ID of an empty key is stored under the name that the map has for it.
	n := int64(8)
	for _, empty := range []any{nil, idtype.Snowflake(0), new(idtype.Snowflake), (*idtype.Snowflake)(nil), sql.Null[idtype.Snowflake]{}, sql.Null[idtype.Snowflake]{Valid: true}, sql.Null[idtype.Snowflake]{V: 9}} {
		m := map[string]any{"ID": empty}
		wantSQL(t, create(t, db.Model(&order{}), m), "INSERT INTO `orders` (`id`) VALUES ("+idtype.Snowflake(n).String()+")")
		if len(m) != 1 || m["ID"] != idtype.Snowflake(n) {
			t.Errorf("map = %v", m)
		}
		n++
	}
	if err := db.Model(&order{}).Create(map[string]any(nil)).Error; !errors.Is(err, gorm.ErrInvalidData) || errors.Is(err, gorm.ErrInvalidValue) || !strings.Contains(err.Error(), "fill order.ID: the map is nil") {
		t.Errorf("a nil map: %v", err)
	}
	// Without a model, the plugin doesn't know the key.
	wantSQL(t, create(t, db.Table("orders"), map[string]any{"note": "a"}), "INSERT INTO `orders` (`note`) VALUES (\"a\")")
	// GORM's generic interface passes assignments as a map.
	wantSQL(t, create(t, db.Model(order{}), map[string]any{"note": "g"}), "INSERT INTO `orders` (`id`,`note`) VALUES ("+idtype.Snowflake(n).String()+",\"g\")")
}

type hooked struct {
	ID   idtype.Snowflake
	Seen []idtype.Snowflake `gorm:"-"`
}

func (h *hooked) BeforeSave(*gorm.DB) error { h.Seen = append(h.Seen, h.ID); return nil }
func (h *hooked) BeforeCreate(*gorm.DB) error {
	h.Seen = append(h.Seen, h.ID)
	if h.ID == 2 {
		h.ID = 200
	}
	return nil
}

func TestHooks(t *testing.T) {
	for _, config := range []gorm.Config{{DryRun: true}, {DryRun: true, SkipDefaultTransaction: true}} {
		db := openWith(t, &config, For(snowflakes()))
		rows := []hooked{{}, {}, {}}
		wantSQL(t, create(t, db, &rows), "INSERT INTO `hookeds` (`id`) VALUES (1),(200),(3)")
		for i, r := range rows {
			if want := idtype.Snowflake(i + 1); !slices.Equal(r.Seen, ids(want, want)) {
				t.Errorf("row %d: the hooks saw %v, want %d twice", i, r.Seen, want)
			}
		}
		skipped := hooked{}
		wantSQL(t, create(t, db.Session(&gorm.Session{SkipHooks: true}), &skipped), "INSERT INTO `hookeds` (`id`) VALUES (4)")
		if skipped.Seen != nil {
			t.Errorf("SkipHooks: hooks ran, and saw %v", skipped.Seen)
		}
	}
}

// Keys are set before the callbacks of other plugins run.
func TestCallbackOrder(t *testing.T) {
	db := openWith(t, &gorm.Config{DryRun: true}, For(snowflakes()))
	var seen []idtype.Snowflake
	look := func(db *gorm.DB) { seen = append(seen, db.Statement.Dest.(*order).ID) }
	create := db.Callback().Create()
	for _, err := range []error{
		create.Before("gorm:begin_transaction").Register("test:1", look),
		create.Before("gorm:before_create").Register("test:2", look),
		create.Register("test:3", look),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	db.Create(&order{})
	if !slices.Equal(seen, ids(1, 1, 1)) {
		t.Errorf("callbacks saw %v, want 1 each", seen)
	}
}

type tagged struct {
	Key  idtype.Snowflake `gorm:"primaryKey;idgen:special"`
	Name string
}

type optedOut struct {
	ID   idtype.Snowflake `gorm:"idgen:-"`
	Name string
}

// GORM doesn't trim the value of a tag.
type taggedWithSpace struct {
	ID idtype.Snowflake `gorm:"idgen: special"`
}

type optedOutWithSpace struct {
	ID   idtype.Snowflake `gorm:"idgen: -"`
	Name string
}

func TestGeneratorSelection(t *testing.T) {
	db := open(t, For(from(100)), For(snos()), Named("special", from(200)))
	for _, c := range []struct{ value, want any }{
		{&order{}, &order{ID: 101}},
		{&tagged{}, &tagged{Key: 201}},
		{&line{}, &line{ID: 102}},
		{&optedOut{}, &optedOut{}},
		{&taggedWithSpace{}, &taggedWithSpace{ID: 202}},
		{&optedOutWithSpace{}, &optedOutWithSpace{}},
		{&emptyTag{}, &emptyTag{ID: 103}},
	} {
		create(t, db, c.value)
		if !reflect.DeepEqual(c.value, c.want) {
			t.Errorf("got %+v, want %+v", c.value, c.want)
		}
	}
}

// Base is exported, because GORM ignores unexported embedded structs.
type Base struct {
	ID idtype.Snowflake `gorm:"primaryKey"`
}

type embedsValue struct {
	Base
	Name string
}

type embedsPointer struct {
	*Base
	Name string
}

type embedsPrefixed struct {
	B    Base `gorm:"embedded;embeddedPrefix:b_"`
	Name string
}

type embedsPrefixedPointer struct {
	B    *Base `gorm:"embedded;embeddedPrefix:b_"`
	Name string
}

type embedsTagged struct {
	B    Base `gorm:"embedded;idgen:special"`
	Name string
}

type shadows struct {
	Base
	ID   idtype.Sno `gorm:"primaryKey"`
	Name string
}

func TestEmbedded(t *testing.T) {
	db := open(t, For(snowflakes()), For(snos()), Named("special", from(100)))
	a := embedsValue{}
	wantSQL(t, create(t, db, &a), "INSERT INTO `embeds_values` (`id`,`name`) VALUES (1,\"\")")
	b := embedsPointer{}
	wantSQL(t, create(t, db, &b), "INSERT INTO `embeds_pointers` (`id`,`name`) VALUES (2,\"\")")
	c := embedsPrefixed{}
	wantSQL(t, create(t, db, &c), "INSERT INTO `embeds_prefixeds` (`b_id`,`name`) VALUES (3,\"\")")
	d := []embedsPrefixedPointer{{}, {B: &Base{ID: 9}}, {B: &Base{}}}
	wantSQL(t, create(t, db, &d), "INSERT INTO `embeds_prefixed_pointers` (`b_id`,`name`) VALUES (4,\"\"),(9,\"\"),(5,\"\")")
	e := embedsTagged{}
	wantSQL(t, create(t, db, &e), "INSERT INTO `embeds_taggeds` (`id`,`name`) VALUES (101,\"\")")
	f := shadows{}
	create(t, db, &f)
	if a.ID != 1 || b.ID != 2 || c.B.ID != 3 || d[2].B.ID != 5 || e.B.ID != 101 {
		t.Errorf("IDs = %d, %d, %d, %d, %d, want 1, 2, 3, 5, 101", a.ID, b.ID, c.B.ID, d[2].B.ID, e.B.ID)
	}
	if f.ID != (idtype.Sno{9: 1}) || f.Base.ID != 0 {
		t.Errorf("shadowed key: %+v", f)
	}
	if err := db.Create(embedsPointer{}).Error; !errors.Is(err, gorm.ErrInvalidValue) {
		t.Errorf("unaddressable row with a nil embedded struct: %v", err)
	}
}

// text stores an ID as text, as a column type of package sqltypes does.
type text[T interface {
	comparable
	fmt.Stringer
}] struct{ ID T }

func (v text[T]) Value() (driver.Value, error) { return v.ID.String(), nil }
func (text[T]) GormDataType() string           { return "text" }

// ownText is an ID type of the caller that is stored as text.
type ownText struct{ Text }

// Text is exported, because other packages can set an embedded field only if its type is
// exported.
type Text = text[idtype.Sno]

func TestColumnForms(t *testing.T) {
	type pointer struct{ ID *idtype.Snowflake }
	type null struct{ ID sql.Null[idtype.Snowflake] }
	type asText struct{ ID text[idtype.Sno] }
	db := open(t, For(snowflakes()), For(snos()), Named("special", from(100)))

	zero, nine := idtype.Snowflake(0), idtype.Snowflake(9)
	p := []pointer{{}, {&zero}, {&zero}, {&nine}}
	create(t, db, &p)
	if *p[0].ID != 1 || *p[1].ID != 2 || *p[2].ID != 3 || *p[3].ID != 9 || zero != 0 {
		t.Errorf("*T: got %d, %d, %d, %d, want 1, 2, 3, 9; the caller's variable became %d", *p[0].ID, *p[1].ID, *p[2].ID, *p[3].ID, zero)
	}
	n := []null{{}, {sql.Null[idtype.Snowflake]{V: 9, Valid: true}}, {sql.Null[idtype.Snowflake]{Valid: true}}, {sql.Null[idtype.Snowflake]{V: 9}}}
	create(t, db, &n)
	if want := []null{{sql.Null[idtype.Snowflake]{V: 4, Valid: true}}, {sql.Null[idtype.Snowflake]{V: 9, Valid: true}},
		{sql.Null[idtype.Snowflake]{V: 5, Valid: true}}, {sql.Null[idtype.Snowflake]{V: 6, Valid: true}}}; !slices.Equal(n, want) {
		t.Errorf("Null[T]: %v", n)
	}
	s := []asText{{}, {text[idtype.Sno]{idtype.Sno{9: 9}}}}
	wantSQL(t, create(t, db, &s), "INSERT INTO `as_texts` (`id`) VALUES (\"2222222222222223\"),(\"222222222222222b\")")
	wantSQL(t, create(t, db.Model(&asText{}), map[string]any{}), "INSERT INTO `as_texts` (`id`) VALUES (\"2222222222222224\")")
	if s[0].ID.ID != (idtype.Sno{9: 1}) {
		t.Errorf("text: got %v", s)
	}
	m := map[string]any{}
	create(t, db.Model(&null{}), m)
	if m["id"] != idtype.Snowflake(7) {
		t.Errorf("map for Null[T]: got %v, want ID 7", m)
	}
	// An own type around a column type.
	type own struct{ ID ownText }
	o := own{}
	wantSQL(t, create(t, db, &o), "INSERT INTO `owns` (`id`) VALUES (\"2222222222222225\")")
	wantSQL(t, create(t, db.Model(&own{}), map[string]any{}), "INSERT INTO `owns` (`id`) VALUES (\"2222222222222226\")")
	if o.ID.ID != (idtype.Sno{9: 3}) {
		t.Errorf("own type around a column type: %v", o)
	}
	// The text of a Snowflake, with the generator of its type and a named one.
	type decimal struct{ ID text[idtype.Snowflake] }
	type named struct {
		ID text[idtype.Snowflake] `gorm:"idgen:special"`
	}
	wantSQL(t, create(t, db, &decimal{}), "INSERT INTO `decimals` (`id`) VALUES (\"8\")")
	wantSQL(t, create(t, db, &named{}), "INSERT INTO `nameds` (`id`) VALUES (\"101\")")
}

// The plugin doesn't fill a struct with more fields than an ID, or with an unexported ID.
func TestOtherStructs(t *testing.T) {
	type withPair struct{ ID pair }
	type withOpaque struct{ ID opaque }
	db := open(t, For(snowflakes()))
	a, b := withPair{}, withOpaque{}
	wantSQL(t, create(t, db, &a), "INSERT INTO `with_pairs` (`id`) VALUES (\"\")")
	wantSQL(t, create(t, db, &b), "INSERT INTO `with_opaques` (`id`) VALUES (\"\")")
	if a.ID.V != 0 || b.ID.id != 0 {
		t.Errorf("IDs = %v, %v", a, b)
	}
}

// pair has the fields of a sql.Null, but is another type.
type pair struct {
	V     idtype.Snowflake
	Valid bool
}

func (pair) Value() (driver.Value, error) { return "", nil }
func (pair) GormDataType() string         { return "text" }

type opaque struct{ id idtype.Snowflake }

func (opaque) Value() (driver.Value, error) { return "", nil }
func (opaque) GormDataType() string         { return "text" }

type line struct {
	OrderID idtype.Snowflake `gorm:"primaryKey"`
	ID      idtype.Snowflake `gorm:"primaryKey;idgen"`
	Name    string
}

type two struct {
	Left  idtype.Snowflake `gorm:"primaryKey"`
	Right idtype.Snowflake `gorm:"primaryKey"`
}

type bothTagged struct {
	Left  idtype.Snowflake `gorm:"primaryKey;idgen"`
	Right idtype.Sno       `gorm:"primaryKey;idgen:snos"`
}

type firstOptedOut struct {
	Left  idtype.Snowflake `gorm:"primaryKey;idgen:-"`
	Right idtype.Snowflake `gorm:"primaryKey;idgen"`
}

type secondByDefault struct {
	Left  idtype.Snowflake `gorm:"primaryKey"`
	Right idtype.Snowflake `gorm:"primaryKey;default:next_id()"`
}

type partitioned struct {
	ID   idtype.Snowflake `gorm:"primaryKey"`
	Year int              `gorm:"primaryKey;autoIncrement:false"`
}

type membership struct {
	GroupID idtype.Snowflake `gorm:"primaryKey"`
	UserID  idtype.Snowflake `gorm:"primaryKey"`
	Group   *group
}

type group struct {
	ID idtype.Snowflake
}

func TestCompositeKeys(t *testing.T) {
	db := open(t, For(snowflakes()), Named("snos", snos()))
	l := line{}
	wantSQL(t, create(t, db, &l), "INSERT INTO `lines` (`order_id`,`id`,`name`) VALUES (0,1,\"\")")
	// The plugin leaves parts without a tag to the caller.
	wantSQL(t, create(t, db, &two{}), "INSERT INTO `twos` (`left`,`right`) VALUES (0,0)")
	b := bothTagged{}
	create(t, db, &b)
	if want := (bothTagged{2, idtype.Sno{9: 1}}); b != want {
		t.Errorf("got %v, want %v", b, want)
	}
	wantSQL(t, create(t, db, &partitioned{ID: 5, Year: 2024}), "INSERT INTO `partitioneds` (`id`,`year`) VALUES (5,2024)")
	wantSQL(t, create(t, db, &partitioned{ID: 5}), "INSERT INTO `partitioneds` (`id`,`year`) VALUES (5,0)")
	wantSQL(t, create(t, db, &secondByDefault{Left: 5}), "INSERT INTO `second_by_defaults` (`left`) VALUES (5) RETURNING `right`")
	err := db.Create(&partitioned{Year: 2024}).Error
	if !errors.Is(err, ErrNoGenerator) || !strings.Contains(err.Error(), "partitioned.ID") || !strings.Contains(err.Error(), `gorm:"idgen"`) {
		t.Errorf("only ID of a composite key: got %v, want %v", err, ErrNoGenerator)
	}
	m := membership{UserID: 7, Group: &group{}}
	wantSQL(t, create(t, db, &m), "INSERT INTO `memberships` (`group_id`,`user_id`) VALUES (3,7)")
	create(t, db, &membership{UserID: 7})
	// A part that opts out doesn't affect the parts after it.
	wantSQL(t, create(t, db, &firstOptedOut{}), "INSERT INTO `first_opted_outs` (`left`,`right`) VALUES (0,4)")
	b = bothTagged{}
	create(t, db.Omit("Left"), &b)
	if want := (bothTagged{0, idtype.Sno{9: 2}}); b != want {
		t.Errorf("got %v, want %v", b, want)
	}
}

func TestSelectAndOmit(t *testing.T) {
	type priced struct {
		ID    idtype.Snowflake
		Name  string
		Price int
	}
	db := open(t, For(snowflakes()))
	r := priced{Name: "a", Price: 2}
	wantSQL(t, create(t, db.Select("Name"), &r), "INSERT INTO `priceds` (`id`,`name`) VALUES (1,\"a\")")
	wantSQL(t, create(t, db.Select("Name"), &priced{ID: 9}), "INSERT INTO `priceds` (`id`,`name`) VALUES (9,\"\")")
	wantSQL(t, create(t, db.Select("ID", "Price"), &priced{}), "INSERT INTO `priceds` (`id`,`price`) VALUES (2,0)")
	wantSQL(t, create(t, db.Select("*"), &priced{}), "INSERT INTO `priceds` (`id`,`name`,`price`) VALUES (3,\"\",0)")
	wantSQL(t, create(t, db.Model(&priced{}).Select("name"), map[string]any{"name": "m", "price": 3}), "INSERT INTO `priceds` (`id`,`name`) VALUES (4,\"m\")")
	wantSQL(t, create(t, db.Omit("Price"), &[]priced{{}, {}}), "INSERT INTO `priceds` (`id`,`name`) VALUES (5,\"\"),(6,\"\")")
	for _, tx := range []*gorm.DB{db.Omit("ID"), db.Omit("id"), db.Select("ID", "Name", "Price").Omit("ID"), db.Omit("priceds.id")} {
		r := priced{}
		wantSQL(t, create(t, tx, &r), "INSERT INTO `priceds` (`name`,`price`) VALUES (\"\",0)")
		if r.ID != 0 {
			t.Errorf("omitted key: ID = %d, want 0", r.ID)
		}
	}
	// The statement doesn't change the list of the session.
	list := make([]string, 1, 4)
	list[0] = "Name"
	shared := db.Select(list).Session(&gorm.Session{})
	create(t, shared, &priced{})
	if got := list[:2][1]; got != "" {
		t.Errorf("the list's next element became %q", got)
	}
	wantSQL(t, create(t, shared, &priced{}), "INSERT INTO `priceds` (`id`,`name`) VALUES (8,\"\")")

	type createOnly struct {
		ID   idtype.Snowflake `gorm:"<-:create"`
		Name string
	}
	wantSQL(t, create(t, db.Select("Name"), &createOnly{}), "INSERT INTO `create_onlies` (`id`,`name`) VALUES (9,\"\")")

	type readOnly struct {
		ID   idtype.Snowflake `gorm:"->"`
		Name string
	}
	ro := readOnly{}
	wantSQL(t, create(t, db, &ro), "INSERT INTO `read_onlies` (`name`) VALUES (\"\")")
	if ro.ID != 0 {
		t.Errorf("read-only key: ID = %d, want 0", ro.ID)
	}
}

// The callback ignores values that don't match the model. GORM rejects them.
func TestUnknownDestinations(t *testing.T) {
	type view struct{ Note string }
	db := open(t, For(snowflakes()))
	fill, tx := db.Callback().Create().Get(fillCallback), db.Session(&gorm.Session{Initialized: true})
	if err := tx.Statement.Parse(&order{}); err != nil {
		t.Fatal(err)
	}
	type named map[string]any
	for _, dest := range []any{&view{}, &[]view{{}}, &[]*view{nil}, named{}, new(int), &[]int{1}, &[]any{1}} {
		tx.Statement.Dest, tx.Statement.ReflectValue = dest, reflect.Indirect(reflect.ValueOf(dest))
		if fill(tx); tx.Error != nil {
			t.Errorf("%T: %v", dest, tx.Error)
		}
	}
}

func TestContext(t *testing.T) {
	type ctxKey struct{}
	gen := snowflakes()
	db := open(t, For(gen))
	withValue := context.WithValue(context.Background(), ctxKey{}, 1)
	ctx, cancel := context.WithCancel(withValue)
	for _, ctx := range []context.Context{withValue, ctx} {
		for _, value := range []any{&order{}, &[]order{{}, {}}, map[string]any{}} {
			gen.ctx = nil
			before := gen.n
			create(t, db.WithContext(ctx).Model(&order{}), value)
			want := int64(1)
			if rows, ok := value.(*[]order); ok {
				want = int64(len(*rows))
			}
			if got := gen.n - before; got != want {
				t.Errorf("%T: %d generated IDs, want %d", value, got, want)
			}
			if gen.ctx == nil || gen.ctx.Value(ctxKey{}) != 1 {
				t.Errorf("%T: the generator got another context than the statement's", value)
			}
		}
	}
	db = db.WithContext(ctx)
	cancel()
	for _, value := range []any{&order{}, &[]order{{}, {}}} {
		if err := db.Create(value).Error; !errors.Is(err, context.Canceled) {
			t.Errorf("%T: error = %v", value, err)
		}
	}
	if err := db.Model(&order{}).Create(map[string]any{}).Error; !errors.Is(err, context.Canceled) {
		t.Errorf("a map: error = %v", err)
	}
}

func TestConcurrency(t *testing.T) {
	db := open(t, For(snowflakes()))
	ctx := t.Context()
	var mu sync.Mutex
	seen := map[idtype.Snowflake]bool{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				rows := make([]keyed[idtype.Snowflake], 20)
				one, l := order{}, line{}
				m := map[string]any{}
				for _, tx := range []*gorm.DB{db.Create(&rows), db.WithContext(ctx).Create(&one), db.Create(&l), db.Model(&order{}).Create(m)} {
					if tx.Error != nil {
						t.Error(tx.Error)
						return
					}
				}
				mu.Lock()
				for _, id := range append(idsOf(rows), one.ID, l.ID, m["id"].(idtype.Snowflake)) {
					if id == 0 || seen[id] {
						t.Errorf("ID %d is zero or a duplicate", id)
					}
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// Concurrent calls of keep lose no plan.
func TestConcurrentPlans(t *testing.T) {
	var p planner
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 50 {
				p.keep(&schema.Schema{}, &plan{})
			}
		})
	}
	wg.Wait()
	if got := len(*p.plans.Load()); got != 16*50 {
		t.Errorf("%d plans, want %d", got, 16*50)
	}
}

// GORM writes to a model's relations while the model is in use. The race detector checks
// that the plugin reads them under the lock.
func TestConcurrentParsing(t *testing.T) {
	for range 20 {
		db := open(t)
		tx := db.Session(&gorm.Session{Initialized: true})
		if err := tx.Statement.Parse(&profile{}); err != nil {
			t.Fatal(err)
		}
		p := planner{bindings: []Binding{For(snowflakes())}}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := (&gorm.Statement{DB: db}).Parse(&account{}); err != nil {
				t.Error(err)
			}
		})
		for n := 0; p.planFor(tx.Statement.Schema).keys[0].err == nil; n++ {
			if n == 10_000_000 {
				t.Fatal("the account's relation never reached the profile")
			}
			runtime.Gosched()
		}
		wg.Wait()
	}
}

func TestManyDatabases(t *testing.T) {
	p := New(For(snowflakes()))
	for want := range 3 {
		db := open(t)
		if err := db.Use(p); err != nil {
			t.Fatal(err)
		}
		o := order{}
		create(t, db, &o)
		if o.ID != idtype.Snowflake(want+1) {
			t.Errorf("ID = %d", o.ID)
		}
	}
}
