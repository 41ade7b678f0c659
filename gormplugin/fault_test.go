package gormplugin

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/utils/tests"

	"github.com/sortkey/sortkey/idtype"
)

func TestGeneratorErrors(t *testing.T) {
	s := &server{affected: 1}
	gen := snowflakes()
	gen.limit = 2
	db := openServer(t, s, For(gen))
	rows := make([]order, 5)
	err := db.Create(&rows).Error
	if !errors.Is(err, errUsedUp) || err.Error() != "gormplugin: fill order.ID: generate an ID: used up" {
		t.Errorf("error = %v", err)
	}
	for _, r := range rows {
		if r.ID != 0 {
			t.Errorf("after a failed Create: ID = %d, want 0", r.ID)
		}
	}
	if err := db.Create(&order{}).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	var m map[string]any
	for _, value := range []any{[]*order{{}, {}}, &[2]order{}, map[string]any{}, &m, []map[string]any{{}, {}}, &[]map[string]any{{}, {}}} {
		if err := db.Model(&order{}).Create(value).Error; !errors.Is(err, errUsedUp) {
			t.Errorf("%T: error = %v", value, err)
		}
	}
	if len(s.ran) > 0 {
		t.Errorf("ran %q", s.ran)
	}
	// A failure in an association rolls back the earlier INSERTs.
	gen.limit = gen.n + 2
	err = db.Create(&parent{Children: []child{{}, {}}}).Error
	if !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	if want := []string{"BEGIN", "INSERT INTO `parents` (`id`,`boss_id`) VALUES (?,?)", "ROLLBACK"}; !slices.Equal(s.ran, want) {
		t.Errorf("ran %q, want %q", s.ran, want)
	}
}

type (
	guest struct {
		ID      idtype.Snowflake
		Parties []party `gorm:"many2many:invitations;joinForeignKey:GuestID;joinReferences:PartyID"`
	}
	party struct{ ID idtype.Snowflake }
	// An invitation is a row of a join table with its own ID.
	invitation struct {
		ID      idtype.Snowflake
		GuestID idtype.Snowflake
		PartyID idtype.Snowflake
	}
)

// exhausted returns a database whose generator fails after n Snowflakes.
func exhausted(t *testing.T, n int64) (*server, *gorm.DB) {
	t.Helper()
	s, gen := &server{affected: 1}, from(1000)
	gen.limit = 1000 + n
	db := openServer(t, s, For(gen), For(snos()), Named("labels", snos()))
	if err := db.SetupJoinTable(&guest{}, "Parties", &invitation{}); err != nil {
		t.Fatal(err)
	}
	return s, db
}

// wantNothing checks that a generator's error was returned, and that no statement was committed.
func wantNothing(t *testing.T, what string, s *server, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), ".ID: generate an ID: ") {
		t.Errorf("%s: error = %v, want %v", what, err, want)
	}
	inserts := s.inserts()
	s.mu.Lock() // database/sql may still roll back
	defer s.mu.Unlock()
	if len(inserts) > 0 && s.ran[0] != "BEGIN" || slices.Contains(s.ran, "COMMIT") {
		t.Errorf("%s: ran %q, want a transaction without COMMIT", what, s.ran)
	}
}

