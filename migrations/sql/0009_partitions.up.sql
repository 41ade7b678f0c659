{{define "partitions" -}}
{{$s := .Schema}}{{$i := .Internal -}}
-- Partitions by time, for tables that are PARTITION BY RANGE of a key that sorts by time.
--
-- manage_partitions() records the settings of a table. maintain_partitions(), called regularly, does the work: it
-- creates the current partition and some partitions ahead, creates a default partition if the settings ask for one,
-- moves rows from the default partition to new partitions, and detaches or drops partitions older than the retention.
-- plan_partitions() shows the steps as SQL, and the table partition_log records the completed steps. Every function
-- runs with the privileges of its caller, who needs USAGE on both schemas.

-- A table has its OID in the database that wrote the row, so that settings follow a renamed table and end with a dropped
-- one. In a restored database, which has other OIDs, its name identifies the table until maintenance writes the new OID.
-- A dump of a regclass would have a number in place of a dropped table, and could not be restored without all tables.
CREATE TABLE {{$s}}.partition_settings (
    database text NOT NULL,
    id oid NOT NULL,
    schema name NOT NULL,
    name name NOT NULL,
    format text NOT NULL CHECK (format IN ('snowflake', 'snowflake_si', 'uid60', 'sno', 'uuid7')),
    -- Limits that keep the functions that read the settings from failing. manage_partitions has more.
    every interval NOT NULL CHECK (every BETWEEN interval '1 minute' AND interval '36525 days'),
    premake integer NOT NULL CHECK (premake BETWEEN 1 AND 1000),
    retention interval CHECK (retention > interval '0' AND retention <= interval '1000 years'), -- NULL: permanent
    retention_action text NOT NULL CHECK (retention_action IN ('detach', 'drop')),
    default_partition boolean NOT NULL,
    PRIMARY KEY (database, id)
);
COMMENT ON TABLE {{$s}}.partition_settings IS 'The partition settings of tables, written by manage_partitions, unmanage_partitions and maintain_partitions. The view partitioned_table has the settings of existing tables.';

-- Returns the OID of the table of a row of partition_settings, or NULL if there is none. Its arguments are the columns, because
-- Citus doesn't copy functions of row types to workers.
CREATE FUNCTION {{$i}}.table_of(database text, id oid, schema name, name name) RETURNS oid
    LANGUAGE sql STABLE
    RETURN CASE WHEN database = {{$i}}.database_identity() THEN (SELECT c.oid FROM pg_class c WHERE c.oid = id)
        ELSE (SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = schema AND c.relname = name) END;

CREATE VIEW {{$s}}.partitioned_table AS
    -- As table_of, which would read the identity once per row.
    WITH here AS MATERIALIZED (SELECT {{$i}}.database_identity() AS database)
    SELECT c.oid::regclass AS parent, s.format, s.every, s.premake, s.retention, s.retention_action, s.default_partition
    FROM here h JOIN {{$s}}.partition_settings s ON s.database = h.database JOIN pg_class c ON c.oid = s.id
    UNION ALL
    SELECT c.oid::regclass, s.format, s.every, s.premake, s.retention, s.retention_action, s.default_partition
    FROM here h JOIN {{$s}}.partition_settings s ON s.database <> h.database
        JOIN pg_namespace n ON n.nspname = s.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = s.name;
COMMENT ON VIEW {{$s}}.partitioned_table IS 'The tables with managed partitions, and their settings.';

-- A random key, so that rows don't collide with local rows of a logical replica of this table.
CREATE TABLE {{$s}}.partition_log (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    begun_at timestamptz NOT NULL CHECK (isfinite(begun_at)),
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (isfinite(ended_at)),
    role name NOT NULL DEFAULT current_user,
    parent_table text NOT NULL,
    action text NOT NULL,
    partition text,
    lower timestamptz,
    upper timestamptz,
    attempts integer NOT NULL,
    outcome text NOT NULL,
    problem text
);
CREATE INDEX ON {{$s}}.partition_log (ended_at);
COMMENT ON TABLE {{$s}}.partition_log IS 'The steps of maintain_partitions in the last 90 days. Each run for a table ends with the action maintain.';
COMMENT ON COLUMN {{$s}}.partition_log.attempts IS 'The number of attempts: more than one if another transaction held a lock.';
COMMENT ON COLUMN {{$s}}.partition_log.outcome IS 'done, skipped (because of a lock) or failed. The column problem has the reason.';

{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c
            WHERE c.oid IN ('{{$s}}.partition_settings'::regclass, '{{$s}}.partitioned_table'::regclass, '{{$s}}.partition_log'::regclass)
{{- template "protected"}}
GRANT SELECT ON {{$s}}.partition_settings, {{$s}}.partitioned_table TO PUBLIC; -- not INSERT, since maintain_partitions() changes the tables that are listed here

-- Raises an error unless the session trusts the owners of a table, of its partitions, and of the tables that a foreign key
-- connects with one of them. Maintenance opens all of these, and the server runs code of their owners when it does.
CREATE FUNCTION {{$i}}.require_trusted(parent regclass) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    found record;
BEGIN
    FOR found IN
{{untrusted "parent"}}
    LOOP
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %I must not open %s: %s %s', session_user, parent, found.object, found.reason),
            HINT = '{{.TrustRule}}. Connect as the owner of the tables and their schemas, or remove the partition or the foreign key.';
    END LOOP;
END
$$;

-- Raises an error unless the current role has the privileges of the table's owner, and trusts the owners of all relations
-- that maintenance opens.
CREATE FUNCTION {{$i}}.require_owner(parent regclass) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    owner oid;
BEGIN
    SELECT c.relowner INTO owner FROM pg_class c WHERE c.oid = parent;
    IF NOT pg_has_role(owner, 'USAGE') THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %I does not own %s; the owner is %I', current_user, parent, pg_get_userbyid(owner)),
            HINT = format('Use role %I, or a member of %1$I.', pg_get_userbyid(owner));
    END IF;
    PERFORM {{$i}}.require_trusted(parent);
END
$$;

-- Keeps a role with write access to partition_settings from managing tables of others. It can delete the settings of missing
-- tables. Only the owner of the settings, who restores dumps, can write settings that another database made.
CREATE FUNCTION {{$i}}.check_managed_owner() RETURNS trigger
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    refused record;
BEGIN
    SELECT c.oid::regclass AS parent, pg_get_userbyid(c.relowner) AS owner INTO refused FROM pg_class c
        WHERE (TG_OP <> 'INSERT' AND c.oid = {{$i}}.table_of(OLD.database, OLD.id, OLD.schema, OLD.name) OR TG_OP <> 'DELETE' AND c.oid = {{$i}}.table_of(NEW.database, NEW.id, NEW.schema, NEW.name)) AND NOT pg_has_role(c.relowner, 'USAGE');
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('role %I does not own %s; the owner is %I', current_user, refused.parent, refused.owner),
            HINT = format('Use role %I, or a member of %1$I.', refused.owner);
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE NEW.database = {{$i}}.database_identity() AND c.oid = NEW.id AND n.nspname = NEW.schema AND c.relname = NEW.name)
        AND NOT pg_has_role((SELECT c.relowner FROM pg_class c WHERE c.oid = TG_RELID), 'USAGE') THEN
        RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege',
            MESSAGE = format('table %I.%I with OID %s is not a table of this database', NEW.schema, NEW.name, NEW.id),
            HINT = 'Call {{$s}}.manage_partitions, which writes the settings of an existing table.';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER check_owner BEFORE INSERT OR UPDATE OR DELETE ON {{$s}}.partition_settings
    FOR EACH ROW EXECUTE FUNCTION {{$i}}.check_managed_owner();

