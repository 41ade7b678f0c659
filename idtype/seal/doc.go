// Package seal encrypts IDs for outsiders. A sortable ID reveals when its row was created, and
// two IDs reveal about how many rows were created in between. A sealed ID reveals neither:
//
//	s, err := seal.New(key)        // 32 random bytes, a secret of the service
//	text := seal.Text(s, order.ID) // ord_452wk2gpw84wzjbzjm05fchv3t
//	id, err := seal.Parse[OrderID](s, text)
//
// Text encrypts the ID as one block of AES, with a key that is derived from the service's for the
// type (HKDF with SHA-256). The same ID always has the same text under a key. Without the key, a
// text can neither be read nor made. Zero bytes fill the block of an integer ID or a Sno: Parse
// accepts a forged text, the text of another type, or the text of another key with a probability
// of 2^-64 for integer IDs, and of 2^-48 for a Sno.
//
// A UUID fills the block, so that only its variant and version are checked. One of 8 forged texts
// opens, to a UUID that the forger can't choose and that no row has.
//
// The key of a type is derived from its format and its model's prefix. If the model has no method
// IDPrefix, it is derived from the import path and the name of the Go type. Renaming that type or
// its package makes earlier texts unreadable, so declare a prefix for each model whose sealed IDs
// outlive a release, such as in links.
//
// A sealed ID doesn't authorize its bearer. Check that the caller may see the row.
package seal
