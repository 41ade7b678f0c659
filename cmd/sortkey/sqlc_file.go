package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/migrations"
)

// inFile calls do with a temporary database in which a file of SQL has run, and drops the database.
func inFile(ctx context.Context, db database, file string, do func(database) error) (err error) {
	script, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	name := "sortkey_sqlc_" + strings.ToLower(rand.Text())
	defer func() { // also if CREATE DATABASE succeeded after the interrupt
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, dropped := db.Exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); dropped != nil {
			err = errors.Join(err, fmt.Errorf("drop the temporary database %s: %w", name, dropped))
		}
	}()
	// template1 could have tables.
	if _, err := db.Exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return fmt.Errorf("create a temporary database: %w", err)
	}
	pool, err := db.Sibling(ctx, name)
	if err != nil {
		return err
	}
	defer pool.Close()
	temporary := database{pool, stdlib.OpenDBFromPool(pool.Pool), db.Config}
	installs := regexp.MustCompile(`(?i)\bCREATE\s+DOMAIN\s+"?` + db.Schema + `"?\."?snowflake"?\s`).Match(script)
	if !installs {
		config := migrations.Config{Schema: db.Schema}
		config.SnowflakeSI.BaseClock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) // any: it adds functions
		if err := migrations.Up(ctx, temporary.std, config); err != nil {
			return err
		}
	}
	if err := runScript(ctx, pool, string(script)); err != nil {
		return temporary.explain(ctx, fmt.Errorf("run %s: %w", file, err))
	}
	return do(temporary)
}

// runScript runs a script in a session with the search_path of a new database.
func runScript(ctx context.Context, pool *cli.Pool, script string) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	defer conn.Conn().Close(context.WithoutCancel(ctx))                                  // with the settings of the script
	script = regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(script, "") // commands of psql in files of pg_dump
	return conn.Conn().PgConn().Exec(ctx, "SET search_path = public; "+script).Close()
}
