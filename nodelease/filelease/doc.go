// Package filelease is a [nodelease.Store] in a directory on a local disk, for node numbers
// without a database or an ensemble:
//
//	n, err := nodelease.Ordinal("POD_INDEX", 0, 1024) // 7 if the variable is 7 or shop-7
//	...
//	store := filelease.New("/var/lib/shop", filelease.Config{Numbers: []int{n}})
//	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, idtype.SnowflakeConfig{}, nodelease.Options{})
//
// The directory must exist. A generator with a number that is only configured doesn't know
// up to which time earlier runs of the program have created IDs. This store keeps that time,
// the high-water mark, so no ID repeats if the clock is set back while the program is
// stopped or restarts.
//
// # Choosing a store
//
//	package pglease    the default: instances can run anywhere
//	package zklease    for services that use ZooKeeper anyway
//	package filelease  each instance has a fixed number and a disk of its own, or all
//	                   instances run on one machine
//	no store           each instance has a fixed number, and the clock is never set back
//	                   while the instance is stopped
//
// All processes on a machine can share a directory and claim any number of the pool: leave
// Config.Numbers nil. But the store doesn't know the processes on other machines. Each
// machine needs numbers of its own in Config.Numbers, such as its ordinal in a StatefulSet.
// Two machines with the same number create the same IDs.
//
// # Authority, trust and terms
//
// The authority is the kernel of the machine. A claim is a lock (flock) on a file, which
// excludes all other processes and all other Stores. It lasts until the number is released,
// until it wasn't renewed for ten TTLs, or until the process ends, even by kill -9. After one
// TTL without a renewal, another call of Claim of the same Store can take it. The number of a
// suspended process stays held.
//
// A claim has a TTL of at most 3 s, so the holder writes its high-water mark about once a
// second, and trusts the claim for 2.7 s after that. After a crash the number is free at
// once, but the next holder must wait until the clock has passed the high-water mark: 2.7 s
// at most, or for as long as the clock was set back. Its attempts are up to 0.55 s apart. If
// the wait is longer than Options.Wait, Acquire fails at once with
// [nodelease.ErrClockBehind]: start the program again later, or raise Wait. After Close
// there is no wait. If renewals take longer than half a second, the disk is too slow. While
// the disk fails, the generator's Ready fails a second before its calls do.
//
// The number, the holder and the term in the file of the number identify a claim, and the
// nonce its last renewal. Renewals and releases change nothing once the file has another
// term, or a nonce that the holder doesn't know, or was deleted.
//
// # Files
//
//	/var/lib/shop/snowflake      the pool
//	|-- pool.lock                locked while a process chooses a number
//	|-- 7.lock                   locked by the holder of number 7
//	`-- 7.json                   {"size":1024,"layout":"snowflake: epoch ...","term":3,"holder":"shop-7, process 1 KJ...","nonce":"4Q...","after":1763783000000,"until":1763784002700}
//
// "until" is the high-water mark and "after" the one that the claim found, in Unix
// milliseconds. An empty holder means that the number was released. Each write replaces the
// file of the number, and is on the disk before the generator uses it.
//
// If the clock was far ahead, the high-water mark is far ahead too. The clock of the store is
// this machine's own, so Options.MaxSkew doesn't prevent that. To use the number earlier,
// stop the program, check that no ID with that number and a time in the future is in use,
// and write the present to "until". Never delete the files of a number that will be used
// again: with the files, its high-water mark is lost.
//
// # Users
//
// All processes that use a directory run as one user, which owns the pool and its files. Only
// this user has access to them: with read access, another user could lock a file and block
// claims. The store removes such access from files of earlier versions, and the access of
// the group that a Kubernetes fsGroup adds. A claim fails with [nodelease.ErrMisconfigured] if
//
//   - the directory, the pool or a file of it belongs to a user other than this one and root
//   - all users can write to the pool or a file of it, or to the directory unless it is
//     sticky, as /tmp is
//   - the pool or a file of it is a symbolic link
//
// The group of the directory may write to it, as an fsGroup must. Its members could rename
// the pool, and then its high-water marks would be lost, so use a group of the program's own.
// The store doesn't check the directories above. Some provisioners create volumes with mode
// 0777: let an init container run chmod o-w, or create a directory on the volume.
//
// # Limits
//
//   - The directory must be on a disk of this machine that is kept across restarts. In a
//     container, it is a volume: with an emptyDir, or without a volume, a new pod starts
//     without the high-water marks. Network file systems (NFS, SMB) are not supported:
//     their locks and writes don't give these guarantees.
//   - A directory that is restored from a backup or copied with a disk has old high-water
//     marks. If a virtual machine is copied with the directory, each copy has a store of its
//     own, and no store refuses the claim of the other copy: Close the generator before the
//     copy. Before programs use it, wait until the clock has passed all IDs.
//   - The store needs flock, so it doesn't work on Windows, Solaris and AIX.
package filelease
