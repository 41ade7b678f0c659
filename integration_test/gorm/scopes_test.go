package gorm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// An archive has letters whose IDs were generated over some weeks.
type archive[T sqltypes.ID] struct {
	ids    []T // in the order of the column
	minted map[T]time.Time
	kind   map[T]string
}

// archive creates a sender for each ID. A letter has the ID of its sender, so that pages by
// either ID are the same.
func (k of[T]) archive(t *testing.T, g *gorm.DB, n int) *archive[T] {
	t.Helper()
	a := &archive[T]{minted: map[T]time.Time{}, kind: map[T]string{}}
	r := idtest.Rand(k.Name)
	var senders []sender[T]
	for i := range n {
		// With Spread64, IDs that are a day and a unit apart have different signs.
		at := k.First.AddDate(1, 0, i).Add(time.Duration(i) * k.Unit)
		id, err := k.At(at, func(largest int) int { return r.IntN(largest + 1) })
		must(t, err)
		a.minted[id], a.kind[id] = at, []string{"a", "b", "c"}[i%3]
		senders = append(senders, sender[T]{ID: id, Name: fmt.Sprint("sender ", i)})
	}
	must(t, g.Create(&senders).Error)
	must(t, g.Model(&sender[T]{}).Order("id").Pluck("id", &a.ids).Error)
	return a
}

func (a *archive[T]) letter(id T) letter[T] {
	return letter[T]{ID: id, Code: id.String(), Kind: a.kind[id], SenderID: id}
}

// put replaces all letters.
func (a *archive[T]) put(t *testing.T, g *gorm.DB, ids []T) {
	t.Helper()
	must(t, g.Exec("delete from letters").Error)
	var letters []letter[T]
	for _, id := range ids {
		letters = append(letters, a.letter(id))
	}
	must(t, g.Create(&letters).Error)
}

const pageSize = 3

// A scope is an argument of db.Scopes.
type scope = func(*gorm.DB) *gorm.DB

func (k of[T]) minted(column string, from, to time.Time) scope {
	return gormplugin.CreatedBetweenIn(k.Layout, column, from, to)
}

// A pager calls PageAfter or PageBefore with a cursor.
type pager = func(column string) scope

