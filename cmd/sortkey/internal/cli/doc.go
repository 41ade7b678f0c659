// Package cli has what the commands share: their output for people and programs, progress, and
// transactions and connections of a database.
package cli
