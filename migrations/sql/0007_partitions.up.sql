{{define "partitions" -}}
{{$s := .Schema -}}
-- Partitions by time, for tables that are PARTITION BY RANGE of a key whose IDs order by time.
--
-- manage_partitions() says once how a table is to be divided, and maintain_partitions(), called regularly, does it: it
-- makes the partitions of the present and of some time ahead, a default partition for what fits into none, moves rows
-- from there to where they belong, and detaches or drops what is older than is to be kept. plan_partitions() tells what
-- it would do, as SQL. All of it has the rights of the role that calls it.

CREATE TABLE {{$s}}.partitioned_table (
    parent regclass PRIMARY KEY,
    format text NOT NULL CHECK (format IN ('snowflake', 'snowflake_si', 'uid60', 'sno')),
    every interval NOT NULL,
    premake integer NOT NULL,
    retention interval, -- NULL: for ever
    retention_action text NOT NULL CHECK (retention_action IN ('detach', 'drop'))
);
COMMENT ON TABLE {{$s}}.partitioned_table IS 'How tables are partitioned by time. Written by manage_partitions and unmanage_partitions.';
GRANT SELECT ON {{$s}}.partitioned_table TO PUBLIC; -- who writes here has maintain_partitions() work on a table

-- Says how a table is to be partitioned, anew if it was said before. It changes nothing in the table.
--
--     parent            a table that is PARTITION BY RANGE of one column, a bigint or uuid or a domain over them
--     every             the time of a partition: months, or days, hours and minutes
--     format            of the IDs: snowflake, snowflake_si, uid60 or sno; NULL if the column has its domain
--     premake           how many partitions to have ready beyond the present one
--     retention         how long to keep a partition after its end; NULL: for ever
--     retention_action  detach or drop
--
-- Partitions begin in UTC: with months, quarters and years, counted from the year 2000; else counted from Monday,
-- 2000-01-03, so that weeks begin on Mondays, and days and hours as in UTC.
CREATE FUNCTION {{$s}}.manage_partitions(
    parent regclass, every interval, format text DEFAULT NULL,
    premake integer DEFAULT 4, retention interval DEFAULT NULL, retention_action text DEFAULT 'detach'
) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    wanted text := format; -- which the domain can give
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
            MESSAGE = format('expected a partitioned table, got %s', coalesce(parent::text, 'NULL')),
            HINT = 'Give the name of one that there is.';
    END IF;
    SELECT p.partstrat, p.partnatts, a.attname, a.atttypid INTO strategy, columns, key, key_type
        FROM pg_partitioned_table p LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
        WHERE p.partrelid = parent;
    IF strategy IS DISTINCT FROM 'r' OR columns <> 1 OR key IS NULL OR rel.relpersistence = 't' THEN
        RAISE EXCEPTION USING ERRCODE = 'wrong_object_type',
            MESSAGE = format('expected a table that is PARTITION BY RANGE of one column, got %s, %s', parent, CASE
                WHEN strategy IS NULL THEN 'which is not partitioned'
                WHEN rel.relpersistence = 't' THEN 'which is temporary'
                ELSE 'PARTITION BY ' || pg_get_partkeydef(parent) END),
            HINT = 'A table is partitioned when it is made. To partition one with rows, make another and attach the first to it.';
    END IF;

    -- Through domains over domains, down to what is stored.
    SELECT t.* INTO type FROM pg_type t WHERE t.oid = key_type;
    WHILE type.typtype = 'd' LOOP
        IF type.typnamespace = '{{$s}}'::regnamespace AND type.typname IN ('snowflake', 'snowflake_si', 'uid60', 'spread64', 'sno') THEN
            domain_format := type.typname;
        END IF;
        SELECT t.* INTO type FROM pg_type t WHERE t.oid = type.typbasetype;
    END LOOP;
    IF wanted IS NOT NULL AND wanted <> domain_format THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('expected format %s for %s.%I, as its domain says, got %L', domain_format, parent, key, wanted),
            HINT = 'Leave the format to the domain. Times read by another format would be wrong.';
    END IF;
    wanted := coalesce(wanted, domain_format);
    IF wanted = 'spread64' THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = format('expected IDs that order by time, got Spread64 in %s.%I, whose IDs of any time are everywhere', parent, key),
            HINT = 'Partition by another column, or by HASH, or take another format.';
    ELSIF wanted IS NULL OR wanted NOT IN ('snowflake', 'snowflake_si', 'uid60', 'sno') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('expected a format for the IDs in %s.%I, of type %s, got %s',
                parent, key, format_type(key_type, NULL), coalesce(quote_literal(wanted), 'none')),
            HINT = 'Give the format snowflake, snowflake_si or uid60 of a bigint, or sno of a uuid.';
    ELSIF to_regprocedure(format('{{$s}}.%I(timestamptz)', wanted || '_floor')) IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_function',
            MESSAGE = format('expected a format with functions in this database, got %s, which has none in schema {{$s}}', wanted),
            HINT = 'Install with the format''s base clock, the SnowflakeSI of the Config.';
    ELSIF type.oid <> (CASE wanted WHEN 'sno' THEN 'uuid'::regtype ELSE 'bigint'::regtype END) THEN
        RAISE EXCEPTION USING ERRCODE = 'datatype_mismatch',
            MESSAGE = format('expected a column of type %s for IDs of format %s, got %s.%I of type %s',
                CASE wanted WHEN 'sno' THEN 'uuid' ELSE 'bigint' END, wanted, parent, key, format_type(key_type, NULL)),
            HINT = 'Give the format that the column''s IDs have.';
    END IF;

    IF (months >= 0 AND seconds >= 0 AND (months > 0) <> (seconds > 0)
        AND seconds % 60 = 0 AND months <= 1200 AND seconds <= 3155760000) IS NOT TRUE THEN -- NULL if it is infinite
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('expected a partition for every so many months, or days, hours and minutes, got %s', coalesce(quote_literal(every), 'NULL')),
            HINT = 'Give one minute to a hundred years, such as ''1 month'', ''7 days'' or ''6 hours'', and no mix of months and days.';
    END IF;
    IF premake IS NULL OR premake NOT BETWEEN 1 AND 1000 THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('expected 1 to 1000 partitions to be made ahead, got %s', coalesce(premake::text, 'NULL')),
            HINT = 'Give as many as are needed until somebody notices that none are made any more.';
    END IF;
    -- Of months and days alike each must be 0 or more: that no month is long enough is seen when it is too late.
    IF retention <= interval '0' OR extract(year FROM retention) * 12 + extract(month FROM retention) < 0
        OR extract(day FROM retention) < 0 OR extract(epoch FROM retention) <= 0 OR retention > interval '1000 years' THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('expected partitions to be kept for some time, got %L', retention),
            HINT = 'Give a positive interval of up to 1000 years, or NULL to keep them for ever.';
    END IF;
    IF retention_action IS NULL OR retention_action NOT IN ('detach', 'drop') THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = format('expected detach or drop for what is to be done with old partitions, got %s', coalesce(quote_literal(retention_action), 'NULL')),
            HINT = 'What is detached stays, as a table of its own.';
    END IF;

    PERFORM {{$s}}.managed_tables(NULL, true);
    INSERT INTO {{$s}}.partitioned_table AS t (parent, format, every, premake, retention, retention_action)
        VALUES (parent, wanted, every, premake, retention, retention_action)
        ON CONFLICT ON CONSTRAINT partitioned_table_pkey DO UPDATE SET format = excluded.format, every = excluded.every,
            premake = excluded.premake, retention = excluded.retention, retention_action = excluded.retention_action;