// Pages that begin with a zero cursor contain each row once, in the order of the column, even
// if rows are inserted and deleted between the pages.
func (k of[T]) pages(t *testing.T, g *gorm.DB) {
	a := k.archive(t, g, 21)
	if k.Layout == nil && (!strings.HasPrefix(k.Stored(a.ids[0]), "-") || strings.HasPrefix(k.Stored(a.ids[20]), "-")) {
		t.Fatalf("expected negative and positive IDs, got %v", a.ids)
	}
	var zero T
	notC := func(id T) bool { return a.kind[id] != "c" }
	from, to := a.minted[a.ids[1]], a.minted[a.ids[19]]
	window := func(id T) bool { return !a.minted[id].Before(from) && a.minted[id].Before(to) }

	type find func(page pager) ([]letter[T], error)
	plain := func(query func(page pager) *gorm.DB) find {
		return func(page pager) (rows []letter[T], err error) {
			return rows, query(page).Limit(pageSize).Find(&rows).Error
		}
	}
	loaded := func(query func(page pager) *gorm.DB) find {
		return func(page pager) ([]letter[T], error) { return withSenders(plain(query)(page)) }
	}
	generic := func(query func() gorm.ChainInterface[letter[T]], more ...func(*gorm.Statement)) find {
		return func(page pager) ([]letter[T], error) {
			return query().Scopes(append(more, gormplugin.G(page("")))...).Limit(pageSize).Find(t.Context())
		}
	}
	type query struct {
		find find
		has  func(T) bool // nil: all
	}
	aOrB := func() *gorm.DB { return g.Where(g.Where("kind = ?", "a").Or("kind = ?", "b")) }
	queries := map[string]query{
		"primary key":      {find: plain(func(p pager) *gorm.DB { return g.Scopes(p("")) })},
		"column":           {find: plain(func(p pager) *gorm.DB { return g.Scopes(p("id")) })},
		"table and column": {find: plain(func(p pager) *gorm.DB { return g.Scopes(p("letters.id")) })},
		"foreign key":      {find: plain(func(p pager) *gorm.DB { return g.Scopes(p("sender_id")) })},
		"alias":            {find: plain(func(p pager) *gorm.DB { return g.Table("letters AS l").Scopes(p("")) })},
		"Where":            {plain(func(p pager) *gorm.DB { return g.Where("kind <> ?", "c").Scopes(p("")) }), notC},
		"Where after it":   {plain(func(p pager) *gorm.DB { return g.Scopes(p("")).Where("kind <> ?", "c") }), notC},
		"Or of a group":    {plain(func(p pager) *gorm.DB { return aOrB().Scopes(p("")) }), notC},
		"Or in text":       {plain(func(p pager) *gorm.DB { return g.Where("kind = 'a' OR kind = 'b'").Scopes(p("")) }), notC},
		"Unscoped":         {find: plain(func(p pager) *gorm.DB { return g.Unscoped().Where("deleted_at is null").Scopes(p("")) })},
		"Joins in SQL": {find: plain(func(p pager) *gorm.DB {
			return g.Joins("join senders s on s.id = letters.sender_id").Scopes(p("s.id"))
		})},
		"Joins":                      {find: loaded(func(p pager) *gorm.DB { return g.Joins("Sender").Scopes(p("")) })},
		"Joins, plain column":        {find: loaded(func(p pager) *gorm.DB { return g.Joins("Sender").Scopes(p("id")) })},
		"Joins, column of the other": {find: loaded(func(p pager) *gorm.DB { return g.InnerJoins("Sender").Scopes(p("Sender.id")) })},
		"Preload":                    {find: loaded(func(p pager) *gorm.DB { return g.Preload("Sender.Letters").Scopes(p("")) })},
		"G":                          {find: generic(func() gorm.ChainInterface[letter[T]] { return gorm.G[letter[T]](g).Scopes() })},
		"G, Where":                   {generic(func() gorm.ChainInterface[letter[T]] { return gorm.G[letter[T]](g).Where("kind <> ?", "c") }), notC},
		"IDs alone": {find: func(p pager) (rows []letter[T], err error) {
			var ids []T
			err = g.Model(&letter[T]{}).Scopes(p("")).Limit(pageSize).Pluck("id", &ids).Error
			for _, id := range ids {
				rows = append(rows, letter[T]{ID: id})
			}
			return rows, err
		}},
	}
	if k.Layout != nil {
		minted := k.minted("", from, to)
		both := func(id T) bool { return notC(id) && window(id) }
		queries["window before it"] = query{plain(func(p pager) *gorm.DB { return g.Scopes(minted, p("")) }), window}
		queries["window after it"] = query{plain(func(p pager) *gorm.DB { return g.Scopes(p(""), minted) }), window}
		queries["Or and window"] = query{plain(func(p pager) *gorm.DB { return aOrB().Scopes(p(""), minted) }), both}
		queries["G and window"] = query{generic(func() gorm.ChainInterface[letter[T]] { return gorm.G[letter[T]](g).Where("kind <> ?", "c") }, gormplugin.G(minted)), both}
	}

	after := func(cursor T) pager {
		return func(column string) scope { return gormplugin.PageAfter(column, cursor) }
	}
	before := func(cursor T) pager {
		return func(column string) scope { return gormplugin.PageBefore(column, cursor) }
	}
	backwards := slices.Clone(a.ids)
	slices.Reverse(backwards)
	for name, q := range queries {
		a.walk(t, g, name, a.ids, q.has, func(c T) ([]letter[T], error) { return q.find(after(c)) })
		a.walk(t, g, name+", backwards", backwards, q.has, func(c T) ([]letter[T], error) { return q.find(before(c)) })
	}
	must(t, g.Transaction(func(tx *gorm.DB) error {
		find := plain(func(p pager) *gorm.DB { return tx.Scopes(p("")) })
		a.walk(t, tx, "transaction", a.ids, nil, func(c T) ([]letter[T], error) { return find(after(c)) })
		return nil
	}))
	// If all IDs are larger than zero, a page needs no scope.
	if k.Layout != nil {
		a.walk(t, g, "no scope", a.ids, nil, func(c T) ([]letter[T], error) {
			return plain(func(pager) *gorm.DB { return g.Where("id > ?", c).Order("id") })(nil)
		})
	}

	// Methods for one row return the first row of the page.
	a.put(t, g, a.ids)
	for name, c := range map[string]struct {
		scope scope
		want  T
	}{
		"after zero":  {gormplugin.PageAfter("", zero), a.ids[0]},
		"before zero": {gormplugin.PageBefore("", zero), a.ids[20]},
		"after":       {gormplugin.PageAfter("", a.ids[9]), a.ids[10]},
		"before":      {gormplugin.PageBefore("", a.ids[9]), a.ids[8]},
	} {
		for method, take := range map[string]func(*letter[T]) error{
			"Take":  func(l *letter[T]) error { return g.Scopes(c.scope).Take(l).Error },
			"First": func(l *letter[T]) error { return g.Scopes(c.scope).First(l).Error },
			"Last":  func(l *letter[T]) error { return g.Scopes(c.scope).Last(l).Error },
			"Order": func(l *letter[T]) error { return g.Order("kind desc").Scopes(c.scope).Take(l).Error },
			"G.Take": func(l *letter[T]) (err error) {
				*l, err = gorm.G[letter[T]](g).Scopes(gormplugin.G(c.scope)).Take(t.Context())
				return err
			},
			"G.First": func(l *letter[T]) (err error) {
				*l, err = gorm.G[letter[T]](g).Scopes(gormplugin.G(c.scope)).First(t.Context())
				return err
			},
		} {
			var l letter[T]
			if err := take(&l); err != nil || l.ID != c.want {
				t.Errorf("%s %s: got %v, %v, want %v", method, name, l.ID, err, c.want)
			}
		}
	}
	// The argument selects the column.
	a.exchange(t, g, a.ids[0], a.ids[20])
	for column, want := range map[string]int{"": 0, "id": 0, "letters.id": 0, "sender_id": 20, "letters.sender_id": 20, "Sender.id": 20} {
		var l letter[T]
		if err := g.Joins("Sender").Scopes(gormplugin.PageAfter(column, zero)).Take(&l).Error; err != nil || l.ID != a.ids[want] {
			t.Errorf("first row by %q: got %v, %v, want %v", column, l.ID, err, a.ids[want])
		}
	}
}

