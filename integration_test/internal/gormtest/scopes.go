package gormtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// An archive has letters whose IDs were generated over some weeks.
type archive struct {
	ids    []ID // in the order of the column
	minted map[ID]time.Time
	kind   map[ID]string
}

// archive creates a sender for each ID. A letter has the ID of its sender, so that pages by
// either ID are the same.
func (k *Kind) archive(t *testing.T, g *database, n int) *archive {
	t.Helper()
	a := &archive{minted: map[ID]time.Time{}, kind: map[ID]string{}}
	r := idtest.Rand(k.Name)
	var senders []sender
	for i := range n {
		// With Spread64, IDs that are a day and a unit apart have different signs.
		at := k.first.AddDate(1, 0, i).Add(time.Duration(i) * k.unit)
		id, err := k.at(at, func(largest int) int { return r.IntN(largest + 1) })
		must(t, err)
		a.minted[id], a.kind[id] = at, []string{"a", "b", "c"}[i%3]
		senders = append(senders, sender{ID: id, Name: fmt.Sprint("sender ", i)})
	}
	must(t, g.Create(&senders).Error)
	must(t, g.Model(&sender{}).Order("id").Pluck("id", &a.ids).Error)
	return a
}

func (a *archive) letter(id ID) letter {
	return letter{ID: id, Code: id.String(), Kind: a.kind[id], SenderID: id}
}

// put replaces all letters.
func (a *archive) put(t *testing.T, g *database, ids []ID) {
	t.Helper()
	must(t, g.Exec("delete from letters").Error)
	var letters []letter
	for _, id := range ids {
		letters = append(letters, a.letter(id))
	}
	must(t, g.Create(&letters).Error)
}

const pageSize = 3

// A scope is an argument of db.Scopes.
type scope = func(*gorm.DB) *gorm.DB

// A pager calls PageAfter or PageBefore with a cursor.
type pager = func(column string) scope

// Pages that begin with a zero cursor contain each row once, in the order of the column, even
// if rows are inserted and deleted between the pages.
func (k *Kind) pages(t *testing.T, g *database) {
	a := k.archive(t, g, 21)
	if !k.byTime() && (!strings.HasPrefix(k.stored(a.ids[0]), "-") || strings.HasPrefix(k.stored(a.ids[20]), "-")) {
		t.Fatalf("expected negative and positive IDs, got %v", a.ids)
	}
	notC := func(id ID) bool { return a.kind[id] != "c" }
	from, to := a.minted[a.ids[1]], a.minted[a.ids[19]]
	window := func(id ID) bool { return !a.minted[id].Before(from) && a.minted[id].Before(to) }

	type query struct {
		page func(p pager) *database
		has  func(ID) bool // nil: all
	}
	aOrB := func() *database { return g.Where(g.Where("kind = ?", "a").Or("kind = ?", "b")) }
	queries := map[string]query{
		"primary key":      {page: func(p pager) *database { return g.Scopes(p("")) }},
		"column":           {page: func(p pager) *database { return g.Scopes(p("id")) }},
		"table and column": {page: func(p pager) *database { return g.Scopes(p("letters.id")) }},
		"foreign key":      {page: func(p pager) *database { return g.Scopes(p("sender_id")) }},
		"alias":            {page: func(p pager) *database { return g.Table("letters AS l").Scopes(p("")) }},
		"Where":            {func(p pager) *database { return g.Where("kind <> ?", "c").Scopes(p("")) }, notC},
		"Where after it":   {func(p pager) *database { return g.Scopes(p("")).Where("kind <> ?", "c") }, notC},
		"Or of a group":    {func(p pager) *database { return aOrB().Scopes(p("")) }, notC},
		"Or in text":       {func(p pager) *database { return g.Where("kind = 'a' OR kind = 'b'").Scopes(p("")) }, notC},
		"Unscoped":         {page: func(p pager) *database { return g.Unscoped().Where("deleted_at is null").Scopes(p("")) }},
		"SQL": {page: func(p pager) *database {
			return g.Joins("join senders s on s.id = letters.sender_id").Scopes(p("s.id"))
		}},
		"Joins":                      {page: func(p pager) *database { return g.Joins("Sender").Scopes(p("")) }},
		"Joins, plain column":        {page: func(p pager) *database { return g.Joins("Sender").Scopes(p("id")) }},
		"Joins, column of the other": {page: func(p pager) *database { return g.InnerJoins("Sender").Scopes(p("Sender.id")) }},
		"Joins, Preload":             {page: func(p pager) *database { return g.Preload("Sender.Letters").Scopes(p("")) }},
		"IDs alone":                  {page: func(p pager) *database { return g.Model(&letter{}).Select("id").Scopes(p("")) }},
	}
	if k.byTime() {
		minted := k.window("", from, to)
		both := func(id ID) bool { return notC(id) && window(id) }
		queries["window before it"] = query{func(p pager) *database { return g.Scopes(minted, p("")) }, window}
		queries["window after it"] = query{func(p pager) *database { return g.Scopes(p(""), minted) }, window}
		queries["Or and window"] = query{func(p pager) *database { return aOrB().Scopes(p(""), minted) }, both}
	}

	backwards := slices.Clone(a.ids)
	slices.Reverse(backwards)
	for name, q := range queries {
		find := func(p pager) (rows []letter, err error) {
			err = q.page(p).Limit(pageSize).Find(&rows).Error
			for _, r := range rows {
				if strings.HasPrefix(name, "Joins") && (r.Sender == nil || r.Sender.ID != r.SenderID) {
					err = errors.Join(err, fmt.Errorf("letter %v: got sender %+v, want ID %v", r.ID, r.Sender, r.SenderID))
				}
			}
			return rows, err
		}
		a.walk(t, g, name, a.ids, q.has, func(c ID) ([]letter, error) {
			return find(func(column string) scope { return k.after(column, c) })
		})
		a.walk(t, g, name+", backwards", backwards, q.has, func(c ID) ([]letter, error) {
			return find(func(column string) scope { return k.before(column, c) })
		})
	}
	if k.byTime() { // all IDs are larger than zero, so a page needs no scope
		a.walk(t, g, "no scope", a.ids, nil, func(c ID) (rows []letter, err error) {
			return rows, g.Where("id > ?", c).Order("id").Limit(pageSize).Find(&rows).Error
		})
	}
	must(t, g.Transaction(func(tx *database) error {
		a.walk(t, tx, "transaction", a.ids, nil, func(c ID) (rows []letter, err error) {
			return rows, tx.Scopes(k.after("", c)).Limit(pageSize).Find(&rows).Error
		})
		return nil
	}))
}

