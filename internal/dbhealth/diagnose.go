package dbhealth

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// Command returns a command line for the installation in a schema, such as sortkey migrate up.
func Command(schema, line string) string {
	if schema != migrations.DefaultSchema {
		line += " --schema " + schema
	}
	return "sortkey " + line
}

// command is [Command] for the examined installation.
func (e *Examination) command(format string, args ...any) string {
	return Command(e.Config.Schema, fmt.Sprintf(format, args...))
}

// remedyMissing returns the remedy for a missing object.
func (e *Examination) remedyMissing() string {
	return "restore it from a backup; a view or a function can also be created with its statements from " + e.printCommand() + ": CREATE, then REVOKE and GRANT"
}

// printCommand returns the command that prints the SQL of the installation, with its layouts.
func (e *Examination) printCommand() string {
	flags := ""
	if l := e.Config.Snowflake; l != (idtype.SnowflakeLayout{}) && l != idtype.DefaultSnowflakeLayout() {
		flags = " " + e.layoutOf("snowflake")
	}
	if e.Config.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
		flags += " " + strings.NewReplacer("--", "--si-").Replace(e.layoutOf("snowflake_si"))
	}
	return e.command("migrate print%s", flags)
}

// Diagnose returns the problem and the remedy of an error of package migrations that wraps a
// problem with an installation. Otherwise the problem is empty.
func Diagnose(err error, schema string) (problem, remedy string) {
	sentinels := []error{migrations.ErrNotInstalled, migrations.ErrOutdated, migrations.ErrIncomplete, migrations.ErrLayout, migrations.ErrCitusWorker, migrations.ErrUntrusted}
	i := slices.IndexFunc(sentinels, func(sentinel error) bool { return errors.Is(err, sentinel) })
	if i < 0 || !strings.HasPrefix(err.Error(), "migrations: ") { // of rekey, with a remedy
		return "", ""
	}
	// The texts end with a remedy for callers of the package, and the sentinel.
	problem = installationVerb.ReplaceAllString(err.Error(), "")
	if end := strings.LastIndex(problem, "; "); end >= 0 {
		problem, remedy = problem[:end], strings.TrimSuffix(problem[end+2:], ": "+sentinels[i].Error())
	}
	up := Command(schema, "migrate up")
	switch sentinels[i] {
	case migrations.ErrNotInstalled:
		return fmt.Sprintf("schema %q of this database has no installation", schema), "run " + up + ", or pass the schema of the installation with --schema"
	case migrations.ErrOutdated:
		if strings.Contains(problem, "has no functions for") {
			return problem, "run " + up + " with the same flags"
		}
		return problem, "run " + up + ", or, if your own tool ran the others, continue with its files from " + Command(schema, "migrate export")
	case migrations.ErrIncomplete:
		return problem, fmt.Sprintf("restore the data of the schemas %s and %[1]s_internal", schema)
	case migrations.ErrLayout:
		if strings.Contains(problem, "unknown") {
			return problem, "upgrade the command"
		}
		return strings.Replace(problem, "and this process has", "and the flags have", 1), "omit the flags, and give your programs the layout of the database; or install another schema"
	case migrations.ErrUntrusted:
		return problem, remedy
	}
	return problem, "connect to the coordinator" // ErrCitusWorker
}

// installationVerb matches the beginning of an error, before schema "sortkey".
var installationVerb = regexp.MustCompile(`^migrations: (check |read |install |remove )?`)

// Missing reports whether the server lacks a table, function, column, schema or type.
func Missing(err error) bool {
	// The functions of the installation use 42704, too, with a hint.
	state := pgerror.State(err)
	return slices.Contains([]string{"42P01", "42883", "42703", "3F000"}, state) || state == "42704" && pgerror.Hint(err) == ""
}

// denied matches the server's message for an object. It has the name of a table without its schema.
var denied = regexp.MustCompile(`^permission denied for ([a-z ]+) (\S.*)$`)

// Privileges returns the remedy for an error about missing privileges of the role. In
// privileges, $s is the schema of the installation.
func Privileges(ctx context.Context, db *sql.DB, err error, schema string, privileges ...string) string {
	message := pgerror.Message(err)
	var kind, object string
	if m := denied.FindStringSubmatch(message); m != nil {
		kind, object = m[1], m[2]
	}
	var role, database string
	var own bool // whether the object belongs to the installation
	if read(ctx, db, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT quote_ident(current_user), quote_ident(current_database()), $1::text IN ($2::text, $2 || '_internal') OR EXISTS (
			SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ($2, $2 || '_internal') AND c.relname = $1
			UNION ALL SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ($2, $2 || '_internal') AND p.proname = $1)`, object, schema).
			Scan(&role, &database, &own)
	}) != nil {
		role = "this role"
	}
	needs := func(privilege string) bool {
		return slices.ContainsFunc(privileges, func(p string) bool { return strings.HasPrefix(p, privilege) })
	}
	switch {
	case kind == "database":
		return fmt.Sprintf("connect as the owner of the database, or run GRANT CREATE ON DATABASE %s TO %s", database, role)
	case message == "permission denied to create database":
		return "connect as a role with CREATEDB"
	case kind != "" && !own:
		return fmt.Sprintf("connect as the owner of %s %s, or as a role with privileges on it", kind, object)
	case kind == "" && !strings.HasPrefix(message, "must be owner of "):
		return "" // of a role or a setting
	case kind == "schema" && !needs("USAGE ON SCHEMA"):
		privileges = append([]string{"USAGE ON SCHEMA " + object}, privileges...)
	}
	remedy := "connect as the owner of schema " + schema
	separator := ", or run "
	for _, privilege := range privileges {
		remedy += separator + "GRANT " + strings.ReplaceAll(privilege, "$s", schema) + " TO " + role
		separator = "; "
	}
	return remedy
}
