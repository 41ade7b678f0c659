package rekey

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/rekey"
)

// Three tables with UUIDs of version 4, and one with bigserial keys. Each table refers to the
// one before.
const uuidTables = `
	CREATE TABLE tenants (id bigserial PRIMARY KEY, ref integer NOT NULL UNIQUE, created_at timestamptz);
	CREATE TABLE users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), ref integer NOT NULL UNIQUE, tenant_id bigint NOT NULL REFERENCES tenants ON DELETE CASCADE, created_at timestamptz NOT NULL DEFAULT now());
	CREATE TABLE posts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), ref integer NOT NULL UNIQUE, user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE, created_at timestamptz NOT NULL DEFAULT now());
	CREATE TABLE votes (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), ref integer NOT NULL UNIQUE, post_id uuid NOT NULL REFERENCES posts ON DELETE CASCADE, created_at timestamptz NOT NULL DEFAULT now());
	CREATE INDEX ON users (tenant_id);
	CREATE VIEW feed AS SELECT p.id AS post_id, p.ref AS post, u.ref AS author, t.ref AS tenant FROM posts p JOIN users u ON u.id = p.user_id JOIN tenants t ON t.id = u.tenant_id;
	INSERT INTO tenants (ref, created_at) SELECT i, CASE WHEN i % 50 > 0 THEN timestamptz '2024-01-01Z' + i * 37 % 300 / 7 * interval '1 s' + i % 3 * interval '400 us' END FROM generate_series(1, 300) i;
	INSERT INTO users (ref, tenant_id, created_at) SELECT i, i, '2024-02-01Z' FROM generate_series(1, 300) i; -- one time
	INSERT INTO posts (ref, user_id, created_at) SELECT u.ref, u.id, timestamptz '2024-03-01Z' - u.ref * interval '1 min' FROM users u;
	INSERT INTO votes (ref, post_id, created_at) SELECT p.ref, p.id, timestamptz '2024-04-01Z' + p.ref / 3 * interval '1 ms' FROM posts p`

var uuidSpec = rekey.Spec{Keys: []rekey.Key{
	{Table: "tenants", Format: rekey.UUID7, Times: rekey.Times{Column: "created_at", Start: sourceStart}},
	{Table: "users", Format: rekey.UUID7, Times: created},
	{Table: "posts", Format: rekey.Snowflake, Node: 50, BackfillNode: 51, Times: created},
	{Table: "votes", Format: rekey.Sno, Node: 52, BackfillNode: 53, Meta: 'v', Times: created},
}}