-- The arguments are
--
--     parent            a table that is PARTITION BY RANGE of one column: a bigint, a uuid or a domain over them
--     every             the interval of a partition: months, or days, hours and minutes
--     format            the format of the IDs: snowflake, snowflake_si, uid60, sno or uuid7; NULL if the column's domain has it
--     premake           the number of partitions to create ahead of the current one
--     retention         how long to keep a partition after its end; NULL: permanently
--     retention_action  detach or drop
--     default_partition whether a default partition takes rows outside all others; without one, such a row is an error
--
-- The caller must own the table, since maintenance can drop rows.
--
-- Partitions begin in UTC. Intervals of months count from 2000-01-01, so that they align with months, quarters and
-- years. Other intervals count from Monday, 2000-01-03, so that they align with weeks, days and hours.
CREATE FUNCTION {{$s}}.manage_partitions(
    parent regclass, every interval, format text DEFAULT NULL,
    premake integer DEFAULT 4, retention interval DEFAULT NULL, retention_action text DEFAULT 'detach',
    default_partition boolean DEFAULT true
) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    wanted text := format; -- NULL: the format of the domain
    domain_format text;
    rel pg_class;
    type pg_type;
    strategy text;
    columns integer;
    key text;
    key_type oid;
    months integer := extract(year FROM every) * 12 + extract(month FROM every);
    seconds numeric := extract(epoch FROM every - make_interval(months => months));
BEGIN
    SELECT c.* INTO rel FROM pg_class c WHERE c.oid = parent;
    IF rel.oid IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_table',
            MESSAGE = format('table %s does not exist', coalesce(parent::text, 'NULL')),
            HINT = 'Pass the name of an existing partitioned table.';
    END IF;
    PERFORM {{$i}}.require_owner(parent);
    SELECT p.partstrat, p.partnatts, a.attname, a.atttypid INTO strategy, columns, key, key_type
        FROM pg_partitioned_table p LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        WHERE p.partrelid = parent;
    IF strategy IS DISTINCT FROM 'r' OR columns <> 1 OR key IS NULL OR rel.relpersistence = 't' THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('cannot manage partitions of %s: it is %s', parent, CASE
                WHEN strategy IS NULL THEN 'not partitioned'
                WHEN rel.relpersistence = 't' THEN 'temporary'
                ELSE 'PARTITION BY ' || pg_get_partkeydef(parent) END),
            DETAIL = 'The table must be PARTITION BY RANGE of one column, and not temporary.',
            HINT = 'A table is partitioned when it is created. To partition an existing table, create a partitioned table and attach the existing one to it.';
    END IF;

    -- Resolve domains over domains to the base type.
    SELECT t.* INTO type FROM pg_type t WHERE t.oid = key_type;
    WHILE type.typtype = 'd' LOOP
        IF type.typnamespace = '{{$s}}'::regnamespace AND type.typname IN ('snowflake', 'snowflake_si', 'uid60', 'spread64', 'sno', 'uuid7') THEN
            domain_format := type.typname;
        END IF;
        SELECT t.* INTO type FROM pg_type t WHERE t.oid = type.typbasetype;
    END LOOP;
    IF wanted IS NOT NULL AND wanted <> domain_format THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('format %L does not match %s.%I, whose domain is %s', wanted, parent, key, domain_format),
            DETAIL = 'The times of the partitions would be wrong.',
            HINT = 'Omit format. The domain determines it.';
    END IF;
    wanted := coalesce(wanted, domain_format);
    IF wanted = 'spread64' THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('cannot manage partitions by %s.%I: Spread64 IDs do not order by time', parent, key),
            HINT = 'Partition by another column or by HASH, or use another format.';
    ELSIF wanted IS NULL OR wanted NOT IN ('snowflake', 'snowflake_si', 'uid60', 'sno', 'uuid7') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('format %s is not valid for %s.%I of type %s',
                coalesce(quote_literal(wanted), 'NULL'), parent, key, format_type(key_type, NULL)),
            HINT = 'Pass format snowflake, snowflake_si or uid60 for a bigint column, or sno or uuid7 for a uuid column.';
    ELSIF to_regprocedure(format('{{$s}}.%I(timestamptz)', wanted || '_floor')) IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_function',
            MESSAGE = format('format %s has no functions in schema {{$s}}', wanted),
            HINT = 'Set Config.SnowflakeSI, which has the base clock of the format, and run Up or AddSnowflakeSI.';
    ELSIF type.oid <> (CASE WHEN wanted IN ('sno', 'uuid7') THEN 'uuid'::regtype ELSE 'bigint'::regtype END) THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('format %s needs a column of type %s, but %s.%I is of type %s',
                wanted, CASE WHEN wanted IN ('sno', 'uuid7') THEN 'uuid' ELSE 'bigint' END, parent, key, format_type(key_type, NULL)),
            HINT = 'Pass the format of the IDs in this column.';
    END IF;

    IF (months >= 0 AND seconds >= 0 AND (months > 0) <> (seconds > 0)
        AND seconds % 60 = 0 AND months <= 1200 AND seconds <= 3155760000) IS NOT TRUE THEN -- NULL if it is infinite
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('partition interval %s is not valid; want whole months, or whole days, hours and minutes', coalesce(quote_literal(every), 'NULL')),
            HINT = 'Use an interval from 1 minute to 100 years, such as ''1 month'', ''7 days'' or ''6 hours''. Do not mix months with days, hours or minutes.';
    END IF;
    IF premake IS NULL OR premake NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('premake %s is out of range (1 to 1000)', coalesce(premake::text, 'NULL')),
            HINT = 'Use 1 to 1000: enough to last until somebody notices that maintenance has stopped.';
    END IF;
    -- Check the fields separately: an interval such as '1 month -29 days' is negative in February.
    IF retention <= interval '0' OR extract(year FROM retention) * 12 + extract(month FROM retention) < 0
        OR extract(day FROM retention) < 0 OR extract(epoch FROM retention) <= 0 OR retention > interval '1000 years' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('retention %L is not valid; want a positive interval of up to 1000 years, or NULL', retention),
            HINT = 'Use an interval without negative fields, or NULL to keep partitions permanently.';
    END IF;
    IF retention_action IS NULL OR retention_action NOT IN ('detach', 'drop') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('retention_action %s is not valid; want detach or drop', coalesce(quote_literal(retention_action), 'NULL')),
            HINT = 'Use detach to keep old partitions as separate tables, or drop to delete them.';
    END IF;
    IF default_partition IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = 'default_partition must not be NULL',
            HINT = 'Use true to keep rows outside all partitions, or false to reject them.';
    END IF;

    PERFORM {{$i}}.managed_tables(NULL, true);
    -- The settings of a dropped table of this name, or of this table in the database that a dump was made of.
    DELETE FROM {{$s}}.partition_settings s
        WHERE coalesce({{$i}}.table_of(s.database, s.id, s.schema, s.name), parent) = parent AND s.schema = (SELECT n.nspname FROM pg_namespace n WHERE n.oid = rel.relnamespace) AND s.name = rel.relname
            AND (s.database, s.id) <> ({{$i}}.database_identity(), rel.oid);
    INSERT INTO {{$s}}.partition_settings (database, id, schema, name, format, every, premake, retention, retention_action, default_partition)
        SELECT {{$i}}.database_identity(), rel.oid, n.nspname, rel.relname, wanted, every, premake, retention, retention_action, default_partition
            FROM pg_namespace n WHERE n.oid = rel.relnamespace
        ON CONFLICT ON CONSTRAINT partition_settings_pkey DO UPDATE SET schema = excluded.schema, name = excluded.name, format = excluded.format,
            every = excluded.every, premake = excluded.premake, retention = excluded.retention,
            retention_action = excluded.retention_action, default_partition = excluded.default_partition;
