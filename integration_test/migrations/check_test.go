package migrations

import (
	"fmt"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// A process that would read other things out of IDs is refused, and told what
// both sides have.
func TestCheckLayouts(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		ours := migrations.Config{
			Snowflake:   idtype.SnowflakeLayout{Epoch: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC), DatacenterBits: 2, WorkerBits: 8, SequenceBits: 12},
			SnowflakeSI: installClock,
		}
		must(t, migrations.Up(ctx, pool, ours))
		must(t, migrations.Check(ctx, pool, ours))
		const snowflake, si = "epoch 2015-01-01T00:00:00.000Z; bits: time 41, datacenter 2, worker 8, sequence 12",
			"base clock 2024-01-01T00:00:00.000Z; bits: machine 5, index 8"
		for name, c := range map[string]struct {
			change func(c *migrations.Config)
			title  string
			want   []string
		}{
			"another epoch": {func(c *migrations.Config) { c.Snowflake.Epoch = c.Snowflake.Epoch.Add(time.Millisecond) }, "Snowflake with",
				[]string{snowflake, "epoch 2015-01-01T00:00:00.001Z; bits: time 41, datacenter 2, worker 8, sequence 12"}},
			"other widths": {func(c *migrations.Config) { c.Snowflake.DatacenterBits, c.Snowflake.WorkerBits = 8, 2 }, "Snowflake with",
				[]string{snowflake, "epoch 2015-01-01T00:00:00.000Z; bits: time 41, datacenter 8, worker 2, sequence 12"}},
			"the default layout": {func(c *migrations.Config) { c.Snowflake = idtype.SnowflakeLayout{} }, "Snowflake with",
				[]string{snowflake, "epoch 2021-01-01T00:00:00.000Z; bits: time 41, datacenter 5, worker 5, sequence 12"}},
			"another base clock": {func(c *migrations.Config) { c.SnowflakeSI.BaseClock = time.UnixMilli(0) }, "SnowflakeSI with",
				[]string{si, "base clock 1970-01-01T00:00:00.000Z; bits: machine 5, index 8"}},
			"other widths of SnowflakeSI": {func(c *migrations.Config) { c.SnowflakeSI.MachineBits, c.SnowflakeSI.IndexBits = 6, 7 }, "SnowflakeSI with",
				[]string{si, "base clock 2024-01-01T00:00:00.000Z; bits: machine 6, index 7"}},
		} {
			other := ours
			c.change(&other)
			want := append(c.want, c.title, `schema "sortkey"`, "give this process the database's layout, or another schema")
			installError(t, migrations.Check(ctx, pool, other), migrations.ErrLayout, want...)
			installError(t, migrations.Up(ctx, pool, other), migrations.ErrLayout, want...)
			if t.Failed() {
				t.Fatal(name)
			}
		}
		// Half an installation isn't completed with another layout.
		must(t, migrations.Down(ctx, pool, ours))
		db.Exec(t, "CREATE SCHEMA sortkey; CREATE SEQUENCE sortkey.snowflake_si_clock")
		installError(t, migrations.Up(ctx, pool, ours), nil, "migration 3 (snowflake_si)")
		db.Exec(t, "DROP SEQUENCE sortkey.snowflake_si_clock")
		half := installCatalog(t, pool, "sortkey")
		installError(t, migrations.Up(ctx, pool, migrations.Config{}), migrations.ErrLayout, snowflake)
		installSame(t, "Up with another layout", installCatalog(t, pool, "sortkey"), half)
		must(t, migrations.Up(ctx, pool, ours))
		// The same, said in other words.
		same := ours
		same.Snowflake.Epoch = same.Snowflake.Epoch.In(time.FixedZone("", 3600))
		must(t, migrations.Check(ctx, pool, same))
	})
}

func TestCheckInstallation(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, c := t.Context(), db.SQL(t), migrations.Config{}
		installError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled, "sortkey.revision", "run Up")
		db.Exec(t, "CREATE SCHEMA sortkey")
		installError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled, "run Up")

		files, err := migrations.Goose(c)
		must(t, err)
		p, err := goose.NewProvider(goose.DialectPostgres, pool, files)
		must(t, err)
		list, err := migrations.List(c)
		must(t, err)
		for _, m := range list[1:] {
			_, err := p.UpTo(ctx, int64(m.Version-1))
			must(t, err)
			installError(t, migrations.Check(ctx, pool, c), migrations.ErrOutdated, m.Name, fmt.Sprintf("%d migrations", len(list)), "run Up, or the tool")
			if applied := installApplied(t, pool, c); len(applied) != m.Version-1 {
				t.Errorf("expected %d migrations to be applied, got %v", m.Version-1, applied)
			}
		}
		_, err = p.Up(ctx)
		must(t, err)
		must(t, migrations.Check(ctx, pool, c))
		db.Exec(t, "DELETE FROM sortkey.revision WHERE version = 3")
		installError(t, migrations.Check(ctx, pool, c), migrations.ErrOutdated, "number 3 (snowflake_si)")
		db.Exec(t, "DELETE FROM sortkey.revision")
		installError(t, migrations.Check(ctx, pool, c), migrations.ErrIncomplete, "pg_dump --data-only --schema=sortkey")
		installError(t, migrations.Check(ctx, pool, migrations.Config{Schema: "elsewhere"}), migrations.ErrNotInstalled, "elsewhere.revision")
		pool.Close()
		installError(t, migrations.Check(ctx, pool, c), nil, "closed")
	})
}

// A role needs no more than to see into the schema.
func TestCheckByRole(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, db *pgtest.DB) {
		ctx, c, name := t.Context(), migrations.Config{SnowflakeSI: installClock}, installRoleName(db, "reader")
		pool := installRole(t, db, name)
		installError(t, migrations.Check(ctx, pool, c), migrations.ErrNotInstalled)
		must(t, migrations.Up(ctx, db.SQL(t), c))
		installError(t, migrations.Check(ctx, pool, c), nil, "permission denied", "GRANT USAGE ON SCHEMA sortkey")
		db.Exec(t, "GRANT USAGE ON SCHEMA sortkey TO "+name)
		must(t, migrations.Check(ctx, pool, c))
		if applied := installApplied(t, pool, c); len(applied) < 6 {
			t.Errorf("expected Status to work, too, got %v", applied)
		}
		for _, statement := range []string{"INSERT INTO sortkey.revision VALUES (7, 'x')", "DELETE FROM sortkey.revision", "UPDATE sortkey.layout SET layout = 'x'",
			"TRUNCATE sortkey.layout", "SELECT * FROM sortkey.sortkey_goose_version", "CREATE TABLE sortkey.t ()"} {
			_, err := pool.ExecContext(ctx, statement)
			installError(t, err, nil, "permission denied")
		}
	})
}