// From bigserial and from UUIDs of version 4 to UUIDs of version 7, Snowflakes and Snos, with
// an abort before.
func TestUUIDs(t *testing.T) {
	t.Parallel()
	installed.EachContainer(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, uuidTables)
		for _, table := range []string{"tenants", "users", "posts", "votes"} {
			db.Exec(t, fmt.Sprintf("CREATE SCHEMA IF NOT EXISTS before; CREATE TABLE before.%[1]s AS SELECT id, ref, created_at FROM %[1]s", table))
		}
		pool, s := db.SQL(t), &shop{DB: db}
		if got := problems(t, pool, uuidSpec); got != "" {
			t.Fatal(got)
		}
		plan, err := rekey.Inspect(t.Context(), pool, uuidSpec, rekey.Options{Config: config})
		must(t, err)
		var columns []string
		for _, table := range plan.Tables {
			for _, c := range table.Columns {
				columns = append(columns, fmt.Sprintf("%s.%s %s %s", table.Name, c.Name, c.OldType, c.NewType))
			}
		}
		slices.Sort(columns)
		if got := strings.Join(columns, ", "); got != "public.posts.id uuid bigint, public.posts.user_id uuid uuid, public.tenants.id bigint uuid, public.users.id uuid uuid, "+
			"public.users.tenant_id bigint uuid, public.votes.id uuid uuid, public.votes.post_id uuid bigint" {
			t.Errorf("expected the columns of four keys, got %s", got)
		}

		old, fresh := db.Conn(t), db.Conn(t, pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["search_path"] = "rekeyed, public" }))
		pgxcodec.Register(fresh.TypeMap())
		generator, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
		must(t, err)
		n := 1000
		insert := func(conn *pgx.Conn) { // by the defaults of the database
			t.Helper()
			n++
			_, err := conn.Exec(t.Context(), `WITH t AS (INSERT INTO tenants (ref, created_at) VALUES ($1, now()) RETURNING id), u AS (INSERT INTO users (ref, tenant_id) SELECT $1, id FROM t RETURNING id),
				p AS (INSERT INTO posts (ref, user_id) SELECT $1, id FROM u RETURNING id) INSERT INTO votes (ref, post_id) SELECT $1, id FROM p`, n)
			must(t, err)
		}
		insertUUIDs := func() { // by a program of the new version
			t.Helper()
			n++
			tenant, err := generator.Next()
			must(t, err)
			user, err := generator.Next()
			must(t, err)
			_, err = fresh.Exec(t.Context(), "INSERT INTO tenants (id, ref, created_at) VALUES ($1, $2, now())", tenant, n)
			must(t, err)
			_, err = fresh.Exec(t.Context(), "INSERT INTO users (id, ref, tenant_id) VALUES ($1, $2, $3)", user, n, tenant)
			must(t, err)
			_, err = fresh.Exec(t.Context(), "INSERT INTO posts (ref, user_id) VALUES ($1, $2)", n, user)
			must(t, err)
			if got := pgtest.Value[idtype.UUID](t, fresh, "SELECT user_id FROM posts WHERE ref = $1", n); got != user {
				t.Errorf("expected the reference %v, got %v", user, got)
			}
			_, err = fresh.Exec(t.Context(), "INSERT INTO votes (ref, post_id) SELECT $1, id FROM posts WHERE ref = $1", n)
			must(t, err)
		}
		found := func(conn *pgx.Conn) {
			t.Helper()
			const lost = "SELECT 300 + $1 - count(*) FROM votes v JOIN posts p ON p.id = v.post_id JOIN users u ON u.id = p.user_id JOIN tenants t ON t.id = u.tenant_id JOIN feed f ON f.post_id = p.id AND f.author = u.ref WHERE v.ref = t.ref AND p.ref = u.ref"
			if lost := pgtest.Value[int](t, conn, lost, n-1000); lost != 0 {
				t.Errorf("expected all references to survive, got %d others", lost)
			}
		}

		schema, data := s.dump(t, "--schema-only"), s.data(t)
		for i := range steps[:3] {
			mustRun(t, pool, uuidSpec, rekey.Options{}, steps[:i+1]...)
			mustRun(t, pool, uuidSpec, rekey.Options{}, rekey.StepAbort)
			same(t, "schema", schema, s.dump(t, "--schema-only"))
			same(t, "rows", data, s.data(t))
		}

		for _, step := range steps[:3] {
			mustRun(t, pool, uuidSpec, rekey.Options{}, step)
			insert(old)
			found(old)
		}
		insert(fresh)
		insertUUIDs()
		insert(old)
		found(old)
		found(fresh)
		mustRun(t, pool, uuidSpec, rekey.Options{}, rekey.StepContract)
		insert(fresh)
		insertUUIDs()
		found(fresh)

		conn := db.Conn(t)
		for i, at := range []string{fmt.Sprintf("coalesce(created_at, '%s')", sourceStart.Format("2006-01-02 15:04:05.000Z")), "created_at", "created_at", "created_at"} {
			k := uuidSpec.Keys[i]
			idOrder{Key: k, name: k.Table, at: at, rows: fmt.Sprintf("SELECT n.id AS new, b.* FROM before.%[1]s b JOIN %[1]s n USING (ref)", k.Table)}.verify(t, conn)
			later := pgtest.Value[int](t, conn, fmt.Sprintf("SELECT count(*) FROM %s WHERE ref > 1000 AND id > (SELECT max(id::text) FROM %[1]s WHERE ref <= 1000)::%s",
				k.Table, map[bool]string{true: "bigint", false: "uuid"}[k.Format == rekey.Snowflake]))
			if later != n-1000 {
				t.Errorf("%s: expected %d new rows after all others, got %d", k.Table, n-1000, later)
			}
		}
		if got := pgtest.Value[string](t, conn, "SELECT string_agg(table_name || ' ' || column_default, ', ' ORDER BY table_name) FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'id'"); got !=
			"posts sortkey.next_snowflake(50), tenants sortkey.next_uuid7(), users sortkey.next_uuid7(), votes sortkey.next_sno(118, 52)" {
			t.Errorf("unexpected defaults: %s", got)
		}
	})
}

// A format whose functions aren't installed is refused.
func TestMissingFunction(t *testing.T) {
	t.Parallel()
	installed.One(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "DROP FUNCTION sortkey.next_uuid7();"+customers)
		wantProblem(t, db.SQL(t), customersSpec(rekey.UUID7), "function sortkey.next_uuid7() isn't installed; run sortkey migrate up")
	})
}
