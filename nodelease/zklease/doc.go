// Package zklease keeps node numbers in ZooKeeper, for programs that run an
// ensemble anyway. Others are better off with package pglease.
//
//	store, err := zklease.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklease.Config{})
//	...
//	defer store.Close() // after the Close of what uses it
//	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, layout, nodelease.Options{Reacquire: true})
//
// A process has one store for all its life. Nothing has to be set up on the
// servers: znodes are made when they are needed.
//
// # Who is the authority, and for how long
//
// The ensemble is. A claim is an ephemeral znode, which goes when the session
// of its store does, and each change is one transaction of the claim and its
// high-water mark: what a server that lags behind has shown can make it fail,
// and not succeed.
//
// A session lives until the servers haven't heard of it for the session timeout,
// by their clocks. So a claim stands for the TTL of nodelease.Options or for the
// session timeout that the servers have granted, whichever is shorter, from the
// last renewal on, and is trusted for nine tenths of that. All servers must have
// the same limits for session timeouts.
//
//	                         TTL 30 s, session 30 s   TTL 10 s, session 30 s
//	cut off: stops minting   within 27 s              within 9 s
//	killed: number is free   after 30 s               after 30 s
//
// A session lives longer than a Keeper that has lost its claim, if the process
// does. The Keeper gives the number back as soon as the servers answer, and a
// Release that was cut short goes on in the background.
//
// A term is identified by the number, the term that its high-water mark counts,
// and the holder. The high-water mark is written with its version, and the
// znode of the claim has to be there: renewals and releases of earlier terms
// change nothing, also if they arrive late.
//
//   - The connection is lost, and there is another one before the session
//     expires: the claims stand, and nobody notices. A request whose answer got
//     lost may have been done or not; the store looks, and goes on.
//   - The session expires: the claims are lost ([nodelease.ErrSuperseded]), the
//     numbers are free, and their next holders begin after the high-water marks.
//     The store gets a new session by itself.
//   - The whole ensemble is restarted: sessions are given their timeout anew, so
//     claims whose Keepers have kept them by then go on.
//   - The ensemble loses its data: the high-water marks are gone. See package
//     nodelease.
//
// # What there is
//
// Each pool has a znode of its own, [Config].Root/name or what Config.Roots says:
//
//	/sortkey/snowflake
//	|-- layout                      what the pool was made with: {"size":1024,"layout":"snowflake: epoch ..."}
//	|-- cluster-id                  of ForSpread64 alone: 3
//	|-- queue                       who wants a number, in this order; one at a time chooses
//	|   |-- nr-00000000000000           ephemeral: the lock; says whose it is
//	|   |-- nr-01763784000123-0042      ephemeral: a ticket, of a time and a random number; says who it is
//	|   `-- nr-01763784000200-7301
//	|-- pool
//	|   `-- 17                      ephemeral: number 17 is held; {"term":3,"holder":"web-3, process 812 KJ..."}
//	`-- high-water-mark
//	    |-- 17                      {"term":3,"holder":"web-3, process 812 KJ...","after":1763783000000,"until":1763784027000}
//	    `-- 18                      {"term":9,"holder":"","after":0,"until":1763780000512}, released
//
// The times of high-water marks are in Unix milliseconds. The queue only keeps
// processes that start together from getting in each other's way: waiting in it
// is bounded, and nobody waits for a free number with the lock in hand.
//
// To look, and to free number 17 by hand:
//
//	$ zkCli.sh -server zk1:2181
//	ls /sortkey/snowflake/pool
//	get -s /sortkey/snowflake/high-water-mark/17
//	delete /sortkey/snowflake/pool/17
//
// The holder loses it at its next renewal, if it still runs, and mints up to
// its high-water mark at most, after which the next one begins. Never delete a
// high-water mark. If one is years ahead and no ID of that time is in use, set it
// back by writing an earlier "until".
//
// # Access
//
// With Config.AuthScheme, Config.Auth and Config.ACL, such as
// zk.AuthACL(zk.PermAll), others can't take numbers away. By default everybody
// who reaches the servers can. For TLS give a Config.Dial that speaks it.
//
// # The Java program
//
// Queue, pool and cluster-id are those of the Java program whose IDs
// idtype.Spread64 has, so processes of both can share the numbers of
// [nodelease.ForSpread64]: give its root in Config.Roots. The cluster must be the
// same as there, or claims fail with [nodelease.ErrPoolMismatch].
//
// That program knows no high-water marks. Towards its processes all rests on
// sessions and on clocks that differ by less than two seconds, as it does among
// themselves:
//
//   - A number that was released is kept from them for two seconds, for which a
//     Store.Close waits. Programs with this package get it at once.
//   - A number that one of them may have released less than two seconds ago is
//     not claimed. Where there is nothing to tell by, as for the first process
//     that comes to a pool in use, this takes two seconds: let Options.Wait be
//     longer.
//   - It waits for a free number with the lock in hand, so while a pool is
//     exhausted its processes are served first.
package zklease
