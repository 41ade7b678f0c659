package cli

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sortkey/sortkey/internal/trust"
	"github.com/sortkey/sortkey/migrations"
)

// pinned are the settings on which the SQL of the command depends. As startup parameters, they
// take effect before any setting of the database or the role. Otherwise a search_path could put
// names before the names of pg_catalog, and a role could own what the command creates.
//
// default_transaction_read_only isn't among them: it is meant for all programs.
var pinned = map[string]string{
	"search_path":                 "pg_catalog, pg_temp",
	"role":                        "none",
	"row_security":                "on",
	"standard_conforming_strings": "on",
	"DateStyle":                   "ISO, MDY",
	"IntervalStyle":               "postgres",
	"bytea_output":                "hex",
}

// A Pool is a pool of connections that have the pinned settings. Behind a pooler that refuses
// them, each transaction of [Begin] has the ones of [trust.Settings].
type Pool struct {
	*pgxpool.Pool
	path string // the search_path in the connection string, or ""
}

// Open connects to the database of a URL or connection string, by default of the variables in the
// environment.
func Open(ctx context.Context, url string) (*Pool, error) {
	settings, err := Config(url)
	if err != nil {
		return nil, err
	}
	params := settings.ConnConfig.RuntimeParams
	path, role := given(params, "search_path"), given(params, "role")
	unpinned := maps.Clone(params)
	for name, value := range pinned {
		if name == "search_path" || given(unpinned, name) == "" {
			params[name] = value
		}
	}
	checkInTransaction(settings.ConnConfig)
	pool, err := connect(ctx, settings)
	if refused(err) { // by a pooler
		settings.ConnConfig.RuntimeParams = unpinned
		pool, err = connect(ctx, settings)
	}
	if err != nil {
		return nil, err
	}
	p := &Pool{pool, path}
	if role == "" {
		err = p.checkUsers(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return p, nil
}

func connect(ctx context.Context, settings *pgxpool.Config) (*pgxpool.Pool, error) {
	pool, err := pgxpool.NewWithConfig(ctx, settings.Copy())
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// given returns the value that a connection string has for a setting, or "".
func given(params map[string]string, name string) string {
	if value := params[name]; value != "" {
		return value
	}
	m := regexp.MustCompile(`(?i)(?:^|\s)(?:-c\s*|--)` + name + `\s*=((?:\\.|[^\s\\])*)`).FindStringSubmatch(params["options"])
	if m == nil {
		return ""
	}
	return regexp.MustCompile(`\\(.)`).ReplaceAllString(m[1], "$1")
}

// refused reports whether an attempt to connect can have failed because of a startup parameter.
// PgBouncer's error is protocol_violation.
func refused(err error) bool {
	var server *pgconn.PgError
	return errors.As(err, &server) && (strings.HasPrefix(server.Code, "08") || strings.HasPrefix(server.Code, "0A"))
}

// checkInTransaction makes the query of target_session_attrs, which names a function without its
// schema, find that of the server, also behind a pooler.
func checkInTransaction(config *pgx.ConnConfig) {
	check := config.ValidateConnect
	if check == nil {
		return
	}
	config.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := conn.Exec(ctx, "BEGIN; "+trust.Settings()).Close(); err != nil {
			return err
		}
		return cmp.Or(check(ctx, conn), conn.Exec(ctx, "COMMIT").Close())
	}
}

// checkUsers returns an error if the session acts as another role: a pooler let a setting of the
// database or the role do so.
func (p *Pool) checkUsers(ctx context.Context) error {
	var session, current, database string
	err := ReadRow(ctx, p, []any{&session, &current, &database}, "SELECT quote_ident(session_user), quote_ident(current_user), quote_ident(current_database())")
	if err != nil || session == current {
		return err
	}
	return fmt.Errorf("the session of %s acts as role %s, because of a setting that the connection pooler keeps; connect to the server itself, or run ALTER DATABASE %s RESET role, or ALTER ROLE %[1]s RESET role; or, if you mean that role, add role=%[2]s to the connection string",
		session, current, database)
}

// Path returns the search_path in which the user means names: that of the connection string, or of
// the role and the database.
func (p *Pool) Path(ctx context.Context) (path string, err error) {
	if p.path != "" {
		return p.path, nil
	}
	return path, ReadRow(ctx, p, []any{&path}, `SELECT coalesce((
		SELECT substr(v, length('search_path=') + 1) FROM pg_db_role_setting s, unnest(s.setconfig) v
		WHERE starts_with(v, 'search_path=') AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
			AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
		ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1), '"$user", public')`)
}

// inPath calls f with a read-only transaction that has the search_path of [Pool.Path]. Each name of a
// function or operator in f must have its schema.
func (p *Pool) inPath(ctx context.Context, f func(pgx.Tx) error) error {
	path, err := p.Path(ctx)
	if err != nil {
		return err
	}
	return Read(ctx, p, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT set_config('search_path', $1, true)", path); err != nil {
			return err
		}
		return f(tx)
	})
}

