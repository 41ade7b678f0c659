package rekey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/rekey"
)

// A stage is a state of a library in which programs of the new version work.
type stage struct {
	name   string
	step   rekey.Step // the last one
	path   string     // the search_path of the new version
	prefix string     // of the columns of the new version
}

var stages = []stage{
	{"columns after expand", rekey.StepExpand, oldVersion, "rekey_"},
	{"columns after backfill", rekey.StepBackfill, oldVersion, "rekey_"},
	{"views", rekey.StepValidate, newVersion, ""},
	{"columns after validate", rekey.StepValidate, oldVersion, "rekey_"},
	{"contracted", rekey.StepContract, newVersion, ""},
}

// A versions is a library with a program of each version.
type versions struct {
	*library
	testing.TB
	stage
	old, new *session // old is nil after contract
	name     string   // the prefix of names of authors and titles
}

// oldKey returns a key that a program of the old version creates.
func (v *versions) oldKey() string {
	v.n++
	return v.key(v.n)
}

// wantRows fails the test unless both versions see these rows in the result of a query for
// the names with a prefix. Rows whose name begins with old are left out after contract.
func (v *versions) wantRows(query string, list []string) {
	v.Helper()
	if v.old == nil {
		list = slices.DeleteFunc(slices.Clone(list), func(row string) bool { return strings.HasPrefix(row, "old ") })
	}
	for _, s := range []*session{v.old, v.new} {
		if s != nil {
			want(v, "the rows", strings.ReplaceAll(s.all(query, v.name), v.name+" ", ""), strings.Join(list, ","))
		}
	}
}

// wantBooks is wantRows for books with their author and editor.
func (v *versions) wantBooks(list ...string) {
	v.Helper()
	v.wantRows(`SELECT b.title || ' by ' || coalesce(a.name, '?') || coalesce(' and ' || e.name, CASE WHEN b.{editor_id} IS NULL THEN '' ELSE ' and ?' END)
		FROM books b LEFT JOIN authors a ON a.{id} = b.{author_id} LEFT JOIN authors e ON e.{id} = b.{editor_id}
		WHERE starts_with(b.title, $1) ORDER BY b.title`, list)
}

// wantMentors is wantRows for authors with their mentors.
func (v *versions) wantMentors(list ...string) {
	v.Helper()
	v.wantRows(`SELECT a.name || coalesce(' of ' || m.name, CASE WHEN a.{mentor_id} IS NULL THEN '' ELSE ' of ?' END)
		FROM authors a LEFT JOIN authors m ON m.{id} = a.{mentor_id} WHERE starts_with(a.name, $1) ORDER BY a.name`, list)
}

// minted fails the test unless the database has created the new key.
func (v *versions) minted(key string, node int) {
	v.Helper()
	if v.format == rekey.UID60 || v.format == rekey.UUID7 {
		want(v, "an ID of today", v.new.one(fmt.Sprintf("SELECT sortkey.%s_time('%s') > now() - interval '1 day'", v.format, key)), "t")
		return
	}
	want(v, "the node number of "+key, v.new.one(fmt.Sprintf("SELECT sortkey.%s_node('%s')", v.format, key)), fmt.Sprint(node))
}

// A versionCase has statements of programs. Cases that need a program of the old version
// don't run after contract.
type versionCase struct {
	name  string
	mixed bool // needs programs of both versions
	// each, if set, runs for a program of each version, before run. name begins with v.name.
	each func(v *versions, s *session, key func() string, name string)
	run  func(v *versions)
	// If not nil, both versions see these rows afterwards, as for wantBooks and wantMentors.
	books, mentors []string
}

