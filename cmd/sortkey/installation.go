package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/migrations"
)

// A rewordedError is an error of a package or of the server, in the words of this
// command.
type rewordedError struct {
	text string
	err  error
}

func (e *rewordedError) Error() string { return e.text }
func (e *rewordedError) Unwrap() error { return e.err }

// The remedies for missing migrations and objects.
const (
	remedyUp      = "run sortkey migrate up"
	remedyForeign = "continue with the tool that ran the others; sortkey migrate export writes the files for it"
	remedyMissing = "restore it from a backup; a view or a function can also be created with its statements from sortkey migrate print: CREATE, then REVOKE and GRANT"
)

// diagnose returns the problem and the remedy of an error of package migrations that
// wraps a problem with an installation. Otherwise the problem is empty.
func (db database) diagnose(ctx context.Context, err error, schema string) (problem, remedy string) {
	sentinels := []error{migrations.ErrNotInstalled, migrations.ErrOutdated, migrations.ErrIncomplete, migrations.ErrLayout, migrations.ErrForeign, migrations.ErrCitusWorker, migrations.ErrUntrusted}
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
		return fmt.Sprintf("schema %q of this database has no installation", schema), remedyUp + ", or pass the schema of the installation with --schema"
	case migrations.ErrOutdated:
		byUp, _ := db.installedByUp(ctx, schema)
		switch missesLayout := strings.Contains(problem, "has no functions for"); {
		case byUp && missesLayout:
			return problem, remedyUp + " with the same flags"
		case byUp:
			return problem, remedyUp
		case missesLayout:
			return problem, "add them with the tool that ran the migrations; the Go function AddSnowflakeSI of package migrations returns the SQL"
		}
		return problem, remedyForeign
	case migrations.ErrIncomplete:
		return problem, inSchema(schema, "restore the data of the schemas $s and $s_internal")
	case migrations.ErrLayout:
		return strings.Replace(problem, "and this process has", "and the flags have", 1), "omit the flags, and give your programs the layout of the database; or install another schema"
	case migrations.ErrForeign:
		return problem, remedyForeign
	case migrations.ErrUntrusted:
		return problem, remedy
	}
	return problem, "connect to the coordinator" // ErrCitusWorker
}

// installationVerb matches the beginning of an error, before schema "sortkey".
var installationVerb = regexp.MustCompile(`^migrations: (check |read |install |remove )?`)

// installedByUp reports whether Up ran the migrations, and not another tool.
func (db database) installedByUp(ctx context.Context, schema string) (byUp bool, err error) {
	err = readRow(ctx, db, []any{&byUp}, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = 'goose_version')`, schema+"_internal")
	return byUp, err
}

// missing reports whether the server lacks a table, function, column, schema or type.
func missing(err error) bool {
	// The functions of the installation use 42704, too, with a hint.
	return slices.Contains([]string{"42P01", "42883", "42703", "3F000"}, sqlState(err)) || sqlState(err) == "42704" && serverError(err).Hint == ""
}

// created matches the statements that create the objects of an installation.
var created = regexp.MustCompile(`(?m)^CREATE (TABLE|VIEW|SEQUENCE|DOMAIN|FUNCTION|PROCEDURE) ([a-z0-9_]+)\.([a-z0-9_]+)`)

// missingObjects returns the objects of an installation with all migrations that don't
// exist, such as view sortkey.node_status.
func (db database) missingObjects(ctx context.Context, config migrations.Config) ([]string, error) {
	list, err := migrations.List(config)
	if err != nil {
		return nil, err
	}
	var kinds, schemas, names []string
	for _, m := range list {
		for _, object := range created.FindAllStringSubmatch(m.Up, -1) {
			kinds, schemas, names = append(kinds, strings.ToLower(object[1])), append(schemas, object[2]), append(names, object[3])
		}
	}
	return collect(ctx, db, pgx.RowTo[string], `
		SELECT DISTINCT format('%s %s.%s', o.kind, o.schema, o.name) FROM unnest($1::text[], $2::text[], $3::text[]) o (kind, schema, name)
		WHERE NOT CASE
			WHEN o.kind IN ('function', 'procedure') THEN EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = o.schema AND p.proname = o.name)
			WHEN o.kind = 'domain' THEN EXISTS (SELECT FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = o.schema AND t.typname = o.name)
			ELSE EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = o.schema AND c.relname = o.name) END
		ORDER BY 1`, kinds, schemas, names)
}

// explain rewords an error of the server or of package migrations, and adds a remedy:
// the privileges that the role lacks, for example. In privileges, $s is the schema.
func (db database) explain(ctx context.Context, err error, schema string, privileges ...string) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if problem, remedy := db.diagnose(ctx, err, schema); problem != "" {
		return &rewordedError{problem + "; " + remedy, err}
	}
	text, remedy := strings.TrimPrefix(err.Error(), "migrations: "), ""
	switch pg := serverError(err); {
	case pg.Code == insufficientPrivilege:
		// Package migrations appends a remedy, too.
		text, _, _ = strings.Cut(text, "; run GRANT ")
		remedy = db.asOwner(ctx, err, schema, privileges...)
	case missing(err):
		if problem, remedy := db.diagnose(ctx, migrations.Check(ctx, db.std, migrations.Config{Schema: schema}), schema); problem != "" && !strings.Contains(problem, "layout is") {
			return &rewordedError{text + ": " + problem + "; " + remedy, err}
		}
		if strings.Contains(pg.Message, schema+".") || strings.Contains(pg.Message, schema+"_internal.") {
			remedy = "the installation is damaged: run sortkey migrate check to list its missing objects"
		}
	default:
		remedy = pg.Hint
	}
	if remedy != "" {
		text += "; " + remedy
	}
	return &rewordedError{text, err}
}

// deniedSchema matches the server's message for a schema.
var deniedSchema = regexp.MustCompile(`^permission denied for schema ([a-z0-9_]+)$`)

// asOwner returns the remedy for the missing privileges of the role.
func (db database) asOwner(ctx context.Context, err error, schema string, privileges ...string) string {
	var role, databaseName string
	if readRow(ctx, db, []any{&role, &databaseName}, "SELECT quote_ident(current_user), quote_ident(current_database())") != nil {
		role = "this role"
	}
	message := serverError(err).Message
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
		return fmt.Sprintf("connect as the owner of the database, or run GRANT CREATE ON DATABASE %s TO %s", databaseName, role)
	}
	remedy := "connect as the owner of schema " + schema
	separator := ", or run "
	for _, privilege := range privileges {
		remedy += separator + "GRANT " + inSchema(schema, privilege) + " TO " + role
		separator = "; "
	}
	return remedy
}
