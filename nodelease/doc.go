// Package nodelease claims a node number for each running instance of a program,
// from a [Store] that all instances share: Postgres (package pglease) or ZooKeeper
// (package zklease). Package filelease is for instances with fixed numbers or on one
// machine, and compares the stores. Generators of one layout with different node numbers
// never create the same ID.
//
//	store := pglease.New(db, pglease.Config{})
//	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, idtype.SnowflakeConfig{}, nodelease.Options{})
//	if err != nil {
//		return err
//	}
//	defer ids.Close() // releases the node number
//	id, err := ids.Next()
//
// After a loss, the generator claims another number. Each format with node numbers has a
// constructor, which takes the config of the format in package idtype and the options of
// the claim:
//
//	NewSnowflakeGenerator    claims a datacenter and worker of the layout, by default one of 1024
//	NewSnowflakeSIGenerator  claims a machine of the layout, by default one of 32
//	NewSpread64Generator     claims one of the 64 generators of a cluster
//	NewSnoGenerator          claims one of 65536 partitions, or a range of one partition's sequence
//
// [NewGenerator] works with any pool of numbers and any generator. [Acquire] claims
// a number for a generator that the caller builds. [Ordinal] reads a fixed number from an
// environment variable. Package ready answers readiness probes.
//
// # Guarantees
//
// The authority is the store. It decides which process holds a number, and its
// clock decides when a claim expires. Times of different machines are compared in two
// cases only. The high-water mark of a number is compared with the clock of the process
// that claims the number. And a store refuses a claim or a renewal if the clock of the
// process differs from its own by more than [Options].MaxSkew, 24 h by default.
//
// Uniqueness depends on high-water marks, not on correct clocks. The high-water mark
// of a number is a time in the store: the number may have been used up to that time.
// A claim covers the range (After, Until]: from the high-water mark that the claim
// found to the one that the claim or its last renewal wrote. A generator creates IDs
// only for times in that range, by its own clock, even if that clock is wrong. Each
// high-water mark is in the store before the generator creates IDs up to it. Only
// the holder of the number's current term can write the mark, and the next holder
// starts after it. So a process stays within its own range even if it is paused or
// suspended for hours, if it is cut off from the store, or if its clock is an hour
// ahead.
//
// A term is a counter that identifies one claim of a number: each new claim has a
// higher term. Renewals and releases name the term of their claim, and change
// nothing once the number has a later term.
//
// A nonce is a random value that identifies one renewal. Each renewal must present the
// stored nonce, and replaces it. The holder knows the nonces of its last renewals, also of
// those whose answers were lost. So it keeps its claim if the store goes back in time, as an
// asynchronous standby does that is promoted, by up to 70 renewals: almost 12 minutes with the
// default TTL. If a process is copied while it
// runs, such as a virtual machine whose snapshot is resumed twice, the first copy that
// renews the claim keeps it. The store refuses the other one at its first renewal, and its
// generator stops with [idtype.ErrLeaseLost], as after any loss.
//
// The trust window makes a holder stop before the store grants its number to another
// process. The store keeps a claim for a TTL, by its own clock, after the last
// renewal. The holder trusts the claim for nine tenths of the TTL, by its monotonic
// clock, counted from the moment before it sent the renewal. After that its
// generator fails with [idtype.ErrLeaseLost]. The holder renews the claim after a
// third of the TTL, give or take a tenth of that third, which leaves time to retry a
// failed renewal.
//
// If the clock is set forward, or the machine was suspended, the generator waits for
// a renewal, which the Keeper sends within half a second. If the generator's MaxWait
// is shorter, calls fail with [idtype.ErrLeaseNotRenewed] until then.
//
//	                    renewed: the high-water mark advances
//	                     +------+
//	                     v      |
//	       granted     +----------+   the trust window ends,
//	free ------------->|   held   |   or another process    +----------+
//	 ^  by the store,  |  (After, |------------------------>|   lost   |  Err and Lost report it;
//	 |  term + 1       |   Until] |   holds the number      +----------+  no more IDs
//	 |                 +----------+                              |
//	 |                      | Close: the high-water mark goes    | released once the store answers,
//	 |                      v back to the last ID                | or expired after the TTL
//	 |                 +----------+                              |
//	 +-----------------|  closed  |                              |
//	 ^                 +----------+                              |
//	 +-----------------------------------------------------------+
//
// Close releases the number. After a loss, the Keeper releases it once the store
// answers. A release sets the high-water mark back to the last unit of time in which
// the generator created an ID. After a crash the high-water mark stays where it was,
// at most nine tenths of a TTL after the last renewal.
//
// A process can't claim a number before its clock has passed the number's high-water
// mark. So if a holder's clock was an hour ahead, only its own number is unusable,
// for an hour.
//
// # Limits
//
//   - A clock that was ahead by less than MaxSkew leaves a high-water mark ahead, and no
//     process can claim the number until then. Without MaxSkew, that can take years. An
//     operator can set the high-water mark back after checking that no ID with that
//     number and a time in the future is in use.
//   - A store that loses confirmed writes, such as an asynchronous replica that is
//     promoted, may lose high-water marks and claims. Package pglease documents how
//     it handles that.
//   - A process that is copied while it runs can create the same IDs as its copy, or as the
//     next holder of the number, until its first renewal after the copy: for up to nine
//     tenths of a TTL, by its monotonic clock, since the last renewal before the copy. To
//     exclude that, claim the number after the copy. The copies also need different
//     random numbers. They come from crypto/rand, which reads the kernel's generator at
//     each renewal. Linux reseeds it in a resumed machine whose hypervisor changes the VM
//     generation ID. A copy that includes the store, such as the directory of package
//     filelease, is never refused.
//   - The store doesn't know of other users of a number, such as the column defaults
//     of a database. Reserve the number: in Postgres with reserve_node, elsewhere in
//     the Pool.Reserved of each program.
//   - A generator with an injected Clock needs the same clock in Options.Clock.
package nodelease
