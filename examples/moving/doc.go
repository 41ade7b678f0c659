// Package moving has the code that docs/moving-a-model.md shows. Package before
// has a shop's models with keys from sequences, bigint the models with new keys
// in the same columns, uuid the models with keys in uuid columns, and between
// the model with both keys.
package moving