END
$$;

-- Leaves a table's partitions as they are from now on.
CREATE FUNCTION {{$s}}.unmanage_partitions(parent regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM {{$s}}.managed_tables(unmanage_partitions.parent, true);
    DELETE FROM {{$s}}.partitioned_table t WHERE t.parent = unmanage_partitions.parent;
END
$$;

-- The tables that are managed, or the one asked for, which must be. Forgets those that are gone, if wanted and allowed.
CREATE FUNCTION {{$s}}.managed_tables(parent regclass, forget boolean) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF forget AND has_table_privilege('{{$s}}.partitioned_table', 'DELETE') THEN
        DELETE FROM {{$s}}.partitioned_table t WHERE NOT EXISTS (SELECT FROM pg_class c WHERE c.oid = t.parent);
    END IF;
    RETURN QUERY SELECT t.parent FROM {{$s}}.partitioned_table t JOIN pg_class c ON c.oid = t.parent
        WHERE managed_tables.parent IS NULL OR t.parent = managed_tables.parent
        ORDER BY t.parent::text;
    IF NOT FOUND AND managed_tables.parent IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'undefined_object',
            MESSAGE = format('expected a table that is managed here, got %s', managed_tables.parent),
            HINT = 'Call {{$s}}.manage_partitions for it first.';
    END IF;
END
$$;

-- The time of the partition that t belongs to.
CREATE FUNCTION {{$s}}.partition_window(every interval, t timestamptz) RETURNS tstzrange
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

-- The name of a table's partition. A long name is cut, and told from others that are cut alike by a hash of all of it.
CREATE FUNCTION {{$s}}.partition_name(parent regclass, suffix text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    longest CONSTANT integer := current_setting('max_identifier_length');
    base text;
    hash text := '';
BEGIN
    SELECT c.relname INTO base FROM pg_class c WHERE c.oid = parent;
    IF octet_length(base || suffix) > longest THEN
        hash := '_' || left(md5(base), 8);
    END IF;
    WHILE octet_length(base || hash || suffix) > longest LOOP
        base := left(base, -1);
    END LOOP;
    RETURN base || hash || suffix;
END
$$;

-- A bound of a partition as a time. An upper bound that isn't the first ID of its unit of time is in the next one, so
-- that times never tell two partitions to be apart that aren't.
CREATE FUNCTION {{$s}}.partition_time(format text, bound text, is_upper boolean) RETURNS timestamptz
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    t timestamptz;
BEGIN
    EXECUTE format($q$
        SELECT CASE
            WHEN b = 'MINVALUE' THEN '-infinity'
            WHEN b = 'MAXVALUE' THEN 'infinity'
            WHEN b::%1$s < {{$s}}.%2$I('-infinity') THEN '-infinity'
            WHEN b::%1$s > {{$s}}.%2$I('infinity') THEN 'infinity'
            WHEN is_upper AND b::%1$s > {{$s}}.%2$I({{$s}}.%3$I(b::%1$s)) THEN {{$s}}.%3$I(b::%1$s) + %4$L::interval
            ELSE {{$s}}.%3$I(b::%1$s) END
        FROM (VALUES ($1, $2)) v (b, is_upper)$q$,
        CASE format WHEN 'sno' THEN 'uuid' ELSE 'bigint' END, format || '_floor', format || '_time',
        CASE format WHEN 'sno' THEN '4 milliseconds' ELSE '1 millisecond' END)
        INTO t USING bound, is_upper;
    RETURN t;
END
$$;

-- A time as the bound of a partition. The format's first is that of the first ID but zero, which domains refuse.
CREATE FUNCTION {{$s}}.partition_bound(format text, t timestamptz) RETURNS text
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
        CASE format WHEN 'sno' THEN '32323232-3232-3232-3232-323232323233' ELSE '1' END) INTO bound USING t;
    RETURN bound;
END
$$;

-- The partitions of a table, but for the default, as times.
CREATE FUNCTION {{$s}}.partition_times(parent regclass, format text)
    RETURNS TABLE (partition regclass, times tstzrange)
    LANGUAGE plpgsql STABLE STRICT
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bounds text;
    parts text[];
    start timestamptz;
    stop timestamptz;
BEGIN
    FOR partition, bounds IN
        SELECT c.oid, pg_get_expr(c.relpartbound, c.oid)
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE i.inhparent = parent AND pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
    LOOP
        -- Numbers and uuids, which look the same whatever the settings are.
        parts := regexp_match(bounds, '^FOR VALUES FROM [(]''?([-0-9a-fA-F]+|MINVALUE)''?[)] TO [(]''?([-0-9a-fA-F]+|MAXVALUE)''?[)]$');
        start := {{$s}}.partition_time(format, parts[1], false);
        stop := {{$s}}.partition_time(format, parts[2], true);
        IF start IS NULL OR stop IS NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
                MESSAGE = format('expected partitions of %s to have IDs of format %s for bounds, got %s %s', parent, format, partition, bounds),
                HINT = 'Detach that partition, or attach it with the bounds that ' || format || '_floor gives.';
        END IF;
        times := tstzrange(start, stop);
        RETURN NEXT;
    END LOOP;
END
$$;

-- The SQL that makes a partition: of a time, or if start is NULL the default one. If drained isn't NULL, it is the
-- default partition whose rows of that time are to be moved.
--
-- A table that is made first and attached then locks the parent so that reads and writes go on, unless they use the
-- default partition, which Postgres locks and reads for a moment; made by CREATE TABLE ... PARTITION OF it would stop
-- all that use the parent. For rows to be moved that must be: whoever is about to write one to the default partition has
-- to wait where he hasn't yet decided on that partition, or he gets an error.
CREATE FUNCTION {{$s}}.partition_sql(
    parent regclass, format text, partition text, start timestamptz, stop timestamptz, drained regclass
) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    statements text := '';
    rel pg_class;
    target text; -- the partition, with its schema
    first text := {{$s}}.partition_bound(format, start);
    last text := {{$s}}.partition_bound(format, stop);
    what text := CASE WHEN start IS NULL THEN 'DEFAULT' ELSE format('FOR VALUES FROM (%s) TO (%s)', first, last) END;
    key text;
    columns text;
    moved text; -- a condition
    reference record;
    deleting record;
    inserting record;
BEGIN
    SELECT c.* INTO rel FROM pg_class c WHERE c.oid = parent;
    target := format('%I.%I', (SELECT n.nspname FROM pg_namespace n WHERE n.oid = rel.relnamespace), partition);

    IF EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = rel.relnamespace AND c.relname = partition) THEN
        RETURN format('DO %L;', format('BEGIN RAISE EXCEPTION USING ERRCODE = ''duplicate_table'', MESSAGE = %L, HINT = %L; END',
            format('expected no %s, to make it a partition of %s %s, got a relation of that name that isn''t', target, parent, what),
            'Rename or drop it, or attach it. If it was detached for its age, rows for it came later: they are in the default partition.'));
    END IF;

    IF drained IS NOT NULL THEN
        IF (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = drained) THEN
            RETURN format('DO %L;', format('BEGIN RAISE EXCEPTION USING ERRCODE = ''wrong_object_type'', MESSAGE = %L, HINT = %L; END',
                format('expected a default partition that isn''t partitioned itself, to move rows from it to %s, got %s', target, drained),
                'Move them by hand, or have another default partition.'));
        END IF;
        SELECT a.attname INTO key FROM pg_partitioned_table p JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
            WHERE p.partrelid = parent;
        moved := concat_ws(' AND ', format('d.%I OPERATOR(pg_catalog.>=) %s', key, first),
            CASE WHEN stop < 'infinity' THEN format('d.%I OPERATOR(pg_catalog.<) %s', key, last) END);
        SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns FROM pg_attribute a
            WHERE a.attrelid = parent AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';

        IF EXISTS (SELECT FROM pg_constraint c WHERE c.condeferrable AND parent IN (c.conrelid, c.confrelid)) THEN
            statements := E'SET CONSTRAINTS ALL IMMEDIATE;\n';
        END IF;
        -- All of the parent first: who writes to the default partition holds a lock on the parent, and then nobody waits
        -- for us while we wait for him. But no waiting for who reads the default partition by its own name, while all that
        -- use the parent wait behind us.
        statements := E'SET LOCAL row_security = off;\n' -- an error rather than rows that aren't seen
            || statements || format(E'LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE;\nLOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT;\n', parent, drained);
        -- To move is to delete and to insert, which must not cascade.
        FOR reference IN
            SELECT c.conname, c.conrelid::regclass AS source, string_agg(format('d.%I OPERATOR(%I.%s) r.%I', p.attname, n.nspname, o.oprname, f.attname), ' AND ') AS condition
                FROM pg_constraint c
                CROSS JOIN unnest(c.conkey, c.confkey, c.conpfeqop) AS k (f, p, op)
                JOIN pg_operator o ON o.oid = k.op
                JOIN pg_namespace n ON n.oid = o.oprnamespace
                JOIN pg_attribute f ON f.attrelid = c.conrelid AND f.attnum = k.f
                JOIN pg_attribute p ON p.attrelid = c.confrelid AND p.attnum = k.p
                WHERE c.contype = 'f' AND c.conparentid = 0
                    AND (c.confrelid = drained OR c.confrelid IN (SELECT a FROM pg_partition_ancestors(parent) a)) -- the parent is among these
                GROUP BY c.oid ORDER BY c.conname
        LOOP
            statements := statements || format(E'DO %L;\n', format(
                'BEGIN IF EXISTS (SELECT FROM %s d JOIN %s r ON %s WHERE %s) THEN'
                    ' RAISE EXCEPTION USING ERRCODE = ''foreign_key_violation'', MESSAGE = %L, HINT = %L; END IF; END',
                drained, reference.source, reference.condition, moved,
                format('expected rows of %s that nothing refers to, to move them to %s, got some that %s refers to by %I',
                    drained, target, reference.source, reference.conname),
                'Drop that foreign key, maintain the partitions, and add it again.'));
        END LOOP;
    END IF;

    statements := statements || format('CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING IDENTITY)', target, parent)
        || coalesce((SELECT format(' USING %I', a.amname) FROM pg_am a WHERE a.oid = rel.relam), '')
        || coalesce((SELECT format(' TABLESPACE %I', t.spcname) FROM pg_tablespace t WHERE t.oid = rel.reltablespace), '') || E';\n';
    IF pg_get_userbyid(rel.relowner) <> current_user THEN
        statements := statements || format(E'ALTER TABLE %s OWNER TO %I;\n', target, pg_get_userbyid(rel.relowner));
    END IF;
    IF drained IS NULL THEN
        RETURN statements || format('ALTER TABLE %s ATTACH PARTITION %s %s;', parent, target, what);
    END IF;

    -- Rows come to the partition when it is one. Before, they would be missing from a publication of the table, which
    -- has the rows that leave. Triggers are for rows that are new or gone, and these are neither.
    SELECT coalesce(string_agg(format(E'ALTER TABLE %s DISABLE TRIGGER %I;\n', drained, t.tgname), ''), '') AS off,
            coalesce(string_agg(format(E'ALTER TABLE %s %s TRIGGER %I;\n', drained, e.enable, t.tgname), ''), '') AS on_again
        INTO deleting
        FROM pg_trigger t JOIN (VALUES ('O', 'ENABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) e (enabled, enable) ON e.enabled = t.tgenabled::text
        WHERE t.tgrelid = drained AND NOT t.tgisinternal AND (t.tgtype & 8) = 8; -- of DELETE
    SELECT coalesce(string_agg(format(E'ALTER TABLE %s DISABLE TRIGGER %I;\n', target, t.tgname), ''), '') AS off,
            coalesce(string_agg(format(E'ALTER TABLE %s %s TRIGGER %I;\n', target, e.enable, t.tgname), ''), '') AS on_again
        INTO inserting
        FROM pg_trigger t JOIN (VALUES ('O', 'ENABLE'), ('R', 'ENABLE REPLICA'), ('A', 'ENABLE ALWAYS')) e (enabled, enable) ON e.enabled = t.tgenabled::text
        WHERE t.tgrelid = parent AND NOT t.tgisinternal AND (t.tgtype & 5) = 5; -- of INSERT, FOR EACH ROW: those that the partition gets
    RETURN statements
        || deleting.off
        || format(E'CREATE TEMPORARY TABLE sortkey_drained AS SELECT %s FROM %s d WHERE %s;\n', columns, drained, moved)
        || format(E'DELETE FROM %s d WHERE %s;\n', drained, moved)
        || deleting.on_again
        || format(E'ALTER TABLE %s ATTACH PARTITION %s %s;\n', parent, target, what)
        || inserting.off
        || format(E'INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM pg_temp.sortkey_drained;\n', target, columns, columns)
        || inserting.on_again
        || 'DROP TABLE pg_temp.sortkey_drained;';
END
$$;

-- What maintain_partitions() would do at a time, in that order: exactly the SQL, each step to be run in a transaction.
--
--     create   makes a partition; if its time has begun, moves what came to the default partition meanwhile
--     default  makes the default partition, which takes what fits into no other
--     drain    makes a partition for rows that are in the default one, and moves them. Rows of a time further ahead than
--              partitions are made for stay there until then; rows that are older than the retention stay for good, for
--              nobody has said that they may go
--     detach   detaches a partition that was over a whole retention ago
--     drop     drops one
--
-- Partitions that somebody else made are taken as they are: only what they leave open is filled.
CREATE FUNCTION {{$s}}.plan_partitions(parent regclass DEFAULT NULL, at timestamptz DEFAULT clock_timestamp())
    RETURNS TABLE (
        parent_table regclass, action text, partition text, lower timestamptz, upper timestamptz, statements text
    )
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET row_security = off -- an error rather than rows that aren't seen
AS $$
#variable_conflict use_variable
DECLARE
    m record;
    part record;
    default_partition regclass;
    taken tstzmultirange;      -- by partitions that there are
    next_window tstzrange;
    gaps tstzrange[];          -- to be made partitions of
    drained tstzrange[];       -- those among them of which the default partition has rows
    gap tstzrange;
    first timestamptz;         -- instant of the format
    last timestamptz;
    horizon timestamptz;       -- the end of what is made ahead
    cutoff timestamptz;        -- what ended by then isn't kept
    position timestamptz;
    t timestamptz;
    name text;
BEGIN
    FOR m IN
        SELECT x.*, k.attname AS key, CASE x.format WHEN 'sno' THEN 'uuid' ELSE 'bigint' END AS type, n.nspname AS schema,
                nullif(p.partdefid, 0) AS default_id
            FROM {{$s}}.partitioned_table x
            JOIN pg_class c ON c.oid = x.parent
            JOIN pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_partitioned_table p ON p.partrelid = c.oid
            JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = p.partattrs[0]
            WHERE parent IS NULL OR x.parent = parent
            ORDER BY x.parent::text
    LOOP
        parent_table := m.parent;
        default_partition := m.default_id;
        EXECUTE format('SELECT {{$s}}.%1$I({{$s}}.%2$I(''-infinity'')), {{$s}}.%1$I({{$s}}.%2$I(''infinity''))', m.format || '_time', m.format || '_floor')
            INTO first, last;
        IF at IS NULL OR at < first OR at > last THEN
            RAISE EXCEPTION USING ERRCODE = 'datetime_field_overflow',
                MESSAGE = format('expected a time that IDs of format %s have, %s to %s, got %s', m.format,
                    to_char(first AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), to_char(last AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                    coalesce(to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'NULL')),
                HINT = 'Check the server''s clock, or the time that was given.';
        END IF;
        SELECT coalesce(range_agg(p.times), '{}') INTO taken FROM {{$s}}.partition_times(m.parent, m.format) p;

        cutoff := (at AT TIME ZONE 'UTC' - m.retention) AT TIME ZONE 'UTC';
        gaps := '{}';
        next_window := {{$s}}.partition_window(m.every, at);
        FOR i IN 0..m.premake LOOP
            horizon := upper(next_window);
            -- The format's first and last partitions end where it does.
            gaps := gaps || ARRAY(SELECT unnest(tstzmultirange(tstzrange(
                greatest(lower(next_window), first), CASE WHEN horizon > last THEN 'infinity' ELSE horizon END)) - taken));
            EXIT WHEN horizon > last;
            next_window := {{$s}}.partition_window(m.every, horizon);
        END LOOP;

        -- Of the rows in the default partition an index finds the first; the first after its partition; and so on.
        drained := '{}';
        position := CASE WHEN cutoff > first THEN greatest(lower({{$s}}.partition_window(m.every, cutoff)), first) ELSE '-infinity' END;
        WHILE default_partition IS NOT NULL AND position <= last LOOP
            t := NULL;
            EXECUTE format('SELECT {{$s}}.%1$I(d.%2$I) FROM %3$s d'
                    ' WHERE d.%2$I >= {{$s}}.%4$I($1) AND {{$s}}.%1$I(d.%2$I) IS NOT NULL ORDER BY d.%2$I LIMIT 1',
                m.format || '_time', m.key, default_partition, m.format || '_floor')
                INTO t USING position;
            EXIT WHEN t IS NULL OR t >= horizon;
            next_window := {{$s}}.partition_window(m.every, t);
            gap := NULL;
            SELECT g INTO gap FROM unnest(tstzmultirange(tstzrange(
                greatest(lower(next_window), first), CASE WHEN upper(next_window) > last THEN 'infinity' ELSE upper(next_window) END)) - taken) g
                WHERE g @> t;
            IF gap IS NOT NULL THEN
                drained := drained || gap;
            ELSE
                -- It is between two IDs of a millisecond in which a partition of somebody's begins or ends.
                SELECT g INTO gap FROM unnest(taken) g WHERE g @> t;
            END IF;
            position := upper(gap);
        END LOOP;

        FOR gap IN SELECT g FROM unnest(gaps || drained) g
            WHERE (upper(g) <= cutoff) IS NOT TRUE -- or it would be made to be removed at once
            GROUP BY g ORDER BY g = ANY (drained), g
        LOOP
            action := CASE WHEN gap = ANY (drained) THEN 'drain' ELSE 'create' END;
            lower := lower(gap);
            upper := upper(gap);
            name := {{$s}}.partition_name(m.parent, to_char(lower AT TIME ZONE 'UTC', '"_p"YYYYMMDD' || CASE
                WHEN extract(second FROM lower) % 1 <> 0 THEN '"t"HH24MISSMS'
                WHEN extract(second FROM lower) <> 0 THEN '"t"HH24MISS'
                WHEN m.every < '1 day' OR (lower AT TIME ZONE 'UTC')::time <> '00:00' THEN '"t"HH24MI'
                ELSE '' END));
            partition := format('%I.%I', m.schema, name);
            statements := {{$s}}.partition_sql(m.parent, m.format, name, lower, upper,
                CASE WHEN action = 'drain' OR lower <= at THEN default_partition END);
            RETURN NEXT;
        END LOOP;

        IF default_partition IS NULL THEN
            action := 'default';
            lower := NULL;
            upper := NULL;
            name := {{$s}}.partition_name(m.parent, '_default');
            partition := format('%I.%I', m.schema, name);
            statements := {{$s}}.partition_sql(m.parent, m.format, name, NULL, NULL, NULL);
            RETURN NEXT;
        END IF;

        FOR part IN
            SELECT p.partition::text AS name, p.times, c.relkind AS kind
            FROM {{$s}}.partition_times(m.parent, m.format) p JOIN pg_class c ON c.oid = p.partition
            WHERE isfinite(lower(p.times)) AND upper(p.times) <= cutoff
            ORDER BY p.times
        LOOP
            action := m.retention_action;
            partition := part.name;
            lower := lower(part.times);
            upper := upper(part.times);
            -- Not CONCURRENTLY, which can't be where there is a default partition. Not DROP alone, which doesn't look for
            -- rows that refer to those to be dropped.
            statements := format('ALTER TABLE %s DETACH PARTITION %s;', m.parent, part.name)
                || CASE action WHEN 'drop' THEN format(E'\nDROP %s %s;', CASE part.kind WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END, part.name) ELSE '' END;
            RETURN NEXT;
        END LOOP;
    END LOOP;
END
$$;

-- Takes the first step of a table's plan, but for those of the partitions in skip, and tells how it went:
--
--     done
--     skipped  a lock couldn't be had within lock_timeout
--     failed   of an error
--
-- A step that isn't done leaves nothing behind; its problem says why. If there isn't even a plan the action is plan, and
-- no row at all means that there is nothing left to do.
--
-- It locks the table and its default partition before it plans, so that nobody gives them foreign keys or triggers before
-- the step is taken, and so that maintainers of a table wait for one another. The locks are kept to the end of the
-- transaction, so each step should be one. They stop no reads and writes.
--
-- It has no search_path of its own, for functions that a table uses may count on the caller's; so all names have their
-- schema.
CREATE FUNCTION {{$s}}.next_partition_step(
    parent regclass, at timestamptz DEFAULT NULL, lock_timeout interval DEFAULT '2 seconds', skip text[] DEFAULT '{}'
) RETURNS TABLE (
        action text, partition text, lower timestamptz, upper timestamptz, statements text, outcome text, problem text
    )
    LANGUAGE plpgsql VOLATILE
AS $$
#variable_conflict use_variable
DECLARE
    ms CONSTANT numeric := pg_catalog.ceil(extract(epoch FROM lock_timeout) OPERATOR(pg_catalog.*) 1000);
    old_timeout CONSTANT text := pg_catalog.current_setting('lock_timeout');
    old_security CONSTANT text := pg_catalog.current_setting('row_security');
    lockable text;
    step record;
    message text;
    detail text;
    hint text;
BEGIN
    IF (ms OPERATOR(pg_catalog.>=) 1 AND ms OPERATOR(pg_catalog.<=) 86400000) IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = 'invalid_parameter_value',
            MESSAGE = pg_catalog.format('expected to wait for a lock from a millisecond to a day, got %s',
                coalesce(pg_catalog.quote_literal(lock_timeout), 'NULL')),
            HINT = 'While a lock is waited for, others wait behind: give a second or two.';
    END IF;
    IF parent IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'null_value_not_allowed',
            MESSAGE = 'expected a partitioned table, got NULL', HINT = 'Take steps table by table, or call maintain_partitions.';
    END IF;
    FOR tries IN 1..3 LOOP
        action := 'plan';
        partition := NULL;
        lower := NULL;
        upper := NULL;
        statements := NULL;
        BEGIN
            PERFORM pg_catalog.set_config('lock_timeout', ms::pg_catalog.text, true);
            PERFORM pg_catalog.set_config('row_security', 'off', true); -- an error rather than rows that aren't seen
            FOR lockable IN
                SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
                    JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
                    LEFT JOIN pg_catalog.pg_partitioned_table p ON p.partrelid OPERATOR(pg_catalog.=) parent
                    WHERE c.oid OPERATOR(pg_catalog.=) parent OR c.oid OPERATOR(pg_catalog.=) p.partdefid
                    ORDER BY c.oid OPERATOR(pg_catalog.<>) parent
            LOOP
                EXECUTE pg_catalog.format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', lockable);
            END LOOP;
            SELECT p.* INTO step
                FROM {{$s}}.plan_partitions(parent, coalesce(at, pg_catalog.clock_timestamp())) WITH ORDINALITY AS
                    p (parent_table, action, partition, lower, upper, statements, number)
                WHERE (p.partition OPERATOR(pg_catalog.=) ANY (skip)) IS NOT TRUE
                ORDER BY p.number LIMIT 1;
            IF step.action IS NOT NULL THEN
                action := step.action;
                partition := step.partition;
                lower := step.lower;
                upper := step.upper;
                statements := step.statements;
                EXECUTE statements;
                outcome := 'done';
            END IF;
            PERFORM pg_catalog.set_config('lock_timeout', old_timeout, true);
            PERFORM pg_catalog.set_config('row_security', old_security, true);
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN
                outcome := 'skipped';
                problem := SQLERRM;
            WHEN OTHERS THEN
                -- After the plan was made a row came to the default partition that belongs to the one to be made. The next
                -- plan sees it.
                CONTINUE WHEN SQLSTATE OPERATOR(pg_catalog.=) '23514' AND action OPERATOR(pg_catalog.=) 'create' AND tries OPERATOR(pg_catalog.<) 3;
                GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
                outcome := 'failed';
                problem := pg_catalog.concat_ws('; ', message,
                    CASE WHEN detail OPERATOR(pg_catalog.<>) '' THEN detail END, CASE WHEN hint OPERATOR(pg_catalog.<>) '' THEN hint END);
        END;
        EXIT;
    END LOOP;
    IF outcome IS NOT NULL THEN
        RETURN NEXT;
    END IF;
END
$$;

-- Does what plan_partitions() says, of one table or of all, each step in a transaction of its own, with a notice of each.
-- A step that can't have a lock within lock_timeout is left for the next time, with a warning; one that fails leaves the
-- others to be done, and in the end there is an error. dry_run does nothing and shows the SQL.
--
-- CALL it by itself: it commits, which Postgres refuses inside a transaction block, as an "invalid transaction
-- termination", before anything is done. It has no search_path of its own, with which it couldn't commit; so all names
-- have their schema.
CREATE PROCEDURE {{$s}}.maintain_partitions(
    parent regclass DEFAULT NULL, lock_timeout interval DEFAULT '2 seconds', dry_run boolean DEFAULT false,
    at timestamptz DEFAULT NULL
)
    LANGUAGE plpgsql
AS $$
#variable_conflict use_variable
DECLARE
    now_at CONSTANT timestamptz := coalesce(at, pg_catalog.clock_timestamp());
    tables oid[];
    id oid;
    step record;
    skip text[];
    done text[] := '{}';
    failures integer := 0;
BEGIN
    IF dry_run THEN
        FOREACH id IN ARRAY ARRAY(SELECT m FROM {{$s}}.managed_tables(parent, false) m) LOOP
            BEGIN
                FOR step IN SELECT p.* FROM {{$s}}.plan_partitions(id, now_at) p LOOP
                    RAISE NOTICE E'% %\nBEGIN;\n%\nCOMMIT;', step.action, step.partition, step.statements;
                END LOOP;
            EXCEPTION WHEN OTHERS THEN
                RAISE WARNING 'failed plan %: %', id::regclass::pg_catalog.text, SQLERRM;
            END;
        END LOOP;
        RETURN;
    END IF;

    -- What is seen must be as new as the locks. To say so is possible only at once after the last transaction.
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    tables := ARRAY(SELECT m FROM {{$s}}.managed_tables(parent, true) m);
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    FOREACH id IN ARRAY tables LOOP
        skip := '{}';
        LOOP
            SELECT s.* INTO step FROM {{$s}}.next_partition_step(id, now_at, lock_timeout, skip) s;
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            EXIT WHEN step.action IS NULL;
            IF step.outcome OPERATOR(pg_catalog.=) 'done' THEN
                RAISE NOTICE '% %', step.action, step.partition;
                done := pg_catalog.array_append(done, pg_catalog.concat(step.action, ' ', step.partition));
                IF pg_catalog.cardinality(pg_catalog.array_positions(done, done[pg_catalog.cardinality(done)])) OPERATOR(pg_catalog.>) 1 THEN
                    RAISE EXCEPTION USING ERRCODE = 'internal_error',
                        MESSAGE = pg_catalog.format('expected to %s %s once, got it planned again', step.action, step.partition),
                        HINT = 'Somebody else undoes what is done here, or this is an error of ours.';
                END IF;
                CONTINUE;
            END IF;
            RAISE WARNING '% % %: %', step.outcome, step.action, coalesce(step.partition, id::regclass::pg_catalog.text), step.problem;
            failures := failures OPERATOR(pg_catalog.+) CASE WHEN step.outcome OPERATOR(pg_catalog.=) 'failed' THEN 1 ELSE 0 END;
            -- Where moving rows or removing a partition met somebody, the next would, too, and others would wait meanwhile.
            EXIT WHEN step.partition IS NULL
                OR step.outcome OPERATOR(pg_catalog.=) 'skipped' AND step.action OPERATOR(pg_catalog.<>) 'create';
            skip := pg_catalog.array_append(skip, step.partition);
        END LOOP;
    END LOOP;
    IF failures OPERATOR(pg_catalog.>) 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = pg_catalog.format('expected all steps to be taken, got %s failed', failures),
            HINT = 'The warnings say which and why. All other steps are done.';
    END IF;
END
$$;

{{template "revision" .}}
{{- end}}