// exchange swaps the senders of two letters, so that the columns differ.
func (a *archive[T]) exchange(t *testing.T, g *gorm.DB, one, other T) {
	t.Helper()
	for letterID, senderID := range map[T]T{one: other, other: one} {
		must(t, g.Model(&letter[T]{ID: letterID}).Update("sender_id", senderID).Error)
	}
}

// withSenders returns an error if a row lacks its sender.
func withSenders[T sqltypes.ID](rows []letter[T], err error) ([]letter[T], error) {
	for _, r := range rows {
		if r.Sender == nil || r.Sender.ID != r.SenderID {
			err = errors.Join(err, fmt.Errorf("letter %v: got sender %+[3]v, want ID %[2]v", r.ID, r.SenderID, r.Sender))
		}
	}
	return rows, err
}

// walk reads the letters page by page and compares each page. It expects the letters for
// whose IDs the function has returns true. Between two pages it inserts and deletes letters
// before and after the cursor.
func (a *archive[T]) walk(t *testing.T, g *gorm.DB, name string, ids []T, has func(T) bool, find func(cursor T) ([]letter[T], error)) {
	t.Helper()
	const (
		absent = iota
		live
		gone // deleted permanently
	)
	state := make([]int, len(ids))
	var first []T
	for i, id := range ids {
		if i%5 != 4 {
			state[i], first = live, append(first, id)
		}
	}
	a.put(t, g, first)
	remove := func(i int) {
		// Every other letter is deleted softly.
		tx := g.Session(&gorm.Session{SkipDefaultTransaction: true})
		if i%2 == 0 {
			tx = tx.Unscoped()
		}
		must(t, tx.Delete(&letter[T]{}, "id = ?", ids[i]).Error)
		state[i] = gone
	}
	insert := func(i int) {
		l := a.letter(ids[i])
		must(t, g.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&l).Error)
		state[i] = live
	}

	var cursor T
	at, pages := -1, 0
	for {
		var want, got []T
		for i := at + 1; i < len(ids) && len(want) < pageSize; i++ {
			if state[i] == live && (has == nil || has(ids[i])) {
				want = append(want, ids[i])
			}
		}
		rows, err := find(cursor)
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: page %d: got %v, %v, want %v", name, pages, got, err, want)
			return
		}
		if len(got) == 0 {
			break
		}
		pages++
		cursor = got[len(got)-1]
		at = slices.Index(ids, cursor)

		if i := lastIndex(state[:at], absent); i >= 0 {
			insert(i)
		}
		if i := slices.Index(state[at:], absent); i >= 0 {
			insert(at + i)
		}
		if i := slices.Index(state[at+1:], live); i >= 0 && pages%2 == 0 {
			remove(at + 1 + i)
		}
		if i := slices.Index(state[:at], live); i >= 0 {
			remove(i)
		}
		if pages%3 != 0 {
			remove(at) // the row at the cursor
		}
	}
	if pages <= 3 {
		t.Errorf("%s: got %d pages, want more than 3", name, pages)
	}
}