// If the generator fails, Create returns its error and inserts nothing, at any row and at any
// association.
func TestGeneratorFailsAnywhere(t *testing.T) {
	graph := func() *parent {
		return &parent{Boss: &parent{}, Children: []child{{}, {}}, Twin: &twin{}, Notes: []note{{}}, Crew: []*parent{{Children: []child{{}}}}, Tags: []label{{}}, Friends: []*parent{{}}}
	}
	for name, c := range map[string]struct {
		first  int64 // the IDs before the error
		create func(db *gorm.DB) error
	}{
		"batches": {5, func(db *gorm.DB) error { return db.CreateInBatches(make([]order, 6), 2).Error }},
		"size of batch": {5, func(db *gorm.DB) error {
			return db.Session(&gorm.Session{CreateBatchSize: 2}).Create(make([]order, 6)).Error
		}},
		"Save":          {0, func(db *gorm.DB) error { return db.Save(&order{}).Error }},
		"FirstOrCreate": {0, func(db *gorm.DB) error { return db.FirstOrCreate(&order{}, "note = 'x'").Error }},
		"a transaction": {4, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Create(graph()).Error })
		}},
		"Append": {1, func(db *gorm.DB) error {
			return db.Model(&parent{ID: 1}).Association("Children").Append(&child{}, &child{})
		}},
		"Append with a join table": {1, func(db *gorm.DB) error { return db.Model(&guest{ID: 1}).Association("Parties").Append(&party{}) }},
		"a join table":             {2, func(db *gorm.DB) error { return db.Create(&guest{Parties: []party{{}}}).Error }},
	} {
		s, db := exhausted(t, c.first)
		wantNothing(t, name, s, c.create(db), errUsedUp)
	}
	const all = 8 // Snowflakes of the graph
	for n := range int64(all) {
		s, db := exhausted(t, n)
		wantNothing(t, fmt.Sprintf("a graph with %d IDs", n), s, db.Create(graph()).Error, errUsedUp)
	}
	if _, db := exhausted(t, all); db.Create(graph()).Error != nil {
		t.Error("the graph has more IDs")
	}
	// The caller's transaction can continue, because no statement failed in it.
	s, db := exhausted(t, 0)
	if err := db.Transaction(func(tx *gorm.DB) error {
		wantNothing(t, "in a transaction", s, tx.Create(&order{}).Error, errUsedUp)
		return tx.Create(&order{ID: 7}).Error
	}); err != nil || len(s.inserts()) != 1 || s.ran[len(s.ran)-1] != "COMMIT" {
		t.Errorf("ran %q, %v", s.ran, err)
	}
}

// A waiting generator returns n IDs. Then it waits until the context is done.
type waiting struct {
	*counter[idtype.Snowflake]
	begun chan struct{}
}

func (w waiting) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	n, err := w.counter.Fill(ctx, dst)
	if err == nil {
		return n, nil
	}
	close(w.begun)
	<-ctx.Done()
	return n, ctx.Err()
}

// If the context is canceled during the wait for an ID, Create inserts nothing.
func TestCanceledWait(t *testing.T) {
	for name, c := range map[string]struct {
		first  int64 // the IDs before the wait
		create func(db *gorm.DB) error
	}{
		"struct":  {0, func(db *gorm.DB) error { return db.Create(&order{}).Error }},
		"slice":   {0, func(db *gorm.DB) error { return db.Create(make([]order, 3)).Error }},
		"map":     {0, func(db *gorm.DB) error { return db.Model(&order{}).Create(map[string]any{}).Error }},
		"maps":    {1, func(db *gorm.DB) error { return db.Model(&order{}).Create([]map[string]any{{}, {}}).Error }},
		"batches": {4, func(db *gorm.DB) error { return db.CreateInBatches(make([]order, 6), 2).Error }},
		"graph":   {2, func(db *gorm.DB) error { return db.Create(&parent{Boss: &parent{}, Children: []child{{}, {}}}).Error }},
	} {
		s, gen := &server{affected: 1}, waiting{from(1000), make(chan struct{})}
		gen.limit = 1000 + c.first
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-gen.begun
			cancel()
		}()
		err := c.create(openServer(t, s, For(gen)).WithContext(ctx))
		// If database/sql has also ended the transaction, GORM wraps only the error of the transaction.
		if errors.Is(err, sql.ErrTxDone) && name == "graph" && strings.Contains(err.Error(), context.Canceled.Error()) {
			err = errors.Join(err, context.Canceled)
		}
		wantNothing(t, name, s, err, context.Canceled)
	}
}

// A faltering generator fails once.
type faltering struct {
	*counter[idtype.Snowflake]
	failed bool
}

