// Package nodelease gives each process a node number of its own, and takes it
// away again without an ID ever repeating.
//
// Two generators that mint with the same node number at the same time repeat
// each other's IDs. Numbers that are configured by hand, or derived from an
// address, do collide sooner or later. Here a process claims one from a pool, in a
// [Store] that all share: Postgres (package pglease) or ZooKeeper (package
// zklease).
//
//	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, layout, nodelease.Options{Reacquire: true})
//	if err != nil {
//		return err
//	}
//	defer ids.Close()
//
// There is such a function for each format with node numbers. [NewGenerator] takes
// any pool and generator, and [Acquire] claims a number for a generator that the
// caller makes.
//
// # What is guaranteed, and by what
//
// The high-water mark is what keeps IDs from repeating; no clock does. Each
// number has a high-water mark, a time in the store. A claim covers the time
// after the one that it found, up to the one that it has written: (After,
// Until]. A generator mints only in that, by its own clock, whatever that shows.
// The high-water mark is written before it is used, and only the holder of the
// number's current term can write it; the next holder begins after it. So a
// process that is paused or suspended for hours and goes on, that is cut off from
// the store, or whose clock is an hour ahead can only ever mint in a stretch of
// time that is its own.
//
// The store decides which process holds a number, and its clock decides for how
// long. Times of different machines are never compared, except a high-water mark
// with the clock of the process that claims the number next.
//
// A term is one holder's time with a number. Each claim has a larger one, and
// renewals and releases name it: those of an earlier term change nothing.
//
// The trust window is for promptness. A claim stands for a TTL by the store's
// clock after its last renewal, and is trusted for nine tenths of that by the
// holder's monotonic clock, counted from before the renewal was sent. Then
// minting stops with [idtype.ErrLeaseLost], about when the number may go to
// someone else. It is renewed after a third of the TTL, give or take a tenth of
// that, so that there is time to repeat a renewal that failed. After the clock
// was set forward, or the machine was suspended, a generator waits for a renewal
// too, which comes within half a second; if MaxWait is shorter, calls fail with
// [idtype.ErrLeaseNotRenewed] until then.
//
//	                    renewed: the high-water mark moves on
//	                     +------+
//	                     v      |
//	       granted     +----------+   the trust window is over,
//	free ------------->|   held   |   or the term is     +----------+
//	 ^  by the store,  |  (After, |--------------------->|   lost   |  Err and Lost tell;
//	 |  term + 1       |   Until] |   someone else's     +----------+  mints nothing more
//	 |                 +----------+                           |
//	 |                      | Close                           | given back once the store answers,
//	 |   from the last ID   v                                 | or free when the TTL is over
//	 |   minted on     +----------+                           |
//	 +-----------------|  closed  |                           |
//	 ^                 +----------+                           |
//	 +--------------------------------------------------------+
//
// A Close, or a loss after which the store answers again, lowers the high-water
// mark to the last unit of time in which the generator has minted. After a
// crash it stays where it was, up to a TTL ahead. Nobody can claim a number
// before their clock has passed its high-water mark: so a holder whose clock
// was an hour ahead spoils its own number for an hour, and no other.
//
// # What isn't
//
//   - A clock that was ahead by years leaves a high-water mark that far ahead, and
//     a number that nobody can claim until then. Only people can tell that no ID of
//     that time is in use, and set the high-water mark back.
//   - Stores that lose what they have confirmed, such as an asynchronous replica
//     that is promoted, may lose high-water marks and claims. See pglease for what
//     it does about that.
//   - A process that is copied while it runs, by a virtual machine's snapshot that
//     is resumed twice, is one holder to the store. Claim after the copy.
//   - The store doesn't know about other users of a number, such as a column
//     default. Reserve the number: in Postgres with reserve_node, elsewhere in the
//     Pool.Reserved of each program.
//   - A generator with an injected Clock needs the same one in Options.Clock.
package nodelease