func lastIndex(s []int, v int) int {
	for i, have := range slices.Backward(s) {
		if have == v {
			return i
		}
	}
	return -1
}

// A time window restricts queries, updates and deletes.
func (k of[T]) windows(t *testing.T, g *gorm.DB) {
	a := k.archive(t, g, 12)
	at := func(i int) time.Time { return a.minted[a.ids[i]] }
	minted := k.minted
	var open time.Time
	window := minted("", at(4), at(9))
	within, others := a.ids[4:9], slices.Concat(a.ids[:4], a.ids[9:])
	var kinds []T // IDs of kind a or b in the window
	for _, id := range within {
		if a.kind[id] != "c" {
			kinds = append(kinds, id)
		}
	}

	// Queries.
	a.put(t, g, a.ids)
	for name, c := range map[string]struct {
		tx   *gorm.DB
		want []T
	}{
		"primary key":       {g.Scopes(window), within},
		"column":            {g.Scopes(minted("id", at(4), at(9))), within},
		"table and column":  {g.Scopes(minted("letters.id", at(4), at(9))), within},
		"foreign key":       {g.Scopes(minted("sender_id", at(4), at(9))), within},
		"open":              {g.Scopes(minted("", open, open)), a.ids},
		"open at the start": {g.Scopes(minted("", open, at(9))), a.ids[:9]},
		"open at the end":   {g.Scopes(minted("", at(4), open)), a.ids[4:]},
		"empty":             {g.Scopes(minted("", at(4), at(4))), nil},
		"before all time":   {g.Scopes(minted("", k.First.AddDate(-9, 0, 0), k.First)), nil},
		"beyond all time":   {g.Scopes(minted("", k.First.AddDate(-9, 0, 0), k.Last.AddDate(9, 0, 0))), a.ids},
		"Where":             {g.Where("kind <> ?", "c").Scopes(window), kinds},
		"Or of a group":     {g.Where(g.Where("kind = ?", "a").Or("kind = ?", "b")).Scopes(window), kinds},
		"two that overlap":  {g.Scopes(minted("", at(2), at(9)), minted("", at(4), at(11))), within},
		"either of two":     {g.Where(g.Scopes(minted("", at(4), at(6)))).Or(g.Scopes(minted("", at(6), at(9)))), within},
		"not":               {g.Not(g.Scopes(window)), others},
		"Joins":             {g.Joins("Sender").Scopes(window), within},
		"Joins, the other":  {g.InnerJoins("Sender").Scopes(minted("Sender.id", at(4), at(9))), within},
		"Joins in SQL":      {g.Joins("join senders s on s.id = letters.sender_id").Scopes(minted("s.id", at(4), at(9))), within},
		"alias":             {g.Table("letters AS l").Scopes(window), within},
		"subquery":          {g.Where("id IN (?)", g.Model(&sender[T]{}).Select("id").Scopes(window)), within},
	} {
		rows := []letter[T]{}
		var got []T
		err := c.tx.Order("letters.id").Find(&rows).Error
		if name == "alias" {
			rows = nil
			err = g.Table("letters AS l").Scopes(window).Order("l.id").Find(&rows).Error
		}
		for _, r := range rows {
			got = append(got, r.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
	a.exchange(t, g, a.ids[0], a.ids[4])
	for column, want := range map[string]int{"": 4, "id": 4, "letters.id": 4, "sender_id": 0, "letters.sender_id": 0, "Sender.id": 0} {
		var l letter[T]
		if err := g.Joins("Sender").Scopes(minted(column, at(4), at(5))).Take(&l).Error; err != nil || l.ID != a.ids[want] {
			t.Errorf("window by %q: got %v, %v, want %v", column, l.ID, err, a.ids[want])
		}
	}
	rows, err := gorm.G[letter[T]](g).Where(g.Where("kind = ?", "a").Or("kind = ?", "b")).Scopes(gormplugin.G(window)).Find(t.Context())
	if err != nil || len(rows) != len(kinds) {
		t.Errorf("G: got %v, %v, want %v", rows, err, kinds)
	}
	var count int64
	if err := g.Model(&letter[T]{}).Scopes(window).Count(&count).Error; err != nil || count != 5 {
		t.Errorf("Count: got %d, %v, want 5", count, err)
	}
	if n, err := gorm.G[letter[T]](g).Scopes(gormplugin.G(window)).Count(t.Context(), "*"); err != nil || n != 5 {
		t.Errorf("G.Count: got %d, %v, want 5", n, err)
	}
	var batches []T
	if err := g.Scopes(window).FindInBatches(&rows, 2, func(*gorm.DB, int) error {
		for _, r := range rows {
			batches = append(batches, r.ID)
		}
		return nil
	}).Error; err != nil || !slices.Equal(batches, within) {
		t.Errorf("FindInBatches: got %v, %v, want %v", batches, err, within)
	}
	var preloaded sender[T]
	for id, want := range map[T]int{a.ids[5]: 1, a.ids[3]: 0} {
		preloaded = sender[T]{}
		err := g.Preload("Letters", func(tx *gorm.DB) *gorm.DB { return window(tx) }).First(&preloaded, id).Error
		if err != nil || len(preloaded.Letters) != want {
			t.Errorf("Preload: got %v, %v, want %d letters", preloaded.Letters, err, want)
		}
	}

	// Updates and deletes.
	for name, c := range map[string]struct {
		change func(window scope) *gorm.DB
		left   []T // IDs of kind a, b and c after the change
	}{
		"Update": {func(w scope) *gorm.DB { return g.Model(&letter[T]{}).Scopes(w).Update("kind", "z") }, others},
		"Delete": {func(w scope) *gorm.DB { return g.Scopes(w).Delete(&letter[T]{}) }, others},
		"Update of alternatives": {func(w scope) *gorm.DB {
			return g.Model(&letter[T]{}).Where(g.Where("kind <> 'x'").Or("kind = 'y'")).Scopes(w).Update("kind", "z")
		}, others},
		"Delete of alternatives": {func(w scope) *gorm.DB {
			return g.Where(g.Where("kind <> 'x'").Or("kind = 'y'")).Scopes(w).Delete(&letter[T]{})
		}, others},
		"Unscoped Delete":      {func(w scope) *gorm.DB { return g.Unscoped().Scopes(w).Delete(&letter[T]{}) }, others},
		"Delete of a group":    {func(w scope) *gorm.DB { return g.Where(g.Scopes(w)).Delete(&letter[T]{}) }, others},
		"Delete of the others": {func(w scope) *gorm.DB { return g.Not(g.Scopes(w)).Delete(&letter[T]{}) }, within},
		"G.Delete": {func(w scope) *gorm.DB {
			tx := g.Session(&gorm.Session{NewDB: true})
			n, err := gorm.G[letter[T]](g).Scopes(gormplugin.G(w)).Delete(t.Context())
			tx.RowsAffected = int64(n)
			_ = tx.AddError(err)
			return tx
		}, others},
	} {
		left := func() (ids []T) {
			must(t, g.Model(&letter[T]{}).Where("kind <> 'z'").Order("id").Pluck("id", &ids).Error)
			return ids
		}
		a.put(t, g, a.ids)
		tx := c.change(window)
		if got := left(); tx.Error != nil || !slices.Equal(got, c.left) || int(tx.RowsAffected) != len(a.ids)-len(c.left) {
			t.Errorf("%s: left %v, %v, %d rows, want %v", name, got, tx.Error, tx.RowsAffected, c.left)
		}
		// An invalid window is an error, and nothing changes.
		a.put(t, g, a.ids)
		tx = c.change(minted("", at(9), at(4)))
		if got := left(); !errors.Is(tx.Error, idtype.ErrRange) || !slices.Equal(got, a.ids) {
			t.Errorf("%s, refused: left %v, %v, want all and %v", name, got, tx.Error, idtype.ErrRange)
		}
	}
	refused := minted("", at(9), at(4))
	for name, find := range map[string]func() error{
		"Find":  func() error { return g.Scopes(refused).Find(&rows).Error },
		"First": func() error { return g.Scopes(refused).First(&letter[T]{}).Error },
		"Count": func() error { return g.Model(&letter[T]{}).Scopes(refused).Count(&count).Error },
		"Pluck": func() error { return g.Model(&letter[T]{}).Scopes(refused).Pluck("id", &batches).Error },
		"Rows":  func() error { _, err := g.Model(&letter[T]{}).Scopes(refused).Rows(); return err },
		"group": func() error { return g.Where(g.Scopes(refused)).Find(&rows).Error },
		"either of two": func() error {
			return g.Where(g.Scopes(window)).Or(g.Scopes(refused)).Find(&rows).Error
		},
		"Preload": func() error {
			return g.Preload("Sender", func(tx *gorm.DB) *gorm.DB { return refused(tx) }).Find(&rows).Error
		},
		"FindInBatches": func() error {
			return g.Scopes(refused).FindInBatches(&rows, 2, func(*gorm.DB, int) error { return nil }).Error
		},
		"G": func() error {
			_, err := gorm.G[letter[T]](g).Scopes(gormplugin.G(refused)).Find(t.Context())
			return err
		},
	} {
		if err := find(); !errors.Is(err, idtype.ErrRange) {
			t.Errorf("%s, refused: got %v, want %v", name, err, idtype.ErrRange)
		}
	}
	if g.Error != nil {
		t.Errorf("the shared database keeps the error %v", g.Error)
	}
}

// For windows and pages, Postgres uses the index of the key without planner settings.
func (k of[T]) windowPlan(t *testing.T, g *gorm.DB) {
	start := k.First.AddDate(1, 0, 0)
	things := make([]thing[T], 5000)
	for i := range things {
		id, err := k.At(start.Add(time.Duration(i)*k.Unit), func(int) int { return 0 })
		must(t, err)
		things[i] = thing[T]{ID: id, Name: "something"}
	}
	must(t, g.Session(&gorm.Session{Logger: pgtest.NewRecorder()}).CreateInBatches(things, 2500).Error)
	must(t, g.Exec("analyze things").Error)

	window := k.minted("", start.Add(2000*k.Unit), start.Add(2020*k.Unit))
	for name, c := range map[string]struct {
		scope scope
		rows  int
	}{
		"window":                {window, 20},
		"page":                  {gormplugin.PageAfter("", things[2000].ID), 10},
		"first page, backwards": {gormplugin.PageBefore("", *new(T)), 10},
	} {
		q := g.Scopes(c.scope)
		if name != "window" {
			q = q.Limit(c.rows)
		}
		var found []thing[T]
		stmt := q.Session(&gorm.Session{DryRun: true}).Find(&found).Statement
		var plan []string
		must(t, g.Raw("explain "+stmt.SQL.String(), stmt.Vars...).Scan(&plan).Error)
		text := strings.Join(plan, "\n")
		if !strings.Contains(text, "things_pkey") || strings.Contains(text, "Sort") || strings.Contains(text, "Filter") {
			t.Errorf("%s: got the plan\n%s", name, text)
		}
		if name != "first page, backwards" && !strings.Contains(text, "Index Cond") {
			t.Errorf("%s: got the plan\n%s\nwant an Index Cond", name, text)
		}
		must(t, q.Find(&found).Error)
		if len(found) != c.rows {
			t.Errorf("%s: got %d rows, want %d", name, len(found), c.rows)
		}
	}
}