END
$$;
COMMENT ON FUNCTION {{$s}}.manage_partitions(regclass, interval, text, integer, interval, text, boolean) IS
    'Records or replaces the partition settings of a table, which maintain_partitions applies. The caller must own the table or be a member of its owner.';

CREATE FUNCTION {{$s}}.unmanage_partitions(parent regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM {{$i}}.managed_tables(unmanage_partitions.parent, true);
    PERFORM {{$i}}.require_owner(unmanage_partitions.parent);
    DELETE FROM {{$s}}.partition_settings s WHERE {{$i}}.table_of(s.database, s.id, s.schema, s.name) = unmanage_partitions.parent;
END
$$;
COMMENT ON FUNCTION {{$s}}.unmanage_partitions(regclass) IS
    'Ends the maintenance of a table; its partitions stay. The caller must own the table or be a member of its owner.';

-- Returns all managed tables, or parent, which must be managed. If clean is true, it also deletes the settings of dropped
-- tables and log rows older than 90 days, and writes the current names and OIDs of the role's tables, if the role has the
-- privileges and no lock prevents it.
CREATE FUNCTION {{$i}}.managed_tables(parent regclass, clean boolean) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '2s'
AS $$
DECLARE
    here CONSTANT text := {{$i}}.database_identity();
BEGIN
    BEGIN
        IF clean AND has_table_privilege('{{$s}}.partition_settings', 'DELETE') AND has_table_privilege('{{$s}}.partition_settings', 'UPDATE') THEN
            DELETE FROM {{$s}}.partition_settings s WHERE s.database = here AND NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = s.id);
            UPDATE {{$s}}.partition_settings s SET database = here, id = c.oid
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE s.database <> here AND n.nspname = s.schema AND c.relname = s.name AND pg_has_role(c.relowner, 'USAGE');
            UPDATE {{$s}}.partition_settings s SET schema = n.nspname, name = c.relname
                FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE s.database = here AND c.oid = s.id AND pg_has_role(c.relowner, 'USAGE') AND (s.schema, s.name) <> (n.nspname, c.relname);
        END IF;
        IF clean AND has_table_privilege('{{$s}}.partition_log', 'DELETE') AND has_table_privilege('{{$s}}.partition_log', 'SELECT') THEN
            DELETE FROM {{$s}}.partition_log l WHERE l.ended_at < now() - interval '90 days';
        END IF;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'cannot delete old rows of partition_log and partition_settings: %', SQLERRM;
    END;
    RETURN QUERY SELECT t.parent FROM {{$s}}.partitioned_table t JOIN pg_class c ON c.oid = t.parent
        WHERE managed_tables.parent IS NULL OR t.parent = managed_tables.parent
        ORDER BY t.parent::text;
    IF NOT FOUND AND managed_tables.parent IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('partitions of %s are not managed', managed_tables.parent),
            HINT = 'Call {{$s}}.manage_partitions for the table first.';
    END IF;
END
$$;

-- Returns the time range of the partition that contains t.
CREATE FUNCTION {{$i}}.partition_window(every interval, t timestamptz) RETURNS tstzrange
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    utc CONSTANT timestamp := t AT TIME ZONE 'UTC';
    months CONSTANT integer := extract(year FROM every) * 12 + extract(month FROM every);
    seconds CONSTANT numeric := extract(epoch FROM every);
    monday CONSTANT numeric := extract(epoch FROM timestamptz '2000-01-03 00:00:00+00');
    start numeric;
BEGIN
    IF months > 0 THEN
        start := floor(((extract(year FROM utc) - 2000) * 12 + extract(month FROM utc) - 1) / months) * months;
        RETURN tstzrange(
            (timestamp '2000-01-01' + make_interval(months => start::integer)) AT TIME ZONE 'UTC',
            (timestamp '2000-01-01' + make_interval(months => start::integer + months)) AT TIME ZONE 'UTC');
    END IF;
    start := floor((extract(epoch FROM t) - monday) / seconds) * seconds + monday;
    RETURN tstzrange(to_timestamp(start::float8), to_timestamp((start + seconds)::float8)); -- whole seconds, so exact
END
$$;