func (f *faltering) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	if !f.failed {
		f.failed = true
		return 0, errUsedUp
	}
	return f.counter.Fill(ctx, dst)
}

// A Create fails even if only the first block gets no IDs.
func TestGeneratorFailsOnce(t *testing.T) {
	rows := make([]order, 2*blockSize)
	if err := open(t, For(&faltering{counter: snowflakes()})).Create(&rows).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v, the first ID is %d", err, rows[0].ID)
	}
}

// After an error, no further ID is generated for the statement.
func TestNothingAfterError(t *testing.T) {
	gen, others := snowflakes(), snos()
	db := open(t, For(gen), Named("snos", others))
	failed := db.Session(&gorm.Session{})
	_ = failed.AddError(errUsedUp)
	if err := failed.Create(&order{}).Error; !errors.Is(err, errUsedUp) || gen.n != 0 {
		t.Errorf("error = %v, %d generated IDs, want 0", err, gen.n)
	}
	gen.n, gen.limit = 1, 1
	if err := db.Create(&bothTagged{}).Error; !errors.Is(err, errUsedUp) || others.n != 0 {
		t.Errorf("error = %v, %d generated IDs for the other part of the key, want 0", err, others.n)
	}
}

// A lazy generator returns one ID fewer than requested.
type lazy struct{ *counter[idtype.Snowflake] }

func (l lazy) Fill(ctx context.Context, dst []idtype.Snowflake) (int, error) {
	return l.counter.Fill(ctx, dst[:len(dst)-1])
}

func TestGeneratorReturnsTooFewIDs(t *testing.T) {
	db := open(t, For(lazy{snowflakes()}))
	rows := make([]order, 3)
	if err := db.Create(&rows).Error; err == nil || !strings.Contains(err.Error(), "gormplugin.lazy.Fill: want 3 IDs, got 2") {
		t.Errorf("error = %v", err)
	}
	// If no ID is missing, Fill is not called.
	create(t, db, &[]order{{ID: 1}, {ID: 2}})
}

// A pgError is an error of Postgres.
type pgError struct{ code, Detail string }

func (e *pgError) Error() string    { return e.code }
func (e *pgError) SQLState() string { return e.code }

// A translating dialect finds the errors for duplicate keys, as GORM's dialects do.
type translating struct{ tests.DummyDialector }

func (translating) Translate(err error) error {
	if err.Error() == "duplicate" || err.Error() == "23505" {
		return gorm.ErrDuplicatedKey
	}
	return err
}