// walk reads the letters page by page and compares each page. It expects the letters for
// whose IDs the function has returns true. Between two pages it inserts and deletes letters
// before and after the cursor.
func (a *archive) walk(t *testing.T, g *database, name string, ids []ID, has func(ID) bool, find func(cursor ID) ([]letter, error)) {
	t.Helper()
	const (
		absent = iota
		live
		gone // deleted permanently
	)
	state := make([]int, len(ids))
	var first []ID
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
		must(t, tx.Delete(&letter{}, "id = ?", ids[i]).Error)
		state[i] = gone
	}
	insert := func(i int) {
		l := a.letter(ids[i])
		must(t, g.Session(&gorm.Session{SkipDefaultTransaction: true}).Create(&l).Error)
		state[i] = live
	}

	var cursor ID
	at, pages := -1, 0
	for {
		var want, got []ID
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
func (k *Kind) windows(t *testing.T, g *database) {
	a := k.archive(t, g, 12)
	at := func(i int) time.Time { return a.minted[a.ids[i]] }
	minted := k.window
	var open time.Time
	window := minted("", at(4), at(9))
	within, others := a.ids[4:9], slices.Concat(a.ids[:4], a.ids[9:])
	var kinds []ID // IDs of kind a or b in the window
	for _, id := range within {
		if a.kind[id] != "c" {
			kinds = append(kinds, id)
		}
	}

	// Queries.
	a.put(t, g, a.ids)
	for name, c := range map[string]struct {
		tx   *database
		want []ID
	}{
		"primary key":       {g.Scopes(window), within},
		"column":            {g.Scopes(minted("id", at(4), at(9))), within},
		"table and column":  {g.Scopes(minted("letters.id", at(4), at(9))), within},
		"foreign key":       {g.Scopes(minted("sender_id", at(4), at(9))), within},
		"open":              {g.Scopes(minted("", open, open)), a.ids},
		"open at the start": {g.Scopes(minted("", open, at(9))), a.ids[:9]},
		"open at the end":   {g.Scopes(minted("", at(4), open)), a.ids[4:]},
		"empty":             {g.Scopes(minted("", at(4), at(4))), nil},
		"before all time":   {g.Scopes(minted("", k.first.AddDate(-9, 0, 0), k.first)), nil},
		"beyond all time":   {g.Scopes(minted("", k.first.AddDate(-9, 0, 0), k.last.AddDate(9, 0, 0))), a.ids},
		"Where":             {g.Where("kind <> ?", "c").Scopes(window), kinds},
		"Or of a group":     {g.Where(g.Where("kind = ?", "a").Or("kind = ?", "b")).Scopes(window), kinds},
		"two that overlap":  {g.Scopes(minted("", at(2), at(9)), minted("", at(4), at(11))), within},
		"either of two":     {g.Where(g.Scopes(minted("", at(4), at(6)))).Or(g.Scopes(minted("", at(6), at(9)))), within},
		"not":               {g.Not(g.Scopes(window)), others},
		"Joins":             {g.Joins("Sender").Scopes(window), within},
		"Joins, the other":  {g.InnerJoins("Sender").Scopes(minted("Sender.id", at(4), at(9))), within},
		"Joins in SQL":      {g.Joins("join senders s on s.id = letters.sender_id").Scopes(minted("s.id", at(4), at(9))), within},
		"subquery":          {g.Where("id IN (?)", g.Model(&sender{}).Select("id").Scopes(window)), within},
	} {
		plucks(t, name, c.tx.Model(&letter{}).Order("letters.id"), "letters.id", c.want...)
	}
	plucks(t, "alias", g.Table("letters AS l").Model(&letter{}).Scopes(window).Order("l.id"), "l.id", within...)
	var n int64
	must(t, g.Model(&letter{}).Scopes(window).Count(&n).Error)
	equal(t, "Count", n, 5)
	var batches []ID
	var rows []letter
	must(t, g.Scopes(window).FindInBatches(&rows, 2, func(*database, int) error {
		for _, r := range rows {
			batches = append(batches, r.ID)
		}
		return nil
	}).Error)
	equal(t, "FindInBatches", batches, within)
	for id, want := range map[ID]int{a.ids[5]: 1, a.ids[3]: 0} {
		var preloaded sender
		must(t, g.Preload("Letters", window).First(&preloaded, id).Error)
		equal(t, "Preload", len(preloaded.Letters), want)
	}

	// Updates and deletes.
	alternatives := g.Model(&letter{}).Where(g.Where("kind <> 'x'").Or("kind = 'y'")).Session(&gorm.Session{})
	for name, c := range map[string]struct {
		change func() *database
		left   []ID // IDs of kind a, b and c after the change
	}{
		"Update":                 {func() *database { return g.Model(&letter{}).Scopes(window).Update("kind", "z") }, others},
		"Update of alternatives": {func() *database { return alternatives.Scopes(window).Update("kind", "z") }, others},
		"Delete":                 {func() *database { return g.Scopes(window).Delete(&letter{}) }, others},
		"Delete of alternatives": {func() *database { return alternatives.Scopes(window).Delete(&letter{}) }, others},
		"Unscoped Delete":        {func() *database { return g.Unscoped().Scopes(window).Delete(&letter{}) }, others},
		"Delete of a group":      {func() *database { return g.Where(g.Scopes(window)).Delete(&letter{}) }, others},
		"Delete of the others":   {func() *database { return g.Not(g.Scopes(window)).Delete(&letter{}) }, within},
	} {
		a.put(t, g, a.ids)
		affects(t, name, c.change(), int64(len(a.ids)-len(c.left)))
		plucks(t, name, g.Model(&letter{}).Where("kind <> 'z'").Order("id"), "id", c.left...)
	}
	// An invalid window changes nothing.
	a.put(t, g, a.ids)
	fails(t, "refused", g.Scopes(minted("", at(9), at(4))).Delete(&letter{}).Error, idtype.ErrRange, "")
	plucks(t, "refused", g.Model(&letter{}).Order("id"), "id", a.ids...)
}

// For windows and pages, Postgres uses the index of the key without planner settings.
func (k *Kind) windowPlan(t *testing.T, g *database) {
	start := k.first.AddDate(1, 0, 0)
	things := make([]thing, 5000)
	for i := range things {
		id, err := k.at(start.Add(time.Duration(i)*k.unit), func(int) int { return 0 })
		must(t, err)
		things[i] = thing{ID: id, Name: "something"}
	}
	must(t, g.Session(&gorm.Session{Logger: pgtest.NewRecorder()}).CreateInBatches(things, 2500).Error)
	must(t, g.Exec("analyze things").Error)

	window := k.window("", start.Add(2000*k.unit), start.Add(2020*k.unit))
	for name, c := range map[string]struct {
		scope scope
		rows  int
	}{
		"window":                {window, 20},
		"page":                  {k.after("", things[2000].ID), 10},
		"first page, backwards": {k.before("", ID{}), 10},
	} {
		q := g.Scopes(c.scope)
		if name != "window" {
			q = q.Limit(c.rows)
		}
		var found []thing
		stmt := q.Session(&gorm.Session{DryRun: true}).Find(&found).real.Statement
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
