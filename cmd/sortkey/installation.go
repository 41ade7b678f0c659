package main

import (
	"context"
	"strings"

	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/internal/pgerror"
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

// explain rewords an error of the server or of package migrations, and adds a remedy:
// the privileges that the role lacks, for example. In privileges, $s is the schema.
func (db database) explain(ctx context.Context, err error, schema string, privileges ...string) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if problem, remedy := dbhealth.Diagnose(ctx, db.std, err, schema); problem != "" {
		return &rewordedError{problem + "; " + remedy, err}
	}
	text, remedy := strings.TrimPrefix(err.Error(), "migrations: "), ""
	switch {
	case pgerror.State(err) == pgerror.InsufficientPrivilege:
		// Package migrations appends a remedy, too.
		text, _, _ = strings.Cut(text, "; run GRANT ")
		remedy = dbhealth.Privileges(ctx, db.std, err, schema, privileges...)
	case dbhealth.Missing(err):
		checked := migrations.Check(ctx, db.std, migrations.Config{Schema: schema})
		if problem, remedy := dbhealth.Diagnose(ctx, db.std, checked, schema); problem != "" && !strings.Contains(problem, "layout is") {
			return &rewordedError{text + ": " + problem + "; " + remedy, err}
		}
		if message := pgerror.Message(err); strings.Contains(message, schema+".") || strings.Contains(message, schema+"_internal.") {
			remedy = "the installation is damaged: run sortkey migrate check to list its missing objects"
		}
	default:
		remedy = pgerror.Hint(err)
	}
	if remedy != "" {
		text += "; " + remedy
	}
	return &rewordedError{text, err}
}
