package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// schemaFlag adds --schema.
func schemaFlag(cmd *cobra.Command, schema *string) {
	cmd.Flags().StringVar(schema, "schema", migrations.DefaultSchema, "`name` of the schema with the SQL of sortkey")
}

// A database is a pool of connections.
type database struct {
	*cli.Pool
	std               *sql.DB // the same connections, for package migrations
	migrations.Config         // the schema, and, in installedCommand, the layouts
}

// A databaseFunc does the work of a command with its arguments.
type databaseFunc = func(ctx context.Context, db database, args []string) error

// databaseCommand adds the flags of a database to cmd. The command connects to the database, and
// calls do if the session trusts the owner of the schemas, so that no command runs code of another
// role. It explains the error of do, which needs the privileges.
func databaseCommand(cmd *cobra.Command, do databaseFunc, privileges ...string) *cobra.Command {
	var url, schema string
	cmd.Flags().StringVarP(&url, "database", "d", "", "`URL` or connection string of the database (default: DATABASE_URL, or PGHOST and libpq's other variables)")
	schemaFlag(cmd, &schema)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, config := cmd.Context(), migrations.Config{Schema: schema}
		if err := config.Validate(); err != nil {
			return invalidConfig(err)
		}
		pool, err := cli.Open(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		db := database{pool, stdlib.OpenDBFromPool(pool.Pool), config}
		err = migrations.CheckOwner(ctx, db.std, config)
		if err == nil {
			err = do(ctx, db, args)
		}
		return db.explain(ctx, err, privileges...)
	}
	return cmd
}

// installedCommand is databaseCommand for a database with an installation.
func installedCommand(cmd *cobra.Command, do databaseFunc, privileges ...string) *cobra.Command {
	return databaseCommand(cmd, func(ctx context.Context, db database, args []string) error {
		installed, err := migrations.Installed(ctx, db.std, db.Schema)
		if err != nil {
			return db.explain(ctx, err)
		}
		db.Config = installed
		return do(ctx, db, args)
	}, privileges...)
}

// invalidConfig returns the error of a flag for one of [migrations.Config.Validate].
func invalidConfig(err error) error {
	return cli.Usagef("%s", strings.Replace(err.Error(), "migrations: Config.Schema:", "--schema", 1))
}

// sql replaces $s in a query with the schema.
func (db database) sql(query string) string { return strings.ReplaceAll(query, "$s", db.Schema) }

// command returns a command line for the same installation.
func (db database) command(format string, args ...any) string {
	return dbhealth.Command(db.Schema, fmt.Sprintf(format, args...))
}

// name returns the name of the database.
func (db database) name(ctx context.Context) (name string, err error) {
	return name, cli.ReadRow(ctx, db, []any{&name}, "SELECT current_database()")
}

// A rewordedError is an error of a package or of the server, in the words of this
// command.
type rewordedError struct {
	text string
	err  error
}

func (e *rewordedError) Error() string { return e.text }
func (e *rewordedError) Unwrap() error { return e.err }

// explain rewords an error of the server or of package migrations, and adds a remedy:
// the privileges that the role lacks, for example. In privileges, $s is the schema.
func (db database) explain(ctx context.Context, err error, privileges ...string) error {
	var reworded *rewordedError
	if err == nil || ctx.Err() != nil || errors.As(err, &reworded) {
		return err
	}
	if problem, remedy := dbhealth.Diagnose(err, db.Schema); problem != "" {
		return &rewordedError{problem + "; " + remedy, err}
	}
	text, remedy := strings.TrimPrefix(err.Error(), "migrations: "), ""
	switch {
	case pgerror.State(err) == pgerror.InsufficientPrivilege && pgerror.Hint(err) == "": // of the server, not of our functions
		// Package migrations appends a remedy, too.
		text, _, _ = strings.Cut(text, "; run GRANT ")
		remedy = dbhealth.Privileges(ctx, db.std, err, db.Schema, privileges...)
	case pgerror.State(err) == "25006": // read_only_sql_transaction
		remedy = "connect to the primary; if default_transaction_read_only is on, remove that setting, or add default_transaction_read_only=off to the connection string"
	case dbhealth.Missing(err):
		checked := migrations.Check(ctx, db.std, migrations.Config{Schema: db.Schema})
		if problem, remedy := dbhealth.Diagnose(checked, db.Schema); problem != "" && !strings.Contains(problem, "layout is") {
			return &rewordedError{text + ": " + problem + "; " + remedy, err}
		}
		if message := pgerror.Message(err); strings.Contains(message, db.Schema+".") || strings.Contains(message, db.Schema+"_internal.") {
			remedy = "the installation is damaged: run " + db.command("migrate check") + " to list its missing objects"
		}
	case pgerror.State(err) != pgerror.DependentObjects: // the server's hint is CASCADE, which drops columns and tables
		remedy = pgerror.Hint(err)
	}
	if remedy != "" {
		text += "; " + remedy
	}
	return &rewordedError{text, err}
}
