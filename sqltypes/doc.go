// Package sqltypes stores IDs in other columns than their own. A field's Go
// type decides its column:
//
//	idtype.Sno                      uuid
//	sqltypes.SnoText                text, varchar, char(16)
//	sqltypes.SnoBytes               bytea
//	sqltypes.OptionalSno            uuid, NULL for the zero ID
//
// SnoText is [Text] of a Sno, and OptionalSno is [Optional] of it. Both are for
// every ID type, the caller's own included, and can be combined: an
// OptionalSnoText is a nullable text column.
//
// Text columns should be declared COLLATE "C": under some other collations
// text doesn't sort as the IDs do, under most it takes longer to compare.
package sqltypes
