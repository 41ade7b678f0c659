package main

import (
	"context"
	"database/sql"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// databaseFlags are the flags of a command that connects to a database.
type databaseFlags struct {
	url    string
	schema string
}

func (f *databaseFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.url, "database", "d", "", "`URL` or connection string of the database (default: DATABASE_URL, or PGHOST and libpq's other variables)")
	cmd.Flags().StringVar(&f.schema, "schema", migrations.DefaultSchema, "`name` of the schema with the SQL of sortkey")
}

// A database is a pool of connections.
type database struct {
	*pgxpool.Pool
	std *sql.DB // the same connections, for package migrations
}

// open connects to the database. It returns an error if the session doesn't trust the owner
// of the schemas, so that no command runs code of another role.
func (f *databaseFlags) open(ctx context.Context) (database, error) {
	if err := (migrations.Config{Schema: f.schema}).Validate(); err != nil {
		return database{}, invalidConfig(err)
	}
	config, err := cli.Config(f.url)
	if err != nil {
		return database{}, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return database{}, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return database{}, err
	}
	db := database{pool, stdlib.OpenDBFromPool(pool)}
	if err := migrations.CheckOwner(ctx, db.std, migrations.Config{Schema: f.schema}); err != nil {
		err = db.explain(ctx, err, f.schema)
		db.Close()
		return database{}, err
	}
	return db, nil
}

// invalidConfig returns the error of a flag for one of [migrations.Config.Validate].
func invalidConfig(err error) error {
	return cli.Usagef("%s", strings.Replace(err.Error(), "migrations: Config.Schema:", "--schema", 1))
}

// openInstalled connects to a database with an installation, and returns its Config.
func (f *databaseFlags) openInstalled(ctx context.Context) (database, migrations.Config, error) {
	db, err := f.open(ctx)
	if err != nil {
		return db, migrations.Config{}, err
	}
	config, err := migrations.Installed(ctx, db.std, f.schema)
	if err != nil {
		err = db.explain(ctx, err, f.schema)
		db.Close()
	}
	return db, config, err
}

// inSchema replaces $s in SQL with the schema of an installation.
func inSchema(schema, query string) string { return strings.ReplaceAll(query, "$s", schema) }
