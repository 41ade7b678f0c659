// Package api keeps a list of what the packages of this module export, a file
// each, so that a change of it is one that somebody has seen and meant.
//
//	go test ./internal/api           # fails if the packages are others than the lists say
//	go test ./internal/api -update   # writes the lists anew
//
// A line is one thing that callers may depend on. Where one goes, or changes,
// callers break. Where one comes, it has to stay; if it is a method of an
// interface that was there, those break who implement that. Names of parameters
// aren't part of it.
package api
