// Package pgxcodec encodes and scans IDs in pgx, alone, in arrays and in COPY. Install it on a
// pgx pool, or on a database/sql pool over pgx:
//
//	config.AfterConnect = pgxcodec.AfterConnect                             // pgxpool
//	stdlib.OpenDB(config, stdlib.OptionAfterConnect(pgxcodec.AfterConnect)) // database/sql
//
// IDs then work as query arguments and scan targets. The column type determines the Go
// type:
//
//	bigint                                  idtype.Snowflake, SnowflakeSI, UID60, Spread64
//	uuid                                    idtype.Sno, UUID
//	text, varchar, char(n), citext, name    sqltypes.Text of these types
//	bytea                                   sqltypes.SnoBytes
//
// Typed keys, such as [idtype.SnowflakeOf], work wherever the ID does. They need no
// registration.
//
// The package consists of one type and two functions:
//   - [AfterConnect] registers the ID types and the database's domains on a connection.
//   - [Loader] does the same for a pool and caches the domains.
//   - [Register] registers the ID types on a [pgtype.Map], without domains.
//
// # Go types
//
// For each Go type T in the table, the codec handles T, *T, [sql.Null] of T,
// [sqltypes.Optional] of T, []T, []*T, [sqltypes.Array] of T, and a pointer to each. The
// column type may also be a domain over one in the table. [pgtype.Range] and
// [pgtype.Multirange] of the bigint types map to int8range and int8multirange. Composite
// types can hold IDs wherever pgx supports composite types.
//
// Slices of slices, such as [][]T and [][][]*T, are arrays of several dimensions. All inner
// slices of a dimension must have the same length. As arguments, they need an exec mode other
// than exec and simple_protocol, as in pgx itself.
//
// In the binary format of bigint and uuid columns, which pgx uses unless the exec mode is exec or
// simple_protocol, the codec encodes and scans a T without allocations. In other columns and in
// the text format it calls the ID's Value and Scan, which allocate.
//
// All query exec modes store the same value, except in json and jsonb columns; see below. A
// parameter that the codec refuses is an error before its statement is sent. If it is in a Batch,
// nothing of the batch is stored, and pgx usually closes the connection.
//
// # Arrays in database/sql
//
// database/sql has no arrays, but a slice works as an argument. To scan an array, use a
// [sqltypes.Array].
//
// # NULL and the zero ID
//
// Scanning NULL into T or into an element of []T fails with [idtype.ErrNull]. Scan
// a nullable column into *T, sql.Null[T] or sqltypes.Optional[T]. The zero ID is a
// value like any other; only Optional stores it as NULL.
//
// # JSON
//
// In a json or jsonb column, an ID inside a struct, map or slice is encoded by its
// MarshalJSON method, and so is a [sqltypes.Array]. An ID that is itself the argument is encoded by
// its Value method, as pgx does with every [driver.Valuer].
//
// The exec modes exec and simple_protocol don't know that a parameter is JSON. As for an []int64, pgx
// sends a list of IDs as the literal of an array: an empty one is stored as {}, an empty
// object, and others are rejected. In these modes, and in database/sql, pass the result of
// json.Marshal as a string.
//
// An ID in the forms above is scanned by its UnmarshalJSON method, for example from
// doc->'owner'. The JSON null is NULL. In database/sql, which passes the JSON to Scan, scan
// doc->>'owner' into a string and call [idtype.Parse].
//
// # Wrong column types
//
// Encoding an ID for another column type in the table fails with an error that
// names the Go type to use. Without that check, pgx would for example send a Sno to a
// text column as the 36 characters of its UUID, which match no Text[idtype.Sno] in the column.
// NULL, such as an Optional without an ID, fits every column. One SnoBytes in an array
// parameter of any type also fails, because pgx would store its bytes as ten numbers.
//
// The codec can't check a parameter whose type it doesn't know:
//   - The exec modes exec and simple_protocol don't learn parameter types.
//   - A connection without AfterConnect doesn't know the base types of domains.
//
// # Structs
//
// pgx itself encodes and scans a struct that embeds an ID, and a [sqltypes.Text] of one, by the
// Value and Scan of the struct, which may be the ID's. The check of column types doesn't apply to
// it, and Scan gets the JSON of a json or jsonb column, which it rejects unless the JSON is the
// column's number. Each value allocates, also in COPY. Prefer a typed key.
//
// The codec adds what pgx lacks for a struct whose only field is the ID: slices, ranges and other
// types that hold such structs work without the type of the parameter or column, and a failed scan
// leaves a []T or []*T unchanged.
//
// # Invalid values
//
// A number outside the format's range is never sent, because it couldn't be read
// back: encoding it fails with [idtype.ErrRange]. So does encoding an [idtype.SnoOf] with
// a metabyte other than its model's. Scanning such a number or ID fails with the same
// error, and scanning a UUID that isn't a Sno fails with [idtype.ErrNotSno]. A failed scan
// leaves a T, *T, sql.Null, Optional, []T, []*T or [][]T unchanged. A target that pgx takes
// apart itself, such as a [2]T, may be partly filled. A Sno can also be scanned from text and
// bytea; see [idtype.Sno.Scan].
//
// # PgBouncer
//
// In transaction mode, pgx works with its default settings if PgBouncer is 1.21 or
// later and max_prepared_statements is above 0, the default in 1.24. Otherwise set
// default_query_exec_mode=cache_describe or exec. Without that PgBouncer setting,
// pgx's default mode cache_statement and statements prepared by name fail with
// SQLSTATE 26000 or 42P05.
//
// Never use describe_exec through PgBouncer outside a transaction. Its two round
// trips can reach two server connections, and the second one may execute another
// client's statement.
//
// # Other codecs
//
// [Register] wraps the codecs that the map already has. Values of other types are
// encoded as before, and so are IDs that a codec or a hook of yours encodes.
// [AfterConnect] leaves a domain alone if you registered a codec for it or for its array.
// To use ID types with the domain, let that codec embed the one of the base type, which
// conn.TypeMap() has after Register.
//
// A uuid codec that is registered later, such as one for google/uuid, replaces the
// codec of this package. A Sno then goes through Value and Scan, which is slower but
// has the same result. So register this package last, but before [pgx.Conn.LoadType]
// and [pgx.Conn.LoadTypes], which copy the codecs that they find.
package pgxcodec
