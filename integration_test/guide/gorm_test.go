package guide

import (
	"errors"
	"slices"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// The code of docs/gorm.md fills all keys, and creates another one if a key is taken.
func TestGORM(t *testing.T) {
	migrated.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		at := time.Now()
		numbers, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Options: idtype.Options{Clock: func() time.Time { return at }}})
		must(t, err)
		g, err := guide.OpenArticles(db.URL, numbers)
		must(t, err)
		t.Cleanup(func() {
			pool, err := g.DB()
			must(t, err)
			must(t, pool.Close())
		})
		article := guide.Article{Author: guide.Author{Name: "Ada"}, Editors: []guide.Author{{Name: "Bo"}, {Name: "Cy"}}}
		must(t, guide.CreateAgain(g, &article))
		conn := db.Conn(t)
		has(t, "rows", lines(t, conn, `SELECT count(*), count(DISTINCT author_id), (SELECT count(*) FROM authors), (SELECT count(*) FROM editors), (SELECT string_agg(DISTINCT domain_name, ' ') FROM information_schema.columns WHERE table_name = 'articles') FROM articles`),
			"1|1|3|2|snowflake uuid7")

		// While the clock stands still, the next number is the one after that of the last article. Another row takes it.
		taken := guide.Article{AuthorID: article.AuthorID, Number: article.Number + 1}
		must(t, g.Create(&taken).Error)
		next := guide.Article{AuthorID: article.AuthorID}
		must(t, guide.CreateAgain(g, &next))
		if next.Number != article.Number+2 || taken.Number != article.Number+1 {
			t.Errorf("expected the numbers %v + 1 and + 2, got %v and %v", article.Number, taken.Number, next.Number)
		}
		if err := guide.CreateAgain(g, &guide.Article{AuthorID: article.AuthorID, Number: article.Number}); !errors.Is(err, gorm.ErrDuplicatedKey) {
			t.Errorf("expected a refused number of the caller, got %v", err)
		}
	})
}

// The code of docs/pgx.md stores and finds keys.
func TestPgx(t *testing.T) {
	migrated.OneParallel(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "CREATE TABLE orders (id sortkey.snowflake PRIMARY KEY)")
		pool, err := guide.NewPool(t.Context(), db.URL)
		must(t, err)
		t.Cleanup(pool.Close)
		gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{})
		must(t, err)
		ids, err := guide.CopyOrders(t.Context(), pool, gen, 100)
		must(t, err)
		found, err := guide.Existing(t.Context(), pool, append(ids[10:], 7))
		must(t, err)
		if !slices.Equal(found, ids[10:]) {
			t.Errorf("expected the 90 keys, got %v", found)
		}
	})
}
