// Package sqlc shows how queries that sqlc generates take and give IDs. The
// README says which overrides sqlc.yaml needs; package shop is generated.
//
// To make them anew, sqlc has to be built, which takes minutes and a C
// compiler:
package sqlc

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate
