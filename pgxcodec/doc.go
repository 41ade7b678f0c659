// Package pgxcodec moves IDs between Go and Postgres through pgx without a
// conversion. Give a pool, or a database/sql pool of pgx, the function that
// prepares its connections:
//
//	config.AfterConnect = pgxcodec.AfterConnect                        // pgxpool
//	stdlib.OpenDB(config, stdlib.OptionAfterConnect(pgxcodec.AfterConnect))
//
// [AfterConnect] is [Register] and one query for the database's domains. A pool
// that opens many connections can keep a [Loader], which remembers the answer.
//
// Then T, *T, **T, [sql.Null] of T and [sqltypes.Optional] of T, pointers to
// these, and []T and []*T can be arguments, and scanned into, where T is
//
//	idtype.Snowflake, SnowflakeSI, UID60, Spread64   bigint
//	idtype.Sno                                       uuid
//	sqltypes.Text of the five                        text, varchar, char(n), citext
//	sqltypes.SnoBytes                                bytea
//
// or a domain over that column type. [pgtype.Range] and [pgtype.Multirange] of
// the bigint types are int8range and int8multirange; composite types, where pgx
// can take these, hold IDs as they do other values. All query exec modes store
// the same value. ID types of your own are known after [RegisterOwn].
//
// database/sql knows no arrays: there, slices can be arguments, and are scanned
// through [pgtype.Map.SQLScanner] of a map that has been registered.
//
// In a json or jsonb column, IDs inside of structs, maps and slices are what
// their MarshalJSON gives. An ID alone is what its Value gives, as pgx has it
// with every [driver.Valuer].
//
// # What is refused
//
// An ID whose parameter or column is known to be of another of these column
// types is an error that names the Go type to use: a Sno as text would be
// equal to nothing that a SnoText has stored. The same holds for a struct that
// embeds an ID, registered or not, unless the struct has a method Value or
// GormDataType of its own. An unregistered one can also have pgx's method for the
// column's type, such as TextValue: pgx then calls it.
//
// Nothing can be refused where nothing is known: the modes exec and
// simple_protocol don't learn what a parameter is, and a connection without
// AfterConnect doesn't know what a domain is over. (There, arrays of a domain over
// char(n) can't be read either.)
// Numbers that are no IDs aren't sent, as they could not be read again.
//
// A number that is out of the format's range, a UUID that isn't a Sno
// ([idtype.ErrNotSno]) and NULL ([idtype.ErrNull]) are errors of the scan. They
// leave a T, *T, sql.Null, Optional, []T or []*T as it was; what pgx takes apart
// itself, such as [][]T, may be half filled. A Sno can be scanned from text and
// bytea as well, by [idtype.Sno.Scan].
//
// # PgBouncer
//
// In transaction mode, PgBouncer from 1.21 on, with max_prepared_statements
// above 0 as is the default of 1.24, lets pgx work as it does without. Otherwise
// set default_query_exec_mode=cache_describe or exec: cache_statement, pgx's
// default, fails with SQLSTATE 26000 or 42P05 there, and so does what is prepared
// by name. Never use describe_exec through PgBouncer outside of a transaction: its
// two round trips can find two servers, of which the second may execute another
// client's statement.
//
// # Other codecs
//
// The codecs that the map has already are wrapped, not replaced: values of
// other types take the same way as before. If the caller has registered a codec
// for a domain or for its array, [AfterConnect] tries that codec first, for IDs
// too. If it has no plan for an ID, the ID is encoded as in the base type.
//
// A codec for uuid that is registered
// later and replaces this one, as those for google/uuid do, takes the fast way
// from Sno and no more: pgx then goes through Value and Scan. So register this
// package last, but before [pgx.Conn.LoadType] and [pgx.Conn.LoadTypes], which
// copy the codecs that they find.
package pgxcodec
