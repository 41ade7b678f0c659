// Package pglease is a [nodelease.Store] in Postgres. It keeps one row for each node
// number that was used or reserved.
//
//	leases, err := sql.Open("pgx", url)
//	leases.SetMaxOpenConns(2)
//	store := pglease.New(leases, pglease.Config{Install: true})
//	ids, err := nodelease.NewSnowflakeGenerator(ctx, store, idtype.SnowflakeConfig{}, nodelease.Options{})
//
// With Install, the first claim creates what is missing. Where programs may not create
// schemas, run migrations.Up once as the owner, and grant the privileges below.
//
// The package works with each driver for database/sql whose errors have a method
// SQLState, such as pgx and lib/pq. Give the store a small [sql.DB] of its own. If the
// program exhausts a [sql.DB] that it shares with the store, renewals wait for a
// connection, and a claim that isn't renewed in time is lost.
//
// Each claim is renewed three times per TTL, by one statement that updates one row by
// its primary key. A new claim takes the lowest number that was never used, or finds the
// free number with the lowest high-water mark by an index. It also reads the held rows
// and the rows in Pool.Reserved. It reads the whole pool only if no number is free.
// Concurrent claims don't wait for each other, whatever the size of the pool.
//
// # Privileges
//
// The functions run with the privileges of their owner, the role that ran the
// migrations. Until the owner grants privileges, no other role can call them, or read
// or write the tables. A program needs
//
//	GRANT USAGE ON SCHEMA sortkey TO app;
//	GRANT EXECUTE ON FUNCTION sortkey.claim_node(text, integer, text, int4multirange, text, bigint, bigint, bigint, bigint) TO app;
//	GRANT EXECUTE ON FUNCTION sortkey.renew_node(text, integer, bigint, text, bigint, bigint, bigint, bigint, text, text[]) TO app;
//	GRANT EXECUTE ON FUNCTION sortkey.release_node(text, integer, bigint, text, bigint, text[]) TO app;
//
// and no more. If one of them is missing, the claim fails at once, and the error has the
// statements. Replace sortkey if the schema has another name. With these privileges
// a program can exhaust a pool, or make its numbers unusable for a day with high-water
// marks that are ahead: the functions reject a claim that would end more than its TTL
// and a day after the server's clock, regardless of Options.MaxSkew. It can't lower a
// high-water mark that another claim wrote, so it can't cause duplicate IDs.
//
// A claim creates the pool if it doesn't exist yet and has the default name, size and
// layout of its format in this installation. If the default name comes with another size
// or layout, the claim fails with ErrPoolMismatch. The owner of the schema creates all
// other pools, such as one of ForSnoRanges:
//
//	SELECT sortkey.create_node_pool('sno-410a', 4, 'sno: partition 16650 in 4 ranges of its sequence');
//
// If a dump is restored without privileges (pg_restore --no-privileges), PUBLIC can
// call the functions. Run REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA sortkey FROM
// PUBLIC, and then grant the programs their privileges again.
//
// # Numbers of column defaults
//
// Column defaults such as next_snowflake() use the node number in the setting
// sortkey.node of the database, and next_snowflake(1023) uses the number 1023. They
// hold the number permanently. Reserve it before the defaults are used:
//
//	SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop');
//	ALTER DATABASE shop SET sortkey.node = 1023;
//
// Each format has its own pool: snowflake, snowflake-si, spread64 (for all clusters,
// with the number generator << 4 | cluster) and sno. A session rejects a number in the
// setting that isn't reserved in the pool of the format.
//
// The function fails if the number is held. It waits up to two seconds for the server's
// clock to be a second past the high-water mark, and fails if that isn't enough. In that
// case stop the holder and wait, or choose another number. It also fails if the number
// is reserved with another note, since that note is of another purpose; a repeated call
// with the same note does nothing. The pool need not exist yet. When no session uses the
// number any more, free it:
//
//	SELECT sortkey.unreserve_node('snowflake', 1023);
//
// Pool.Reserved belongs to one program: claims of that program skip these numbers, and
// the database doesn't store them. If a pool is exhausted, the error lists the first
// three numbers that reserve_node reserved, with their notes, and counts the others.
//
// # Poolers, replicas and failover
//
// Each call is a single statement and its own transaction, and uses no session state.
// So PgBouncer's transaction mode works if the driver doesn't use prepared statements,
// or if PgBouncer tracks them (from 1.21, with max_prepared_statements). To turn
// prepared statements off, set default_query_exec_mode=exec in the URL for pgx, or
// binary_parameters=yes for lib/pq.
//
// Claims need the primary. A standby rejects each call, since each one writes, so a
// standby that lags behind can't grant a number twice. If the URL names several hosts,
// add target_session_attrs=read-write.
//
// Confirmed writes are on disk, even if the database turns synchronous_commit off. But
// an asynchronous standby that is promoted may lack the last writes. After its
// promotion, its write-ahead log has a new timeline. A restored dump and a logical replica
// are another database, which has the same effect. In each pool, the first attempt to
// claim a number records the new timeline. From then on, the server grants no number of
// the pool until the longest TTL in the pool has passed, and each later claim starts
// after that time. By then no process trusts a claim that was lost. Existing claims are
// still renewed, although the standby may lack their last renewals: a holder knows the
// nonces of the last 70 or so, which are almost 12 minutes of lag with the default TTL.
// A number that was claimed within the lag is lost, and its holder claims another one:
// Acquire waits, or fails with ErrClockBehind. The column
// node_pool.fenced_until has the end of this wait. If the server's clock was far ahead
// when the new timeline was recorded, correct the column by hand. All programs of a
// pool should use the same TTL, since the standby may not know about a longer one.
//
// This doesn't cover:
//
//   - A holder whose clock was ahead, if its high-water marks were lost. A later holder
//     may duplicate its IDs when their time comes.
//   - A pool that was first used shortly before the failover, so that all of it was
//     lost.
//   - An old primary that still serves some clients. The failover must prevent that.
//   - A restored disk snapshot, which has the timeline of its original, data that was
//     restored into the same tables, and failovers of a service that doesn't report its
//     log position.
//
// In the last case, run this statement before programs claim numbers again. Then the
// next claim of each pool sees a new timeline:
//
//	UPDATE sortkey.node_pool SET timeline = 'restored';
//
// With synchronous replication to the promoted standby no writes are lost, and only the
// old primary remains as a risk.
//
// # Inspection and repair
//
//	SELECT * FROM sortkey.node_status WHERE pool = 'snowflake' AND state <> 'free';
//
// shows the held and the reserved numbers: the holder, when its claim expires, and the
// high-water mark, which is NULL for a number that was never used. At first only the
// owner of the view can read it. The owner can grant SELECT on it safely: unlike
// sortkey.node_lease, it doesn't show the values needed to renew or release another
// process's claim.
//
// Claims expire by the server's clock. If that clock was an hour ahead and is
// corrected, a claim that isn't renewed expires a TTL after the next attempt to claim a
// number, not an hour later.
//
// Taking a number away from its holder is safe at any time. The holder creates IDs up
// to its high-water mark at most, and the next holder starts after it:
//
//	UPDATE sortkey.node_lease SET holder = NULL, expires_at = NULL WHERE pool = 'snowflake' AND number = 7;
//
// If a holder's clock was ahead, by at most MaxSkew of nodelease.Options, the high-water
// mark of its number is ahead too, and the number isn't granted until then. To use the
// number earlier, take it away from its holder as above. Check that no table, in any
// database, has an ID with that number and a time in the future. Then set the high-water
// mark to the present:
//
//	UPDATE sortkey.node_lease SET mark = extract(epoch FROM clock_timestamp()) * 1000
//	WHERE pool = 'snowflake' AND number = 7 AND holder IS NULL;
//
// If a table still has such IDs, later holders duplicate them when their time comes.
// Never lower a high-water mark in any other situation.
//
// migrations.Down drops the high-water marks with everything else. Before you call it,
// stop all programs that use claims. Before they claim numbers again, wait until the
// clock has passed the dropped high-water marks.
package pglease