// A generated ID is reset only if the database refused it as a duplicate.
func TestRefusedKeys(t *testing.T) {
	type quoted struct {
		ID       idtype.Snowflake `gorm:"column:Id"`
		PublicID idtype.Snowflake `gorm:"idgen;unique"`
	}
	for name, c := range map[string]struct {
		err       error
		translate bool
		value     any
		want      any
	}{
		"a constraint":      {&pgError{"23503", "Key (id)=(1) is not present"}, false, &publicPair{}, &publicPair{1, 2}},
		"no Postgres error": {errors.ErrUnsupported, false, &publicPair{}, &publicPair{1, 2}},
		"the primary key":   {&pgError{"23505", "Key (id)=(1) already exists."}, false, &publicPair{}, &publicPair{0, 2}},
		"in German":         {&pgError{"23505", "Schl\u00fcssel \u00bb(id)=(1)\u00ab existiert bereits."}, false, &publicPair{}, &publicPair{0, 2}},
		"the public ID":     {&pgError{"23505", "Key (public_id)=(2) already exists."}, false, &publicPair{}, &publicPair{1, 0}},
		"two columns":       {&pgError{"23505", "Key (tenant, id)=(1, 1) already exists."}, false, &publicPair{}, &publicPair{0, 2}},
		"a quoted column":   {&pgError{"23505", `Key ("Id")=(1) already exists.`}, false, &quoted{}, &quoted{0, 2}},
		"another column":    {&pgError{"23505", "Key (email)=(id) already exists."}, false, &publicPair{}, &publicPair{1, 2}},
		"without a detail":  {&pgError{"23505", ""}, false, &publicPair{}, &publicPair{}},
		"set keys":          {&pgError{"23505", "Key (id)=(7) already exists."}, false, &publicPair{ID: 7}, &publicPair{7, 1}},
		"an omitted key":    {&pgError{"23505", "Key (id)=(7) already exists."}, false, &publicPair{ID: 7}, &publicPair{7, 1}},
		"another database":  {errors.New("duplicate"), false, &publicPair{}, &publicPair{}},
		"translated":        {&pgError{"23505", "Key (email)=(a) already exists."}, true, &publicPair{}, &publicPair{}},
		"batch":             {&pgError{"23505", "Key (id)=(1) already exists."}, false, &[]publicPair{{}, {ID: 7}}, &[]publicPair{{0, 2}, {7, 3}}},
		"map":               {&pgError{"23505", "Key (id)=(1) already exists."}, false, &map[string]any{"ID": nil}, &map[string]any{"public_id": idtype.Snowflake(2)}},
	} {
		s := &server{refuse: func(string) error { return c.err }}
		pool := sql.OpenDB(s)
		t.Cleanup(func() { _ = pool.Close() })
		db, err := gorm.Open(translating{}, &gorm.Config{ConnPool: pool, TranslateError: c.translate, Logger: logger.Discard})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Use(New(For(snowflakes()))); err != nil {
			t.Fatal(err)
		}
		tx := db
		switch name {
		case "map":
			tx = db.Model(&publicPair{})
		case "an omitted key":
			tx = db.Omit("ID")
		}
		if err := tx.Create(c.value).Error; err == nil {
			t.Errorf("%s: no error", name)
		}
		if !reflect.DeepEqual(c.value, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, c.value, c.want)
		}
	}
}

// After other errors, rows and associations keep their IDs, so that a repeated call creates the
// same rows.
func TestRepeatedCreate(t *testing.T) {
	for _, fails := range []string{"boss", "parents", "children", "parent_tags", "hook", "commit"} {
		s := &server{affected: -1}
		inserts := 0
		s.refuse = func(query string) error {
			if strings.HasPrefix(query, "INSERT") {
				inserts++
			}
			if inserts == 1 && fails == "boss" || inserts == 2 && fails == "parents" || inserts == 3 && fails == "children" || inserts == 5 && fails == "parent_tags" {
				return errors.ErrUnsupported
			}
			return nil
		}
		if fails == "commit" {
			s.commit = errors.ErrUnsupported
		}
		db := openServer(t, s, For(snowflakes()), For(snos()), Named("labels", snos()))
		refuse := func(tx *gorm.DB) {
			if fails == "hook" && inserts == 5 {
				_ = tx.AddError(errors.ErrUnsupported)
			}
		}
		if err := db.Callback().Create().After("gorm:save_after_associations").Register("test:refuse", refuse); err != nil {
			t.Fatal(err)
		}
		p := &parent{Boss: &parent{}, Children: []child{{}, {ID: 77}}, Tags: []label{{}}}
		if err := db.Create(p).Error; !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: error = %v", fails, err)
		}
		first := []any{p.ID, p.Boss.ID}
		if fails == "hook" || fails == "commit" {
			first = append(first, p.Children[0].ID, p.Tags[0].ID)
		}
		if p.ID == 0 || p.Boss.ID == 0 || p.Children[1].ID != 77 {
			t.Errorf("%s: parent = %+v, boss = %+v", fails, p, p.Boss)
		}
		inserts, s.commit = 10, nil
		if err := db.Create(p).Error; err != nil {
			t.Errorf("%s: %v", fails, err)
		}
		if second := []any{p.ID, p.Boss.ID, p.Children[0].ID, p.Tags[0].ID}; !reflect.DeepEqual(first, second[:len(first)]) || *p.BossID != p.Boss.ID {
			t.Errorf("%s: IDs %v, then %v", fails, first, second)
		}
	}
}

