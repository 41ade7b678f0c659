// Package migrations makes a database understand sortable keys: domains for
// columns, functions from IDs to times and texts and back, bounds for queries
// by time, defaults that mint IDs on the server, partitions by time, and claims
// of node numbers. All of it is plain SQL and PL/pgSQL, for Postgres 15 and later.
// It needs no extension and no superuser.
//
//	err := migrations.Up(ctx, db, migrations.Config{})
//
// That installs schema sortkey, by goose, with a table of versions of its own.
// Each process calls [Check] when it starts: it refuses a database whose
// layouts are others than the process's, or that isn't up to date.
//
// # With a migration tool of your own
//
// [Goose], [GolangMigrate] and [Tern] give the same migrations as a file system
// for these tools, and [SQL] as a file for psql. To keep the files beside your
// own migrations, write them to a folder:
//
//	files, err := migrations.GolangMigrate(migrations.Config{})
//	...
//	err = migrations.WriteNew("db/sortkey", files)
//
// The same does for later versions of this package, which may have more of them.
// Give the tool a table of versions for them that isn't the one of your own
// migrations: their numbers begin at 1. (goose: WithTableName, or -table;
// golang-migrate: x-migrations-table in the URL; tern: version_table, or the
// argument of NewMigrator, with its schema.) After a failure golang-migrate wants
// the version before it by force; the database is as it was. Going down, these
// tools stop where something is in use, with half of it gone; Down doesn't.
//
// [List] gives the bare statements, for any other tool. An installation stays
// with the tool that made it: Up refuses to go on with another's. [SQLAfter] and
// [AddSnowflakeSI] are for going on without Up.
//
// # What is installed
//
// For each format a domain, for columns, that refuses zero and what is no ID:
// snowflake, snowflake_si, uid60 and spread64 over bigint, sno over uuid, and
// sno_as_text over text, COLLATE "C", in whose order texts are in that of time.
// And these functions, where T is snowflake, snowflake_si, uid60, spread64 or
// sno, and ID a bigint or uuid:
//
//	T_time(ID) timestamptz        when it was minted
//	T_parts(ID) record            all of its fields
//	T_text(ID) text               as Go writes it
//	T_from_text(text) ID          as Go reads it: strictly
//	T_floor(timestamptz) ID       the lowest ID of that instant; not for spread64
//
// They give what package idtype gives, to the bit. T_time and T_text are NULL
// for what is no ID (spread64_time, like Go, doesn't look at reserved bits), and
// the others raise an error.
//
// A domain and its base type go together: in comparisons, in foreign keys from
// one to the other, in indexes. But to change a column from bigint to a domain
// is to write the table anew, under a lock that stops all else. (The way back
// changes the catalog alone.) So choose the domain when a table is made, or stay
// with the base type and
//
//	ALTER TABLE orders ADD CONSTRAINT orders_id_is_a_key CHECK (id > 0) NOT VALID;
//
// which refuses the values that the domain refuses. docs/migrating.md has the
// CHECK of each format. pg_partman takes no domain as a key, so there that is the
// way, too.
//
// Never run DROP SCHEMA sortkey CASCADE while tables use the schema. It drops
//
//   - each column of a domain, with its values, and the primary and foreign keys
//     of this column,
//   - each table that is partitioned by such a column, with all of its rows,
//   - defaults, CHECKs, indexes, generated columns and views that call a function
//     of the schema or name a domain. Without its CHECK a column takes any value.
//
// [Down] drops nothing while anything depends on the schema, and names it.
// A column of the base type survives a DROP SCHEMA, and so does a CHECK of
// Postgres's own functions and operators, such as the one above. Prefer these for
// keys that have to survive, for keys that tables are partitioned by, and on
// Citus. Name the constraint: Citus 14 refuses some CHECKs without a name, with
// "unrecognized node type: 55".
//
// # Partitions by time
//
// A table that is PARTITION BY RANGE of its key can be kept in partitions by
// time. Say once, in the migration that makes the table, how:
//
//	CREATE TABLE events (id sortkey.snowflake PRIMARY KEY, body text) PARTITION BY RANGE (id);
//	SELECT sortkey.manage_partitions('events', '1 day', retention => '90 days', retention_action => 'drop');
//
// For a column of type bigint or uuid, say the format too: format => 'uid60'.
// Then have it done every hour or so, by pg_cron,
//
//	SELECT cron.schedule('partitions', '@hourly', 'CALL sortkey.maintain_partitions()');
//
// by a CronJob that runs psql -c 'CALL sortkey.maintain_partitions()', or by
// [MaintainPartitions]. It creates partitions ahead (4, unless premake says
// otherwise), moves rows out of the default partition to their own, and detaches
// or drops partitions that ended longer ago than the retention. Several may run
// at a time. To see the steps, with their SQL, before and after:
//
//	SELECT action, partition, statements FROM sortkey.plan_partitions();
//	CALL sortkey.maintain_partitions(dry_run => true);
//	SELECT * FROM sortkey.partition_log ORDER BY ended_at DESC;
//
// Each step is a short transaction. It waits 100 ms for a lock, after up to 2 s for
// locks that block no reads or writes, and is tried six times before it is left
// for the next call. Creating a partition ahead doesn't block inserts and reads,
// except those of the default partition and writes to tables that the table's
// foreign keys reference. All users of the table wait while rows are moved, a
// partition is detached, or, if there is a default partition, one is created
// whose time has begun. So keep the default partition small: long reads of it put
// maintenance off, and Postgres scans it whenever a partition is created. Have
// the key first in an index, by which rows to be moved are found.
//
// With default_partition => false there is no default partition. Then queries
// ordered by the key read only as many partitions as they need, and partitions
// are created ahead whatever readers do, but a row outside all partitions is an
// error. A table can be changed either way by another call of manage_partitions;
// a default partition that has rows isn't dropped.
//
// Maintenance removes a partition only if its whole window is older than the
// retention. Rows that are older when they come stay in the default partition. Rows
// that a foreign key refers to are neither moved nor removed; the step fails and
// names the key. Have partitions created in good time where there are such keys:
// a window whose first rows went to the default partition and are referred to
// gets its partition only when the key is dropped.
//
// The role that maintains owns the tables, or is a member of the roles that do.
// The owner has CREATE on their schemas, TEMPORARY on the database, USAGE on the
// schema sortkey, and SELECT, INSERT and DELETE on sortkey.partition_log if its
// steps are to be logged. A role that calls manage_partitions needs the right to
// write sortkey.partitioned_table, and the rights of the table's owner. A role
// that writes sortkey.partitioned_table directly decides which partitions are
// removed from every managed table: grant that only to roles that may drop all of
// them. Don't maintain tables as a superuser whose owners you don't trust:
// creating partitions and moving rows runs their functions.
//
// Autovacuum doesn't analyze partitioned tables, and maintenance doesn't either,
// since it would read a sample of each partition: ANALYZE them now and then.
//
// Partitions get what CREATE TABLE ... PARTITION OF would give them, so no
// grants, policies, replica identity or storage parameters of their own. CALL
// commits, so it can't be inside of a transaction. Where a clock that is wrong
// mustn't cost data, use retention_action => 'detach'.
//
// # pg_partman
//
// From version 5.2 on pg_partman manages tables whose key is a uuid, given two
// functions that get from times to keys and back:
//
//	SELECT partman.create_parent(p_parent_table := 'public.events', p_control := 'id', p_interval := '1 day',
//		p_time_encoder := 'sortkey.sno_partman_encoder', p_time_decoder := 'sortkey.sno_partman_decoder');
//
// # Statistics
//
// The planner knows how keys are spread from a histogram. Between two bounds of
// it, it takes bigint keys to be spread evenly, so that windows of any width are
// well estimated; for uuids it counts whole bins, a hundred by default. For big
// tables with sno keys have at least two in the smallest window that matters, so
// three hundred or more for one of 1 %:
//
//	ALTER TABLE events ALTER COLUMN id SET STATISTICS 500;
//
// # Queries by time
//
//	SELECT * FROM orders
//	WHERE id >= sortkey.snowflake_floor('2026-11-01Z') AND id < sortkey.snowflake_floor('2026-12-01Z');
//
// This is a range of the primary key's index, and of partitions. A condition on
// snowflake_time(id) would read the whole table. -infinity and infinity give the
// lowest and the highest bound; a time that the format can't hold is an error.
// Without the Z, or another offset, a text is a time in the session's TimeZone.
//
// # Defaults
//
//	CREATE TABLE orders (
//		id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(31, 31),
//		...
//	);
//
// next_snowflake(datacenter, worker), next_snowflake_si(machine), next_uid60(),
// next_spread64(generator, cluster) and next_sno(metabyte, partition) mint on
// the server. They repeat nothing, whatever its clock does and however many
// sessions there are, and IDs are at most 10 ms ahead of the clock. Where more
// are asked for than the format has, or the clock was set back, a call waits,
// for a second at most, and fails. (One that the clock is set back under, while
// it waits, waits for as much longer: Postgres's timeouts go by that clock, too.)
// The SQLSTATE says why:
//
//	53400 configuration_limit_exceeded      more IDs than the format has
//	55000 object_not_in_prerequisite_state  the clock is behind the last ID
//	54000 program_limit_exceeded            the format's time is over
//	22003 numeric_value_out_of_range        no such node number
//
// There is one counter per format and database: all next_spread64 together have
// 64 IDs in a millisecond, whatever generators they name. An ID that is the first
// of its millisecond costs a record in the write-ahead log.
//
// The functions find their sequences by the name of the schema, which therefore
// can't be renamed, and keep a lock on them to the end of the transaction, as
// nextval does. Get IDs by RETURNING: lastval() is of that sequence.
//
// A server whose clock once was far in the future, and minted, refuses until that
// time has come. Give it a node number of its own that nothing was minted with,
// and only then reset the sequence: SELECT setval('sortkey.snowflake_clock', 1).
//
// A node number belongs to one database: no program may mint with it, nor a
// copy of the database that goes on by itself, such as one from CREATE DATABASE
// … TEMPLATE, or a logical subscriber that was promoted, nor another
// installation. (A physical standby
// that takes over and a restored dump are this database, and go on where it was.)
//
// # Claims of node numbers
//
// claim_node, renew_node and release_node are for package pglease, which lets
// programs share the node numbers of a pool. reserve_node keeps a number from
// being claimed, such as one that a default names:
//
//	SELECT sortkey.reserve_node('snowflake', 31 << 5 | 31, 'default of orders.id');
//
// The documentation of pglease has more, and how to see in node_status who holds
// what.
//
// The view node_defaults lists the defaults of columns and domains that mint
// with a node number, and the functions of SQL (RETURN or BEGIN ATOMIC) that do:
//
//	SELECT kind, name, pool, number FROM sortkey.node_defaults WHERE reserved IS NULL;
//
// The column reserved is the note of the reservation, and NULL if nobody reserved
// the number. The number is NULL if the call computes it. Postgres doesn't know
// the calls of triggers, of functions in PL/pgSQL and of bodies in quotes, so the
// view doesn't list these. [Check] returns [ErrUnreservedNode] for a number that
// isn't reserved.
//
// # Privileges
//
// The next_ functions and those for claims, and they alone, are SECURITY DEFINER,
// because a role that could set their sequences or marks could have IDs repeated.
// Nobody may call them until they are granted:
//
//	GRANT USAGE ON SCHEMA sortkey TO app;
//	GRANT EXECUTE ON FUNCTION sortkey.next_snowflake(integer, integer) TO app;
//
// Any role that may connect can hold a generator up for as long as it wants to,
// by an advisory lock of its key, but not change what it mints.
//
// Whoever may call one may name any node number. Where that is too much, leave
// the calls to a function of your own that names it.
//
// All else is for everybody who may use the schema, and runs with the rights of
// who calls it. Migrations are run by a role that may make the schema, or owns
// it.
package migrations
