// Package models has a model with the same names as another package, for a test.
package models

// An Account is a model.
type Account struct{}
