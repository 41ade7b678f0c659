// Package sqltypes stores IDs in other columns than their own. A field's Go
// type decides its column:
//
//	idtype.Sno                      uuid
//	sqltypes.SnoText                text, varchar, char(16)
//	sqltypes.SnoBytes               bytea
//	sqltypes.Optional[idtype.Sno]   uuid, NULL for the zero ID
//
// [Text] is for every ID type, the caller's own included, and so is
// [Optional]. They can be combined: Optional[SnoText] is a nullable text
// column.
//
// Text columns should be declared COLLATE "C": under most other collations
// text doesn't sort as the IDs do.
package sqltypes
