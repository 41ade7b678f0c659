// Package zklease is a [nodelease.Store] in ZooKeeper, for programs that use an ensemble
// anyway. For other programs, package pglease is simpler. It is a module of its own:
//
//	go get github.com/sortkey/sortkey/nodelease/zklease
//
// Until v0.1.0, use a clone: add -replace github.com/sortkey/sortkey/nodelease/zklease=../sortkey/nodelease/zklease
// to the go mod edit of the README.
//
//	store, err := zklease.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, zklease.Config{})
//	...
//	defer store.Close() // after the generators are closed
//	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, idtype.SnowflakeConfig{}, nodelease.Options{})
//
// A process uses one store for its whole life. The servers need no setup: the store
// creates znodes when it needs them.
//
// # Authority, trust and terms
//
// The authority is the ensemble. A claim is an ephemeral znode, which lives as long as
// the session of its store. Each change is one transaction on the claim and its
// high-water mark. Stale data from a server that lags behind can make a transaction
// fail, but can't make a wrong one succeed. If two processes try to claim the same number,
// one transaction fails, and its process tries another number. There is no lock.
//
// A session expires when the servers haven't heard from it for the session timeout,
// by their clocks. The number of a killed process stays held until then. The TTL of
// a claim is the TTL of nodelease.Options, or the session timeout granted by the
// servers if that is shorter. After each renewal, the holder trusts the claim for
// nine tenths of the TTL. All servers must have the same limits for session
// timeouts. Otherwise a session that moves to another server could expire while its
// claims are still trusted.
//
//	                                TTL 30 s, session 30 s   TTL 10 s, session 30 s
//	cut off: the generator stops    within 27 s              within 9 s
//	killed: the number is free      after 30 s               after 30 s
//
// If a Keeper loses its claim and the process lives on, the session still holds the
// number. The Keeper releases the number as soon as the servers answer. A Release
// whose context ends continues in the background.
//
// The number, the holder, and the term that is stored with the high-water mark
// identify a claim, and the nonce its last renewal. Each transaction requires that the high-water mark has not
// changed since it was read, and a renewal also requires the claim's znode. So
// renewals and releases of earlier terms change nothing, even if they arrive late.
//
//   - If the connection is lost and restored before the session expires, the claims
//     stay. A request whose answer was lost may have taken effect or not. The store
//     checks which, and continues.
//   - If the session expires, the claims are lost ([nodelease.ErrSuperseded]) and the
//     numbers are free. Their next holders start after the high-water marks. The store
//     opens a new session by itself.
//   - If the whole ensemble restarts, the servers give each session its full timeout
//     again, so claims whose Keepers still trust them continue.
//   - If the ensemble loses its data, the high-water marks are lost. See the limits in
//     package nodelease.
//
// # Znodes
//
// Each pool has a znode of its own: Config.Root followed by the pool's name, or the
// path in Config.Roots:
//
//	/sortkey/snowflake
//	|-- layout                      size and layout of the pool: {"size":1024,"layout":"snowflake: epoch ..."}
//	|-- cluster-id                  for ForSpread64 only: 3
//	|-- pool
//	|   `-- 17                      ephemeral: number 17 is held; {"term":3,"holder":"web-3, process 812 KJ..."}
//	`-- high-water-mark
//	    |-- 17                      {"term":3,"holder":"web-3, process 812 KJ...","nonce":"4Q...","after":1763783000000,"until":1763784027000}
//	    `-- 18                      {"term":9,"holder":"","nonce":"7M...","after":0,"until":1763780000512}, released
//
// The times of high-water marks are in Unix milliseconds. Before its first claim, a store
// writes the layout znode again, unchanged, to compare this machine's clock with the
// servers'.
//
// To inspect a pool, and to free number 17 by hand:
//
//	$ zkCli.sh -server zk1:2181
//	ls /sortkey/snowflake/pool
//	get -s /sortkey/snowflake/high-water-mark/17
//	delete /sortkey/snowflake/pool/17
//
// A holder that still runs loses the number at its next renewal. It creates IDs up
// to its high-water mark at most, and the next holder starts after it. Never delete
// a high-water mark. If a high-water mark is far ahead, and no ID with that number
// and a time in the future is in use, set it back by writing an earlier "until" to
// its znode.
//
// # Access
//
// By default, any client of the servers can change the znodes. To restrict access, set
// Config.AuthScheme, Config.Auth, and a Config.ACL such as zk.AuthACL(zk.PermAll). For
// TLS, set Config.Dial.
//
// # The Java program
//
// The znodes pool and cluster-id are compatible with the Java program whose
// format is idtype.Spread64. Processes of both kinds can share the numbers of
// [nodelease.ForSpread64]: set the Java program's root in Config.Roots. Both must use
// the same cluster, or claims fail with [nodelease.ErrPoolMismatch].
//
// The Java program has no high-water marks. Between its processes and processes with
// this package, as among its own processes, uniqueness depends on sessions and on clocks
// that differ by less than two seconds:
//
//   - After a release, the number stays blocked for the Java program for two seconds,
//     and Store.Close waits for that. Programs with this package can claim the number
//     at once.
//   - This package doesn't claim a number that a Java process may have released less
//     than two seconds ago. If the store can't tell, as in the first process that
//     joins a pool in use, the claim takes two seconds, so Options.Wait must be
//     longer.
//   - The Java program has a lock, in the znode queue, which this package neither takes
//     nor waits for. The program takes the next number if another process has claimed the
//     one that it chose. When a pool is exhausted, processes of both kinds can be first.
package zklease