var versionCases = []versionCase{
	{name: "INSERT by an old key gets a new key", mixed: true, run: func(v *versions) {
		k := v.oldKey()
		want(v, "RETURNING", v.old.one("INSERT INTO authors ({id}, name) VALUES ($1, $2) RETURNING {id}", k, v.name), k)
		v.minted(v.new.one("SELECT {id} FROM authors WHERE name = $1", v.name), authorNode)
		v.old.do("INSERT INTO books ({id}, title, {author_id}) VALUES ($1, $2, $3)", v.oldKey(), v.name, k)
		v.minted(v.new.one("SELECT {id} FROM books WHERE title = $1", v.name), bookNode)
	}},
	{name: "INSERT by the old default gets a new key", mixed: true, run: func(v *versions) {
		k := v.old.one("INSERT INTO authors (name) VALUES ($1) RETURNING {id}", v.name)
		v.minted(v.new.one("SELECT {id} FROM authors WHERE name = $1", v.name), authorNode)
		want(v, "the old key", v.old.one("SELECT {id} FROM authors WHERE name = $1", v.name), k)
		k = v.old.one("INSERT INTO authors ({id}, name) VALUES (DEFAULT, $1) RETURNING {id}", v.name+" 2")
		want(v, "the old key", v.old.one("SELECT {id} FROM authors WHERE name = $1", v.name+" 2"), k)
	}},
	{name: "INSERT by a new key gets an old key", run: func(v *versions) {
		k := v.newKey()
		want(v, "RETURNING", v.new.one("INSERT INTO authors ({id}, name) VALUES ($1, $2) RETURNING {id}", k, v.name), k)
		if v.old != nil {
			old := v.old.one("SELECT {id} FROM authors WHERE name = $1", v.name)
			if v.format == rekey.UID60 && (len(old) != 26 || strings.Trim(old, crockford) != "") {
				v.Errorf("expected a ULID, got %s", old)
			}
			want(v, "the row of the old key", v.old.one("SELECT name FROM authors WHERE {id} = $1", old), v.name)
		}
	}},
	{name: "INSERT by the new version without a key", run: func(v *versions) {
		k := v.new.one("INSERT INTO authors (name) VALUES ($1) RETURNING {id}", v.name)
		v.minted(k, authorNode)
		want(v, "the row of the key", v.new.one("SELECT name FROM authors WHERE {id} = $1", k), v.name)
		if v.prefix == "" {
			v.minted(v.new.one("INSERT INTO authors ({id}, name) VALUES (DEFAULT, $1) RETURNING {id}", v.name+" 2"), authorNode)
		}
	}},
	{name: "one INSERT of several rows", each: func(v *versions, s *session, key func() string, name string) {
		s.do("INSERT INTO authors ({id}, name) SELECT k, $2 || row_number() OVER () FROM unnest($1::"+v.keyType(s)+"[]) k", "{"+key()+","+key()+","+key()+"}", name)
	}, run: func(v *versions) {
		want(v, "the row count", v.new.one("SELECT count(DISTINCT {id}) FROM authors WHERE starts_with(name, $1)", v.name), map[bool]string{true: "6", false: "3"}[v.old != nil])
	}},
	{name: "references resolve in both directions", each: func(v *versions, s *session, key func() string, name string) {
		a, e := key(), key()
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2), ($3, $4)", a, name+"a", e, name+"e")
		s.do("INSERT INTO authors ({id}, name, {mentor_id}) VALUES ($1, $2, $3)", key(), name+"m", a)
		s.do("INSERT INTO books ({id}, title, {author_id}, {editor_id}) VALUES ($1, $2, $3, $4)", key(), name+"b", a, e)
	}, books: []string{"new b by new a and new e", "old b by old a and old e"}, mentors: []string{"new a", "new e", "new m of new a", "old a", "old e", "old m of old a"}},
	{name: "a row of one version refers to a row of the other", mixed: true, run: func(v *versions) {
		v.old.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", v.oldKey(), v.name+" o")
		v.new.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", v.newKey(), v.name+" n")
		v.old.do("INSERT INTO books ({id}, title, {author_id}) SELECT $1, $2, {id} FROM authors WHERE name = $3", v.oldKey(), v.name+" by old", v.name+" n")
		v.new.do("INSERT INTO books ({id}, title, {author_id}) SELECT $1, $2, {id} FROM authors WHERE name = $3", v.newKey(), v.name+" by new", v.name+" o")
		v.wantBooks("by new by o", "by old by n")
	}},
	{name: "INSERT of a reference to an existing row", mixed: true, run: func(v *versions) {
		// Before backfill, programs of the new version don't know the keys of existing rows.
		v.old.do("INSERT INTO books ({id}, title, {author_id}) VALUES ($1, $2, $3)", v.oldKey(), v.name, v.key(7))
		want(v, "the author", v.old.one("SELECT a.name FROM books b JOIN authors a ON a.{id} = b.{author_id} WHERE title = $1", v.name), "author 7")
		if v.step != rekey.StepExpand {
			want(v, "the author", v.new.one("SELECT a.name FROM books b JOIN authors a ON a.{id} = b.{author_id} WHERE title = $1", v.name), "author 7")
		}
	}},
	{name: "both keys of a row", mixed: true, run: func(v *versions) {
		if v.prefix == "" {
			return // a view has one of the keys
		}
		const both = "INSERT INTO authors (id, rekey_id, name) VALUES ($1, $2, $3)"
		a, b := v.oldKey(), v.newKey()
		v.old.do(both, a, b, v.name+" 1")
		want(v, "the row", v.old.one("SELECT name FROM authors WHERE id = $1 AND rekey_id = $2", a, b), v.name+" 1")
		c, d := v.oldKey(), v.newKey()
		v.old.do(both, c, d, v.name+" 2")
		const refer = "INSERT INTO books (id, title, author_id, rekey_author_id) VALUES ($1, $2, $3, $4)"
		v.old.do(refer, v.oldKey(), v.name+" 3", a, b)
		v.wantBooks("3 by 1")
		if _, err := v.old.rows(refer, v.oldKey(), v.name+" 4", a, d); err == nil {
			v.Error("INSERT: expected an error, since the keys belong to different rows")
		}
		e, f := v.oldKey(), v.newKey()
		v.old.do(both, e, f, v.name+" 5")
		if _, err := v.old.rows("UPDATE books SET author_id = $1, rekey_author_id = $2 WHERE title = $3", c, f, v.name+" 3"); err == nil {
			v.Error("UPDATE: expected an error, since the keys belong to different rows")
		}
		v.old.do("UPDATE books SET author_id = $1, rekey_author_id = $2 WHERE title = $3", c, d, v.name+" 3")
		v.wantBooks("3 by 2")
	}},
	{name: "a child before its parent", each: func(v *versions, s *session, key func() string, name string) {
		a := key()
		s.do("BEGIN")
		s.do("INSERT INTO books ({id}, title, {author_id}) VALUES ($1, $2, $3)", key(), name+"b", a)
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", a, name+"a")
		s.do("COMMIT")
	}, books: []string{"new b by new a", "old b by old a"}},
	{name: "self references in one INSERT", each: func(v *versions, s *session, key func() string, name string) {
		a, b := key(), key()
		s.do("INSERT INTO authors ({id}, name, {mentor_id}) VALUES ($1, $2, $3), ($3, $4, NULL), ($5, $6, $5)", a, name+"1", b, name+"2", key(), name+"3")
	}, mentors: []string{"new 1 of new 2", "new 2", "new 3 of new 3", "old 1 of old 2", "old 2", "old 3 of old 3"}},
	{name: "parent and child in one statement", each: func(v *versions, s *session, key func() string, name string) {
		s.do("WITH a AS (INSERT INTO authors ({id}, name) VALUES ($1, $2) RETURNING {id} AS k) INSERT INTO books ({id}, title, {author_id}, {editor_id}) SELECT $3, $4, k, k FROM a",
			key(), name+"a", key(), name+"b")
	}, books: []string{"new b by new a and new a", "old b by old a and old a"}},
	{name: "UPDATE of references", each: func(v *versions, s *session, key func() string, name string) {
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2), ($3, $4)", key(), name+"1", key(), name+"2")
		s.do("INSERT INTO books ({id}, title, {author_id}, {editor_id}) SELECT $1, $2, {id}, {id} FROM authors WHERE name = $3", key(), name+"b", name+"1")
	}, run: func(v *versions) {
		if v.old == nil {
			v.new.do("UPDATE books SET {author_id} = (SELECT {id} FROM authors WHERE name = $1), {editor_id} = NULL WHERE title = $2", v.name+" new 2", v.name+" new b")
			v.wantBooks("new b by new 2")
			return
		}
		// Each version changes the row of the other one.
		v.old.do("UPDATE books SET {author_id} = (SELECT {id} FROM authors WHERE name = $1) WHERE title = $2", v.name+" old 2", v.name+" new b")
		v.new.do("UPDATE books b SET {author_id} = a.{id} FROM authors a WHERE a.name = $1 AND b.title = $2", v.name+" new 2", v.name+" old b")
		v.wantBooks("new b by old 2 and new 1", "old b by new 2 and old 1")
		v.old.do("UPDATE books SET {editor_id} = NULL WHERE title = $1", v.name+" new b")
		v.new.do("UPDATE books SET {editor_id} = NULL WHERE title = $1", v.name+" old b")
		v.wantBooks("new b by old 2", "old b by new 2")
		want(v, "NULLs", v.old.one("SELECT count(*) FROM books WHERE starts_with(title, $1) AND editor_id IS NULL AND rekey_editor_id IS NULL", v.name), "2")
		v.new.do("UPDATE books SET {editor_id} = {author_id} WHERE title = $1", v.name+" new b")
		v.old.do("UPDATE books SET {editor_id} = {author_id} WHERE title = $1", v.name+" old b")
		v.wantBooks("new b by old 2 and old 2", "old b by new 2 and new 2")
	}},
	{name: "references that do not exist", each: func(v *versions, s *session, key func() string, name string) {
		s.fails(foreignKeyViolation, "INSERT INTO authors ({id}, name, {mentor_id}) VALUES ($1, $2, $3)", key(), name, key())
		s.fails(foreignKeyViolation, "INSERT INTO books ({id}, title, {author_id}) VALUES ($1, $2, $3)", key(), name, key())
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", key(), name)
		s.do("INSERT INTO books ({id}, title, {author_id}) SELECT $1, $2, {id} FROM authors WHERE name = $2", key(), name)
		s.fails(foreignKeyViolation, "UPDATE books SET {editor_id} = $1 WHERE title = $2", key(), name)
		s.fails(notNullViolation, "UPDATE books SET {author_id} = NULL WHERE title = $1", name)
		s.fails(notNullViolation, "INSERT INTO books ({id}, title) VALUES ($1, $2)", key(), name+"2")
	}},
	{name: "duplicate keys", each: func(v *versions, s *session, key func() string, name string) {
		k := key()
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", k, name)
		if s == v.new && !v.validated() {
			return // the index is created by validate
		}
		s.fails(uniqueViolation, "INSERT INTO authors ({id}, name) VALUES ($1, $2)", k, name+"2")
	}},
	{name: "ON DELETE", each: func(v *versions, s *session, key func() string, name string) {
		a, b, c := key(), key(), key()
		s.do("INSERT INTO authors ({id}, name, {mentor_id}) VALUES ($1, $2, NULL), ($3, $4, NULL), ($5, $6, $1)", a, name+"1", b, name+"2", c, name+"3")
		s.do("INSERT INTO books ({id}, title, {author_id}, {editor_id}) VALUES ($1, $2, $3, $4), ($5, $6, $4, $3)", key(), name+"b", a, b, key(), name+"c")
	}, run: func(v *versions) {
		other := cmp.Or(v.old, v.new)
		other.do("DELETE FROM authors WHERE name = $1", v.name+" new 1")
		v.new.do("DELETE FROM authors WHERE name = $1", v.name+" old 1")
		v.wantBooks("new c by new 2", "old c by old 2")
		v.wantMentors("new 2", "new 3", "old 2", "old 3")
	}},
	{name: "ON UPDATE CASCADE", each: func(v *versions, s *session, key func() string, name string) {
		a := key()
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", a, name+"a")
		s.do("INSERT INTO books ({id}, title, {author_id}, {editor_id}) VALUES ($1, $2, $3, $3)", key(), name+"b", a)
		if s == v.new && !v.validated() {
			return // the foreign keys of new keys are created by validate
		}
		k := key()
		want(v, "the row count", s.one("WITH u AS (UPDATE authors SET {id} = $1 WHERE {id} = $2 RETURNING {id}) SELECT count(*) FROM u WHERE {id} = $1", k, a), "1")
		want(v, "the reference", s.one("SELECT {author_id} FROM books WHERE title = $1", name+"b"), k)
	}, books: []string{"new b by new a and new a", "old b by old a and old a"}},
	{name: "ON CONFLICT DO NOTHING", each: func(v *versions, s *session, key func() string, name string) {
		const insert = "INSERT INTO authors ({id}, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING {id}"
		k := key()
		want(v, "the first row", s.one(insert, k, name), k)
		for range 3 {
			want(v, "another row", s.all(insert, key(), name), "")
		}
		want(v, "another row", s.all("INSERT INTO authors ({id}, name) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING {id}", key(), name), "")
		want(v, "the key", s.one("SELECT {id} FROM authors WHERE name = $1", name), k)
	}},
	{name: "SELECT FOR UPDATE locks the row for both versions", mixed: true, run: func(v *versions) {
		v.old.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", v.oldKey(), v.name)
		for _, pair := range [][2]*session{{v.old, v.new}, {v.new, v.old}} {
			pair[0].do("BEGIN")
			pair[0].one("SELECT {id} FROM authors WHERE name = $1 FOR UPDATE", v.name)
			want(v, "the rows without a lock", pair[1].all("SELECT {id} FROM authors WHERE name = $1 FOR UPDATE SKIP LOCKED", v.name), "")
			pair[0].do("ROLLBACK")
		}
	}},
	{name: "UPDATE and DELETE by key, with joins", each: func(v *versions, s *session, key func() string, name string) {
		a, b := key(), key()
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", a, name+"a")
		s.do("INSERT INTO books ({id}, title, {author_id}) VALUES ($1, $2, $3)", b, name+"b", a)
		want(v, "RETURNING", s.one("UPDATE books SET title = title || '2' WHERE {id} = $1 RETURNING title, {author_id}", b), name+"b2|"+a)
		want(v, "RETURNING", s.one("DELETE FROM books b USING authors a WHERE a.{id} = b.{author_id} AND a.{id} = $1 RETURNING b.{id}", a), b)
		want(v, "RETURNING", s.one("DELETE FROM authors WHERE {id} = ANY ($1) RETURNING {id}", "{"+a+","+key()+"}"), a)
	}},
	{name: "COPY", mixed: true, run: func(v *versions) {
		copied := func(s *session, key func() string) {
			a := key()
			s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", a, v.name+a)
			_, err := s.conn.PgConn().CopyFrom(v.Context(), strings.NewReader(key()+"\t"+v.name+a+"\t"+a), s.named("COPY books ({id}, title, {author_id}) FROM STDIN"))
			must(v, err)
		}
		copied(v.old, v.oldKey)
		if v.prefix != "" { // by the names of the new columns, programs can copy into the table
			copied(v.new, v.newKey)
			return
		}
		// Through views, Postgres supports neither COPY nor TRUNCATE.
		v.new.fails(wrongObjectType, "TRUNCATE books")
		v.new.fails(wrongObjectType, "COPY books (title, author_id) FROM STDIN")
	}},
	{name: "rollback", each: func(v *versions, s *session, key func() string, name string) {
		a := key()
		s.do("BEGIN")
		s.do("INSERT INTO authors ({id}, name) VALUES ($1, $2)", a, name)
		s.do("SAVEPOINT s")
		s.do("INSERT INTO books ({id}, title, {author_id}) VALUES ($1, $2, $3)", key(), name+"b", a)
		s.do("ROLLBACK TO s")
		s.do("COMMIT")
	}, books: []string{}},
}

