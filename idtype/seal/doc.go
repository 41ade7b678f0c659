// Package seal encrypts IDs for outsiders. A sortable ID reveals when its row was created, and
// two IDs reveal about how many rows were created in between. A sealed ID reveals neither:
//
//	s, err := seal.New(key)        // 32 random bytes, a secret of the service
//	text := seal.Text(s, order.ID) // ord_6vhprghhx21mmgx46yxjyjva61
//	id, err := seal.Parse[OrderID](s, text)
//
// Text encrypts the ID and a tag of its type as one block of AES. The same ID always has the
// same text under a key. Without the key, a text can neither be read nor made: Parse accepts
// a forged text, the text of another type, or the text of another key with a probability of
// 2^-64 for integer IDs, and of 2^-48 for a Sno.
//
// The tag is a hash of the model's prefix. If the model has no method IDPrefix, it is a hash
// of the Go type's name. Renaming that type or its package makes earlier texts unreadable, so
// declare a prefix for each model whose sealed IDs outlive a release, such as in links.
//
// A sealed ID doesn't authorize its bearer. Check that the caller may see the row.
package seal
