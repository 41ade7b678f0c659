// Package pglease keeps the claims of package nodelease in Postgres, for all who
// run that anyway: a [nodelease.Store] of one row per node number.
//
//	err := migrations.Up(ctx, db, migrations.Config{}) // once, by whoever owns the schema
//	...
//	leases, err := sql.Open("pgx", url)
//	leases.SetMaxOpenConns(2)
//	store := pglease.New(leases, pglease.Config{})
//	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, layout, nodelease.Options{Reacquire: true})
//
// It works with any driver for database/sql whose errors have a method SQLState,
// as those of pgx and lib/pq do. Give it a small [sql.DB] of its own: in one that
// the program uses up, renewals wait in line with all else, and a claim that isn't
// renewed in time is lost. A renewal is one statement that updates one row by its
// key, three times in a TTL for each claim. A claim finds a free number by an index;
// it reads the held rows and the free rows in Pool.Reserved. It reads the whole pool
// only if no number is free. The first claim makes the rows, which
// for the 65,536 of ForSno is some 10 MB, and has to be done in half a TTL.
//
// # Privileges
//
// The functions have the rights of the schema's owner, and nobody may call them,
// nor read or write the tables, until that is granted. A program needs
//
//	GRANT USAGE ON SCHEMA sortkey TO app;
//	GRANT EXECUTE ON FUNCTION sortkey.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint) TO app;
//	GRANT EXECUTE ON FUNCTION sortkey.renew_node(text, integer, bigint, text, bigint, bigint) TO app;
//	GRANT EXECUTE ON FUNCTION sortkey.release_node(text, integer, bigint, text, bigint) TO app;
//
// and no more: with these alone it can use a pool up, or spoil it with
// high-water marks that are far ahead, but it can't set back a high-water mark
// that it didn't make, so that IDs repeat. In a schema of another name they
// have that instead of sortkey.
//
// Who restores a dump without privileges (pg_restore --no-privileges) has to take
// them from PUBLIC again: REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey FROM
// PUBLIC, and then grant anew what programs need.
//
// # Numbers of defaults
//
// A number that something else mints with for ever, such as the default of a
// column, is reserved in the migration that brings the default, before that mints:
//
//	SELECT sortkey.reserve_node('snowflake', 31 << 5 | 31, 'default of orders.id');
//
// It fails if the number is held, or was used up to a time that is yet to come.
// Then end its holder, or choose another number. The pool needn't have been used
// before. SELECT sortkey.unreserve_node('snowflake', 31 << 5 | 31) gives it back,
// once nothing mints with it any more.
//
// Pool.Reserved is a program's own affair: claims of that program leave these
// numbers out, and the database keeps nothing of them. If a pool is exhausted, the
// error names the numbers that reserve_node keeps, with their notes.
//
// # Poolers, replicas, failover
//
// Each call is a statement and a transaction of its own and needs nothing of the
// session, so PgBouncer's transaction mode will do, if the driver uses no
// prepared statements there or PgBouncer follows them (from 1.21 on, with
// max_prepared_statements): for pgx default_query_exec_mode=exec in the URL,
// for lib/pq binary_parameters=yes.
//
// Claims are for the primary. A standby refuses each call, since they all write,
// so that what it doesn't know yet can't be granted again. Where a URL names
// several hosts, add target_session_attrs=read-write.
//
// What was confirmed is on disk, also where the database's synchronous_commit is
// off. But a standby that isn't synchronous, and takes over, may not have got the
// last of it. Its log has another timeline then. The first claim that sees
// that in a pool notes it, and no number is granted before the longest TTL in the
// pool is over, and each begins after that time: what was lost, nobody trusts by
// then. Present claims go on being renewed. Meanwhile Acquire waits, or fails with
// an ErrClockBehind. (That time is node_pool.fenced_until. If the clock of the
// server was far ahead when it took over, correct the column by hand.) All
// programs of a pool should have the same TTL, since the standby may not know of a
// longer one. What this doesn't cover:
//
//   - A holder whose clock was ahead, and whose high-water marks are among what was lost,
//     may have minted IDs that a later holder repeats when that time comes.
//   - A pool that was first used so short a time before that all of it was lost.
//   - An old primary that goes on for some of the clients. That is for whoever
//     fails over to rule out.
//   - What changes no timeline: a snapshot of the disk or a dump that is restored,
//     a logical replica that takes over, a service that tells nothing of its log.
//     Before programs claim again, have the next claims see another one.
//
// For the latter:
//
//	UPDATE sortkey.node_pool SET timeline = 'restored';
//
// Synchronous replication to the standby that takes over loses nothing, and
// leaves nothing of this but the old primary.
//
// # Looking, and helping by hand
//
//	SELECT * FROM sortkey.node_status WHERE pool = 'snowflake' AND state <> 'free';
//
// shows each number's holder, when its claim ends, and its high-water mark, which
// is NULL for a number that was never used. The view belongs to the owner of the
// tables. The owner can grant SELECT on it safely: unlike sortkey.node_lease, it
// doesn't show what is needed to renew or release another process's claim.
//
// How long a claim stands is by the clock of the server. If that was an hour
// ahead and is set right, claims that aren't renewed end a TTL after the next
// attempt to claim, not an hour later.
//
// To take a number away from its holder is safe at any time. It mints up to its
// high-water mark at most, where the next one begins:
//
//	UPDATE sortkey.node_lease SET holder = NULL, expires_at = NULL WHERE pool = 'snowflake' AND number = 7;
//
// A number whose holder's clock was years ahead has a high-water mark that is
// years ahead, and is left alone until then. To use it earlier, take it away
// from its holder as above, find out that no table has an ID of that number and
// of a later time, in any database, and set the high-water mark to now:
//
//	UPDATE sortkey.node_lease SET mark = extract(epoch FROM clock_timestamp()) * 1000
//	WHERE pool = 'snowflake' AND number = 7 AND holder IS NULL;
//
// Where such IDs are left, they repeat when their time comes. Nothing else
// needs a high-water mark set back. Down of package migrations drops the
// high-water marks with all else: end all programs that mint under claims
// first, and let the clock pass their high-water marks before you go on.
package pglease
