package dbhealth

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
)

// The remedies for missing migrations and objects.
const (
	RemedyUp       = "run sortkey migrate up"
	remedyOutdated = RemedyUp + ", or, if your own tool ran the others, continue with its files from sortkey migrate export"
	remedyMissing  = "restore it from a backup; a view or a function can also be created with its statements from sortkey migrate print: CREATE, then REVOKE and GRANT"
)

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
	switch sentinels[i] {
	case migrations.ErrNotInstalled:
		return fmt.Sprintf("schema %q of this database has no installation", schema), RemedyUp + ", or pass the schema of the installation with --schema"
	case migrations.ErrOutdated:
		if strings.Contains(problem, "has no functions for") {
			return problem, RemedyUp + " with the same flags"
		}
		return problem, remedyOutdated
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

// deniedSchema matches the server's message for a schema.
var deniedSchema = regexp.MustCompile(`^permission denied for schema ([a-z0-9_]+)$`)

// Privileges returns the remedy for an error about missing privileges of the role. In
// privileges, $s is the schema of the installation.
func Privileges(ctx context.Context, db *sql.DB, err error, schema string, privileges ...string) string {
	var role, database string
	if read(ctx, db, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT quote_ident(current_user), quote_ident(current_database())").Scan(&role, &database)
	}) != nil {
		role = "this role"
	}
	message := pgerror.Message(err)
	needs := func(privilege string) bool {
		return slices.ContainsFunc(privileges, func(p string) bool { return strings.HasPrefix(p, privilege) })
	}
	denied := deniedSchema.FindStringSubmatch(message)
	switch {
	case denied != nil && denied[1] != schema && denied[1] != schema+"_internal": // of the user
		return ""
	case denied != nil && !needs("USAGE ON SCHEMA"):
		privileges = append([]string{"USAGE ON SCHEMA " + denied[1]}, privileges...)
	case strings.HasPrefix(message, "permission denied for database "):
		return fmt.Sprintf("connect as the owner of the database, or run GRANT CREATE ON DATABASE %s TO %s", database, role)
	}
	remedy := "connect as the owner of schema " + schema
	separator := ", or run "
	for _, privilege := range privileges {
		remedy += separator + "GRANT " + strings.ReplaceAll(privilege, "$s", schema) + " TO " + role
		separator = "; "
	}
	return remedy
}
