// Package sqltypes stores IDs in text, bytea, nullable and array columns. Wrap the ID, or
// declare the field with the type for its column:
//
//	db.Exec("INSERT INTO pages (code) VALUES ($1)", sqltypes.TextOf(id)) // text
//	type Page struct{ Parent sqltypes.Optional[idtype.Sno] }             // uuid, may be NULL
//
// The package has four types. Text, Optional and Array hold any [ID]: a type of package
// idtype, such as a typed key, or a struct of your own that embeds one.
//   - [Text] stores the ID's text in text, varchar or char(n). Create one with [TextOf].
//   - [SnoBytes] stores the 10 bytes of an idtype.Sno in bytea. Create one with [SnoBytesOf].
//   - [Optional] stores an ID in a nullable column. Create one with [OptionalOf].
//   - [Array] stores IDs in an array column, such as bigint[] or uuid[]. Create one with
//     [ArrayOf].
//
// The types combine: Optional[Text[idtype.Sno]] is a Sno in a nullable text column. For a
// NOT NULL uuid or bigint column, use the type of package idtype itself: idtype.Sno and
// idtype.UUID for uuid, the others for bigint.
//
// # NULL and the zero ID
//
// Scanning NULL into a [Text] or a [SnoBytes] fails with [idtype.ErrNull]; both store
// the zero ID as a value. An [Optional] stores the zero ID as NULL and reads NULL as
// the zero ID. A nil [Array] is NULL; an array with NULLs needs an Array of Optional.
//
// # JSON
//
// An Array is a JSON array of its IDs. Each other type has the same JSON as the ID that it
// holds: null for the zero ID, a number for a SnowflakeSI, and a string otherwise. To omit
// a zero ID, use the struct tag option omitzero; omitempty has no effect on structs.
//
// # Collation
//
// Declare text columns COLLATE "C". Under some other collations, the texts of Snos
// don't sort by time. Under most, comparisons of text are slower. The texts of Snowflakes,
// SnowflakeSIs and UID60s have different lengths and don't sort by time.
package sqltypes
