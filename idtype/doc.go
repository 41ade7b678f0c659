// Package idtype has five time-sortable primary keys for Postgres, each a
// small Go value with a generator that never mints it twice.
//
//	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3})
//	id, err := gen.Next()
//
// # Which one
//
//   - [Snowflake]: 63 bits in a bigint. The usual choice: dense, fast, 1024
//     node numbers, 4096 IDs a millisecond each.
//   - [SnowflakeSI]: 53 bits in a bigint. For IDs that JavaScript handles as
//     numbers; 32 node numbers, 256 IDs a millisecond each.
//   - [UID60]: 60 bits in a bigint, 10 characters in a URL. Needs no node
//     number, and pays for that with a chance of collision between processes.
//   - [Spread64]: 64 bits in a bigint, without time order. For stores in which
//     keys that follow one another make a hot spot.
//   - [Sno]: 80 bits in a uuid column. A byte of its own for a type tag, a
//     version or a status, 65,536 partitions, 16 million IDs a second each.
//
// # What each form takes and gives
//
// Value is what database/sql stores; Scan also takes what an older table or
// another driver may give. Parse and UnmarshalText take what String and
// MarshalText give. What isn't listed is refused with a [*ParseError].
//
//	            | Value         | Scan                      | String, Parse      | JSON, of zero: null
//	------------+---------------+---------------------------+--------------------+--------------------
//	Snowflake   | int64         | int64 or decimal,         | decimal            | "decimal";
//	            |               | 0 to 2^63-1               |                    | reads it bare too
//	SnowflakeSI | int64         | int64 or decimal,         | decimal            | decimal;
//	            |               | 0 to 2^53-1               |                    | reads it quoted too
//	UID60       | int64         | int64 or decimal,         | 4 to 10 digits     | "text"
//	            |               | 0 to 2^60-1               | of base64url       |
//	Spread64    | int64         | int64 or decimal, any     | 16 hex digits,     | "text"
//	            |               | (reserved bits are kept)  | reserved bits zero |
//	Sno         | string of the | 16 bytes or 36 characters | 16 digits [2-9a-x] | "text"
//	            | UUID that it  | of that UUID, 16 digits,  |                    |
//	            | is stored as  | 10 raw bytes              |                    |
//
// Scan also takes an ID of its own type, a pointer to one, or a struct around one,
// such as a [database/sql.Null]: ent calls id.Scan(&id). The struct must be a
// [database/sql/driver.Valuer] that holds one ID, and pass on its Value. Scan
// refuses every other Valuer, because the same number can be a valid ID of this
// format: convert it, or pass its Value.
//
// What couldn't be read again isn't written: Value and the forms beside it
// refuse numbers that are no IDs, such as Snowflake(-1), with an [ErrRange].
// String shows them. [SnowflakeFromInt64] and its like convert a number that comes
// from elsewhere, and are as strict as Parse: a Spread64 with reserved bits is
// refused.
//
// Decimals have no sign, space or leading zero; only a Spread64's, in a column,
// can be negative. Text is case-sensitive; the hex of a UUID, which isn't the
// Sno's own text, may have capitals, as some databases write it. The binary form is 8 bytes, 10 for
// Sno, big-endian, and as strict as Parse.
//
// In SQLite a Sno's column may be declared uuid or text: the 36 characters are
// safe in both. In MySQL it is a char(36). The others are bigint everywhere.
//
// # Zero and NULL
//
// The zero ID is never minted. It is the smallest value of its column, so that
// keyset pagination can begin with WHERE id > $1 and a zero cursor; Spread64,
// half of whose column values are negative, is the exception. NULL is not an
// ID: a nullable column is scanned into a pointer, [database/sql.Null], or
// sqltypes.Optional.
//
// # Generators
//
// A generator may be shared by goroutines, and never repeats an ID, whatever
// the clock does. If a unit of time has no numbers left, or the clock stepped
// back, Next waits, for [Options.MaxWait] at the longest, and then fails with
// [ErrSequenceExhausted] or [ErrClockBackwards]. If the clock is further behind than
// that, Next fails at once. Fill goes on for as long as the format's rate demands,
// and fails so only if nobody gets anything for so long. Calls that wait sleep, and
// are served in the order in which they came, a Fill with what a unit has at a time.
// A Sno generator goes on without waiting at the first step back, in the other half
// of its IDs.
//
// Two generators with the same node number do repeat each other's IDs. Node
// numbers are the caller's to keep apart: by configuration, or by a [Lease] that
// is claimed from a store. After a restart, a clock that was set back could lead
// to times that the same node has used: [Options.NotBefore], the Snapshot of a
// [SnoGenerator], or a Lease keep it from those.
//
// In a bubble of testing/synctest, generators use the bubble's clock. It starts at
// 2000-01-01, before the epoch of most formats: sleep past the epoch before creating
// a generator. A generator may be used in one bubble after another, but not in two
// at once.
//
// Stats tells what a generator has done, and Remaining how long its format
// lasts. Watch SequenceOverflows (the node is at its rate's limit) and
// ClockRegressions (the machine's clock is being set back).
package idtype
