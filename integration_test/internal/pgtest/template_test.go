//go:build unix

package pgtest

import (
	"context"
	"strings"
	"testing"
)

// Each test finds exactly the rows that fill inserted, whether its copy is new or was
// used by another test.
func TestTemplate(t *testing.T) {
	fills := 0
	template := NewTemplate(func(t *testing.T, db *DB) {
		fills++
		db.Exec(t, `create table colours (id bigserial primary key, name text default 'red', check (name <> ''));
			create table shades (id bigserial primary key, colour bigint references colours);
			create table settings (name text); insert into settings values ('kept');
			create function f() returns trigger language plpgsql as 'begin return new; end';
			create trigger tr before insert on shades for each row execute function f()`)
	})
	use := func(names *[]string) func(*testing.T, *DB) {
		return func(t *testing.T, db *DB) {
			*names = append(*names, db.Name)
			conn := db.Conn(t)
			settings, shades := Value[int](t, conn, "select count(*) from settings"), Value[int](t, conn, "select count(*) from shades")
			id := Value[int64](t, conn, "insert into colours default values returning id")
			if settings != 1 || shades != 0 || id != 1 {
				t.Errorf("got %d settings, %d shades and ID %d, want 1, 0 and 1", settings, shades, id)
			}
			db.Exec(t, "insert into shades (colour) values (1)")
		}
	}
	var own, reused []string
	for range 2 {
		template.One(t, use(&own))
		template.OneReused(t, use(&reused))
	}
	if fills != 1 || own[0] == own[1] || reused[0] != reused[1] {
		t.Errorf("filled %d databases, want 1; copied to %v, want two databases; reused %v, want one database", fills, own, reused)
	}

	template.OneReused(t, func(t *testing.T, db *DB) {
		other := template.on(t, db.server).add(t)
		defer other.admin.Close(context.Background())
		for _, change := range []string{
			"alter table colours add column hue int", "create index on colours (name)", "create view reds as select 1",
			"alter table colours alter column name set not null", "alter table colours alter column name set default 'blue'",
			"alter table shades drop constraint shades_colour_fkey", "alter table colours drop constraint colours_name_check",
			"alter table shades disable trigger tr", "drop trigger tr on shades",
			"create or replace function f() returns trigger language plpgsql as 'begin return null; end'",
		} {
			tx, err := other.admin.Begin(t.Context())
			Must(t, err)
			_, err = tx.Exec(t.Context(), change)
			Must(t, err)
			Fails(t, other.empty(), nil, "use Each")
			Must(t, tx.Rollback(t.Context()))
		}
	})
}

// If filling a template fails, it isn't tried again, and all tests that need the
// template fail.
func TestUnfillableTemplate(t *testing.T) {
	OneParallel(t, func(t *testing.T, db *DB) {
		output, err := misbehave(t, "TestUnfillable", urlVar+"="+db.URL).output()
		if err == nil || strings.Count(output, "filling\n") != 1 || strings.Contains(output, "running\n") ||
			strings.Count(output, "filling it failed in TestUnfillable/pg"+db.Version+"\n") != 3 {
			t.Errorf("expected one attempt and four failures, got %v and\n%s", err, output)
		}
	})
}
