// Package pgerror reads the errors of a Postgres server, from any driver.
package pgerror

import (
	"errors"
	"reflect"
)

// QueryCanceled is the SQLSTATE of a statement that a timeout or another session has ended.
const QueryCanceled = "57014"

// LockNotAvailable is the SQLSTATE of a statement that didn't get a lock in time.
const LockNotAvailable = "55P03"

// DependentObjects is the SQLSTATE of a DROP that other objects prevent. The detail names them.
const DependentObjects = "2BP01"

// State returns the SQLSTATE of an error, or "" for other errors.
func State(err error) string {
	var pg interface{ SQLState() string } // an error of pgx or lib/pq
	if errors.As(err, &pg) {
		return pg.SQLState()
	}
	return ""
}

// Detail returns the detail of an error, or "".
func Detail(err error) string { return field(err, "Detail") }

// Where returns the functions in which an error was raised, or "".
func Where(err error) string { return field(err, "Where") }

// field returns a field of an error. *pgconn.PgError of pgx and *pq.Error of lib/pq have the
// same ones, for which there is no common interface.
func field(err error, name string) string {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return ""
	}
	if v := reflect.Indirect(reflect.ValueOf(pg)); v.Kind() == reflect.Struct {
		if f := v.FieldByName(name); f.IsValid() && f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}

// InsufficientPrivilege is the SQLSTATE of a missing privilege.
const InsufficientPrivilege = "42501"

// Message returns the message of a server's error, or "".
func Message(err error) string { return field(err, "Message") }

// Hint returns the hint of a server's error, or "".
func Hint(err error) string { return field(err, "Hint") }