// keyType returns the type of the session's keys.
func (v *versions) keyType(s *session) string {
	switch {
	case s == v.old:
		return v.oldType
	case v.format == rekey.Sno, v.format == rekey.UUID7:
		return "uuid"
	}
	return "bigint"
}

// validated reports whether the new columns have indexes and foreign keys.
func (v *versions) validated() bool {
	return v.step == rekey.StepValidate || v.step == rekey.StepContract
}

// Programs of both versions work on the same rows in each stage, with -short in two kinds of
// libraries. Each step accepts the rows of the stages before.
func TestVersions(t *testing.T) {
	kinds := pgtest.Scaled([]libraryKind{bigintLibrary, ulidLibrary}, []libraryKind{bigintLibrary, uuidLibrary, uuid7Library, ulidLibrary})
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { oneLibrary(t, kind, testVersions) })
	}
}

func testVersions(t *testing.T, l *library) {
	plan := l.inspect()
	var done rekey.Step
	for n, stage := range stages {
		if stage.step != done {
			l.run(stage.step)
			done = stage.step
		}
		without := map[bool]int{true: 250}[done == rekey.StepExpand]
		if done != rekey.StepContract {
			l.agree(plan, without)
		}
		t.Run(stage.name, func(t *testing.T) {
			old, fresh := l.connect(oldVersion), l.connect(stage.path)
			for i, c := range versionCases {
				if c.mixed && done == rekey.StepContract {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					v := &versions{library: l, TB: t, stage: stage, name: fmt.Sprintf("#%d.%d.", n, i), new: &session{t, fresh.conn, stage.prefix}}
					if done != rekey.StepContract {
						v.old = &session{t, old.conn, ""}
						defer l.agree(plan, without)
					}
					if v.old != nil && c.each != nil {
						c.each(v, v.old, v.oldKey, v.name+" old ")
					}
					if c.each != nil {
						c.each(v, v.new, v.newKey, v.name+" new ")
					}
					if c.run != nil {
						c.run(v)
					}
					if c.books != nil {
						v.wantBooks(c.books...)
					}
					if c.mentors != nil {
						v.wantMentors(c.mentors...)
					}
				})
			}
		})
	}
}

