// Package idtype provides primary key types for Postgres. All but Spread64 sort by time.
// Each type has a generator that never returns the same ID twice.
//
//	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3})
//	id, err := gen.Next()
//
// # Types and constructors
//
//   - [Snowflake], [NewSnowflakeGenerator]: 63 bits in a bigint. The usual choice:
//     1024 node numbers, 4096 IDs per millisecond each.
//   - [SnowflakeSI], [NewSnowflakeSIGenerator]: 53 bits in a bigint. Exact as a
//     JavaScript number; 32 node numbers, 256 IDs per millisecond each.
//   - [UID60], [NewUID60Generator]: 60 bits in a bigint, 10 characters in a URL. No
//     node number, but a small chance of collisions between processes.
//   - [Spread64], [NewSpread64Generator]: 64 bits in a bigint, without time order.
//     For stores where sequential keys create a hot spot.
//   - [Sno], [NewSnoGenerator]: 80 bits in a uuid column. One byte for a type tag, a
//     version or a status; 65,536 partitions, 16 million IDs per second each.
//   - [UUID], [NewUUIDGenerator]: 128 bits in a uuid column. For tables whose keys are
//     UUIDs: any UUID is a value, and the generator creates version 7. No node number, so
//     clients and other languages can create keys too.
//
// # Typed keys
//
// A typed key has the model of its table as a type argument. The compiler rejects the ID of
// another model:
//
//	type Order struct {
//		ID         idtype.SnowflakeOf[Order]
//		CustomerID idtype.SnoOf[Customer]
//	}
//
// [SnowflakeOf], [SnowflakeSIOf], [UID60Of], [Spread64Of], [SnoOf] and [UUIDOf] have the
// methods and the column of the plain type, and Untyped returns the plain ID. [Parse] reads
// their text. [GeneratorOf] generates them; the GORM plugin doesn't need it.
// For an ID type of your own, see [MapGenerator].
// A model can declare a prefix for the text of its IDs, and the layout of its Snowflakes; see
// [Typed]. It can also declare a metabyte; see [TypedSno]. With a prefix, the text of a UUIDOf
// is a TypeID; see [TypedUUID]. Time returns the time in a key.
//
// # NULL
//
// NULL is not an ID. Scan returns [ErrNull] for it. Scan a nullable column into a pointer,
// [database/sql.Null], or sqltypes.Optional.
//
// # Zero
//
// Generators never return the zero ID. It is stored as an ordinary value, not as NULL. It
// is the smallest value of its column, so keyset pagination can start with a zero cursor
// and WHERE id > $1. The exception is Spread64: half of its column values are negative,
// so the query for the first page must have no lower bound.
//
// # JSON
//
// The zero ID is null in JSON, and null unmarshals to the zero ID. A Snowflake is a quoted
// decimal, because JavaScript numbers lose digits above 2^53. A SnowflakeSI is a bare
// number. Unmarshalling either accepts both forms, but no floats and no exponents. The
// other types are quoted text.
//
// Unmarshalling also accepts the value of the column as Postgres writes it in JSON, for
// example with json_agg or to_jsonb: the bare number of a bigint, or the 36 characters of a
// uuid in quotes. Neither has a model's prefix.
//
// Don't use the option string in a field's tag, as in json:"id,string". With it,
// encoding/json removes the quotes before it calls UnmarshalJSON. Only a Snowflake without
// a prefix can then be read, and Sno, which ignores the option; the other types fail. Go
// 1.27 ignores the option.
//
// # Accepted and returned forms
//
// Value returns the form that database/sql stores. Scan also accepts forms that older
// tables and other drivers return. Parse and UnmarshalText accept the output of
// MarshalText, and for UID60 also the text padded to 10 characters. They reject all other
// input with a [*ParseError].
//
//	            | Value         | Scan                      | String, Parse      | JSON (zero: null)
//	------------+---------------+---------------------------+--------------------+--------------------
//	Snowflake   | int64         | int64 or decimal,         | decimal            | "decimal";
//	            |               | 0 to 2^63-1               |                    | reads it bare too
//	SnowflakeSI | int64         | int64 or decimal,         | decimal            | decimal;
//	            |               | 0 to 2^53-1               |                    | reads it quoted too
//	UID60       | int64         | int64 or decimal,         | 4 to 10 characters | "text";
//	            |               | 0 to 2^60-1               | of base64url       | reads a number too
//	Spread64    | int64         | int64 or decimal, any     | 16 hex digits,     | "text";
//	            |               | (keeps reserved bits)     | reserved bits zero | reads a number too
//	Sno         | string of its | 16 bytes or 36 characters | 16 characters      | "text"; reads its
//	            | UUID          | of its UUID, its text,    | [2-9a-x]           | quoted UUID too
//	            |               | 10 raw bytes              |                    |
//	UUID        | string        | 16 bytes or 36 characters | 36 characters      | "text"
//
// Decimals have no sign, space or leading zero, except that the decimal of a Spread64
// column can have a minus sign. Text is case-sensitive, except that the hex digits of a UUID can
// have either case (RFC 9562, section 4). The binary form is 8 big-endian bytes, 10 for Sno, or
// 16 for UUID. UnmarshalBinary rejects the same IDs as Parse.
//
// Scan also accepts an ID of its own type, a pointer to one, or a struct that holds one,
// such as a [database/sql.Null], because ent calls id.Scan(&id). The struct must be a
// [database/sql/driver.Valuer] that returns the Value of its ID. Sno and UUID also accept the
// UUID of another package, any type whose underlying type is [16]byte. Scan rejects every other
// Valuer, because the number of another type can be a valid ID of this type. Convert it, or pass
// its Value.
//
// Value, MarshalText, MarshalBinary and MarshalJSON reject numbers that are not IDs, such
// as Snowflake(-1), with [ErrRange], because no function could read them back. String
// formats them nevertheless. To convert a number from another source, such as a message, call
// Scan, which rejects the same numbers. Only Scan and Value of a Spread64 keep reserved bits;
// the Parts of [Spread64Layout] reject them.
//
// In SQLite, declare a Sno or UUID column uuid or text; both keep the 36 characters. In MySQL, use
// char(36). For the other types, use bigint in every database.
//
// # Generators
//
// Goroutines can share a generator. It never returns a duplicate, even if the clock steps
// back. A unit of time is 1 ms, or 4 ms for Sno. If all numbers of the current unit are
// used, or the clock stepped back, Next waits for up to [Options.MaxWait], and then fails
// with [ErrSequenceExhausted] or [ErrClockBackwards]. If the clock is behind by more than
// MaxWait, Next fails at once.
//
// Fill waits as long as the format's rate requires. For Fill, MaxWait limits only the time
// in which no call gets an ID. Waiting calls sleep, and are served in order of arrival. In
// each turn, a Fill takes at most one unit's numbers. A [UUIDGenerator] never waits.
//
// If the clock of a [SnoGenerator] steps back, the generator toggles the tick-tock bit of
// its IDs and continues. It waits only if the clock steps back again, behind the last ID
// from before the previous step.
//
// # Node numbers and restarts
//
// Within a process, generators of the same format, layout and node number share one
// sequence, except for UUID: they continue each other, and a new one continues a generator that was dropped.
// So a program can create a generator wherever it needs one. Generators with a Clock or a
// Lease share nothing.
//
// Two processes with the same node number can create duplicates. The caller keeps node
// numbers distinct, by configuration or with a [Lease] claimed from a store. If the clock
// was set back before a restart, a new generator could reuse times of the previous run.
// [Options.NotBefore], the Snapshot of a SnoGenerator, or a Lease prevents that.
//
// # Tests with testing/synctest
//
// In a bubble of testing/synctest, generators use the bubble's clock. It starts at
// 2000-01-01, before the epoch of most formats: sleep past the epoch before creating
// a generator. Bubbles can use the same generator one after another, but not concurrently.
// Set [Options.Clock] to time.Now: otherwise the generator continues the sequence of earlier
// bubbles and tests, whose clocks may be ahead of this one.
//
// # Monitoring
//
// Stats returns the counters of a generator, and Remaining the time left in its format. If
// OverflowTime grows by more than half a second per second, the node is at the limit of its
// rate. If ClockRegressions grows, the machine's clock is being set back.
package idtype