-- Returns the name of a partition, with its schema. It truncates a long table name and adds a hash of the full name, to
-- keep it unique.
CREATE FUNCTION {{$i}}.partition_name(parent regclass, suffix text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    longest CONSTANT integer := current_setting('max_identifier_length');
    schema text;
    base text;
    hash text := '';
BEGIN
    SELECT n.nspname, c.relname INTO schema, base FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = parent;
    IF octet_length(base || suffix) > longest THEN
        hash := '_' || left(md5(base), 8);
    END IF;
    WHILE octet_length(base || hash || suffix) > longest LOOP
        base := left(base, -1);
    END LOOP;
    RETURN format('%I.%I', schema, base || hash || suffix);
END
$$;

-- Converts a time to the bound of a partition. The lowest bound is the first ID after zero, since domains reject zero.
CREATE FUNCTION {{$i}}.partition_bound(format text, t timestamptz) RETURNS text
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bound text;
BEGIN
    IF t = 'infinity' THEN
        RETURN 'MAXVALUE';
    END IF;
    EXECUTE format('SELECT quote_literal(greatest({{$s}}.%I($1), %L)::text)', format || '_floor',
        CASE format WHEN 'sno' THEN '32323232-3232-3232-3232-323232323233' WHEN 'uuid7' THEN '00000000-0000-0000-0000-000000000001' ELSE '1' END) INTO bound USING t;
    RETURN bound;
END
$$;

-- Returns the time ranges of a table's partitions, except the default partition. If an upper bound isn't the first ID
-- of its time unit, the range ends with the next unit, so that adjacent partitions have no gap between them.
CREATE FUNCTION {{$i}}.partition_times(parent regclass, format text)
    RETURNS TABLE (partition regclass, times tstzrange)
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bounds text;
BEGIN
    FOR partition, bounds, times IN EXECUTE format($q$
        SELECT c.oid, e.bounds, CASE WHEN f.t IS NOT NULL AND u.t IS NOT NULL THEN tstzrange(f.t, u.t) END
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) e (bounds)
        -- The text of numbers and uuids doesn't depend on settings.
        CROSS JOIN LATERAL regexp_match(e.bounds,
            '^FOR VALUES FROM [(]''?([-0-9a-fA-F]+|MINVALUE)''?[)] TO [(]''?([-0-9a-fA-F]+|MAXVALUE)''?[)]$') p (bound)
        CROSS JOIN LATERAL (SELECT CASE
            WHEN p.bound[1] = 'MINVALUE' THEN '-infinity'
            WHEN p.bound[1]::%1$s < {{$s}}.%2$I('-infinity') THEN '-infinity'
            WHEN p.bound[1]::%1$s > {{$s}}.%2$I('infinity') THEN 'infinity'
            ELSE {{$s}}.%3$I(p.bound[1]::%1$s) END) f (t)
        CROSS JOIN LATERAL (SELECT CASE
            WHEN p.bound[2] = 'MAXVALUE' THEN 'infinity'
            WHEN p.bound[2]::%1$s < {{$s}}.%2$I('-infinity') THEN '-infinity'
            WHEN p.bound[2]::%1$s > {{$s}}.%2$I('infinity') THEN 'infinity'
            WHEN p.bound[2]::%1$s > {{$s}}.%2$I({{$s}}.%3$I(p.bound[2]::%1$s)) THEN {{$s}}.%3$I(p.bound[2]::%1$s) + %4$L::interval
            ELSE {{$s}}.%3$I(p.bound[2]::%1$s) END) u (t)
        WHERE i.inhparent = $1 AND e.bounds <> 'DEFAULT'$q$,
        CASE WHEN format IN ('sno', 'uuid7') THEN 'uuid' ELSE 'bigint' END, format || '_floor', format || '_time',
        CASE format WHEN 'sno' THEN '4 milliseconds' ELSE '1 millisecond' END) USING parent
    LOOP
        IF times IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('bounds of partition %s of %s are not IDs of format %s: %s', partition, parent, format, bounds),
                HINT = format('Detach that partition, or attach it with bounds from %s_floor.', format);
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;

-- Shows the times up to which managed tables have partitions without a gap from now, or NULL if no partition contains the
-- present. A partition whose bounds aren't IDs is an error, so read one table per query. A reader of the view needs no
-- privilege on schema {{$i}}.
CREATE VIEW {{$s}}.partition_horizon AS
    SELECT t.parent, t.format, (
        SELECT max(upper(r.times)) FROM unnest((SELECT range_agg(p.times) FROM {{$i}}.partition_times(t.parent, t.format) p)) r (times)
        WHERE lower(r.times) <= clock_timestamp()
    ) AS horizon
    FROM {{$s}}.partitioned_table t;
COMMENT ON VIEW {{$s}}.partition_horizon IS 'The times up to which managed tables have partitions without a gap from now. Read one table per query, since a partition whose bounds are not IDs is an error.';
{{template "protect these" .}}
            SELECT 'TABLE', c.oid::regclass::text, c.relacl, c.relowner FROM pg_class c WHERE c.oid = '{{$s}}.partition_horizon'::regclass
{{- template "protected"}}
GRANT SELECT ON {{$s}}.partition_horizon TO PUBLIC; -- the bounds of partitions are in the catalog, too

-- Returns the steps that parent, or each managed table, needs at the time at. plan_partitions() describes them.
CREATE FUNCTION {{$i}}.partition_steps(parent regclass, at timestamptz)
    RETURNS TABLE (parent_table regclass, action text, partition text, lower timestamptz, upper timestamptz)
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET row_security = off -- raise an error instead of hiding rows
AS $$
#variable_conflict use_variable
DECLARE
    m record;
    default_partition regclass;
    taken tstzmultirange;      -- ranges of existing partitions
    next_window tstzrange;
    gaps tstzrange[];          -- windows without a partition
    drained tstzrange[];       -- windows without a partition and with rows in the default partition
    gap tstzrange;
    first timestamptz;         -- the first time of the format
    last timestamptz;          -- its last time
    horizon timestamptz;       -- the end of the last partition ahead
    cutoff timestamptz;        -- partitions that end by this time are removed
    position timestamptz;
    t timestamptz;
