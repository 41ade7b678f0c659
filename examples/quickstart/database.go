package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
)

// A store is the shop's database.
type store struct {
	db     *gorm.DB
	server string // its kind and version

	insertEvents func(context.Context, []Event) error
	inserted     string // the verb for insertEvents in the output
	// between returns the events of a time window, and the plan of the query.
	between func(ctx context.Context, from, to time.Time) ([]Event, []string, error)
	// columnType returns an SQL expression for the type of a table's column id.
	columnType func(table string) string
	leftOut    string // a note on the features that the store can't show
	close      func() error
}

func open(ctx context.Context, url string) (*store, error) {
	if url == "" {
		return openSQLite(ctx)
	}
	return openPostgres(ctx, url)
}

func openGORM(dialector gorm.Dialector) (*gorm.DB, error) {
	db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Default.LogMode(logger.Error)})
	if err != nil {
		return nil, err
	}
	generators, err := keys()
	if err != nil {
		return nil, err
	}
	return db, db.Use(gormplugin.New(generators...))
}

// openPostgres creates a schema, which close drops: the database may already have
// tables of the same names.
func openPostgres(ctx context.Context, url string) (_ *store, err error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	name, err := idtype.NewSno(0)
	if err != nil {
		return nil, err
	}
	schema := pgx.Identifier{"sortkey_quickstart_" + name.String()}.Sanitize()
	config.ConnConfig.RuntimeParams["search_path"] = schema
	config.AfterConnect = pgxcodec.AfterConnect // pgx encodes and decodes IDs without driver.Valuer and sql.Scanner
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var version string
	if err := pool.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&version); err != nil {
		pool.Close()
		return nil, err
	}
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
		pool.Close()
		return nil, err
	}
	sqlDB := stdlib.OpenDBFromPool(pool)
	s := &store{
		server:     "Postgres " + version,
		inserted:   "Copied",
		columnType: func(string) string { return "pg_typeof(id)::text" },
		close: func() error {
			// Drop the schema even if ctx is canceled.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			_, err := pool.Exec(ctx, "DROP SCHEMA "+schema+" CASCADE")
			err = errors.Join(err, sqlDB.Close())
			pool.Close()
			return err
		},
	}
	s.insertEvents = func(ctx context.Context, rows []Event) error {
		_, err := pool.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"id", "kind"},
			pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return []any{rows[i].ID, rows[i].Kind}, nil }))
		if err == nil {
			_, err = pool.Exec(ctx, "ANALYZE events")
		}
		return err
	}
	s.between = func(ctx context.Context, from, to time.Time) ([]Event, []string, error) {
		lo, hi, err := idtype.UID60Layout{}.Range(from, to)
		if err != nil {
			return nil, nil, err
		}
		const query = "SELECT id, kind FROM events WHERE id >= $1 AND id < $2 ORDER BY id"
		rows, err := pool.Query(ctx, query, lo, hi)
		if err != nil {
			return nil, nil, err
		}
		window, err := pgx.CollectRows(rows, pgx.RowToStructByName[Event])
		if err != nil {
			return nil, nil, err
		}
		rows, err = pool.Query(ctx, "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) "+query, lo, hi)
		if err != nil {
			return nil, nil, err
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		return window, plan, err
	}
	s.db, err = openGORM(postgres.New(postgres.Config{Conn: sqlDB}))
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// openSQLite opens a database in memory.
func openSQLite(context.Context) (*store, error) {
	db, err := openGORM(sqlite.Open("file::memory:?_pragma=foreign_keys(1)"))
	if err != nil {
		return nil, err
	}
	sqlDB, err := db.DB()
	if err != nil {
		return nil, err
	}
	sqlDB.SetMaxOpenConns(1) // each connection would open its own database
	return &store{
		db:       db,
		server:   "SQLite, because DATABASE_URL is not set",
		inserted: "Inserted",
		insertEvents: func(ctx context.Context, rows []Event) error {
			return db.WithContext(ctx).CreateInBatches(rows, 1000).Error
		},
		between: func(ctx context.Context, from, to time.Time) ([]Event, []string, error) {
			minted := gormplugin.CreatedBetween("id", from, to)
			var window []Event
			if err := db.WithContext(ctx).Scopes(minted).Order("id").Find(&window).Error; err != nil {
				return nil, nil, err
			}
			query := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Scopes(minted).Order("id").Find(&[]Event{}) })
			plan, err := sqlitePlan(ctx, sqlDB, query)
			query, where, _ := strings.Cut(query, " WHERE ")
			return window, append([]string{query, "WHERE " + where}, plan...), err
		},
		columnType: func(table string) string {
			return "(SELECT type FROM pragma_table_info('" + table + "') WHERE name = 'id')"
		},
		leftOut: strings.Join([]string{
			"Not shown without Postgres: pgx with its codec and COPY, the 16-byte uuid column of a Sno,",
			"and the plan of a key range in Postgres. Set DATABASE_URL, or start Docker, and run it again.",
		}, "\n"),
		close: sqlDB.Close,
	}, nil
}

func sqlitePlan(ctx context.Context, db *sql.DB, query string) (plan []string, err error) {
	rows, err := db.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	return plan, nil
}