// The codecs of package pgxcodec work through the views, in all query exec modes.
func TestPgx(t *testing.T) {
	t.Parallel()
	t.Run("Snowflake", func(t *testing.T) { testPgx[idtype.Snowflake](t, bigintLibrary, snowflakes) })
	t.Run("Sno", func(t *testing.T) { testPgx[idtype.Sno](t, uuidLibrary, snos) })
	t.Run("UID60", func(t *testing.T) { testPgx[idtype.UID60](t, ulidLibrary, uid60s) })
	t.Run("UUIDv7", func(t *testing.T) { testPgx[idtype.UUID](t, uuid7Library, uuids) })
}

func testPgx[T comparable](t *testing.T, kind libraryKind, g idtype.Generator[T]) {
	oneLibrary(t, kind, func(t *testing.T, l *library) {
		l.run(steps[:3]...)
		pgtest.EachMode(t, func(t *testing.T, mode pgx.QueryExecMode) {
			ctx := t.Context()
			pool := l.db.Pool(t, pgtest.Codec, pgtest.Mode(mode), pgtest.SearchPath(newVersion))
			var ids [3]T
			_, err := g.Fill(ctx, ids[:])
			must(t, err)
			var author, created T
			must(t, pool.QueryRow(ctx, "INSERT INTO authors (id, name) VALUES ($1, $2) RETURNING id", ids[0], "author by "+mode.String()).Scan(&author))
			want(t, "the key", author, ids[0])
			must(t, pool.QueryRow(ctx, "INSERT INTO authors (name, mentor_id) VALUES ($1, $2) RETURNING id", "created by "+mode.String(), ids[0]).Scan(&created))
			batch := &pgx.Batch{}
			for _, id := range ids[1:] {
				batch.Queue("INSERT INTO books (id, title, author_id, editor_id) VALUES ($1, $2, $3, $4)", id, fmt.Sprint("book ", id), author, created)
			}
			must(t, pool.SendBatch(ctx, batch).Close())
			rows, err := pool.Query(ctx, "SELECT id FROM books WHERE author_id = $1 AND id = ANY ($2) AND editor_id IN (SELECT id FROM authors WHERE mentor_id = $1) ORDER BY id", author, ids[1:])
			must(t, err)
			got, err := pgx.CollectRows(rows, pgx.RowTo[T])
			must(t, err)
			if !slices.Equal(got, ids[1:]) {
				t.Errorf("expected %v, got %v", ids[1:], got)
			}
			var editor *T
			must(t, pool.QueryRow(ctx, "UPDATE books SET editor_id = $2 WHERE id = $1 RETURNING editor_id", ids[1], (*T)(nil)).Scan(&editor))
			want(t, "the editor", editor, nil)
		})
	})
}