BEGIN
    FOR m IN
        SELECT x.*, k.attname AS key, nullif(p.partdefid, 0) AS default_id
            FROM {{$s}}.partitioned_table x
            JOIN pg_partitioned_table p ON p.partrelid = x.parent
            JOIN pg_attribute k ON k.attrelid = x.parent AND k.attnum = p.partattrs[0]
            WHERE parent IS NULL OR x.parent = parent
            ORDER BY x.parent::text
    LOOP
        BEGIN
            PERFORM {{$i}}.require_trusted(m.parent);
        EXCEPTION WHEN insufficient_privilege THEN
            IF parent IS NOT NULL THEN
                RAISE;
            END IF;
            RAISE WARNING 'skipped %: %', m.parent, SQLERRM;
            CONTINUE;
        END;
        parent_table := m.parent;
        default_partition := m.default_id;
        EXECUTE format('SELECT {{$s}}.%1$I({{$s}}.%2$I(''-infinity'')), {{$s}}.%1$I({{$s}}.%2$I(''infinity''))', m.format || '_time', m.format || '_floor')
            INTO first, last;
        IF at IS NULL OR at < first OR at > last THEN
            RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
                MESSAGE = format('time %s is out of range for format %s (%s to %s)',
                    coalesce(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'NULL'), m.format,
                    to_char(first AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), to_char(last AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
                HINT = 'Check the server''s clock, or the argument at.';
        END IF;
        SELECT coalesce(range_agg(p.times), '{}') INTO taken FROM {{$i}}.partition_times(m.parent, m.format) p;

        cutoff := (at AT TIME ZONE 'UTC' - m.retention) AT TIME ZONE 'UTC';
        gaps := '{}';
        next_window := {{$i}}.partition_window(m.every, at);
        FOR i IN 0..m.premake LOOP
            horizon := upper(next_window);
            -- The first and the last partition end with the format.
            gap := tstzrange(greatest(lower(next_window), first), CASE WHEN horizon > last THEN 'infinity' ELSE horizon END);
            IF NOT taken @> gap THEN
                gaps := gaps || ARRAY(SELECT unnest(tstzmultirange(gap) - taken));
            END IF;
            EXIT WHEN horizon > last;
            next_window := {{$i}}.partition_window(m.every, horizon);
        END LOOP;

        -- Use the index to find the first row in the default partition, then the first row after its window, and so on.
        drained := '{}';
        position := CASE WHEN cutoff > first THEN greatest(lower({{$i}}.partition_window(m.every, cutoff)), first) ELSE '-infinity' END;
        WHILE default_partition IS NOT NULL AND position <= last LOOP
            t := NULL;
            EXECUTE format('SELECT {{$s}}.%1$I(d.%2$I) FROM %3$s d'
                    ' WHERE d.%2$I >= {{$s}}.%4$I($1) AND {{$s}}.%1$I(d.%2$I) IS NOT NULL ORDER BY d.%2$I LIMIT 1',
                m.format || '_time', m.key, default_partition, m.format || '_floor')
                INTO t USING position;
            EXIT WHEN t IS NULL OR t >= horizon;
            next_window := {{$i}}.partition_window(m.every, t);
            gap := NULL;
            SELECT g INTO gap FROM unnest(tstzmultirange(tstzrange(
                greatest(lower(next_window), first), CASE WHEN upper(next_window) > last THEN 'infinity' ELSE upper(next_window) END)) - taken) g
                WHERE g @> t;
            IF gap IS NOT NULL THEN
                drained := drained || gap;
            ELSE
                -- The row is in the time unit in which a manually created partition begins or ends.
                SELECT g INTO gap FROM unnest(taken) g WHERE g @> t;
            END IF;
            position := upper(gap);
        END LOOP;

        FOR gap IN SELECT g FROM unnest(gaps || drained) g
            WHERE (upper(g) <= cutoff) IS NOT TRUE -- retention would remove such a partition at once
            GROUP BY g ORDER BY g = ANY (drained), g
        LOOP
            action := CASE WHEN gap = ANY (drained) THEN 'drain' ELSE 'create' END;
            lower := lower(gap);
            upper := upper(gap);
            partition := {{$i}}.partition_name(m.parent, to_char(lower AT TIME ZONE 'UTC', '"_p"YYYYMMDD' || CASE
                WHEN extract(second FROM lower) % 1 <> 0 THEN '"t"HH24MISSMS'
                WHEN extract(second FROM lower) <> 0 THEN '"t"HH24MISS'
                WHEN m.every < '1 day' OR (lower AT TIME ZONE 'UTC')::time <> '00:00' THEN '"t"HH24MI'
                ELSE '' END));
            RETURN NEXT;
        END LOOP;

        IF m.default_partition AND default_partition IS NULL THEN
            action := 'default';
            partition := {{$i}}.partition_name(m.parent, '_default');
            lower := NULL;
            upper := NULL;
            RETURN NEXT;
        END IF;

        action := m.retention_action;
        FOR partition, lower, upper IN
            SELECT p.partition::text, lower(p.times), upper(p.times) FROM {{$i}}.partition_times(m.parent, m.format) p
            WHERE m.retention IS NOT NULL AND isfinite(lower(p.times)) AND upper(p.times) <= cutoff
            ORDER BY p.times
        LOOP
            RETURN NEXT;
        END LOOP;

        IF default_partition IS NOT NULL AND NOT m.default_partition THEN
            action := 'drop';
            partition := default_partition::text;
            lower := NULL;
            upper := NULL;
            RETURN NEXT;
        END IF;
    END LOOP;
END
$$;

-- The conditions on keys in the SQL of steps, which runs under the search_path of the caller. They use the operators of
-- pg_catalog. Queries inline the functions, and use the index of the key.
CREATE FUNCTION {{$i}}.is_at_least(key bigint, bound bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key >= bound;

CREATE FUNCTION {{$i}}.is_at_least(key uuid, bound uuid) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key >= bound;

CREATE FUNCTION {{$i}}.is_below(key bigint, bound bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key < bound;

CREATE FUNCTION {{$i}}.is_below(key uuid, bound uuid) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN key < bound;

-- Returns a statement that raises an error if a query returns a row.
CREATE FUNCTION {{$i}}.error_if(query text, code text, message text, hint text) RETURNS text
    LANGUAGE sql STABLE
    RETURN format('DO %L', format('BEGIN IF EXISTS (%s) THEN RAISE EXCEPTION USING ERRCODE = %L, MESSAGE = %L, HINT = %L; END IF; END',
        query, code, message, hint));

-- Returns the SQL of a step, one statement per element, since Citus rejects several statements in one EXECUTE. Citus
-- also rejects an empty SELECT list.
--
-- A step creates a partition as a table and then attaches it. This doesn't block reads and writes of the parent, except
-- of the default partition, which Postgres locks and reads. CREATE TABLE ... PARTITION OF would block all reads and
-- writes of the parent.
--
-- A step that moves rows or removes a partition has to block them. Otherwise a writer that has already chosen the
-- default partition for its row would get an error. Such a step waits only for the lock on the parent. It takes its
-- other locks with NOWAIT, so other sessions wait behind it for at most one lock_timeout, or two if a foreign key
-- references the table. Any session that uses a partition through the parent also holds a lock on the parent.
CREATE FUNCTION {{$i}}.partition_sql(
    parent regclass, action text, partition text, lower timestamptz, upper timestamptz, at timestamptz
) RETURNS text[]
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    statements text[] := '{}';
    m record;
    rel pg_class;
    first text;
    last text;
    bounds text;
    locks text; -- the tables to lock with NOWAIT
    columns text;
    moved text; -- a condition
    triggers record;
BEGIN
    SELECT c.* INTO rel FROM pg_class c WHERE c.oid = parent;
    SELECT x.format, k.attname AS key, d.oid::regclass AS default_id, d.relkind AS default_kind INTO m
        FROM {{$s}}.partitioned_table x
        JOIN pg_partitioned_table p ON p.partrelid = x.parent
        JOIN pg_attribute k ON k.attrelid = p.partrelid AND k.attnum = p.partattrs[0]
        LEFT JOIN pg_class d ON d.oid = p.partdefid
        WHERE x.parent = parent;

    IF action IN ('detach', 'drop') THEN
        -- LOCK TABLE rejects foreign tables, and tables on which the role lacks privileges.
        SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.oid = m.default_id) INTO locks FROM pg_class c
            WHERE c.oid IN (to_regclass(partition), m.default_id) AND c.relkind <> 'f' AND has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE');
        statements := ARRAY[format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent)];
        IF locks IS NOT NULL THEN
            statements := statements || format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', locks);
        END IF;
        IF to_regclass(partition) = m.default_id THEN
            statements := statements || '{SET LOCAL row_security = off}' -- raise an error instead of hiding rows
                || {{$i}}.error_if('SELECT 1 FROM ' || partition, 'object_not_in_prerequisite_state',
                    format('cannot drop default partition %s: it has rows', partition),
                    'Delete or move the rows, or call manage_partitions with default_partition => true.');
        END IF;
        -- DETACH CONCURRENTLY cannot run in a transaction. DROP alone would drop rows that foreign keys reference.
        statements := statements || format('ALTER TABLE %s DETACH PARTITION %s', parent, partition);
        IF action = 'drop' THEN
            statements := statements || format('DROP %s %s',
                (SELECT CASE c.relkind WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END FROM pg_class c WHERE c.oid = to_regclass(partition)), partition);
        END IF;
        RETURN statements;
    END IF;

    first := {{$i}}.partition_bound(m.format, lower);
    last := {{$i}}.partition_bound(m.format, upper);
    bounds := CASE action WHEN 'default' THEN 'DEFAULT' ELSE format('FOR VALUES FROM (%s) TO (%s)', first, last) END;
    IF to_regclass(partition) IS NOT NULL THEN
        RETURN ARRAY[{{$i}}.error_if('SELECT 1', 'duplicate_table',
            format('cannot create %s as a partition of %s %s: a relation with that name exists and is not a partition of the table', partition, parent, bounds),
            'Rename, drop or attach that relation. If retention detached it, rows that arrived for it since then are in the default partition.')];
    END IF;

    IF m.default_id IS NOT NULL AND (action = 'drain' OR lower <= at) THEN
        IF m.default_kind = 'p' THEN
            RETURN ARRAY[{{$i}}.error_if('SELECT 1', 'wrong_object_type',
                format('cannot move rows to %s: default partition %s is itself partitioned', partition, m.default_id),
                'Move the rows by hand, or replace the default partition with a plain table.')];
        END IF;
        moved := concat_ws(' AND ', format('{{$i}}.is_at_least(d.%I, %s)', m.key, first),
            CASE WHEN upper < 'infinity' THEN format('{{$i}}.is_below(d.%I, %s)', m.key, last) END);
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns FROM pg_attribute a
            WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';

        statements := '{SET LOCAL row_security = off}'; -- raise an error instead of hiding rows
        IF EXISTS (SELECT FROM pg_constraint c WHERE c.condeferrable AND parent IN (c.conrelid, c.confrelid)) THEN
            statements := statements || '{SET CONSTRAINTS ALL IMMEDIATE}';
        END IF;
        statements := statements || format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', parent)
            || format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', m.default_id)
            || ARRAY( -- The move deletes and inserts rows. The deletes must not cascade.
                SELECT {{$i}}.error_if(format('SELECT 1 FROM %s d JOIN %s r ON %s WHERE %s', m.default_id, c.conrelid::regclass,
                        string_agg(format('d.%I OPERATOR(%I.%s) r.%I', p.attname, n.nspname, o.oprname, f.attname), ' AND '), moved),
                    'foreign_key_violation', format('cannot move rows of %s to %s: %s references some of them by foreign key %I',
                        m.default_id, partition, c.conrelid::regclass, c.conname),
                    'Drop that foreign key, maintain the partitions, and add it again.')
                FROM pg_constraint c
                CROSS JOIN unnest(c.conkey, c.confkey, c.conpfeqop) AS k (f, p, op)
                JOIN pg_operator o ON o.oid = k.op
                JOIN pg_namespace n ON n.oid = o.oprnamespace
                JOIN pg_attribute f ON f.attrelid = c.conrelid AND f.attnum = k.f
                JOIN pg_attribute p ON p.attrelid = c.confrelid AND p.attnum = k.p
                WHERE c.contype = 'f' AND c.conparentid = 0
                    AND (c.confrelid = m.default_id OR c.confrelid IN (SELECT a FROM pg_partition_ancestors(parent) a)) -- includes the parent
                GROUP BY c.oid ORDER BY c.conname)
            || ARRAY( -- A subscriber gets both, or it would have two rows with one key.
                SELECT {{$i}}.error_if(format('SELECT 1 FROM %s d WHERE %s', m.default_id, moved), 'object_not_in_prerequisite_state',
                    format('cannot move rows of %s to %s: publication %I has their INSERT, and not their DELETE', m.default_id, partition, p.pubname),
                    'Add delete to the option publish of the publication.')
                FROM pg_publication p
                WHERE p.pubinsert AND NOT p.pubdelete AND EXISTS (
                    SELECT FROM pg_publication_tables t JOIN pg_namespace n ON n.nspname = t.schemaname JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
                    WHERE t.pubname = p.pubname AND (c.oid = m.default_id OR c.oid IN (SELECT a FROM pg_partition_ancestors(parent) a)))
                ORDER BY p.pubname);
    END IF;

    statements := statements || (format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)', partition, parent)
        || coalesce((SELECT format(' USING %I', a.amname) FROM pg_am a WHERE a.oid = rel.relam), '')
        || coalesce((SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace t WHERE t.oid = rel.reltablespace), ''));
    IF pg_get_userbyid(rel.relowner) <> current_user THEN
        statements := statements || format('ALTER TABLE %s OWNER TO %I', partition, pg_get_userbyid(rel.relowner));
    END IF;
    IF moved IS NULL THEN
        RETURN statements || format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, partition, bounds);
    END IF;

    -- A publication of the table includes the DELETE. To include the INSERT, attach the partition before it. Disable
    -- triggers, since the move adds and removes no rows.
    SELECT array_agg(t.disable) FILTER (WHERE t.event = 'DELETE') AS before_delete, array_agg(t.enable) FILTER (WHERE t.event = 'DELETE') AS after_delete,
            array_agg(t.disable) FILTER (WHERE t.event = 'INSERT') AS before_insert, array_agg(t.enable) FILTER (WHERE t.event = 'INSERT') AS after_insert
        INTO triggers
        FROM (
            SELECT o.event, format('ALTER TABLE %s DISABLE TRIGGER %I', o.target, t.tgname) AS disable,
                    format('ALTER TABLE %s %s TRIGGER %I', o.target, e.enable, t.tgname) AS enable
                FROM (VALUES ('DELETE', m.default_id, m.default_id::text, 8),
                    ('INSERT', parent, partition, 5)) o (event, source, target, bits) -- 5 = ROW + INSERT: a partition gets the row triggers of its table only
                JOIN pg_trigger t ON t.tgrelid = o.source AND NOT t.tgisinternal AND (t.tgtype & o.bits) = o.bits
                JOIN (VALUES ('O', 'ENABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) e (enabled, enable) ON e.enabled = t.tgenabled::text
                ORDER BY t.tgname) t;
    RETURN statements
        || triggers.before_delete
        || format('CREATE TEMPORARY TABLE sortkey_drained AS SELECT %s FROM %s d WHERE %s', columns, m.default_id, moved)
        || format('DELETE FROM %s d WHERE %s', m.default_id, moved)
        || triggers.after_delete
        || format('ALTER TABLE %s ATTACH PARTITION %s %s', parent, partition, bounds)
        || triggers.before_insert
        || format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM pg_temp.sortkey_drained', partition, columns, columns)
        || triggers.after_insert
        || '{DROP TABLE pg_temp.sortkey_drained}';
END
$$;

-- The actions are
--
--     create   creates a partition; if its time has begun, moves its rows out of the default partition
--     drain    creates a partition for rows in the default partition, and moves them. Rows after the last partition
--              ahead stay there until their time is near. Rows older than the retention stay permanently
--     default  creates the default partition
--     detach   detaches a partition that ended longer ago than the retention
--     drop     drops such a partition; or drops the default partition if default_partition is false, which fails
--              while it has rows. If a create or drain fails, the run doesn't drop the default partition
--
-- The steps fill the gaps between manually created partitions, and change these only by retention.
CREATE FUNCTION {{$s}}.plan_partitions(parent regclass DEFAULT NULL, at timestamptz DEFAULT clock_timestamp())
    RETURNS TABLE (
        parent_table regclass, action text, partition text, lower timestamptz, upper timestamptz, statements text[]
    )
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT s.*, {{$i}}.partition_sql(s.parent_table, s.action, s.partition, s.lower, s.upper, plan_partitions.at)
    FROM {{$i}}.partition_steps(plan_partitions.parent, plan_partitions.at) s
$$;
COMMENT ON FUNCTION {{$s}}.plan_partitions(regclass, timestamptz) IS
    'Returns the steps that maintain_partitions would take at a time, in order, for parent or for all managed tables. The statements of a row run in one transaction.';

-- A run is the maintenance of a table in one call of maintain_partitions(). Between its transactions the caller holds:
--
--     plan   the remaining steps, from partition_steps()
--     state  the state of the partitions at the time of the plan, to detect changes by other sessions
--     taken  the partitions of completed and failed steps, which this run doesn't plan again; also the default partition
--            after a step failed to create a partition
--
-- plan_partition_run locks the table and returns the run with a plan for its next step. If the run has no plan, or if
-- the state has changed, it makes a new plan.
--
-- It locks the table, the default partition and the partition to be removed. These locks make maintainers of a table
-- wait for one another, and prevent new foreign keys and triggers until the step is done. They don't block reads and
-- writes, so the timeout can be long. After deadlock_timeout, Postgres also cancels an autovacuum that holds such a
-- lock.
CREATE FUNCTION {{$i}}.plan_partition_run(parent regclass, at timestamptz, run jsonb) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '2s'
AS $$
#variable_conflict use_variable
DECLARE
    id oid;
    state text;
BEGIN
    IF run->'plan' = '[]' THEN
        RETURN run;
    END IF;
    SELECT c.oid INTO id FROM pg_class c WHERE c.oid = parent;
    IF FOUND THEN
        PERFORM {{$i}}.require_owner(parent); -- a lock, too, waits for other sessions
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', id::regclass);
    END IF;
    -- Look up the default partition after locking the table, since another session can create or drop it until then.
    SELECT c.oid INTO id FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partdefid WHERE p.partrelid = parent AND c.relkind <> 'f';
    IF FOUND THEN
        EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', id::regclass);
    END IF;
    state := {{$i}}.partition_state(parent);
    IF run->>'state' IS DISTINCT FROM state THEN
        run := jsonb_build_object('state', state, 'taken', coalesce(run->'taken', '[]'), 'plan', (
            SELECT coalesce(jsonb_agg(s ORDER BY s.number), '[]')
            FROM {{$i}}.partition_steps(parent, at) WITH ORDINALITY s (parent_table, action, partition, lower, upper, number)
            WHERE NOT coalesce(run->'taken', '[]') ? s.partition));
    END IF;
    IF run#>>'{plan,0,action}' IN ('detach', 'drop') THEN
        FOR id IN
            SELECT c.oid FROM pg_class c WHERE c.oid = to_regclass(run#>>'{plan,0,partition}') AND c.relkind <> 'f'
                AND has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE')
        LOOP
            EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', id::regclass);
        END LOOP;
        -- Until this had the lock, another session could give the name to another partition.
        IF {{$i}}.partition_state(parent) IS DISTINCT FROM state THEN
            RETURN {{$i}}.plan_partition_run(parent, at, run);
        END IF;
    END IF;
    RETURN run;
END
$$;

-- Returns a hash of the catalog rows of a table and its partitions, and of its settings.
CREATE FUNCTION {{$i}}.partition_state(parent regclass) RETURNS text
    LANGUAGE sql STABLE
    RETURN md5(concat_ws(' ', (SELECT t FROM {{$s}}.partitioned_table t WHERE t.parent = partition_state.parent),
        (SELECT string_agg(c.oid || ' ' || c.xmin, ' ' ORDER BY c.oid) FROM pg_class c
            WHERE c.oid = partition_state.parent OR c.oid IN (SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = partition_state.parent))));

-- Logs a step, if the role has the privilege, and returns the run without that step. The step still holds its locks, so
-- the lock timeout for the log is short, and an error of the log is only a warning.
CREATE FUNCTION {{$i}}.end_partition_step(
    parent regclass, run jsonb, begun_at timestamptz, attempts integer,
    action text, partition text, lower timestamptz, upper timestamptz, outcome text, problem text
) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '100ms'
AS $$
#variable_conflict use_variable
DECLARE
    plan jsonb := (run->'plan') - 0;
    taken jsonb := run->'taken' || to_jsonb(partition);
    state text := run->>'state';
    default_partition text;
BEGIN
    BEGIN
        IF outcome = 'done' THEN
            state := NULL;
            state := {{$i}}.partition_state(parent);
        END IF;
        IF EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = '{{$s}}.partition_log'::regclass AND NOT g.tgisinternal) THEN
            RAISE WARNING 'cannot write to partition_log: it has a trigger, which could run code of another role; drop it';
        ELSIF has_table_privilege('{{$s}}.partition_log', 'INSERT') THEN
            INSERT INTO {{$s}}.partition_log (begun_at, parent_table, action, partition, lower, upper, attempts, outcome, problem)
                VALUES (begun_at, parent::text, action, partition, lower, upper, attempts, outcome, problem);
        END IF;
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'cannot write to partition_log: %', SQLERRM;
    END;
    -- A lock timeout ends the run. The next step would wait for the same lock, and block other sessions behind it.
    IF partition IS NULL OR outcome = 'skipped' THEN
        RETURN '{"plan": []}';
    END IF;
    -- If a step fails to create a partition, the default partition still takes its rows. So this run doesn't drop it.
    IF outcome = 'failed' AND action IN ('create', 'drain') THEN
        SELECT p.partdefid::regclass::text INTO default_partition FROM pg_partitioned_table p WHERE p.partrelid = parent;
        plan := jsonb_path_query_array(plan, '$[*] ? (@.partition != $default)', jsonb_build_object('default', default_partition));
        taken := taken || to_jsonb(default_partition);
    END IF;
    RETURN jsonb_build_object('plan', plan, 'taken', taken, 'state', state);
END
$$;

-- Returns the seconds to pause after a lock timeout. The pause doubles with each attempt, up to 5 s, and is randomized
-- so that two callers don't collide repeatedly.
CREATE FUNCTION {{$i}}.partition_pause(attempt integer, lock_timeout interval) RETURNS double precision
    LANGUAGE sql VOLATILE
    RETURN least(5, extract(epoch FROM lock_timeout)::double precision * 2 ^ (attempt - 1)) * (0.5 + random() / 2);

-- Takes the next step of a run and returns the run without that step. It returns no row if no steps are left. A failed
-- attempt releases its locks before the pause. If the plan itself fails, the action is plan.
--
-- The statements of the step run under path, the search_path of the caller, since functions that the table uses can
-- depend on it.
CREATE FUNCTION {{$i}}.take_partition_step(
    parent regclass, at timestamptz, lock_timeout interval, path text, INOUT run jsonb,
    OUT action text, OUT partition text, OUT lower timestamptz, OUT upper timestamptz, OUT statements text[], OUT outcome text, OUT problem text
) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET lock_timeout = 0   -- the function sets it to the argument
    SET row_security = off -- raise an error instead of hiding rows
AS $$
#variable_conflict use_variable
DECLARE
    attempts CONSTANT integer := 6;
    attempt integer := 0;
    begun_at timestamptz := clock_timestamp(); -- the start of this step
    tried text;                                -- the partition of the last attempt
    before integer := 0;                       -- the number of attempts at other steps
    ms CONSTANT numeric := ceil(extract(epoch FROM lock_timeout) * 1000);
    statement text;
    message text;
    detail text;
    hint text;
BEGIN
    IF (ms BETWEEN 1 AND 86400000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('lock_timeout %s is out of range (1 millisecond to 1 day)', coalesce(quote_literal(lock_timeout), 'NULL')),
            HINT = 'Other sessions wait behind this lock request. Use a short timeout such as 100 milliseconds.';
    END IF;
    IF parent IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = 'parent must not be NULL', HINT = 'Pass one table per call, or call maintain_partitions.';
    END IF;
    LOOP
        attempt := attempt + 1;
        action := 'plan';
        partition := NULL;
        lower := NULL;
        upper := NULL;
        statements := NULL;
        outcome := 'done';
        problem := NULL;
        BEGIN
            run := {{$i}}.plan_partition_run(parent, at, run);
            SELECT s.* INTO action, partition, lower, upper
                FROM jsonb_to_record(run#>'{plan,0}') s (action text, partition text, lower timestamptz, upper timestamptz);
            -- A new plan can begin with another step.
            IF tried IS NOT NULL AND (partition = tried) IS NOT TRUE THEN
                begun_at := clock_timestamp();
                before := attempt - 1;
            END IF;
            tried := partition;
            IF action IS NOT NULL THEN
                PERFORM {{$i}}.require_owner(parent); -- again, since the locks now keep other roles from adding a foreign key
                statements := {{$i}}.partition_sql(parent, action, partition, lower, upper, at);
                PERFORM set_config('lock_timeout', ms::text, true);
                PERFORM set_config('search_path', path, true);
                FOREACH statement IN ARRAY statements LOOP
                    EXECUTE statement;
                END LOOP;
                PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
            END IF;
            EXIT;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN
                outcome := 'skipped';
                problem := SQLERRM;
                EXIT WHEN attempt = attempts;
                PERFORM pg_sleep({{$i}}.partition_pause(attempt, lock_timeout));
            WHEN OTHERS THEN
                outcome := 'failed';
                GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
                problem := concat_ws('; ', message, nullif(detail, ''), CASE WHEN SQLSTATE <> '2BP01' THEN nullif(hint, '') END); -- that one advises CASCADE
                -- After the plan, a row for the new partition went to the default partition. A new plan moves it.
                EXIT WHEN SQLSTATE <> '23514' OR action <> 'create' OR attempt = attempts;
                run := run - 'state';
        END;
    END LOOP;
    IF action IS NULL THEN
        PERFORM {{$i}}.end_partition_step(parent, run, begun_at, attempt - before, 'maintain', NULL, NULL, NULL, outcome, NULL);
        RETURN;
    END IF;
    run := {{$i}}.end_partition_step(parent, run, begun_at, attempt - before, action, partition, lower, upper, outcome, problem);
    RETURN NEXT;
END
$$;

-- The outcome is
--
--     done
--     skipped  because of a lock, after six attempts; this ends the run
--     failed   because of an error
--
-- A skipped or failed step is rolled back, and problem has the reason. A step holds its locks until the end of the
-- transaction.
CREATE FUNCTION {{$s}}.next_partition_step(
    parent regclass, at timestamptz DEFAULT clock_timestamp(), lock_timeout interval DEFAULT '100 milliseconds', INOUT run jsonb DEFAULT NULL,
    OUT action text, OUT partition text, OUT lower timestamptz, OUT upper timestamptz, OUT statements text[], OUT outcome text, OUT problem text
) RETURNS SETOF record
    LANGUAGE sql VOLATILE
AS $$
    SELECT s.* FROM {{$i}}.take_partition_step(parent, at, lock_timeout, pg_catalog.current_setting('search_path'), run) s
$$;
COMMENT ON FUNCTION {{$s}}.next_partition_step(regclass, timestamptz, interval, jsonb) IS
    'Takes one step of the maintenance of a table and returns it, or no row if no steps are left. Call it in one transaction per step: first with NULL as run, then with the run that the last call returned.';

-- Returns the number of failed steps, with one more step of the given outcome. NULL: none.
CREATE FUNCTION {{$i}}.count_failed(failed integer, outcome text) RETURNS integer
    LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN outcome = 'failed' THEN coalesce(failed, 0) + 1 ELSE failed END;

-- Each step has its own transaction and a notice. If a step doesn't get a lock in six attempts, the procedure raises a
-- warning and leaves the step, and the later steps of that table, to the next call. Each attempt waits up to 2 s for
-- locks that don't block reads and writes, then lock_timeout for the others. If a step fails, the procedure takes the
-- other steps and then raises an error.
--
-- Inside a transaction block, Postgres rejects the first COMMIT with "invalid transaction termination", before any step.
-- A procedure that sets search_path cannot commit, so this one qualifies all names and has no operators.
CREATE PROCEDURE {{$s}}.maintain_partitions(
    parent regclass DEFAULT NULL, lock_timeout interval DEFAULT '100 milliseconds', dry_run boolean DEFAULT false,
    at timestamptz DEFAULT NULL
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    now_at CONSTANT pg_catalog.timestamptz := coalesce(at, pg_catalog.clock_timestamp());
    tables pg_catalog.oid[];
    id pg_catalog.oid;
    step pg_catalog.record;
    run pg_catalog.jsonb;
    failed integer;
BEGIN
    IF dry_run THEN
        FOR id IN SELECT m FROM {{$i}}.managed_tables(parent, false) m LOOP
            BEGIN
                FOR step IN SELECT p.* FROM {{$s}}.plan_partitions(id, now_at) p LOOP
                    RAISE NOTICE E'% %\nBEGIN;\n%;\nCOMMIT;', step.action, step.partition, pg_catalog.array_to_string(step.statements, E';\n');
                END LOOP;
            EXCEPTION WHEN OTHERS THEN
                RAISE WARNING 'failed plan %: %', id::pg_catalog.regclass::pg_catalog.text, SQLERRM;
            END;
        END LOOP;
        RETURN;
    END IF;

    -- A statement must see all changes that were committed before it got its locks. SET TRANSACTION must come first in a transaction.
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    tables := ARRAY(SELECT m FROM {{$i}}.managed_tables(parent, true) m);
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    FOREACH id IN ARRAY tables LOOP
        run := NULL;
        LOOP
            SELECT s.* INTO step FROM {{$s}}.next_partition_step(id, now_at, lock_timeout, run) s;
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            EXIT WHEN step.action IS NULL;
            run := step.run;
            IF step.problem IS NULL THEN
                RAISE NOTICE '% %', step.action, step.partition;
            ELSE
                RAISE WARNING '% % %: %', step.outcome, step.action, coalesce(step.partition, id::pg_catalog.regclass::pg_catalog.text), step.problem;
                failed := {{$i}}.count_failed(failed, step.outcome);
            END IF;
        END LOOP;
    END LOOP;
    IF failed IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = pg_catalog.format('partition steps failed: %s', failed),
            HINT = 'See the warnings for the steps and the reasons. All other steps are done, unless they depend on a failed one.';
    END IF;
END
$$;
COMMENT ON PROCEDURE {{$s}}.maintain_partitions(regclass, interval, boolean, timestamptz) IS
    'Creates partitions ahead, moves rows out of default partitions, and removes old partitions, for parent or for all managed tables. CALL it regularly, outside a transaction block. With dry_run it takes no steps and shows their SQL.';

{{template "share internals" .}}
{{template "revision" .}}
{{- end}}
