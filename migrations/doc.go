// Package migrations installs SQL functions, domains and tables for sortable
// keys in a Postgres database, and checks the installation.
//
//	err := migrations.Up(ctx, db, migrations.Config{})   // on deployment: install or upgrade
//	err = migrations.Check(ctx, db, migrations.Config{}) // in each process, at startup
//
// [Up] runs the missing migrations. [Check] returns an error if the installation is
// incomplete, or if its layouts differ from the Config. [CheckDefaults] warns of
// defaults without a node number of their own. The schema sortkey has
//
//   - domains for columns,
//   - functions that convert IDs to times and texts and back,
//   - bounds for queries by time,
//   - defaults that generate IDs on the server,
//   - maintenance of partitions by time,
//   - leases of node numbers, for package pglease.
//
// A second schema, sortkey_internal, has the functions that these call, and the
// sequences of the generators. In psql, \df+ sortkey.* shows the functions with
// their comments.
//
// The installation is plain SQL and PL/pgSQL for Postgres 15 and later. It needs no
// extension and no superuser.
//
// # With your own migration tool
//
// [Goose], [GolangMigrate], [Tern] and [Flyway] return the migrations as a file
// system for these tools. [Plain] returns one SQL file per migration and direction,
// for psql -1, Liquibase and other tools. [SQL] returns all migrations as one file
// for psql, and [List] as statements. To keep the files beside your own migrations,
// write them to a folder:
//
//	files, err := migrations.GolangMigrate(migrations.Config{})
//	...
//	err = migrations.WriteNew("db/sortkey", files)
//
// Run the same code after an upgrade of this package: it adds the files of new
// migrations. Without Go, run sortkey migrate export.
//
// The versions begin at 1, so the tool needs a separate version table for these
// files: in goose WithTableName or -table; in golang-migrate x-migrations-table
// in the URL; in tern version_table, or the argument of NewMigrator, qualified
// with a schema; in Flyway -table. If the schema of this table has other objects,
// Flyway also needs -baselineOnMigrate=true -baselineVersion=0. In Liquibase, run
// each file with sqlFile and splitStatements="false".
//
// Each migration changes everything or nothing. If one fails with golang-migrate,
// run force with the previous version before you retry. If other objects depend
// on the installation, these tools remove only part of it before they fail.
// [Down] removes everything or nothing.
//
// Continue with the tool that created the installation. Up can continue it, too, but
// then the tool fails at the migrations that Up has installed. To upgrade without Up,
// use [SQLAfter] and [AddSnowflakeSI].
//
// # Installed objects
//
// Each format has a domain for columns, which rejects zero and values that are
// not IDs: snowflake, snowflake_si, uid60 and spread64 over bigint, sno over
// uuid, and sno_as_text over text. The collation of sno_as_text is "C", which
// sorts the texts by time.
//
// The functions are as follows. T is snowflake, snowflake_si, uid60, spread64 or
// sno, and ID is bigint or uuid:
//
//	T_time(ID) timestamptz        the time of the ID
//	T_node(ID) integer            the node number; not for uid60
//	T_parts(ID) record            all fields
//	T_text(ID) text               the text form, as in Go
//	T_from_text(text) ID          the ID of a text; strict, as in Go
//	T_floor(timestamptz) ID       the lowest ID of that time; not for spread64
//	T_at(timestamptz, n, ...) ID  an ID of that time, for existing rows
//
// They return the same results as package idtype. For a value that is not an ID,
// T_time, T_node and T_text return NULL and the others raise an error. As in Go,
// spread64_time ignores the reserved bits. The text of a snowflake or snowflake_si
// is its number, so these types have no functions for it: cast with ::text and
// ::bigint.
//
// For UUIDs of version 7 there are the domain uuid7 and these functions. A column of type
// uuid can hold UUIDs of other versions beside them:
//
//	uuid7_time(uuid) timestamptz   the time, or NULL for other UUIDs
//	uuid7_floor(timestamptz) uuid  the lowest UUID of that time
//	next_uuid7() uuid              a new UUID, without a node number
//	typeid_text(prefix, uuid) text a TypeID, the text of a UUIDOf whose model has a prefix
//	typeid_from_text(text) uuid    the UUID of a TypeID
//
// A domain and its base type are compatible in comparisons, in indexes, and in
// foreign keys between them. Changing a column from bigint to a domain rewrites
// the table under an ACCESS EXCLUSIVE lock. The reverse changes only the catalog.
// So choose the domain when you create a table. For an existing table, keep the
// base type and add a constraint:
//
//	ALTER TABLE orders ADD CONSTRAINT orders_id_is_a_key CHECK (id > 0) NOT VALID;
//
// It rejects the same new values as the domain snowflake. docs/migrating.md has
// the CHECK of each format. Use such a CHECK with pg_partman too, since
// pg_partman doesn't support domains as keys.
//
// To remove the installation without [Down], drop both schemas. But never do so
// while tables use them:
//
//	DROP SCHEMA sortkey, sortkey_internal CASCADE;
//
// This statement drops
//
//   - each column of a domain, with its values, and the primary and foreign keys
//     on this column,
//   - each table that is partitioned by such a column, with all of its rows,
//   - defaults, CHECKs, indexes, generated columns and views that call a function
//     of the schema or name a domain. Without its CHECK a column takes any value.
//
// While other objects depend on the schema, [Down] drops nothing and returns an
// error that names up to 20 of them. A column of the base type survives a DROP SCHEMA, and so
// does a CHECK that uses only built-in functions and operators, such as the one
// above. Prefer these for keys that must survive, for partition keys, and on
// Citus. Name the constraint: Citus 14 rejects some unnamed CHECKs with
// "unrecognized node type: 55".
//
// # Partitions by time
//
// The installation can maintain partitions by time for a table that is PARTITION
// BY RANGE of its key. Set the partitions up once, in the migration that creates
// the table:
//
//	CREATE TABLE events (id sortkey.snowflake PRIMARY KEY, body text) PARTITION BY RANGE (id);
//	SELECT sortkey.manage_partitions('events', '1 day', retention => '90 days', retention_action => 'drop');
//
// For a column of type bigint or uuid, pass the format, too: format => 'uid60'.
// Then run the maintenance every hour or so, with pg_cron,
//
//	SELECT cron.schedule('partitions', '@hourly', 'CALL sortkey.maintain_partitions()');
//
// with a CronJob that runs psql -c 'CALL sortkey.maintain_partitions()', or with
// [MaintainPartitions]. Maintenance creates partitions ahead (premake; 4 by
// default), moves rows out of the default partition to their own partitions, and
// detaches or drops partitions that ended longer ago than the retention. Several
// runs can overlap.
//
// The first two of these statements show the steps and their SQL without taking
// them. The third lists the steps of earlier runs:
//
//	SELECT action, partition, statements FROM sortkey.plan_partitions();
//	CALL sortkey.maintain_partitions(dry_run => true);
//	SELECT * FROM sortkey.partition_log ORDER BY ended_at DESC;
//
// Each step is a short transaction. It waits up to 2 s for locks that don't block
// reads and writes, then 100 ms for each other lock. After six attempts,
// maintenance leaves the step to the next call. Creating a partition ahead blocks
// only inserts and reads of the default partition, and writes to tables that the
// table's foreign keys reference. All users of the table wait while a step moves
// rows, detaches or drops a partition, or, if there is a default partition,
// creates a partition whose time has begun.
//
// Keep the default partition small. Postgres scans it whenever a partition is
// created, and long reads of it delay maintenance. To find the rows to move,
// maintenance needs an index that begins with the key.
//
// With default_partition => false, the table has no default partition. Queries
// ordered by the key then read only as many partitions as they need, and readers
// cannot delay the creation of partitions ahead, but a row outside all partitions
// is an error. To change this later, call manage_partitions again. Maintenance
// doesn't drop a default partition that has rows.
//
// Maintenance removes a partition once its whole time range is older than the
// retention. This includes partitions that were created by hand, except one that
// begins at MINVALUE. If rows of that range arrive later, they stay in the
// default partition. A step doesn't move or remove rows that a foreign key
// references; it fails and names the key. If a table has such foreign keys,
// create its partitions early enough: once referenced rows are in the default
// partition, a partition for their time can be created only after the foreign key
// is dropped.
//
// The role that runs maintenance must own the tables or be a member of the roles
// that own them. The owner needs CREATE on the schemas of the tables, TEMPORARY
// on the database, and USAGE on the schemas sortkey and sortkey_internal. To log
// the steps and delete old log rows, the owner also needs SELECT, INSERT and DELETE on
// sortkey.partition_log. A role that calls manage_partitions needs write access
// to sortkey.partition_settings and the privileges of the table's owner. A role
// with write access to that table controls which partitions are removed from
// every managed table, so grant it only to roles that may drop all of them.
// Creating partitions and moving rows runs the functions of the tables' owners. So
// maintenance refuses a table if the session doesn't trust the owner of a partition, or
// of a table that a foreign key connects with it; [ErrUntrusted] has the rule.
//
// Autovacuum doesn't analyze partitioned tables. Nor does maintenance, since
// ANALYZE reads a sample of each partition. Run ANALYZE on them now and then.
//
// A partition has the same properties as with CREATE TABLE ... PARTITION OF. It
// has no grants, policies, replica identity or storage parameters of its own. Run
// CALL sortkey.maintain_partitions() outside a transaction block, since it
// commits.
//
// If the server's clock is far ahead, maintenance removes partitions too early.
// To keep their rows even then, use retention_action => 'detach'.
//
// # pg_partman
//
// pg_partman 5.2 and later can manage tables with uuid keys, given two functions
// that convert between times and keys:
//
//	SELECT partman.create_parent(p_parent_table := 'public.events', p_control := 'id', p_interval := '1 day',
//		p_time_encoder := 'sortkey.sno_floor', p_time_decoder := 'sortkey.sno_partman_decoder');
//
// # Statistics
//
// The planner estimates row counts from a histogram of the keys. Within a bin it
// interpolates bigint keys, so estimates are good for time ranges of any width.
// For uuid keys it counts whole bins. A column has a hundred bins by default. For
// a big table with sno keys, raise this number, the statistics target, until the
// smallest time range that matters contains at least two whole bins. For a range
// of 1 % of the rows, that takes a target of 300 or more:
//
//	ALTER TABLE events ALTER COLUMN id SET STATISTICS 500;
//
// # Queries by time
//
//	SELECT * FROM orders
//	WHERE id >= sortkey.snowflake_floor('2026-11-01Z') AND id < sortkey.snowflake_floor('2026-12-01Z');
//
// This query reads a range of the primary key's index, and only the partitions in
// that range. A condition on snowflake_time(id) would read the whole table. The
// floors of -infinity and infinity are the lowest and the highest bound. A time
// outside the format's range is an error. A literal without Z or another offset
// is a time in the session's TimeZone.
//
// # Defaults
//
// Choose a node number that no program and no other database uses. Reserve it, and
// make it a setting of the database, which later sessions have:
//
//	SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop');
//	ALTER DATABASE shop SET sortkey.node = 1023;
//	CREATE TABLE orders (
//		id bigint PRIMARY KEY DEFAULT sortkey.next_snowflake(),
//		...
//	);
//
// These functions generate IDs. The first column uses the setting, and the second one
// a number in the DDL:
//
//	next_snowflake()          next_snowflake(node)
//	next_snowflake_si()       next_snowflake_si(node)
//	next_spread64()           next_spread64(node)
//	next_sno()                next_sno(node, meta DEFAULT 0)  next_sno_meta(meta)
//	next_uid60()              (without node numbers)
//
// The node number is the one of package nodelease, which T_node returns: datacenter
// << 5 | worker for a snowflake of the default layout, machine for a snowflake_si,
// generator << 4 | cluster for a spread64, and partition for a sno. Reserve the
// setting's number in the pool of each format that defaults use: snowflake,
// snowflake-si, spread64, sno. The functions check this with the first ID of a session,
// which keeps its number until it ends: a later SET sortkey.node has no effect.
//
// Only a superuser can run ALTER DATABASE ... SET sortkey.node, unless a superuser has
// run GRANT SET ON PARAMETER sortkey.node TO the owner of the database. Without a
// superuser, put the number into the DDL, or make the setting in the connection
// string of each program that doesn't connect through PgBouncer: options=-csortkey.node=1023,
// or options=-csortkey.node%3D1023 in a URL. In a schema of another name, the setting
// begins with that name.
//
// The functions never return a duplicate, even if the clock steps back and many
// sessions call them, and the IDs of all sessions increase. An ID has the time of a
// window of 4 ms: it is less than 4 ms early, and less than 12 ms ahead of the clock.
// If calls exceed the rate of the format, or the clock was set back, a call waits for up
// to a second. If that isn't enough, the call fails; if the clock is more than a second
// behind, it fails at once. If the clock is set back during the wait, the wait gets longer by
// the size of the step, and so do Postgres's timeouts, which use the same clock. The
// SQLSTATE of an error has the reason:
//
//	53400 configuration_limit_exceeded      calls exceed the rate of the format
//	55000 object_not_in_prerequisite_state  the clock is behind, or sortkey.node is missing or unreserved
//	55P03 lock_not_available                another session holds the lock of the generator
//	54000 program_limit_exceeded            the clock is past the end of the format
//	22003 numeric_value_out_of_range        the node number in the DDL is out of range
//	22023 invalid_parameter_value           sortkey.node is out of range
//
// An installation has one counter per format: all calls of next_spread64 share 64
// IDs per millisecond, even with different generators. Every 4 ms with an ID add at
// least one record to the write-ahead log.
//
// The functions refer to others by schema name, so don't rename the schemas. Like
// nextval, they hold a lock on the sequence until the end of the transaction. Read
// generated IDs with RETURNING: lastval() returns the value of the sequence, which is
// not the ID.
//
// If IDs were generated while the server's clock was far in the future, the
// functions fail until that time. To recover, switch to a node number
// with which no ID was generated. Only then reset the sequence:
//
//	SELECT setval('sortkey_internal.snowflake_clock', 1);
//
// A sequence that is set back with the same node number repeats at most IDs of the
// last 4 ms and of the next 12 ms: older windows are over, so the next call begins
// a new one. Only a call that runs meanwhile can also repeat one older ID. The functions
// call nextval with the privileges of their caller, so every role may call it. Values that
// a role takes fill windows, which delays calls only while the role goes on.
//
// # Existing rows
//
// T_at returns the ID of a past time with a sequence number and a node number.
// Reserve a separate node number for it, since it doesn't know which IDs were
// generated at that time:
//
//	SELECT sortkey.reserve_node('snowflake', 1022, 'orders before 2026');
//	SELECT sortkey.snowflake_at('2025-03-04 05:06:07.089Z', 0, 1022);
//
// Rows of the same millisecond, or of the same 4 ms for snos, need different sequence
// numbers, from 0. Without a node number, T_at uses the setting. sno_at has a metabyte after the node number. uid60_at
// and uuid7_at have random bits instead of a node number, and uuid7_at has no sequence number.
//
// # Dumps and copies
//
// A copy of a database that runs beside the original needs a node number of its own.
// Some copies lack the setting. Inserts with a default fail there, until you reserve
// and set a number that the original doesn't use. The error has the statements. Other
// copies have the setting, and can replace the original. If such a copy runs beside
// the original, set another number before the first insert:
//
//	without the setting                    with the setting
//	pg_dump, pg_restore                    pg_dump --create, pg_restore --create
//	CREATE DATABASE ... TEMPLATE           pg_dumpall, pg_upgrade
//	a subscriber of logical replication    a standby, a base backup
//
// Defaults with a number in the DDL use that number in each copy.
//
// If you dump by schema, dump both, with --schema=sortkey --schema=sortkey_internal.
// The second has the sequences, which contain the time of the last ID.
//
// # Leases of node numbers
//
// Programs lease node numbers of a pool with package pglease, which calls
// claim_node, renew_node and release_node. To exclude a number from the pool, for
// example that of the defaults, reserve it:
//
//	SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop');
//
// See the documentation of pglease for more, and for the view node_status, which
// shows the holders.
//
// The view node_defaults lists the column defaults, domain defaults and SQL
// functions (with RETURN or BEGIN ATOMIC) that generate IDs with a node number.
// This query finds the ones without a reserved number:
//
//	SELECT kind, name, from_setting, pool, number FROM sortkey.node_defaults WHERE reserved IS NULL;
//
// The column from_setting is true if the number is the one of the setting, as this
// session has it. The column number is NULL if the setting is no node number, or if
// the call passes no literal. The column reserved has the note of the reservation,
// or NULL if the number isn't reserved. Postgres doesn't track calls in triggers, in
// PL/pgSQL functions and in function bodies that are strings, so the view doesn't
// list these. [CheckDefaults] returns [ErrNoNode] if a default needs a setting that is
// missing or out of range, and [ErrUnreservedNode] for a number that isn't reserved.
//
// # Privileges
//
// By default, only the owner of the installation can call the next_ functions and
// the functions for leases, since their callers can cause duplicate IDs. To let the
// role app insert with a default:
//
//	GRANT EXECUTE ON FUNCTION sortkey.next_snowflake() TO app;
//
// Such a role has no access to the sequences and to other next_ functions, but can
// use any node number, since any role can change the setting in its session. To
// prevent that, create a SECURITY DEFINER function that calls next_snowflake with a
// number, and grant EXECUTE on that function instead.
//
// All other functions run with the privileges of the caller, and any role with
// USAGE on the schema can call them. Roles that maintain partitions also need USAGE
// on sortkey_internal. With it, a role can generate any ID, so grant it to no other.
//
// Any role that can connect can take the advisory lock of a generator, and block
// the generator for as long as it likes. It cannot change the IDs.
//
// The role that runs the migrations needs CREATE on the database, or USAGE and
// CREATE on both schemas if they exist. Roles that it doesn't trust must not own them or
// an object in them; see [ErrUntrusted]. The migrations revoke privileges on the
// second schema and on protected objects that ALTER DEFAULT PRIVILEGES has granted.
package migrations
