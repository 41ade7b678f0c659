// Package moving has the code that docs/moving-a-model.md shows: a shop's models
// before, with keys that stay in their bigint columns, between two keys, and
// with keys in uuid columns.
package moving