// Qualified returns the name of a table with its schema, quoted as in SQL. name is as in SQL, with
// or without a schema. If there is no such table, Qualified returns name.
func (p *Pool) Qualified(ctx context.Context, name string) (qualified string, err error) {
	err = p.inPath(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT coalesce((SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n
			WHERE n.oid OPERATOR(pg_catalog.=) c.relnamespace AND c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1::pg_catalog.text)::pg_catalog.oid), $1)`, name).Scan(&qualified)
	})
	return qualified, err
}

// Sibling connects to another database of the server, with the same settings.
func (p *Pool) Sibling(ctx context.Context, database string) (*Pool, error) {
	settings := p.Config()
	settings.ConnConfig.Database = database
	pool, err := connect(ctx, settings)
	return &Pool{pool, p.path}, err
}

// A Beginner is a connection, or a pool of connections.
type Beginner interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Begin calls f with a transaction that has [trust.Settings]. Otherwise a function of
// another user in the search_path whose types match a call better would run with the
// privileges of this role. To set the path of the session instead would change other
// sessions behind PgBouncer.
func Begin(ctx context.Context, db Beginner, options pgx.TxOptions, f func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, trust.Settings()); err != nil {
			return err
		}
		return f(tx)
	})
}

// Read is Begin for a transaction that writes nothing.
func Read(ctx context.Context, db Beginner, f func(pgx.Tx) error) error {
	return Begin(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, f)
}

// ReadRow scans the only row of a query, with Read.
func ReadRow(ctx context.Context, db Beginner, dst []any, query string, args ...any) error {
	return Read(ctx, db, func(tx pgx.Tx) error { return tx.QueryRow(ctx, query, args...).Scan(dst...) })
}

// Collect returns the rows of a query, with Read.
func Collect[T any](ctx context.Context, db Beginner, row pgx.RowToFunc[T], query string, args ...any) (list []T, err error) {
	err = Read(ctx, db, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, query, args...) // CollectRows returns the error
		list, err = pgx.CollectRows(rows, row)
		return err
	})
	return list, err
}

// CheckTable returns an error that wraps [migrations.ErrUntrusted] if the session must not open a
// table, given by its OID, or one of its partitions. query is [trust.Tables] or [trust.Reads].
func CheckTable(ctx context.Context, db trust.Beginner, query func(string) string, table uint32) error {
	return trust.Read(ctx, db, func(tx *sql.Tx) error {
		findings, err := trust.FindTables(ctx, tx, query(fmt.Sprintf("ARRAY[%d::pg_catalog.oid]", table)))
		if f, untrusted := findings[int64(table)]; untrusted {
			return fmt.Errorf("%s, so no statement opens the table (%s; audit reads no rows on other servers); connect as the owner of the table: %w", f, trust.Rule, migrations.ErrUntrusted)
		}
		return err
	})
}