// The refused key of an association is reset, but not the key of its owner.
func TestRefusedAssociation(t *testing.T) {
	for _, table := range []string{"parents", "children"} {
		s := &server{affected: -1, refuse: func(query string) error {
			if strings.HasPrefix(query, "INSERT INTO `"+table+"`") {
				return &pgError{"23505", "Key (id)=(1) already exists."}
			}
			return nil
		}}
		db := openServer(t, s, For(snowflakes()))
		p := &parent{Boss: &parent{}, Children: []child{{}}}
		if err := db.Create(p).Error; err == nil {
			t.Errorf("%s: no error", table)
		}
		got := []bool{p.ID == 0, p.Boss.ID == 0, p.Children[0].ID == 0}
		want := map[string][]bool{"parents": {false, true, true}, "children": {false, false, true}}[table]
		if !slices.Equal(got, want) {
			t.Errorf("%s: reset %v, want %v", table, got, want)
		}
	}
}

// Rows keep the IDs that a generator returned before it failed.
func TestFailedGenerator(t *testing.T) {
	gen := snowflakes()
	gen.limit = blockSize + 1
	db := open(t, For(gen))
	rows := make([]contact, 2*blockSize)
	rows[3].ID = 7
	if err := db.Create(&rows).Error; !errors.Is(err, errUsedUp) {
		t.Errorf("error = %v", err)
	}
	seen := map[idtype.Snowflake]bool{}
	gen.limit = 0
	create(t, db, &rows)
	for i, r := range rows {
		if r.ID == 0 || seen[r.ID] && r.ID != 7 || i == 3 && r.ID != 7 {
			t.Fatalf("row %d has the ID %d", i, r.ID)
		}
		seen[r.ID] = true
	}
}

// A generator that fails for a public ID, or for a key behind a pointer, leaves no ID.
func TestFailedForms(t *testing.T) {
	gen := snowflakes()
	gen.limit = 1
	if err := open(t, For(gen)).Create(&publicPair{}).Error; !errors.Is(err, errUsedUp) || !strings.Contains(err.Error(), "fill publicPair.PublicID: generate an ID") {
		t.Errorf("error = %v", err)
	}
	s := &server{}
	gen = snowflakes()
	gen.limit = 1
	db := openServer(t, s, For(gen))
	rows := []keyed[*lineID]{{}, {}}
	if err := db.Create(&rows).Error; !errors.Is(err, errUsedUp) || rows[0].ID != nil || len(s.ran) > 0 {
		t.Errorf("generator without IDs: got %v, %v, ran %q", rows, err, s.ran)
	}
}

// The row count matters only if the plugin added RETURNING to get the IDs.
func TestUpsertThatSkipsRows(t *testing.T) {
	type hiddenKey struct {
		ID    idtype.Snowflake `gorm:"->:false;<-:create"`
		Email string           `gorm:"unique"`
	}
	type counted struct {
		ID    idtype.Snowflake `gorm:"idgen:-"`
		Email string           `gorm:"unique"`
		Count int              `gorm:"default:next_count()"`
	}
	s := &server{affected: 1, columns: []string{"count"}, rows: [][]driver.Value{{int64(1)}}}
	db := openServer(t, s, For(snowflakes()))
	updates := clause.AssignmentColumns([]string{"email"})
	where := clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "true"}}}
	for name, tx := range map[string]*gorm.DB{
		"a condition":    db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates, Where: where}).Create(&[]contact{{}, {}}),
		"write-only key": db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create(&[]hiddenKey{{}, {}}),
		"opted out":      db.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create(&[]counted{{}, {}}),
		"a map":          db.Model(&contact{}).Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create(map[string]any{"email": "a", "name": "b"}),
		"maps":           db.Model(&contact{}).Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: updates}).Create([]map[string]any{{"email": "a"}, {"email": "b"}}),
	} {
		if tx.Error != nil || tx.RowsAffected != 1 {
			t.Errorf("%s: %d rows, %v", name, tx.RowsAffected, tx.Error)
		}
	}
}

