// Package gormgeneric tests the plugin with gorm.G, the generic interface of GORM, on Postgres and
// on SQLite.
//
// It shows that the statements of gorm.G run the plugin: they fill the keys of rows, associations
// and join tables, upserts return the IDs of existing rows, and gormplugin.G adapts the scopes. Package
// gorm shows what the plugin does with all ID types. This package has models with keys of one type, Sno,
// and all tests use gorm.G with one model, because the compiler takes a second per model.
//
// # Running
//
//	go test ./gormgeneric                 # on a container of Postgres 17, and on SQLite
//	go test ./gormgeneric -run '/SQLite'
//
// With -short, it runs nothing. It takes a second of CPU time, and half a minute to compile SQLite.
package gormgeneric
