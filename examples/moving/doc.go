// Package moving has the code that docs/moving-a-model.md and docs/rekey.md show.
// Package before has a shop's models with keys from sequences, bigint the models
// with new keys in the same columns, and after the models with new keys for
// existing rows, too.
package moving
