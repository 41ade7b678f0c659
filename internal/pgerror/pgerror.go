// Package pgerror reads the errors of a Postgres server, from any driver.
package pgerror

import (
	"errors"
	"reflect"
)

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

// Detail returns the detail of an error, or "". *pgconn.PgError of pgx and *pq.Error of lib/pq
// have it in the field Detail, for which there is no common interface.
func Detail(err error) string {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return ""
	}
	if v := reflect.Indirect(reflect.ValueOf(pg)); v.Kind() == reflect.Struct {
		if f := v.FieldByName("Detail"); f.IsValid() && f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}