// Models of GORM for both versions, with keys of type K.
type (
	gormAuthor[K any] struct {
		ID       K
		Name     string
		MentorID *K
		Mentor   *gormAuthor[K]
	}
	gormBook[K any] struct {
		ID       K
		Title    string
		AuthorID K
		Author   *gormAuthor[K] `gorm:"foreignKey:AuthorID"`
		EditorID *K
		Editor   *gormAuthor[K] `gorm:"foreignKey:EditorID"`
	}
)

func (gormAuthor[K]) TableName() string { return "authors" }
func (gormBook[K]) TableName() string   { return "books" }

// GORM works with models of both versions at the same time.
func TestGORM(t *testing.T) {
	t.Parallel()
	t.Run("Snowflake", func(t *testing.T) { testGORM[idtype.Snowflake](t, rekey.Snowflake, snowflakes) })
	t.Run("Sno", func(t *testing.T) { testGORM[idtype.Sno](t, rekey.Sno, snos) })
	t.Run("UID60", func(t *testing.T) { testGORM[idtype.UID60](t, rekey.UID60, uid60s) })
}

func testGORM[K idtype.Snowflake | idtype.Sno | idtype.UID60](t *testing.T, format rekey.Format, g idtype.Generator[K]) {
	kind := bigintLibrary
	kind.format = format
	oneLibrary(t, kind, func(t *testing.T, l *library) {
		plan := l.inspect()
		l.run(steps[:3]...)
		quiet := func() *gorm.Config { return &gorm.Config{Logger: logger.Discard} }
		old := l.db.GORM(t, quiet())
		fresh := l.db.GORM(t, quiet(), pgtest.Codec, pgtest.SearchPath(newVersion))
		must(t, fresh.Use(gormplugin.New(gormplugin.For(g))))

		createBook[int64](t, old, "old")
		createBook[K](t, fresh, "new")
		readBook[K](t, fresh, "old")
		readBook[int64](t, old, "new")
		changeBook[K](t, fresh, "old")
		changeBook[int64](t, old, "new")
		l.agree(plan, 0)

		l.run(rekey.StepContract)
		createBook[K](t, fresh, "contracted")
		changeBook[K](t, fresh, "contracted")
	})
}