// A database without RETURNING may report another row count.
func TestUpsertWithoutReturning(t *testing.T) {
	s := &server{affected: 4}
	db := openServer(t, s, For(snowflakes()))
	clauses := &db.Callback().Create().Clauses
	*clauses = slices.DeleteFunc(slices.Clone(*clauses), func(name string) bool { return name == returning })
	batch := []contact{{}, {}}
	if err := db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Create(&batch).Error; err != nil || batch[1].ID != 2 {
		t.Errorf("batch = %+v, %v, ran %q", batch, err, s.ran)
	}
}

// If the only row is skipped, its associations keep their IDs.
func TestDoNothingWithAssociations(t *testing.T) {
	type city struct {
		ID   idtype.Snowflake
		Name string
	}
	type inhabitant struct {
		ID     idtype.Snowflake
		CityID idtype.Snowflake
		City   *city
	}
	s := new(server)
	db := openServer(t, s, For(snowflakes()))
	for _, v := range []inhabitant{{City: &city{}}, {City: &city{ID: 9}}} {
		if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&v).Error; err != nil {
			t.Fatal(err)
		}
		if v.ID != 0 || v.City.ID == 0 || v.CityID != v.City.ID {
			t.Errorf("inhabitant = %+v, city = %+v", v, v.City)
		}
	}
	inserts := s.inserts()
	if strings.Contains(inserts[0], "ON CONFLICT") || !strings.Contains(inserts[1], "ON CONFLICT") || !strings.Contains(inserts[2], "ON CONFLICT") {
		t.Errorf("ran %q, want ON CONFLICT for all but a new city", inserts)
	}
}

// A trigger may skip a row of a batch. The plugin can't tell which one.
func TestMissingRow(t *testing.T) {
	type member struct {
		ID       uint
		PublicID idtype.Snowflake `gorm:"idgen;unique"`
		Email    string           `gorm:"unique"`
	}
	s := &server{columns: []string{"id"}, rows: [][]driver.Value{{int64(500)}, {int64(4)}}}
	db := openServer(t, s, For(snowflakes()))
	upsert := db.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Session(&gorm.Session{})
	if err := upsert.Create(&[]keyedContact[idtype.Snowflake]{{}, {}, {}}).Error; !errors.Is(err, gorm.ErrInvalidData) || !strings.HasPrefix(err.Error(), "gormplugin: upsert keyedContact[idtype.Snowflake]: want 3 rows, got 2, which can't be matched") {
		t.Errorf("missing row: %v", err)
	}
	s.rows = s.rows[:1]
	if err := upsert.Create(&[]member{{}, {}}).Error; !errors.Is(err, gorm.ErrInvalidData) {
		t.Errorf("missing row with a public ID: %v", err)
	}
	// The update's condition was false.
	s.rows = nil
	c := contact{Email: "a"}
	if err := upsert.Create(&c).Error; err != nil || c.ID != 0 {
		t.Errorf("contact = %+v, %v", c, err)
	}
	// An UpdateAll with nothing to update does nothing, and may skip rows.
	pairs := []publicPair{{ID: 1}, {ID: 2}}
	if err := db.Save(&pairs).Error; err != nil {
		t.Errorf("Save: %v", err)
	}
	if got := s.ran[len(s.ran)-2]; !strings.Contains(got, "DO NOTHING") {
		t.Errorf("Save ran %s", got)
	}
	// Without ON CONFLICT, the plugin ignores the row count.
	c = contact{}
	if err := db.Create(&c).Error; err != nil || c.ID == 0 {
		t.Errorf("plain Create: got %+v, %v, want an ID", c, err)
	}
}

type keyedContact[ID any] struct {
	ID    ID
	Email string `gorm:"unique"`
	Name  string
}