// probe creates, reads, changes and deletes rows as a program with a search_path.
func (l *library) probe(path string) {
	l.Helper()
	l.n++
	title := fmt.Sprint("probe ", l.n)
	g := l.db.GORM(l, &gorm.Config{Logger: logger.Discard}, pgtest.SearchPath(path))
	createBook[int64](l, g, title)
	changeBook[int64](l, g, title)
}

// createBook creates a book with its author, the author's mentor and an editor.
func createBook[K comparable](t testing.TB, g *gorm.DB, title string) {
	t.Helper()
	author := gormAuthor[K]{Name: "author of " + title, Mentor: &gormAuthor[K]{Name: "mentor of " + title}}
	book := gormBook[K]{Title: title, Author: &author, Editor: &gormAuthor[K]{Name: "editor of " + title}}
	must(t, g.Create(&book).Error)
	var zero K
	if book.ID == zero || book.AuthorID != author.ID || author.ID == zero || *book.EditorID != book.Editor.ID {
		t.Errorf("%s: expected keys, got %+v", title, book)
	}
	readBook[K](t, g, title)
}

// readBook reads a book with its associations.
func readBook[K comparable](t testing.TB, g *gorm.DB, title string) gormBook[K] {
	t.Helper()
	var book gormBook[K]
	must(t, g.InnerJoins("Author").InnerJoins("Editor").Preload("Author.Mentor").Where("title = ?", title).Take(&book).Error)
	want(t, "the names", book.Author.Name+", "+book.Author.Mentor.Name+", "+book.Editor.Name, "author of "+title+", mentor of "+title+", editor of "+title)
	return book
}

// changeBook updates the references of a book, inserts it again, and deletes it.
func changeBook[K comparable](t testing.TB, g *gorm.DB, title string) {
	t.Helper()
	book := readBook[K](t, g, title)
	must(t, g.Transaction(func(tx *gorm.DB) error {
		var locked gormBook[K]
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&locked, "id = ?", book.ID).Error; err != nil {
			return err
		}
		return tx.Model(&locked).Select("AuthorID", "EditorID").Updates(gormBook[K]{AuthorID: *book.EditorID}).Error
	}))
	var read gormBook[K]
	must(t, g.Joins("Author").Take(&read, "title = ?", title).Error)
	if read.Author == nil || read.Author.Name != "editor of "+title || read.EditorID != nil {
		t.Errorf("%s: expected the editor as author and no editor, got %+v", title, read)
	}
	again := gormBook[K]{Title: title, AuthorID: book.AuthorID}
	want(t, "rows of "+title+" on a conflict", g.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).RowsAffected, 0)
	must(t, g.Delete(&gormAuthor[K]{ID: read.AuthorID}).Error)
	want(t, "rows of "+title+", which is deleted in cascade", g.Take(&gormBook[K]{}, "title = ?", title).RowsAffected, 0)
}
