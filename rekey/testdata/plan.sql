-- expand, ddl: reserve node numbers
SELECT sortkey.reserve_node('sno', 10, 'default of public.customers.id');
SELECT sortkey.reserve_node('sno', 11, 'existing rows of public.customers');
SELECT sortkey.reserve_node('snowflake', 20, 'default of public.orders.id');
SELECT sortkey.reserve_node('snowflake', 21, 'existing rows of public.orders');
CREATE TABLE rekeyed.rekey_pending (key integer NOT NULL, old_key text COLLATE "C" NOT NULL, new_key text COLLATE "C" NOT NULL, PRIMARY KEY (key, old_key), UNIQUE (key, new_key));
COMMENT ON TABLE rekeyed.rekey_pending IS 'Both keys of rows that were deleted, and of rows that others refer to before they exist.';
CREATE UNLOGGED TABLE rekeyed.rekey_claims (claim bigint PRIMARY KEY);
COMMENT ON TABLE rekeyed.rekey_claims IS 'Makes transactions that insert the same key wait for each other.';
DO $rekey$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT o.revoke || coalesce((SELECT quote_ident(r.rolname) FROM pg_roles r WHERE r.oid = a.grantee), 'PUBLIC')
        FROM (
            SELECT format('REVOKE ALL ON SCHEMA %I FROM ', n.nspname), n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = 'rekeyed'
            UNION ALL SELECT format('REVOKE ALL ON TABLE %s FROM ', c.oid::regclass), c.relowner, c.relacl FROM pg_class c WHERE c.relnamespace = 'rekeyed'::regnamespace AND c.relkind = 'r'
            UNION ALL SELECT format('REVOKE ALL ON FUNCTION %s FROM ', p.oid::regprocedure), p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p WHERE p.pronamespace = 'rekeyed'::regnamespace
        ) o (revoke, owner, acl), aclexplode(o.acl) a WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$rekey$;

-- expand, ddl: add columns to public.customers
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.customers ADD COLUMN rekey_id uuid;

-- expand, ddl: add columns to public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.orders ADD COLUMN rekey_id bigint, ADD COLUMN rekey_customer_id uuid;
COMMENT ON COLUMN public.orders.rekey_id IS 'The key''s text';
GRANT SELECT (rekey_customer_id) ON public.orders TO report WITH GRANT OPTION;

-- expand, ddl: add columns to public.log
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.log ADD COLUMN rekey_customer_id uuid;

-- expand, ddl: add triggers to public.customers
CREATE FUNCTION rekeyed.new_key_0(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
BEGIN
    PERFORM FROM ONLY public.customers LIMIT 0;
    RETURN rekeyed.new_of_0(given);
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_key_0(bigint) FROM PUBLIC;
CREATE FUNCTION rekeyed.old_key_0(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
BEGIN
    PERFORM FROM ONLY public.customers LIMIT 0;
    RETURN rekeyed.old_of_0(given);
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_key_0(uuid) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.new_of_0(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key uuid;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.rekey_id INTO found_key FROM ONLY public.customers t WHERE t.id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.new_key::uuid INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('old 0 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, old_key, new_key) VALUES (0, given::text, (sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING RETURNING p.new_key::uuid INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.customers';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_of_0(bigint) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.old_of_0(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key bigint;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.id INTO found_key FROM ONLY public.customers t WHERE t.rekey_id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.old_key::bigint INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.new_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('new 0 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, new_key, old_key) VALUES (0, given::text, (nextval('public.customers_id_seq'))::text) ON CONFLICT DO NOTHING RETURNING p.old_key::bigint INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.customers';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_of_0(uuid) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.fill_0() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.rekey_id IS NOT NULL THEN
            SELECT t.id::text INTO chosen FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 0 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id::text INTO chosen FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.id := chosen::bigint;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.new_key = NEW.rekey_id::text COLLATE "C";
                IF FOUND THEN
                    NEW.id := chosen::bigint;
                    hash := hashtextextended(('old 0 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.id IS NULL THEN
                        NEW.id := nextval('public.customers_id_seq');
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.id::text COLLATE "C");
                        NEW.id := nextval('public.customers_id_seq');
                    END LOOP;
                END IF;
            END IF;
        ELSE
            IF NEW.id IS NULL THEN
                NEW.id := nextval('public.customers_id_seq');
            END IF;
            SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.customers t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('old 0 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.customers t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
            IF NOT FOUND THEN
                IF current_setting('transaction_isolation') = 'serializable' THEN
                    -- This fails if another transaction has deleted the row since the snapshot.
                    INSERT INTO rekeyed.rekey_pending AS p VALUES (0, NEW.id::text COLLATE "C", (sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING RETURNING p.ctid, p.new_key INTO probe, chosen;
                    DELETE FROM rekeyed.rekey_pending p WHERE p.ctid = probe;
                END IF;
                IF chosen IS NULL THEN
                    SELECT p.new_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.id::text COLLATE "C";
                END IF;
                NEW.rekey_id := coalesce(chosen::uuid, sortkey.next_sno(10, 99));
            END IF;
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.id IS DISTINCT FROM OLD.id OR NEW.rekey_id IS DISTINCT FROM OLD.rekey_id THEN
            INSERT INTO rekeyed.rekey_pending VALUES (0, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING;
            IF OLD.rekey_id IS NULL THEN -- the backfill sets it
                SELECT p.new_key::uuid INTO NEW.rekey_id FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.id::text COLLATE "C";
            ELSIF NEW.rekey_id IS NOT DISTINCT FROM OLD.rekey_id THEN
                NEW.rekey_id := rekeyed.new_key_0(NEW.id);
            ELSIF NEW.id IS NOT DISTINCT FROM OLD.id THEN
                NEW.id := rekeyed.old_key_0(NEW.rekey_id);
            END IF;
        END IF;
    ELSE
        INSERT INTO rekeyed.rekey_pending VALUES (0, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING;
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_0() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_0() IS 'Keeps both keys of public.customers equal during a rekey.';
DO $rekey$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT o.revoke || coalesce((SELECT quote_ident(r.rolname) FROM pg_roles r WHERE r.oid = a.grantee), 'PUBLIC')
        FROM (
            SELECT format('REVOKE ALL ON SCHEMA %I FROM ', n.nspname), n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = 'rekeyed'
            UNION ALL SELECT format('REVOKE ALL ON TABLE %s FROM ', c.oid::regclass), c.relowner, c.relacl FROM pg_class c WHERE c.relnamespace = 'rekeyed'::regnamespace AND c.relkind = 'r'
            UNION ALL SELECT format('REVOKE ALL ON FUNCTION %s FROM ', p.oid::regprocedure), p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p WHERE p.pronamespace = 'rekeyed'::regnamespace
        ) o (revoke, owner, acl), aclexplode(o.acl) a WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$rekey$;
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN SHARE ROW EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.customers;
DROP TRIGGER IF EXISTS " rekey update" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey update" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.customers;
CREATE TRIGGER "~rekey insert" BEFORE INSERT ON public.customers FOR EACH ROW EXECUTE FUNCTION rekeyed.fill_0();
ALTER TABLE public.customers ENABLE ALWAYS TRIGGER "~rekey insert";
CREATE TRIGGER "~rekey update" BEFORE UPDATE ON public.customers FOR EACH ROW WHEN (current_setting('sortkey.rekey_backfill', true) IS DISTINCT FROM 'on' AND (OLD.id IS DISTINCT FROM NEW.id OR OLD.rekey_id IS DISTINCT FROM NEW.rekey_id)) EXECUTE FUNCTION rekeyed.fill_0();
ALTER TABLE public.customers ENABLE ALWAYS TRIGGER "~rekey update";
CREATE TRIGGER "~rekey delete" BEFORE DELETE ON public.customers FOR EACH ROW EXECUTE FUNCTION rekeyed.fill_0();
ALTER TABLE public.customers ENABLE ALWAYS TRIGGER "~rekey delete";

-- expand, ddl: add triggers to public.log
CREATE OR REPLACE FUNCTION rekeyed.fill_2() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.rekey_customer_id IS NULL THEN
            NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        ELSIF NEW.customer_id IS NULL THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.log refer to different rows', HINT = 'Set only one of them.';
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.rekey_customer_id IS NOT DISTINCT FROM OLD.rekey_customer_id THEN
            IF NEW.customer_id IS DISTINCT FROM OLD.customer_id OR NEW.rekey_customer_id IS NULL OR false THEN
                NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
            END IF;
        ELSIF NEW.customer_id IS NOT DISTINCT FROM OLD.customer_id THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.log refer to different rows', HINT = 'Set only one of them.';
        END IF;
    ELSE
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_2() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_2() IS 'Keeps both keys of public.log equal during a rekey.';
DO $rekey$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT o.revoke || coalesce((SELECT quote_ident(r.rolname) FROM pg_roles r WHERE r.oid = a.grantee), 'PUBLIC')
        FROM (
            SELECT format('REVOKE ALL ON SCHEMA %I FROM ', n.nspname), n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = 'rekeyed'
            UNION ALL SELECT format('REVOKE ALL ON TABLE %s FROM ', c.oid::regclass), c.relowner, c.relacl FROM pg_class c WHERE c.relnamespace = 'rekeyed'::regnamespace AND c.relkind = 'r'
            UNION ALL SELECT format('REVOKE ALL ON FUNCTION %s FROM ', p.oid::regprocedure), p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p WHERE p.pronamespace = 'rekeyed'::regnamespace
        ) o (revoke, owner, acl), aclexplode(o.acl) a WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$rekey$;
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN SHARE ROW EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.log;
DROP TRIGGER IF EXISTS " rekey update" ON public.log;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.log;
DROP TRIGGER IF EXISTS "~rekey update" ON public.log;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.log;
CREATE TRIGGER "~rekey insert" BEFORE INSERT ON public.log FOR EACH ROW EXECUTE FUNCTION rekeyed.fill_2();
ALTER TABLE public.log ENABLE ALWAYS TRIGGER "~rekey insert";
CREATE TRIGGER "~rekey update" BEFORE UPDATE ON public.log FOR EACH ROW WHEN (current_setting('sortkey.rekey_backfill', true) IS DISTINCT FROM 'on' AND (OLD.customer_id IS DISTINCT FROM NEW.customer_id OR OLD.rekey_customer_id IS DISTINCT FROM NEW.rekey_customer_id OR (NEW.customer_id IS NULL) <> (NEW.rekey_customer_id IS NULL))) EXECUTE FUNCTION rekeyed.fill_2();
ALTER TABLE public.log ENABLE ALWAYS TRIGGER "~rekey update";

-- expand, ddl: add triggers to public.orders
CREATE FUNCTION rekeyed.new_key_1(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
BEGIN
    PERFORM FROM ONLY public.orders LIMIT 0;
    RETURN rekeyed.new_of_1(given);
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_key_1(uuid) FROM PUBLIC;
CREATE FUNCTION rekeyed.old_key_1(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
BEGIN
    PERFORM FROM ONLY public.orders LIMIT 0;
    RETURN rekeyed.old_of_1(given);
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_key_1(bigint) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.new_of_1(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key bigint;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.rekey_id INTO found_key FROM ONLY public.orders t WHERE t.id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.new_key::bigint INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('old 1 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, old_key, new_key) VALUES (1, given::text, (sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING RETURNING p.new_key::bigint INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.orders';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_of_1(uuid) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.old_of_1(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key uuid;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.id INTO found_key FROM ONLY public.orders t WHERE t.rekey_id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.old_key::uuid INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('new 1 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, new_key, old_key) VALUES (1, given::text, (gen_random_uuid())::text) ON CONFLICT DO NOTHING RETURNING p.old_key::uuid INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.orders';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_of_1(bigint) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.fill_1() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF left(TG_NAME, 1) = ' ' THEN
        IF NEW.rekey_customer_id IS NULL THEN
            NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        ELSIF NEW.customer_id IS NULL THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.orders refer to different rows', HINT = 'Set only one of them.';
        END IF;
        IF NEW.rekey_id IS NOT NULL THEN
            SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 1 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.id := chosen::uuid;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = NEW.rekey_id::text COLLATE "C";
                IF FOUND THEN
                    NEW.id := chosen::uuid;
                    hash := hashtextextended(('old 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.id IS NULL THEN
                        NEW.id := gen_random_uuid();
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C");
                        NEW.id := gen_random_uuid();
                    END LOOP;
                END IF;
            END IF;
            INSERT INTO rekeyed.rekey_pending VALUES (1, NEW.id::text, NEW.rekey_id::text) ON CONFLICT DO NOTHING;
        END IF;
            RETURN NEW;
        END IF;
        NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        IF NEW.rekey_id IS NOT NULL THEN
            SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 1 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.id := chosen::uuid;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = NEW.rekey_id::text COLLATE "C";
                IF FOUND THEN
                    NEW.id := chosen::uuid;
                    hash := hashtextextended(('old 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.id IS NULL THEN
                        NEW.id := gen_random_uuid();
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C");
                        NEW.id := gen_random_uuid();
                    END LOOP;
                END IF;
            END IF;
        ELSE
            IF NEW.id IS NULL THEN
                NEW.id := gen_random_uuid();
            END IF;
            SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.orders t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('old 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.orders t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
            IF NOT FOUND THEN
                IF current_setting('transaction_isolation') = 'serializable' THEN
                    -- This fails if another transaction has deleted the row since the snapshot.
                    INSERT INTO rekeyed.rekey_pending AS p VALUES (1, NEW.id::text COLLATE "C", (sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING RETURNING p.ctid, p.new_key INTO probe, chosen;
                    DELETE FROM rekeyed.rekey_pending p WHERE p.ctid = probe;
                END IF;
                IF chosen IS NULL THEN
                    SELECT p.new_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C";
                END IF;
                NEW.rekey_id := coalesce(chosen::bigint, sortkey.next_snowflake(20));
            END IF;
        END IF;
        PERFORM FROM ONLY public.orders t WHERE t.customer_id = NEW.customer_id AND t.created_at = NEW.created_at AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                SELECT hash_record_extended(ROW('index 2'::text, customer_id, created_at), 0) INTO hash FROM (SELECT NEW.*) x WHERE customer_id IS NOT NULL AND created_at IS NOT NULL;
        IF FOUND THEN
            INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
                PERFORM FROM ONLY public.orders t WHERE t.customer_id = NEW.customer_id AND t.created_at = NEW.created_at AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF left(TG_NAME, 1) = ' ' THEN
        IF NEW.rekey_customer_id IS NOT DISTINCT FROM OLD.rekey_customer_id THEN
            IF NEW.customer_id IS DISTINCT FROM OLD.customer_id OR NEW.rekey_customer_id IS NULL OR false THEN
                NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
            END IF;
        ELSIF NEW.customer_id IS NOT DISTINCT FROM OLD.customer_id THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.orders refer to different rows', HINT = 'Set only one of them.';
        END IF;
            RETURN NEW;
        END IF;
        IF OLD.customer_id IS DISTINCT FROM NEW.customer_id OR OLD.rekey_customer_id IS DISTINCT FROM NEW.rekey_customer_id OR false THEN
            NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        END IF;
        IF NEW.id IS DISTINCT FROM OLD.id OR NEW.rekey_id IS DISTINCT FROM OLD.rekey_id THEN
            INSERT INTO rekeyed.rekey_pending VALUES (1, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING;
            IF OLD.rekey_id IS NULL THEN -- the backfill sets it
                SELECT p.new_key::bigint INTO NEW.rekey_id FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C";
            ELSIF NEW.rekey_id IS NOT DISTINCT FROM OLD.rekey_id THEN
                NEW.rekey_id := rekeyed.new_key_1(NEW.id);
            ELSIF NEW.id IS NOT DISTINCT FROM OLD.id THEN
                NEW.id := rekeyed.old_key_1(NEW.rekey_id);
            END IF;
        END IF;
    ELSE
        INSERT INTO rekeyed.rekey_pending VALUES (1, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING;
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_1() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_1() IS 'Keeps both keys of public.orders equal during a rekey.';
DO $rekey$
DECLARE
    statement text;
BEGIN
    FOR statement IN
        SELECT DISTINCT o.revoke || coalesce((SELECT quote_ident(r.rolname) FROM pg_roles r WHERE r.oid = a.grantee), 'PUBLIC')
        FROM (
            SELECT format('REVOKE ALL ON SCHEMA %I FROM ', n.nspname), n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname = 'rekeyed'
            UNION ALL SELECT format('REVOKE ALL ON TABLE %s FROM ', c.oid::regclass), c.relowner, c.relacl FROM pg_class c WHERE c.relnamespace = 'rekeyed'::regnamespace AND c.relkind = 'r'
            UNION ALL SELECT format('REVOKE ALL ON FUNCTION %s FROM ', p.oid::regprocedure), p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p WHERE p.pronamespace = 'rekeyed'::regnamespace
        ) o (revoke, owner, acl), aclexplode(o.acl) a WHERE a.grantee <> o.owner
    LOOP
        EXECUTE statement;
    END LOOP;
END
$rekey$;
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN SHARE ROW EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.orders;
DROP TRIGGER IF EXISTS " rekey update" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey update" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.orders;
CREATE TRIGGER " rekey insert" BEFORE INSERT ON public.orders FOR EACH ROW EXECUTE FUNCTION rekeyed.fill_1();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER " rekey insert";
CREATE TRIGGER " rekey update" BEFORE UPDATE ON public.orders FOR EACH ROW WHEN (current_setting('sortkey.rekey_backfill', true) IS DISTINCT FROM 'on' AND (OLD.id IS DISTINCT FROM NEW.id OR OLD.rekey_id IS DISTINCT FROM NEW.rekey_id OR OLD.customer_id IS DISTINCT FROM NEW.customer_id OR OLD.rekey_customer_id IS DISTINCT FROM NEW.rekey_customer_id OR (NEW.customer_id IS NULL) <> (NEW.rekey_customer_id IS NULL))) EXECUTE FUNCTION rekeyed.fill_1();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER " rekey update";
CREATE TRIGGER "~rekey insert" BEFORE INSERT ON public.orders FOR EACH ROW EXECUTE FUNCTION rekeyed.fill_1();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER "~rekey insert";
CREATE TRIGGER "~rekey update" BEFORE UPDATE ON public.orders FOR EACH ROW WHEN (current_setting('sortkey.rekey_backfill', true) IS DISTINCT FROM 'on' AND (OLD.id IS DISTINCT FROM NEW.id OR OLD.rekey_id IS DISTINCT FROM NEW.rekey_id OR OLD.customer_id IS DISTINCT FROM NEW.customer_id OR OLD.rekey_customer_id IS DISTINCT FROM NEW.rekey_customer_id OR (NEW.customer_id IS NULL) <> (NEW.rekey_customer_id IS NULL))) EXECUTE FUNCTION rekeyed.fill_1();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER "~rekey update";
CREATE TRIGGER "~rekey delete" BEFORE DELETE ON public.orders FOR EACH ROW EXECUTE FUNCTION rekeyed.fill_1();
ALTER TABLE public.orders ENABLE ALWAYS TRIGGER "~rekey delete";

-- backfill, check: look for new objects on the columns
SELECT format(CASE WHEN p.relkind = 'p' THEN 'table %1$s is a partition of %2$s; run ALTER TABLE %2$s DETACH PARTITION %1$s'
    WHEN i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') THEN 'table %1$s inherits from %2$s; run ALTER TABLE %1$s NO INHERIT %2$s'
    ELSE 'table %1$s inherits from %2$s, and its rows have one key alone; move them to %2$s, and drop it' END, i.inhrelid::regclass, i.inhparent::regclass)
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') OR i.inhparent::regclass::text IN ('public.customers', 'public.orders', 'public.log', '');

-- backfill, backfill: fill keys of public.customers
-- index "", fill &{public.customers 1000 false false}, objects <nil>
WITH batch AS MATERIALIZED (
    SELECT t.id AS k, NULL::text AS moment, greatest((1704067200000::bigint - 1262304000000) / 4, 0) * 65536 AS first, row_number() OVER (ORDER BY t.id) AS n
    FROM ONLY public.customers t
    WHERE t.rekey_id IS NULL AND ($1::text IS NULL OR (t.id) > ($1::text::bigint))
    ORDER BY t.id LIMIT $3::text::bigint
), slots AS MATERIALIZED (
    SELECT *, sortkey.sno_at(to_timestamp((1262304000000 + slot / 65536 * 4) / 1000.0), (slot % 65536)::integer, 11, 99) AS id FROM (SELECT k, moment, n, n + greatest($2::text::bigint, max(first - n) OVER (ORDER BY n)) AS slot FROM batch ORDER BY n) x
), filled AS (
    UPDATE ONLY public.customers t SET rekey_id = coalesce((SELECT p.new_key::uuid FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = s.k::text COLLATE "C"), s.id) FROM slots s WHERE t.id = s.k AND t.rekey_id IS NULL RETURNING 1
)
SELECT (SELECT count(*) FROM filled), moment, k::text, slot::text FROM slots ORDER BY n DESC LIMIT 1;
SELECT EXISTS (SELECT FROM ONLY public.customers t WHERE t.rekey_id IS NULL);

-- backfill, index: create index rekey_orders_times
-- index "public.rekey_orders_times", fill <nil>, objects <nil>
CREATE INDEX CONCURRENTLY rekey_orders_times ON public.orders ((CASE WHEN isfinite(created_at) THEN created_at ELSE '2021-01-01 00:00:00+00'::timestamptz END), id);

-- backfill, backfill: fill keys of public.orders
-- index "", fill &{public.orders 1000 false true}, objects <nil>
WITH batch AS MATERIALIZED (
    SELECT t.id AS k, (CASE WHEN isfinite(t.created_at) THEN t.created_at ELSE '2021-01-01 00:00:00+00'::timestamptz END)::text AS moment, greatest((floor(extract(epoch FROM (CASE WHEN isfinite(t.created_at) THEN t.created_at ELSE '2021-01-01 00:00:00+00'::timestamptz END)) * 1000)::bigint - 1609459200000) / 1, 0) * 4096 AS first, row_number() OVER (ORDER BY (CASE WHEN isfinite(t.created_at) THEN t.created_at ELSE '2021-01-01 00:00:00+00'::timestamptz END), t.id) AS n
    FROM ONLY public.orders t
    WHERE t.rekey_id IS NULL AND ($1::text IS NULL OR ((CASE WHEN isfinite(t.created_at) THEN t.created_at ELSE '2021-01-01 00:00:00+00'::timestamptz END), t.id) > ($4::text::timestamptz, $1::text::uuid))
    ORDER BY (CASE WHEN isfinite(t.created_at) THEN t.created_at ELSE '2021-01-01 00:00:00+00'::timestamptz END), t.id LIMIT $3::text::bigint
), slots AS MATERIALIZED (
    SELECT *, sortkey.snowflake_at(to_timestamp((1609459200000 + slot / 4096 * 1) / 1000.0), (slot % 4096)::integer, 21) AS id FROM (SELECT k, moment, n, n + greatest($2::text::bigint, max(first - n) OVER (ORDER BY n)) AS slot FROM batch ORDER BY n) x
), filled AS (
    UPDATE ONLY public.orders t SET rekey_id = coalesce((SELECT p.new_key::bigint FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = s.k::text COLLATE "C"), s.id), rekey_customer_id = coalesce(t.rekey_customer_id, (SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id)) FROM slots s WHERE t.id = s.k AND t.rekey_id IS NULL RETURNING 1
)
SELECT (SELECT count(*) FROM filled), moment, k::text, slot::text FROM slots ORDER BY n DESC LIMIT 1;
SELECT EXISTS (SELECT FROM ONLY public.orders t WHERE t.rekey_id IS NULL);

-- backfill, ddl: drop index rekey_orders_times
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
DROP INDEX IF EXISTS public.rekey_orders_times;

-- backfill, backfill: fill references of public.orders
-- index "", fill &{public.orders 1000 true false}, objects <nil>
WITH filled AS (
    UPDATE ONLY public.orders t SET rekey_customer_id = coalesce(t.rekey_customer_id, (SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id)) WHERE t.ctid >= ('(' || $1::text || ',0)')::tid AND t.ctid < ('(' || $2::text || ',0)')::tid AND (t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL) RETURNING (t.customer_id IS NULL OR t.rekey_customer_id IS NOT NULL) AS complete
)
SELECT count(*) FILTER (WHERE complete) FROM filled;
SELECT EXISTS (SELECT FROM ONLY public.orders t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL);
SELECT EXISTS (SELECT FROM ONLY public.orders t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL AND (SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id) IS NULL);

-- backfill, backfill: fill references of public.log
-- index "", fill &{public.log 1000 true false}, objects <nil>
WITH filled AS (
    UPDATE ONLY public.log t SET rekey_customer_id = coalesce(t.rekey_customer_id, coalesce((SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id), (SELECT d.new_key::uuid FROM rekeyed.rekey_pending d WHERE d.key = 0 AND d.old_key = (t.customer_id)::text COLLATE "C"))) WHERE t.ctid >= ('(' || $1::text || ',0)')::tid AND t.ctid < ('(' || $2::text || ',0)')::tid AND (t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL) RETURNING (t.customer_id IS NULL OR t.rekey_customer_id IS NOT NULL) AS complete
)
SELECT count(*) FILTER (WHERE complete) FROM filled;
SELECT EXISTS (SELECT FROM ONLY public.log t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL);
SELECT EXISTS (SELECT FROM ONLY public.log t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL AND coalesce((SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id), (SELECT d.new_key::uuid FROM rekeyed.rekey_pending d WHERE d.key = 0 AND d.old_key = (t.customer_id)::text COLLATE "C")) IS NULL);

-- validate, check: look for new objects on the columns
SELECT format(CASE WHEN p.relkind = 'p' THEN 'table %1$s is a partition of %2$s; run ALTER TABLE %2$s DETACH PARTITION %1$s'
    WHEN i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') THEN 'table %1$s inherits from %2$s; run ALTER TABLE %1$s NO INHERIT %2$s'
    ELSE 'table %1$s inherits from %2$s, and its rows have one key alone; move them to %2$s, and drop it' END, i.inhrelid::regclass, i.inhparent::regclass)
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') OR i.inhparent::regclass::text IN ('public.customers', 'public.orders', 'public.log', '');

-- validate, index: create index rekey_customers_pkey
-- index "public.rekey_customers_pkey", fill <nil>, objects <nil>
CREATE UNIQUE INDEX CONCURRENTLY rekey_customers_pkey ON public.customers USING btree (rekey_id);

-- validate, index: create index rekey_orders_pkey
-- index "public.rekey_orders_pkey", fill <nil>, objects <nil>
CREATE UNIQUE INDEX CONCURRENTLY rekey_orders_pkey ON public.orders USING btree (rekey_id);

-- validate, index: create index rekey_orders_once
-- index "public.rekey_orders_once", fill <nil>, objects <nil>
CREATE UNIQUE INDEX CONCURRENTLY rekey_orders_once ON public.orders USING btree (rekey_customer_id, created_at);

-- validate, ddl: complete index rekey_orders_once
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
DO $rekey$BEGIN IF NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = 'public.rekey_orders_once'::regclass) THEN ALTER TABLE public.orders ADD CONSTRAINT rekey_orders_once UNIQUE USING INDEX rekey_orders_once; END IF; END$rekey$;

-- validate, index: create index rekey_orders_open
-- index "public.rekey_orders_open", fill <nil>, objects <nil>
CREATE INDEX CONCURRENTLY rekey_orders_open ON public.orders USING btree (rekey_customer_id) TABLESPACE fast WHERE (total > 0);

-- validate, ddl: complete index rekey_orders_open
COMMENT ON INDEX public.rekey_orders_open IS 'Open ones';

-- validate, ddl: add check constraints to public.customers
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.customers DROP CONSTRAINT IF EXISTS rekey_id_not_null, ADD CONSTRAINT rekey_id_not_null CHECK (rekey_id IS NOT NULL) NOT VALID;

-- validate, ddl: add check constraints to public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_id_not_null, ADD CONSTRAINT rekey_id_not_null CHECK (rekey_id IS NOT NULL) NOT VALID, DROP CONSTRAINT IF EXISTS rekey_customer_id_not_null, ADD CONSTRAINT rekey_customer_id_not_null CHECK (rekey_customer_id IS NOT NULL) NOT VALID, DROP CONSTRAINT IF EXISTS rekey_of_someone, ADD CONSTRAINT rekey_of_someone CHECK ((rekey_customer_id IS NOT NULL)) NOT VALID;

-- validate, ddl: add check constraints to public.log
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.log DROP CONSTRAINT IF EXISTS rekey_customer_id_not_null, ADD CONSTRAINT rekey_customer_id_not_null CHECK (rekey_customer_id IS NOT NULL) NOT VALID;

-- validate, ddl: add foreign key rekey_orders_customer_id_fkey to public.orders
LOCK TABLE public.customers, public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers, public.orders IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_customer_id_fkey, ADD CONSTRAINT rekey_orders_customer_id_fkey FOREIGN KEY (rekey_customer_id) REFERENCES public.customers(rekey_id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED NOT VALID;
COMMENT ON CONSTRAINT rekey_orders_customer_id_fkey ON public.orders IS 'A customer''s orders';

-- validate, ddl: correct references to public.customers
SET LOCAL sortkey.rekey_backfill = 'on';
DO $rekey$
DECLARE
    pair record;
BEGIN
    FOR pair IN
        DELETE FROM rekeyed.rekey_pending d USING ONLY public.customers r
        WHERE d.key = 0 AND r.id = d.old_key::bigint AND r.rekey_id::text COLLATE "C" <> d.new_key
        RETURNING r.id AS old, r.rekey_id AS fresh, d.new_key::uuid AS stale
    LOOP
        UPDATE ONLY public.orders t SET rekey_customer_id = pair.fresh WHERE t.rekey_customer_id = pair.stale AND t.customer_id = pair.old;
        UPDATE ONLY public.log t SET rekey_customer_id = pair.fresh WHERE t.rekey_customer_id = pair.stale AND t.customer_id = pair.old;
    END LOOP;
END
$rekey$;

-- validate, backfill: fill references of public.orders
-- index "", fill &{public.orders 1000 true false}, objects <nil>
WITH filled AS (
    UPDATE ONLY public.orders t SET rekey_customer_id = coalesce(t.rekey_customer_id, (SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id)) WHERE t.ctid >= ('(' || $1::text || ',0)')::tid AND t.ctid < ('(' || $2::text || ',0)')::tid AND (t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL) RETURNING (t.customer_id IS NULL OR t.rekey_customer_id IS NOT NULL) AS complete
)
SELECT count(*) FILTER (WHERE complete) FROM filled;
SELECT EXISTS (SELECT FROM ONLY public.orders t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL);
SELECT EXISTS (SELECT FROM ONLY public.orders t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL AND (SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id) IS NULL);

-- validate, backfill: fill references of public.log
-- index "", fill &{public.log 1000 true false}, objects <nil>
WITH filled AS (
    UPDATE ONLY public.log t SET rekey_customer_id = coalesce(t.rekey_customer_id, coalesce((SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id), (SELECT d.new_key::uuid FROM rekeyed.rekey_pending d WHERE d.key = 0 AND d.old_key = (t.customer_id)::text COLLATE "C"))) WHERE t.ctid >= ('(' || $1::text || ',0)')::tid AND t.ctid < ('(' || $2::text || ',0)')::tid AND (t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL) RETURNING (t.customer_id IS NULL OR t.rekey_customer_id IS NOT NULL) AS complete
)
SELECT count(*) FILTER (WHERE complete) FROM filled;
SELECT EXISTS (SELECT FROM ONLY public.log t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL);
SELECT EXISTS (SELECT FROM ONLY public.log t WHERE t.customer_id IS NOT NULL AND t.rekey_customer_id IS NULL AND coalesce((SELECT p.rekey_id FROM ONLY public.customers p WHERE p.id = t.customer_id), (SELECT d.new_key::uuid FROM rekeyed.rekey_pending d WHERE d.key = 0 AND d.old_key = (t.customer_id)::text COLLATE "C")) IS NULL);

-- validate, ddl: validate constraint rekey_id_not_null of public.customers
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
ALTER TABLE public.customers VALIDATE CONSTRAINT rekey_id_not_null;

-- validate, ddl: validate constraint rekey_id_not_null of public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
ALTER TABLE public.orders VALIDATE CONSTRAINT rekey_id_not_null;

-- validate, ddl: validate constraint rekey_customer_id_not_null of public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
ALTER TABLE public.orders VALIDATE CONSTRAINT rekey_customer_id_not_null;

-- validate, ddl: validate constraint rekey_of_someone of public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
ALTER TABLE public.orders VALIDATE CONSTRAINT rekey_of_someone;

-- validate, ddl: validate constraint rekey_customer_id_not_null of public.log
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
ALTER TABLE public.log VALIDATE CONSTRAINT rekey_customer_id_not_null;

-- validate, ddl: validate constraint rekey_orders_customer_id_fkey of public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
ALTER TABLE public.orders VALIDATE CONSTRAINT rekey_orders_customer_id_fkey;

-- validate, ddl: set NOT NULL on the new columns of public.customers
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN ACCESS EXCLUSIVE MODE;
DO $rekey$BEGIN IF NOT (SELECT attnotnull FROM pg_attribute WHERE attrelid = 'public.customers'::regclass AND attname = 'rekey_id') THEN ALTER TABLE public.customers ALTER COLUMN rekey_id SET NOT NULL; END IF; END$rekey$;
ALTER TABLE public.customers DROP CONSTRAINT IF EXISTS rekey_id_not_null;

-- validate, ddl: set NOT NULL on the new columns of public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
DO $rekey$BEGIN IF NOT (SELECT attnotnull FROM pg_attribute WHERE attrelid = 'public.orders'::regclass AND attname = 'rekey_id') THEN ALTER TABLE public.orders ALTER COLUMN rekey_id SET NOT NULL; END IF; END$rekey$;
ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_id_not_null;
DO $rekey$BEGIN IF NOT (SELECT attnotnull FROM pg_attribute WHERE attrelid = 'public.orders'::regclass AND attname = 'rekey_customer_id') THEN ALTER TABLE public.orders ADD CONSTRAINT rekey_of_a_customer NOT NULL rekey_customer_id NO INHERIT; END IF; END$rekey$;
COMMENT ON CONSTRAINT rekey_of_a_customer ON public.orders IS 'Always';
ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_customer_id_not_null;

-- validate, ddl: set NOT NULL on the new columns of public.log
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN ACCESS EXCLUSIVE MODE;
DO $rekey$BEGIN IF NOT (SELECT attnotnull FROM pg_attribute WHERE attrelid = 'public.log'::regclass AND attname = 'rekey_customer_id') THEN ALTER TABLE public.log ALTER COLUMN rekey_customer_id SET NOT NULL; END IF; END$rekey$;
ALTER TABLE public.log DROP CONSTRAINT IF EXISTS rekey_customer_id_not_null;

-- validate, ddl: analyze public.customers
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
ANALYZE public.customers (rekey_id);

-- validate, ddl: analyze public.orders
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
ANALYZE public.orders (rekey_id, rekey_customer_id);

-- validate, ddl: analyze public.log
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
ANALYZE public.log (rekey_customer_id);

-- validate, check: compare the keys of all rows
SELECT count(*) || ' rows of public.customers have no rekey_id, such as the one with id ' || min(t.id::text) || '; run backfill, and repeat the step' FROM ONLY public.customers t WHERE t.rekey_id IS NULL AND t.id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have no rekey_id, such as the one with id ' || min(t.id::text) || '; run backfill, and repeat the step' FROM ONLY public.orders t WHERE t.rekey_id IS NULL AND t.id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have no rekey_customer_id, such as the one with customer_id ' || min(t.customer_id::text) || '; run backfill, and repeat the step' FROM ONLY public.orders t WHERE t.rekey_customer_id IS NULL AND t.customer_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have customer_id and rekey_customer_id of different rows, as ' || (array_agg(coalesce(t.customer_id::text, 'NULL') || ' and ' || t.rekey_customer_id))[1:5]::text || '; if customer_id is right, run UPDATE ONLY public.orders SET rekey_customer_id = rekeyed.new_key_0(customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …, and if rekey_customer_id is right, UPDATE ONLY public.orders SET customer_id = rekeyed.old_key_0(rekey_customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …' FROM ONLY public.orders t LEFT JOIN ONLY public.customers p ON p.id = t.customer_id WHERE t.rekey_customer_id IS NOT NULL AND (t.customer_id IS NULL OR p.rekey_id <> t.rekey_customer_id) HAVING count(*) > 0;
SELECT count(*) || ' rows of public.log have no rekey_customer_id, such as the one with customer_id ' || min(t.customer_id::text) || '; run backfill, and repeat the step' FROM ONLY public.log t WHERE t.rekey_customer_id IS NULL AND t.customer_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.log have customer_id and rekey_customer_id of different rows, as ' || (array_agg(coalesce(t.customer_id::text, 'NULL') || ' and ' || t.rekey_customer_id))[1:5]::text || '; if customer_id is right, run UPDATE ONLY public.log SET rekey_customer_id = rekeyed.new_key_0(customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …, and if rekey_customer_id is right, UPDATE ONLY public.log SET customer_id = rekeyed.old_key_0(rekey_customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …' FROM ONLY public.log t LEFT JOIN ONLY public.customers p ON p.id = t.customer_id LEFT JOIN rekeyed.rekey_pending d ON d.key = 0 AND d.old_key = (t.customer_id)::text COLLATE "C" WHERE t.rekey_customer_id IS NOT NULL AND (t.customer_id IS NULL OR coalesce(p.rekey_id, d.new_key::uuid) <> t.rekey_customer_id OR p.rekey_id IS NULL AND EXISTS (SELECT FROM ONLY public.customers o WHERE o.rekey_id = t.rekey_customer_id AND o.id <> t.customer_id)) HAVING count(*) > 0;

-- validate, ddl: create views for programs of the new version
DROP VIEW IF EXISTS rekeyed.report, rekeyed.log, rekeyed.orders, rekeyed.customers;
GRANT USAGE ON SCHEMA rekeyed TO PUBLIC;
CREATE VIEW rekeyed.customers AS SELECT name, rekey_id AS id FROM public.customers;
DO $rekey$DECLARE
    role text;
BEGIN
    FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC')
        FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'rekeyed.customers'::regclass AND (false OR a.grantee <> c.relowner)
    LOOP
        EXECUTE 'REVOKE ALL ON rekeyed.customers FROM ' || role;
    END LOOP;
END$rekey$;
GRANT SELECT ON rekeyed.customers TO app;
CREATE VIEW rekeyed.orders AS SELECT created_at, total, rekey_id AS id, rekey_customer_id AS customer_id FROM public.orders;
GRANT CREATE ON SCHEMA rekeyed TO clerk;
ALTER VIEW rekeyed.orders OWNER TO clerk;
REVOKE CREATE ON SCHEMA rekeyed FROM clerk;
DO $rekey$DECLARE
    role text;
BEGIN
    FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC')
        FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'rekeyed.orders'::regclass AND (false OR a.grantee <> c.relowner)
    LOOP
        EXECUTE 'REVOKE ALL ON rekeyed.orders FROM ' || role;
    END LOOP;
END$rekey$;
GRANT SELECT ON rekeyed.orders TO app;
CREATE VIEW rekeyed.log AS SELECT at, rekey_customer_id AS customer_id FROM public.log;
DO $rekey$DECLARE
    role text;
BEGIN
    FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC')
        FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'rekeyed.log'::regclass AND (false OR a.grantee <> c.relowner)
    LOOP
        EXECUTE 'REVOKE ALL ON rekeyed.log FROM ' || role;
    END LOOP;
END$rekey$;
GRANT SELECT ON rekeyed.log TO app;
SET LOCAL search_path = rekeyed, public;
CREATE VIEW rekeyed.report (id, customer_id) WITH (security_barrier=true) AS
 SELECT id,
    customer_id
   FROM orders;
ALTER VIEW rekeyed.report ALTER COLUMN customer_id SET DEFAULT 7;
DO $rekey$DECLARE
    role text;
BEGIN
    FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC')
        FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'rekeyed.report'::regclass AND (true OR a.grantee <> c.relowner)
    LOOP
        EXECUTE 'REVOKE ALL ON rekeyed.report FROM ' || role;
    END LOOP;
END$rekey$;
GRANT SELECT ON rekeyed.report TO report;
SET LOCAL search_path = pg_catalog;

-- validate, check: check the views
SELECT DISTINCT 'view ' || r.ev_class::regclass || ' reads ' || pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) || '; drop the original and create it again after cleanup'
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid AND d.classid = 'pg_rewrite'::regclass JOIN pg_class c ON c.oid = r.ev_class
    LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
    WHERE c.relnamespace = 'rekeyed'::regnamespace AND d.refclassid = 'pg_class'::regclass
    AND (d.refobjid::regclass || ':' || a.attname IN ('public.customers:id', 'public.orders:id', 'public.orders:customer_id', 'public.log:customer_id', '') OR d.refobjid::regclass::text IN ('public.report', ''));
WITH pairs (original, view) AS (VALUES ('public.customers'::regclass, 'rekeyed.customers'::regclass), ('public.orders'::regclass, 'rekeyed.orders'::regclass), ('public.log'::regclass, 'rekeyed.log'::regclass)), privileges AS (
    SELECT p.original, p.view, c.oid = p.view AS of_view, format(E'%s%s\t%s\t%s', a.privilege_type, ' (' || quote_ident(x.name) || ')', coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC'), CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END) AS line
    FROM pairs p JOIN pg_class c ON c.oid IN (p.original, p.view), LATERAL (
        SELECT NULL::name, coalesce(c.relacl, acldefault('r', c.relowner))
        UNION ALL SELECT t.attname, t.attacl FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped AND t.attname !~ '^rekey_'
    ) x (name, acl), aclexplode(x.acl) a WHERE a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') AND a.grantee <> c.relowner
), single AS (
    SELECT original, view, NOT bool_or(of_view) AS missing, split_part(line, E'\t', 1) AS privilege, split_part(line, E'\t', 2) AS role, split_part(line, E'\t', 3) AS option
    FROM privileges GROUP BY original, view, line HAVING count(DISTINCT of_view) = 1
)
SELECT format(CASE WHEN missing THEN '%1$s%3$s of role %5$s on %4$s is new: GRANT %1$s ON %2$s TO %5$s%3$s' ELSE '%1$s%3$s of role %5$s on %4$s is gone: REVOKE %1$s ON %2$s FROM %5$s' END, privilege, view, option, original, role)
FROM single ORDER BY original::text, privilege, role;

-- validate, trial: try the new columns of public.customers before contract
SET LOCAL search_path = public, pg_temp;

-- validate, trial: try the new columns of public.orders before contract
SET LOCAL search_path = public, pg_temp;
/* with the old keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    UPDATE ONLY public.orders SET created_at = created_at, total = total, customer_id = customer_id WHERE ctid = (SELECT ctid FROM ONLY public.orders ORDER BY rekey_id DESC LIMIT 1);
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the old keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id, rekey_id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id, sortkey.next_snowflake(20) FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY rekey_id DESC LIMIT 1) x ON true RETURNING ctid INTO copy;
    DELETE FROM ONLY public.orders WHERE ctid = copy;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the old keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY rekey_id DESC LIMIT 1) x ON true;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the new keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    UPDATE ONLY public.orders SET created_at = created_at, total = total, customer_id = customer_id WHERE ctid = (SELECT ctid FROM ONLY public.orders ORDER BY id DESC LIMIT 1);
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the new keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id, id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id, sortkey.next_snowflake(20) FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY id DESC LIMIT 1) x ON true RETURNING ctid INTO copy;
    DELETE FROM ONLY public.orders WHERE ctid = copy;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the new keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY id DESC LIMIT 1) x ON true RETURNING id::text, coalesce(sortkey.snowflake_time(id) NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp() + interval '1 day', true) INTO given, other;
    IF other THEN
        RAISE EXCEPTION USING ERRCODE = 'RK001', MESSAGE = 'a trigger on public.orders sets the key that a program leaves out to ' || coalesce(given, 'NULL') || ', which is no snowflake of now';
    END IF;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;

-- validate, trial: try the new columns of public.log before contract
SET LOCAL search_path = public, pg_temp;

-- contract, check: compare the keys of all rows
SELECT count(*) || ' rows of public.customers have no rekey_id, such as the one with id ' || min(t.id::text) || '; run backfill, and repeat the step' FROM ONLY public.customers t WHERE t.rekey_id IS NULL AND t.id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have no rekey_id, such as the one with id ' || min(t.id::text) || '; run backfill, and repeat the step' FROM ONLY public.orders t WHERE t.rekey_id IS NULL AND t.id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have no rekey_customer_id, such as the one with customer_id ' || min(t.customer_id::text) || '; run backfill, and repeat the step' FROM ONLY public.orders t WHERE t.rekey_customer_id IS NULL AND t.customer_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have customer_id and rekey_customer_id of different rows, as ' || (array_agg(coalesce(t.customer_id::text, 'NULL') || ' and ' || t.rekey_customer_id))[1:5]::text || '; if customer_id is right, run UPDATE ONLY public.orders SET rekey_customer_id = rekeyed.new_key_0(customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …, and if rekey_customer_id is right, UPDATE ONLY public.orders SET customer_id = rekeyed.old_key_0(rekey_customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …' FROM ONLY public.orders t LEFT JOIN ONLY public.customers p ON p.id = t.customer_id WHERE t.rekey_customer_id IS NOT NULL AND (t.customer_id IS NULL OR p.rekey_id <> t.rekey_customer_id) HAVING count(*) > 0;
SELECT count(*) || ' rows of public.log have no rekey_customer_id, such as the one with customer_id ' || min(t.customer_id::text) || '; run backfill, and repeat the step' FROM ONLY public.log t WHERE t.rekey_customer_id IS NULL AND t.customer_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.log have customer_id and rekey_customer_id of different rows, as ' || (array_agg(coalesce(t.customer_id::text, 'NULL') || ' and ' || t.rekey_customer_id))[1:5]::text || '; if customer_id is right, run UPDATE ONLY public.log SET rekey_customer_id = rekeyed.new_key_0(customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …, and if rekey_customer_id is right, UPDATE ONLY public.log SET customer_id = rekeyed.old_key_0(rekey_customer_id) WHERE customer_id IS NOT DISTINCT FROM … AND rekey_customer_id = …' FROM ONLY public.log t LEFT JOIN ONLY public.customers p ON p.id = t.customer_id LEFT JOIN rekeyed.rekey_pending d ON d.key = 0 AND d.old_key = (t.customer_id)::text COLLATE "C" WHERE t.rekey_customer_id IS NOT NULL AND (t.customer_id IS NULL OR coalesce(p.rekey_id, d.new_key::uuid) <> t.rekey_customer_id OR p.rekey_id IS NULL AND EXISTS (SELECT FROM ONLY public.customers o WHERE o.rekey_id = t.rekey_customer_id AND o.id <> t.customer_id)) HAVING count(*) > 0;

-- contract, check: look for new objects on the columns
SELECT DISTINCT CASE WHEN x.hidden THEN 'depends on a column of rekey: ' ELSE 'would be lost: ' END || x.object || '; drop it, and create it again after contract'
    FROM (SELECT (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) AS object, t.name || ':' || a.attname IN ('public.customers:rekey_id', 'public.orders:rekey_id', 'public.orders:rekey_customer_id', 'public.log:rekey_customer_id', '') AS hidden
        FROM (SELECT c.oid, format('%I.%I', c.relnamespace::regnamespace::text::name, c.relname) AS name FROM pg_class c) t
        JOIN pg_attribute a ON a.attrelid = t.oid JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid AND d.refobjsubid = a.attnum
        LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
        WHERE g.tgisinternal IS NOT true AND t.name || ':' || a.attname IN ('public.customers:id', 'public.orders:id', 'public.orders:customer_id', 'public.log:customer_id', '', 'public.customers:rekey_id', 'public.orders:rekey_id', 'public.orders:rekey_customer_id', 'public.log:rekey_customer_id', '')) x
    WHERE x.object !~ '"[ ~]rekey ' AND x.object !~ '(^| )(index [^ ]*\.|)"?rekey_' AND x.object !~ ' rekeyed\.' AND x.object NOT IN ('');
SELECT format(CASE WHEN p.relkind = 'p' THEN 'table %1$s is a partition of %2$s; run ALTER TABLE %2$s DETACH PARTITION %1$s'
    WHEN i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') THEN 'table %1$s inherits from %2$s; run ALTER TABLE %1$s NO INHERIT %2$s'
    ELSE 'table %1$s inherits from %2$s, and its rows have one key alone; move them to %2$s, and drop it' END, i.inhrelid::regclass, i.inhparent::regclass)
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') OR i.inhparent::regclass::text IN ('public.customers', 'public.orders', 'public.log', '');
SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) || ' is in schema rekeyed; move it to another one with SET SCHEMA'
    FROM pg_class c WHERE c.relnamespace = 'rekeyed'::regnamespace
    AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND c.relname NOT IN ('customers', 'orders', 'log', 'report', 'rekey_pending', 'rekey_claims', 'rekey_state', '')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i'))
    UNION ALL SELECT pg_describe_object('pg_proc'::regclass, p.oid, 0) || ' is in schema rekeyed; move it to another one with SET SCHEMA'
    FROM pg_proc p WHERE p.pronamespace = 'rekeyed'::regnamespace AND p.proname !~ '^(new_key|old_key|new_of|old_of|fill)_[0-9]+$';
SELECT format('publication %I publishes %I.%I; drop the table from it, and copy it to subscribers again after cleanup', p.pubname, p.schemaname, p.tablename) FROM pg_publication_tables p WHERE format('%I.%I', p.schemaname, p.tablename) IN ('public.customers', 'public.orders', 'public.log', '');

-- contract, check: check the privileges
WITH pairs (original, view) AS (VALUES ('public.customers'::regclass, 'rekeyed.customers'::regclass), ('public.orders'::regclass, 'rekeyed.orders'::regclass), ('public.log'::regclass, 'rekeyed.log'::regclass)), privileges AS (
    SELECT p.original, p.view, c.oid = p.view AS of_view, format(E'%s%s\t%s\t%s', a.privilege_type, ' (' || quote_ident(x.name) || ')', coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC'), CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' END) AS line
    FROM pairs p JOIN pg_class c ON c.oid IN (p.original, p.view), LATERAL (
        SELECT NULL::name, coalesce(c.relacl, acldefault('r', c.relowner))
        UNION ALL SELECT t.attname, t.attacl FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped AND t.attname !~ '^rekey_'
    ) x (name, acl), aclexplode(x.acl) a WHERE a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') AND a.grantee <> c.relowner
), single AS (
    SELECT original, view, NOT bool_or(of_view) AS missing, split_part(line, E'\t', 1) AS privilege, split_part(line, E'\t', 2) AS role, split_part(line, E'\t', 3) AS option
    FROM privileges GROUP BY original, view, line HAVING count(DISTINCT of_view) = 1
)
SELECT format(CASE WHEN missing THEN '%1$s%3$s of role %5$s on %4$s is new: GRANT %1$s ON %2$s TO %5$s%3$s' ELSE '%1$s%3$s of role %5$s on %4$s is gone: REVOKE %1$s ON %2$s FROM %5$s' END, privilege, view, option, original, role)
FROM single ORDER BY original::text, privilege, role;
SELECT 'role ' || role || ' inserts into public.customers, and can''t execute sortkey.next_sno(integer, integer), the default after contract; GRANT USAGE ON SCHEMA sortkey TO ' || role || '; GRANT EXECUTE ON FUNCTION sortkey.next_sno(integer, integer) TO ' || role FROM (SELECT DISTINCT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END AS role
    FROM (SELECT a.* FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'public.customers'::regclass
    UNION ALL SELECT a.* FROM pg_attribute t, aclexplode(t.attacl) a WHERE t.attrelid = 'public.customers'::regclass) g
    WHERE g.privilege_type = 'INSERT' AND NOT (has_schema_privilege(g.grantee, 'sortkey', 'USAGE') AND has_function_privilege(g.grantee, 'sortkey.next_sno(integer, integer)', 'EXECUTE'))) x;
SELECT 'role ' || role || ' inserts into public.orders, and can''t execute sortkey.next_snowflake(integer), the default after contract; GRANT USAGE ON SCHEMA sortkey TO ' || role || '; GRANT EXECUTE ON FUNCTION sortkey.next_snowflake(integer) TO ' || role FROM (SELECT DISTINCT CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END AS role
    FROM (SELECT a.* FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'public.orders'::regclass
    UNION ALL SELECT a.* FROM pg_attribute t, aclexplode(t.attacl) a WHERE t.attrelid = 'public.orders'::regclass) g
    WHERE g.privilege_type = 'INSERT' AND NOT (has_schema_privilege(g.grantee, 'sortkey', 'USAGE') AND has_function_privilege(g.grantee, 'sortkey.next_snowflake(integer)', 'EXECUTE'))) x;

-- contract, trial: try the new columns of public.customers
SET LOCAL search_path = public, pg_temp;

-- contract, trial: try the new columns of public.orders
SET LOCAL search_path = public, pg_temp;
/* with the old keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    UPDATE ONLY public.orders SET created_at = created_at, total = total, customer_id = customer_id WHERE ctid = (SELECT ctid FROM ONLY public.orders ORDER BY rekey_id DESC LIMIT 1);
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the old keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id, rekey_id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id, sortkey.next_snowflake(20) FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY rekey_id DESC LIMIT 1) x ON true RETURNING ctid INTO copy;
    DELETE FROM ONLY public.orders WHERE ctid = copy;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the old keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY rekey_id DESC LIMIT 1) x ON true;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the new keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    UPDATE ONLY public.orders SET created_at = created_at, total = total, customer_id = customer_id WHERE ctid = (SELECT ctid FROM ONLY public.orders ORDER BY id DESC LIMIT 1);
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the new keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id, id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id, sortkey.next_snowflake(20) FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY id DESC LIMIT 1) x ON true RETURNING ctid INTO copy;
    DELETE FROM ONLY public.orders WHERE ctid = copy;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;
/* with the new keys */ DO $rekey$
#variable_conflict use_column
DECLARE
    copy tid;
    given text;
    other boolean;
BEGIN
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    BEGIN DROP INDEX IF EXISTS public.rekey_orders_once; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END;
    INSERT INTO public.orders (created_at, total, customer_id, rekey_customer_id)
        SELECT x.created_at, x.total, x.customer_id, x.rekey_customer_id FROM (SELECT) one LEFT JOIN (SELECT * FROM ONLY public.orders ORDER BY id DESC LIMIT 1) x ON true RETURNING id::text, coalesce(sortkey.snowflake_time(id) NOT BETWEEN clock_timestamp() - interval '1 day' AND clock_timestamp() + interval '1 day', true) INTO given, other;
    IF other THEN
        RAISE EXCEPTION USING ERRCODE = 'RK001', MESSAGE = 'a trigger on public.orders sets the key that a program leaves out to ' || coalesce(given, 'NULL') || ', which is no snowflake of now';
    END IF;
    SET CONSTRAINTS ALL IMMEDIATE;
END
$rekey$;

-- contract, trial: try the new columns of public.log
SET LOCAL search_path = public, pg_temp;

-- contract, swap: exchange the columns of public.customers
-- index "", fill <nil>, objects &{[public.customers] [public.customers.id] []}
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.customers RENAME COLUMN id TO "~rekey";
ALTER TABLE public.customers RENAME COLUMN rekey_id TO id;
ALTER TABLE public.customers RENAME COLUMN "~rekey" TO rekey_id;
ALTER INDEX public.customers_pkey RENAME TO "~rekey";
ALTER INDEX public.rekey_customers_pkey RENAME TO customers_pkey;
ALTER INDEX public."~rekey" RENAME TO rekey_customers_pkey;
ALTER TABLE public.customers ALTER COLUMN id SET DEFAULT sortkey.next_sno(10, 99);
CREATE OR REPLACE FUNCTION rekeyed.new_of_0(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key uuid;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.id INTO found_key FROM ONLY public.customers t WHERE t.rekey_id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.new_key::uuid INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('old 0 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, old_key, new_key) VALUES (0, given::text, (sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING RETURNING p.new_key::uuid INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.customers';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_of_0(bigint) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.old_of_0(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key bigint;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.rekey_id INTO found_key FROM ONLY public.customers t WHERE t.id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.old_key::bigint INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.new_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('new 0 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, new_key, old_key) VALUES (0, given::text, (nextval('public.customers_id_seq'))::text) ON CONFLICT DO NOTHING RETURNING p.old_key::bigint INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.customers';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_of_0(uuid) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.fill_0() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.id IS NOT NULL THEN
            SELECT t.rekey_id::text INTO chosen FROM ONLY public.customers t WHERE t.id = NEW.id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 0 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.rekey_id::text INTO chosen FROM ONLY public.customers t WHERE t.id = NEW.id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.rekey_id := chosen::bigint;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.new_key = NEW.id::text COLLATE "C";
                IF FOUND THEN
                    NEW.rekey_id := chosen::bigint;
                    hash := hashtextextended(('old 0 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.customers t WHERE t.id = NEW.id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.rekey_id IS NULL THEN
                        NEW.rekey_id := nextval('public.customers_id_seq');
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.rekey_id::text COLLATE "C");
                        NEW.rekey_id := nextval('public.customers_id_seq');
                    END LOOP;
                END IF;
            END IF;
        ELSE
            IF NEW.rekey_id IS NULL THEN
                NEW.rekey_id := nextval('public.customers_id_seq');
            END IF;
            SELECT t.id INTO NEW.id FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('old 0 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id INTO NEW.id FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
            IF NOT FOUND THEN
                IF current_setting('transaction_isolation') = 'serializable' THEN
                    -- This fails if another transaction has deleted the row since the snapshot.
                    INSERT INTO rekeyed.rekey_pending AS p VALUES (0, NEW.rekey_id::text COLLATE "C", (sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING RETURNING p.ctid, p.new_key INTO probe, chosen;
                    DELETE FROM rekeyed.rekey_pending p WHERE p.ctid = probe;
                END IF;
                IF chosen IS NULL THEN
                    SELECT p.new_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.rekey_id::text COLLATE "C";
                END IF;
                NEW.id := coalesce(chosen::uuid, sortkey.next_sno(10, 99));
            END IF;
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.rekey_id IS DISTINCT FROM OLD.rekey_id OR NEW.id IS DISTINCT FROM OLD.id THEN
            INSERT INTO rekeyed.rekey_pending VALUES (0, OLD.rekey_id::text, coalesce(OLD.id, sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING;
            IF OLD.id IS NULL THEN -- the backfill sets it
                SELECT p.new_key::uuid INTO NEW.id FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.rekey_id::text COLLATE "C";
            ELSIF NEW.id IS NOT DISTINCT FROM OLD.id THEN
                NEW.id := rekeyed.new_key_0(NEW.rekey_id);
            ELSIF NEW.rekey_id IS NOT DISTINCT FROM OLD.rekey_id THEN
                NEW.rekey_id := rekeyed.old_key_0(NEW.id);
            END IF;
        END IF;
    ELSE
        INSERT INTO rekeyed.rekey_pending VALUES (0, OLD.rekey_id::text, coalesce(OLD.id, sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING;
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_0() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_0() IS 'Keeps both keys of public.customers equal during a rekey.';

-- contract, swap: exchange the columns of public.orders
-- index "", fill <nil>, objects &{[public.orders] [public.orders.id public.orders.customer_id] [public.report]}
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
DROP VIEW public.report;
ALTER TABLE public.orders RENAME COLUMN id TO "~rekey";
ALTER TABLE public.orders RENAME COLUMN rekey_id TO id;
ALTER TABLE public.orders RENAME COLUMN "~rekey" TO rekey_id;
ALTER TABLE public.orders RENAME COLUMN customer_id TO "~rekey";
ALTER TABLE public.orders RENAME COLUMN rekey_customer_id TO customer_id;
ALTER TABLE public.orders RENAME COLUMN "~rekey" TO rekey_customer_id;
ALTER INDEX public.orders_pkey RENAME TO "~rekey";
ALTER INDEX public.rekey_orders_pkey RENAME TO orders_pkey;
ALTER INDEX public."~rekey" RENAME TO rekey_orders_pkey;
ALTER INDEX public.orders_once RENAME TO "~rekey";
ALTER INDEX public.rekey_orders_once RENAME TO orders_once;
ALTER INDEX public."~rekey" RENAME TO rekey_orders_once;
ALTER INDEX public.orders_open RENAME TO "~rekey";
ALTER INDEX public.rekey_orders_open RENAME TO orders_open;
ALTER INDEX public."~rekey" RENAME TO rekey_orders_open;
ALTER TABLE public.orders RENAME CONSTRAINT of_someone TO "~rekey";
ALTER TABLE public.orders RENAME CONSTRAINT rekey_of_someone TO of_someone;
ALTER TABLE public.orders RENAME CONSTRAINT "~rekey" TO rekey_of_someone;
ALTER TABLE public.orders RENAME CONSTRAINT orders_customer_id_fkey TO "~rekey";
ALTER TABLE public.orders RENAME CONSTRAINT rekey_orders_customer_id_fkey TO orders_customer_id_fkey;
ALTER TABLE public.orders RENAME CONSTRAINT "~rekey" TO rekey_orders_customer_id_fkey;
ALTER TABLE public.orders ALTER CONSTRAINT orders_customer_id_fkey DEFERRABLE INITIALLY IMMEDIATE;
ALTER TABLE public.orders ALTER CONSTRAINT rekey_orders_customer_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE public.orders ALTER COLUMN id SET DEFAULT sortkey.next_snowflake(20);
ALTER TABLE public.orders RENAME CONSTRAINT of_a_customer TO "~rekey";
ALTER TABLE public.orders RENAME CONSTRAINT rekey_of_a_customer TO of_a_customer;
ALTER TABLE public.orders RENAME CONSTRAINT "~rekey" TO rekey_of_a_customer;
CREATE OR REPLACE FUNCTION rekeyed.new_of_1(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key bigint;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.id INTO found_key FROM ONLY public.orders t WHERE t.rekey_id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.new_key::bigint INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('old 1 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, old_key, new_key) VALUES (1, given::text, (sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING RETURNING p.new_key::bigint INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.orders';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_of_1(uuid) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.old_of_1(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key uuid;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.rekey_id INTO found_key FROM ONLY public.orders t WHERE t.id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.old_key::uuid INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('new 1 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, new_key, old_key) VALUES (1, given::text, (gen_random_uuid())::text) ON CONFLICT DO NOTHING RETURNING p.old_key::uuid INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.orders';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_of_1(bigint) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.fill_1() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF left(TG_NAME, 1) = ' ' THEN
        IF NEW.customer_id IS NULL THEN
            NEW.customer_id := rekeyed.new_key_0(NEW.rekey_customer_id::bigint);
        ELSIF NEW.rekey_customer_id IS NULL THEN
            NEW.rekey_customer_id := rekeyed.old_key_0(NEW.customer_id);
        ELSIF NEW.customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.rekey_customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns rekey_customer_id and customer_id of table public.orders refer to different rows', HINT = 'Set only one of them.';
        END IF;
        IF NEW.id IS NOT NULL THEN
            SELECT t.rekey_id::text INTO chosen FROM ONLY public.orders t WHERE t.id = NEW.id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.rekey_id::text INTO chosen FROM ONLY public.orders t WHERE t.id = NEW.id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.rekey_id := chosen::uuid;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = NEW.id::text COLLATE "C";
                IF FOUND THEN
                    NEW.rekey_id := chosen::uuid;
                    hash := hashtextextended(('old 1 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.orders t WHERE t.id = NEW.id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.rekey_id IS NULL THEN
                        NEW.rekey_id := gen_random_uuid();
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.rekey_id::text COLLATE "C");
                        NEW.rekey_id := gen_random_uuid();
                    END LOOP;
                END IF;
            END IF;
            INSERT INTO rekeyed.rekey_pending VALUES (1, NEW.rekey_id::text, NEW.id::text) ON CONFLICT DO NOTHING;
        END IF;
            RETURN NEW;
        END IF;
        NEW.rekey_customer_id := rekeyed.old_key_0(NEW.customer_id);
        IF NEW.id IS NOT NULL THEN
            SELECT t.rekey_id::text INTO chosen FROM ONLY public.orders t WHERE t.id = NEW.id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.rekey_id::text INTO chosen FROM ONLY public.orders t WHERE t.id = NEW.id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.rekey_id := chosen::uuid;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = NEW.id::text COLLATE "C";
                IF FOUND THEN
                    NEW.rekey_id := chosen::uuid;
                    hash := hashtextextended(('old 1 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.orders t WHERE t.id = NEW.id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.rekey_id IS NULL THEN
                        NEW.rekey_id := gen_random_uuid();
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.rekey_id::text COLLATE "C");
                        NEW.rekey_id := gen_random_uuid();
                    END LOOP;
                END IF;
            END IF;
        ELSE
            IF NEW.rekey_id IS NULL THEN
                NEW.rekey_id := gen_random_uuid();
            END IF;
            SELECT t.id INTO NEW.id FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('old 1 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id INTO NEW.id FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
            IF NOT FOUND THEN
                IF current_setting('transaction_isolation') = 'serializable' THEN
                    -- This fails if another transaction has deleted the row since the snapshot.
                    INSERT INTO rekeyed.rekey_pending AS p VALUES (1, NEW.rekey_id::text COLLATE "C", (sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING RETURNING p.ctid, p.new_key INTO probe, chosen;
                    DELETE FROM rekeyed.rekey_pending p WHERE p.ctid = probe;
                END IF;
                IF chosen IS NULL THEN
                    SELECT p.new_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.rekey_id::text COLLATE "C";
                END IF;
                NEW.id := coalesce(chosen::bigint, sortkey.next_snowflake(20));
            END IF;
        END IF;
        PERFORM FROM ONLY public.orders t WHERE t.customer_id = NEW.customer_id AND t.created_at = NEW.created_at AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                SELECT hash_record_extended(ROW('index 2'::text, customer_id, created_at), 0) INTO hash FROM (SELECT NEW.*) x WHERE customer_id IS NOT NULL AND created_at IS NOT NULL;
        IF FOUND THEN
            INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
                PERFORM FROM ONLY public.orders t WHERE t.customer_id = NEW.customer_id AND t.created_at = NEW.created_at AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF left(TG_NAME, 1) = ' ' THEN
        IF NEW.customer_id IS NOT DISTINCT FROM OLD.customer_id THEN
            IF NEW.rekey_customer_id IS DISTINCT FROM OLD.rekey_customer_id OR NEW.customer_id IS NULL OR false THEN
                NEW.customer_id := rekeyed.new_key_0(NEW.rekey_customer_id::bigint);
            END IF;
        ELSIF NEW.rekey_customer_id IS NOT DISTINCT FROM OLD.rekey_customer_id THEN
            NEW.rekey_customer_id := rekeyed.old_key_0(NEW.customer_id);
        ELSIF NEW.customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.rekey_customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns rekey_customer_id and customer_id of table public.orders refer to different rows', HINT = 'Set only one of them.';
        END IF;
            RETURN NEW;
        END IF;
        IF OLD.customer_id IS DISTINCT FROM NEW.customer_id OR OLD.rekey_customer_id IS DISTINCT FROM NEW.rekey_customer_id OR false THEN
            NEW.rekey_customer_id := rekeyed.old_key_0(NEW.customer_id);
        END IF;
        IF NEW.rekey_id IS DISTINCT FROM OLD.rekey_id OR NEW.id IS DISTINCT FROM OLD.id THEN
            INSERT INTO rekeyed.rekey_pending VALUES (1, OLD.rekey_id::text, coalesce(OLD.id, sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING;
            IF OLD.id IS NULL THEN -- the backfill sets it
                SELECT p.new_key::bigint INTO NEW.id FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.rekey_id::text COLLATE "C";
            ELSIF NEW.id IS NOT DISTINCT FROM OLD.id THEN
                NEW.id := rekeyed.new_key_1(NEW.rekey_id);
            ELSIF NEW.rekey_id IS NOT DISTINCT FROM OLD.rekey_id THEN
                NEW.rekey_id := rekeyed.old_key_1(NEW.id);
            END IF;
        END IF;
    ELSE
        INSERT INTO rekeyed.rekey_pending VALUES (1, OLD.rekey_id::text, coalesce(OLD.id, sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING;
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_1() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_1() IS 'Keeps both keys of public.orders equal during a rekey.';
SET LOCAL search_path = public;
CREATE VIEW public.report (id, customer_id) WITH (security_barrier=true) AS
 SELECT id,
    customer_id
   FROM orders;
COMMENT ON COLUMN public.report.id IS 'The order';
ALTER VIEW public.report ALTER COLUMN customer_id SET DEFAULT 7;
COMMENT ON VIEW public.report IS 'A report';
DO $rekey$DECLARE
    role text;
BEGIN
    FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC')
        FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'public.report'::regclass AND (true OR a.grantee <> c.relowner)
    LOOP
        EXECUTE 'REVOKE ALL ON public.report FROM ' || role;
    END LOOP;
END$rekey$;
GRANT SELECT ON public.report TO report;
SET LOCAL search_path = pg_catalog;
ALTER ROUTINE public.touch() SECURITY INVOKER;

-- contract, swap: exchange the columns of public.log
-- index "", fill <nil>, objects &{[public.log] [public.log.customer_id] []}
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.log RENAME COLUMN customer_id TO "~rekey";
ALTER TABLE public.log RENAME COLUMN rekey_customer_id TO customer_id;
ALTER TABLE public.log RENAME COLUMN "~rekey" TO rekey_customer_id;
CREATE OR REPLACE FUNCTION rekeyed.fill_2() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.customer_id IS NULL THEN
            NEW.customer_id := rekeyed.new_key_0(NEW.rekey_customer_id::bigint);
        ELSIF NEW.rekey_customer_id IS NULL THEN
            NEW.rekey_customer_id := rekeyed.old_key_0(NEW.customer_id);
        ELSIF NEW.customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.rekey_customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns rekey_customer_id and customer_id of table public.log refer to different rows', HINT = 'Set only one of them.';
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.customer_id IS NOT DISTINCT FROM OLD.customer_id THEN
            IF NEW.rekey_customer_id IS DISTINCT FROM OLD.rekey_customer_id OR NEW.customer_id IS NULL OR false THEN
                NEW.customer_id := rekeyed.new_key_0(NEW.rekey_customer_id::bigint);
            END IF;
        ELSIF NEW.rekey_customer_id IS NOT DISTINCT FROM OLD.rekey_customer_id THEN
            NEW.rekey_customer_id := rekeyed.old_key_0(NEW.customer_id);
        ELSIF NEW.customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.rekey_customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns rekey_customer_id and customer_id of table public.log refer to different rows', HINT = 'Set only one of them.';
        END IF;
    ELSE
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_2() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_2() IS 'Keeps both keys of public.log equal during a rekey.';

-- cleanup, check: look for new objects on the columns
SELECT DISTINCT CASE WHEN x.hidden THEN 'depends on a column of rekey: ' ELSE 'would be lost: ' END || x.object || '; drop it: cleanup drops this column'
    FROM (SELECT (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) AS object, t.name || ':' || a.attname IN ('public.customers:rekey_id', 'public.orders:rekey_id', 'public.orders:rekey_customer_id', 'public.log:rekey_customer_id', '') AS hidden
        FROM (SELECT c.oid, format('%I.%I', c.relnamespace::regnamespace::text::name, c.relname) AS name FROM pg_class c) t
        JOIN pg_attribute a ON a.attrelid = t.oid JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid AND d.refobjsubid = a.attnum
        LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
        WHERE g.tgisinternal IS NOT true AND t.name || ':' || a.attname IN ('', 'public.customers:rekey_id', 'public.orders:rekey_id', 'public.orders:rekey_customer_id', 'public.log:rekey_customer_id', '')) x
    WHERE x.object !~ '"[ ~]rekey ' AND x.object !~ '(^| )(index [^ ]*\.|)"?rekey_' AND x.object !~ ' rekeyed\.' AND x.object NOT IN ('index public.customers_pkey', 'index public.orders_pkey', 'default value for public.customers.id', 'default value for public.customers.rekey_id', 'default value for public.orders.id', 'default value for public.orders.rekey_id', 'default value for public.orders.customer_id', 'default value for public.orders.rekey_customer_id', 'default value for public.log.customer_id', 'default value for public.log.rekey_customer_id', '');
SELECT format(CASE WHEN p.relkind = 'p' THEN 'table %1$s is a partition of %2$s; run ALTER TABLE %2$s DETACH PARTITION %1$s'
    WHEN i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') THEN 'table %1$s inherits from %2$s; run ALTER TABLE %1$s NO INHERIT %2$s'
    ELSE 'table %1$s inherits from %2$s, and its rows have one key alone; move them to %2$s, and drop it' END, i.inhrelid::regclass, i.inhparent::regclass)
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') OR i.inhparent::regclass::text IN ('public.customers', 'public.orders', 'public.log', '');
SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) || ' is in schema rekeyed; move it to another one with SET SCHEMA'
    FROM pg_class c WHERE c.relnamespace = 'rekeyed'::regnamespace
    AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND c.relname NOT IN ('customers', 'orders', 'log', 'report', 'rekey_pending', 'rekey_claims', 'rekey_state', '')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i'))
    UNION ALL SELECT pg_describe_object('pg_proc'::regclass, p.oid, 0) || ' is in schema rekeyed; move it to another one with SET SCHEMA'
    FROM pg_proc p WHERE p.pronamespace = 'rekeyed'::regnamespace AND p.proname !~ '^(new_key|old_key|new_of|old_of|fill)_[0-9]+$';
SELECT DISTINCT (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) || ' depends on the views of rekey; drop it, or let it read the tables'
    FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid::regclass::text IN ('rekeyed.customers', 'rekeyed.orders', 'rekeyed.log', 'rekeyed.report', '') AND d.deptype = 'n'
    AND (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) NOT IN (SELECT 'view ' || v FROM unnest(ARRAY['rekeyed.customers', 'rekeyed.orders', 'rekeyed.log', 'rekeyed.report', '']) v);
SELECT DISTINCT (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) || ' uses sequence ' || d.refobjid::regclass || ', which would be dropped; '
    || CASE s.deptype WHEN 'i' THEN 'drop this use, or let it use another sequence' ELSE 'run ALTER SEQUENCE ' || d.refobjid::regclass || ' OWNED BY NONE, and cleanup keeps the sequence, or drop this use' END
    FROM pg_depend d LEFT JOIN pg_attrdef f ON d.classid = 'pg_attrdef'::regclass AND f.oid = d.objid
    JOIN pg_depend s ON s.classid = 'pg_class'::regclass AND s.objid = d.refobjid AND s.refclassid = 'pg_class'::regclass AND s.deptype IN ('a', 'i')
    JOIN pg_attribute a ON a.attrelid = s.refobjid AND a.attnum = s.refobjsubid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid::regclass::text IN ('public.customers_id_seq', '') AND d.deptype = 'n'
    AND s.refobjid::regclass || ':' || a.attname IN ('public.customers:rekey_id', '') AND (f.adrelid, f.adnum) IS DISTINCT FROM (s.refobjid, s.refobjsubid);
SELECT format('publication %I publishes %I.%I; drop the table from it, and copy it to subscribers again after cleanup', p.pubname, p.schemaname, p.tablename) FROM pg_publication_tables p WHERE format('%I.%I', p.schemaname, p.tablename) IN ('public.customers', 'public.orders', 'public.log', '');

-- cleanup, ddl: drop foreign key rekey_orders_customer_id_fkey of public.orders
LOCK TABLE public.customers, public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers, public.orders IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_customer_id_fkey;

-- cleanup, ddl: drop the old columns of public.orders
-- index "", fill <nil>, objects &{[public.orders] [public.orders.id public.orders.customer_id] []}
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.orders;
DROP TRIGGER IF EXISTS " rekey update" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey update" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.orders;
ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_of_someone;
ALTER TABLE public.orders DROP COLUMN rekey_id, DROP COLUMN rekey_customer_id;
ALTER TABLE public.orders ADD CONSTRAINT orders_pkey PRIMARY KEY USING INDEX orders_pkey;
COMMENT ON CONSTRAINT orders_pkey ON public.orders IS 'The key';
ALTER TABLE public.orders REPLICA IDENTITY USING INDEX orders_pkey;

-- cleanup, ddl: drop the old columns of public.log
-- index "", fill <nil>, objects &{[public.log] [public.log.customer_id] []}
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.log;
DROP TRIGGER IF EXISTS " rekey update" ON public.log;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.log;
DROP TRIGGER IF EXISTS "~rekey update" ON public.log;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.log;
ALTER TABLE public.log DROP COLUMN rekey_customer_id;

-- cleanup, ddl: drop the old columns of public.customers
-- index "", fill <nil>, objects &{[public.customers] [public.customers.id] []}
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.customers;
DROP TRIGGER IF EXISTS " rekey update" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey update" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.customers;
ALTER TABLE public.customers DROP COLUMN rekey_id;
ALTER TABLE public.customers ADD CONSTRAINT customers_pkey PRIMARY KEY USING INDEX customers_pkey;

-- cleanup, ddl: drop view rekeyed.report
DROP VIEW IF EXISTS rekeyed.report;

-- cleanup, ddl: drop view rekeyed.log
DROP VIEW IF EXISTS rekeyed.log;

-- cleanup, ddl: drop view rekeyed.orders
DROP VIEW IF EXISTS rekeyed.orders;

-- cleanup, ddl: drop view rekeyed.customers
DROP VIEW IF EXISTS rekeyed.customers;

-- cleanup, end: drop schema rekeyed
SELECT sortkey.unreserve_node('sno', 11, greatest(clock_timestamp(), (SELECT sortkey.sno_time(id) FROM public.customers ORDER BY id DESC LIMIT 1)));
SELECT sortkey.unreserve_node('snowflake', 21, greatest(clock_timestamp(), (SELECT sortkey.snowflake_time(id) FROM public.orders ORDER BY id DESC LIMIT 1)));
DROP FUNCTION IF EXISTS rekeyed.fill_0();
DROP FUNCTION IF EXISTS rekeyed.fill_1();
DROP FUNCTION IF EXISTS rekeyed.fill_2();
DROP FUNCTION IF EXISTS rekeyed.new_key_0, rekeyed.old_key_0, rekeyed.new_of_0, rekeyed.old_of_0;
DROP FUNCTION IF EXISTS rekeyed.new_key_1, rekeyed.old_key_1, rekeyed.new_of_1, rekeyed.old_of_1;
DROP TABLE IF EXISTS rekeyed.rekey_pending, rekeyed.rekey_claims, rekeyed.rekey_state;
DROP SCHEMA rekeyed;

-- undo, check: compare the keys of all rows
SELECT count(*) || ' rows of public.customers have no id, such as the one with rekey_id ' || min(t.rekey_id::text) || '; run backfill, and repeat the step' FROM ONLY public.customers t WHERE t.id IS NULL AND t.rekey_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have no id, such as the one with rekey_id ' || min(t.rekey_id::text) || '; run backfill, and repeat the step' FROM ONLY public.orders t WHERE t.id IS NULL AND t.rekey_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have no customer_id, such as the one with rekey_customer_id ' || min(t.rekey_customer_id::text) || '; run backfill, and repeat the step' FROM ONLY public.orders t WHERE t.customer_id IS NULL AND t.rekey_customer_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.orders have rekey_customer_id and customer_id of different rows, as ' || (array_agg(coalesce(t.rekey_customer_id::text, 'NULL') || ' and ' || t.customer_id))[1:5]::text || '; if rekey_customer_id is right, run UPDATE ONLY public.orders SET customer_id = rekeyed.new_key_0(rekey_customer_id) WHERE rekey_customer_id IS NOT DISTINCT FROM … AND customer_id = …, and if customer_id is right, UPDATE ONLY public.orders SET rekey_customer_id = rekeyed.old_key_0(customer_id) WHERE rekey_customer_id IS NOT DISTINCT FROM … AND customer_id = …' FROM ONLY public.orders t LEFT JOIN ONLY public.customers p ON p.rekey_id = t.rekey_customer_id WHERE t.customer_id IS NOT NULL AND (t.rekey_customer_id IS NULL OR p.id <> t.customer_id) HAVING count(*) > 0;
SELECT count(*) || ' rows of public.log have no customer_id, such as the one with rekey_customer_id ' || min(t.rekey_customer_id::text) || '; run backfill, and repeat the step' FROM ONLY public.log t WHERE t.customer_id IS NULL AND t.rekey_customer_id IS NOT NULL HAVING count(*) > 0;
SELECT count(*) || ' rows of public.log have rekey_customer_id and customer_id of different rows, as ' || (array_agg(coalesce(t.rekey_customer_id::text, 'NULL') || ' and ' || t.customer_id))[1:5]::text || '; if rekey_customer_id is right, run UPDATE ONLY public.log SET customer_id = rekeyed.new_key_0(rekey_customer_id) WHERE rekey_customer_id IS NOT DISTINCT FROM … AND customer_id = …, and if customer_id is right, UPDATE ONLY public.log SET rekey_customer_id = rekeyed.old_key_0(customer_id) WHERE rekey_customer_id IS NOT DISTINCT FROM … AND customer_id = …' FROM ONLY public.log t LEFT JOIN ONLY public.customers p ON p.rekey_id = t.rekey_customer_id LEFT JOIN rekeyed.rekey_pending d ON d.key = 0 AND d.old_key = (t.rekey_customer_id)::text COLLATE "C" WHERE t.customer_id IS NOT NULL AND (t.rekey_customer_id IS NULL OR coalesce(p.id, d.new_key::uuid) <> t.customer_id OR p.id IS NULL AND EXISTS (SELECT FROM ONLY public.customers o WHERE o.id = t.customer_id AND o.rekey_id <> t.rekey_customer_id)) HAVING count(*) > 0;

-- undo, check: look for new objects on the columns
SELECT DISTINCT CASE WHEN x.hidden THEN 'depends on a column of rekey: ' ELSE 'would be lost: ' END || x.object || '; drop it before undo'
    FROM (SELECT (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) AS object, t.name || ':' || a.attname IN ('public.customers:rekey_id', 'public.orders:rekey_id', 'public.orders:rekey_customer_id', 'public.log:rekey_customer_id', '') AS hidden
        FROM (SELECT c.oid, format('%I.%I', c.relnamespace::regnamespace::text::name, c.relname) AS name FROM pg_class c) t
        JOIN pg_attribute a ON a.attrelid = t.oid JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid AND d.refobjsubid = a.attnum
        LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
        WHERE g.tgisinternal IS NOT true AND t.name || ':' || a.attname IN ('public.customers:id', 'public.orders:id', 'public.orders:customer_id', 'public.log:customer_id', '', 'public.customers:rekey_id', 'public.orders:rekey_id', 'public.orders:rekey_customer_id', 'public.log:rekey_customer_id', '')) x
    WHERE x.object !~ '"[ ~]rekey ' AND x.object !~ '(^| )(index [^ ]*\.|)"?rekey_' AND x.object !~ ' rekeyed\.' AND x.object NOT IN ('index public.customers_pkey', 'index public.orders_pkey', 'default value for public.customers.id', 'default value for public.customers.rekey_id', 'default value for public.orders.id', 'default value for public.orders.rekey_id', 'default value for public.orders.customer_id', 'default value for public.orders.rekey_customer_id', 'default value for public.log.customer_id', 'default value for public.log.rekey_customer_id', '');
SELECT format(CASE WHEN p.relkind = 'p' THEN 'table %1$s is a partition of %2$s; run ALTER TABLE %2$s DETACH PARTITION %1$s'
    WHEN i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') THEN 'table %1$s inherits from %2$s; run ALTER TABLE %1$s NO INHERIT %2$s'
    ELSE 'table %1$s inherits from %2$s, and its rows have one key alone; move them to %2$s, and drop it' END, i.inhrelid::regclass, i.inhparent::regclass)
    FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent WHERE i.inhrelid::regclass::text IN ('public.customers', 'public.orders', 'public.log', '') OR i.inhparent::regclass::text IN ('public.customers', 'public.orders', 'public.log', '');

-- undo, swap: give the old columns of public.log their names
-- index "", fill <nil>, objects &{[public.log] [public.log.customer_id] []}
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.log RENAME COLUMN customer_id TO "~rekey";
ALTER TABLE public.log RENAME COLUMN rekey_customer_id TO customer_id;
ALTER TABLE public.log RENAME COLUMN "~rekey" TO rekey_customer_id;
CREATE OR REPLACE FUNCTION rekeyed.fill_2() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.rekey_customer_id IS NULL THEN
            NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        ELSIF NEW.customer_id IS NULL THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.log refer to different rows', HINT = 'Set only one of them.';
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.rekey_customer_id IS NOT DISTINCT FROM OLD.rekey_customer_id THEN
            IF NEW.customer_id IS DISTINCT FROM OLD.customer_id OR NEW.rekey_customer_id IS NULL OR false THEN
                NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
            END IF;
        ELSIF NEW.customer_id IS NOT DISTINCT FROM OLD.customer_id THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.log refer to different rows', HINT = 'Set only one of them.';
        END IF;
    ELSE
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_2() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_2() IS 'Keeps both keys of public.log equal during a rekey.';

-- undo, swap: give the old columns of public.orders their names
-- index "", fill <nil>, objects &{[public.orders] [public.orders.id public.orders.customer_id] [public.report]}
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
DROP VIEW public.report;
ALTER TABLE public.orders RENAME COLUMN id TO "~rekey";
ALTER TABLE public.orders RENAME COLUMN rekey_id TO id;
ALTER TABLE public.orders RENAME COLUMN "~rekey" TO rekey_id;
ALTER TABLE public.orders RENAME COLUMN customer_id TO "~rekey";
ALTER TABLE public.orders RENAME COLUMN rekey_customer_id TO customer_id;
ALTER TABLE public.orders RENAME COLUMN "~rekey" TO rekey_customer_id;
ALTER INDEX public.orders_pkey RENAME TO "~rekey";
ALTER INDEX public.rekey_orders_pkey RENAME TO orders_pkey;
ALTER INDEX public."~rekey" RENAME TO rekey_orders_pkey;
ALTER INDEX public.orders_once RENAME TO "~rekey";
ALTER INDEX public.rekey_orders_once RENAME TO orders_once;
ALTER INDEX public."~rekey" RENAME TO rekey_orders_once;
ALTER INDEX public.orders_open RENAME TO "~rekey";
ALTER INDEX public.rekey_orders_open RENAME TO orders_open;
ALTER INDEX public."~rekey" RENAME TO rekey_orders_open;
ALTER TABLE public.orders RENAME CONSTRAINT of_someone TO "~rekey";
ALTER TABLE public.orders RENAME CONSTRAINT rekey_of_someone TO of_someone;
ALTER TABLE public.orders RENAME CONSTRAINT "~rekey" TO rekey_of_someone;
ALTER TABLE public.orders RENAME CONSTRAINT orders_customer_id_fkey TO "~rekey";
ALTER TABLE public.orders RENAME CONSTRAINT rekey_orders_customer_id_fkey TO orders_customer_id_fkey;
ALTER TABLE public.orders RENAME CONSTRAINT "~rekey" TO rekey_orders_customer_id_fkey;
ALTER TABLE public.orders ALTER CONSTRAINT orders_customer_id_fkey DEFERRABLE INITIALLY IMMEDIATE;
ALTER TABLE public.orders ALTER CONSTRAINT rekey_orders_customer_id_fkey DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE public.orders ALTER COLUMN rekey_id DROP DEFAULT;
ALTER TABLE public.orders RENAME CONSTRAINT of_a_customer TO "~rekey";
ALTER TABLE public.orders RENAME CONSTRAINT rekey_of_a_customer TO of_a_customer;
ALTER TABLE public.orders RENAME CONSTRAINT "~rekey" TO rekey_of_a_customer;
CREATE OR REPLACE FUNCTION rekeyed.new_of_1(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key bigint;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.rekey_id INTO found_key FROM ONLY public.orders t WHERE t.id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.new_key::bigint INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('old 1 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, old_key, new_key) VALUES (1, given::text, (sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING RETURNING p.new_key::bigint INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.orders';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_of_1(uuid) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.old_of_1(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key uuid;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.id INTO found_key FROM ONLY public.orders t WHERE t.rekey_id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.old_key::uuid INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('new 1 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, new_key, old_key) VALUES (1, given::text, (gen_random_uuid())::text) ON CONFLICT DO NOTHING RETURNING p.old_key::uuid INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.orders';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_of_1(bigint) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.fill_1() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF left(TG_NAME, 1) = ' ' THEN
        IF NEW.rekey_customer_id IS NULL THEN
            NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        ELSIF NEW.customer_id IS NULL THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.orders refer to different rows', HINT = 'Set only one of them.';
        END IF;
        IF NEW.rekey_id IS NOT NULL THEN
            SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 1 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.id := chosen::uuid;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = NEW.rekey_id::text COLLATE "C";
                IF FOUND THEN
                    NEW.id := chosen::uuid;
                    hash := hashtextextended(('old 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.id IS NULL THEN
                        NEW.id := gen_random_uuid();
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C");
                        NEW.id := gen_random_uuid();
                    END LOOP;
                END IF;
            END IF;
            INSERT INTO rekeyed.rekey_pending VALUES (1, NEW.id::text, NEW.rekey_id::text) ON CONFLICT DO NOTHING;
        END IF;
            RETURN NEW;
        END IF;
        NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        IF NEW.rekey_id IS NOT NULL THEN
            SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 1 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id::text INTO chosen FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.id := chosen::uuid;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.new_key = NEW.rekey_id::text COLLATE "C";
                IF FOUND THEN
                    NEW.id := chosen::uuid;
                    hash := hashtextextended(('old 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.orders t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.id IS NULL THEN
                        NEW.id := gen_random_uuid();
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C");
                        NEW.id := gen_random_uuid();
                    END LOOP;
                END IF;
            END IF;
        ELSE
            IF NEW.id IS NULL THEN
                NEW.id := gen_random_uuid();
            END IF;
            SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.orders t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('old 1 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.orders t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
            IF NOT FOUND THEN
                IF current_setting('transaction_isolation') = 'serializable' THEN
                    -- This fails if another transaction has deleted the row since the snapshot.
                    INSERT INTO rekeyed.rekey_pending AS p VALUES (1, NEW.id::text COLLATE "C", (sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING RETURNING p.ctid, p.new_key INTO probe, chosen;
                    DELETE FROM rekeyed.rekey_pending p WHERE p.ctid = probe;
                END IF;
                IF chosen IS NULL THEN
                    SELECT p.new_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C";
                END IF;
                NEW.rekey_id := coalesce(chosen::bigint, sortkey.next_snowflake(20));
            END IF;
        END IF;
        PERFORM FROM ONLY public.orders t WHERE t.customer_id = NEW.customer_id AND t.created_at = NEW.created_at AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                SELECT hash_record_extended(ROW('index 2'::text, customer_id, created_at), 0) INTO hash FROM (SELECT NEW.*) x WHERE customer_id IS NOT NULL AND created_at IS NOT NULL;
        IF FOUND THEN
            INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
                PERFORM FROM ONLY public.orders t WHERE t.customer_id = NEW.customer_id AND t.created_at = NEW.created_at AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF left(TG_NAME, 1) = ' ' THEN
        IF NEW.rekey_customer_id IS NOT DISTINCT FROM OLD.rekey_customer_id THEN
            IF NEW.customer_id IS DISTINCT FROM OLD.customer_id OR NEW.rekey_customer_id IS NULL OR false THEN
                NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
            END IF;
        ELSIF NEW.customer_id IS NOT DISTINCT FROM OLD.customer_id THEN
            NEW.customer_id := rekeyed.old_key_0(NEW.rekey_customer_id);
        ELSIF NEW.rekey_customer_id IS DISTINCT FROM rekeyed.new_key_0(NEW.customer_id::bigint) THEN
            RAISE EXCEPTION USING ERRCODE = 'integrity_constraint_violation',
                MESSAGE = 'columns customer_id and rekey_customer_id of table public.orders refer to different rows', HINT = 'Set only one of them.';
        END IF;
            RETURN NEW;
        END IF;
        IF OLD.customer_id IS DISTINCT FROM NEW.customer_id OR OLD.rekey_customer_id IS DISTINCT FROM NEW.rekey_customer_id OR false THEN
            NEW.rekey_customer_id := rekeyed.new_key_0(NEW.customer_id::bigint);
        END IF;
        IF NEW.id IS DISTINCT FROM OLD.id OR NEW.rekey_id IS DISTINCT FROM OLD.rekey_id THEN
            INSERT INTO rekeyed.rekey_pending VALUES (1, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING;
            IF OLD.rekey_id IS NULL THEN -- the backfill sets it
                SELECT p.new_key::bigint INTO NEW.rekey_id FROM rekeyed.rekey_pending p WHERE p.key = 1 AND p.old_key = NEW.id::text COLLATE "C";
            ELSIF NEW.rekey_id IS NOT DISTINCT FROM OLD.rekey_id THEN
                NEW.rekey_id := rekeyed.new_key_1(NEW.id);
            ELSIF NEW.id IS NOT DISTINCT FROM OLD.id THEN
                NEW.id := rekeyed.old_key_1(NEW.rekey_id);
            END IF;
        END IF;
    ELSE
        INSERT INTO rekeyed.rekey_pending VALUES (1, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_snowflake(20))::text) ON CONFLICT DO NOTHING;
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_1() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_1() IS 'Keeps both keys of public.orders equal during a rekey.';
SET LOCAL search_path = public;
CREATE VIEW public.report (id, customer_id) WITH (security_barrier=true) AS
 SELECT id,
    customer_id
   FROM orders;
COMMENT ON COLUMN public.report.id IS 'The order';
ALTER VIEW public.report ALTER COLUMN customer_id SET DEFAULT 7;
COMMENT ON VIEW public.report IS 'A report';
DO $rekey$DECLARE
    role text;
BEGIN
    FOR role IN SELECT DISTINCT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC')
        FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a WHERE c.oid = 'public.report'::regclass AND (true OR a.grantee <> c.relowner)
    LOOP
        EXECUTE 'REVOKE ALL ON public.report FROM ' || role;
    END LOOP;
END$rekey$;
GRANT SELECT ON public.report TO report;
SET LOCAL search_path = pg_catalog;
ALTER ROUTINE public.touch() SECURITY INVOKER;

-- undo, swap: give the old columns of public.customers their names
-- index "", fill <nil>, objects &{[public.customers] [public.customers.id] []}
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.customers RENAME COLUMN id TO "~rekey";
ALTER TABLE public.customers RENAME COLUMN rekey_id TO id;
ALTER TABLE public.customers RENAME COLUMN "~rekey" TO rekey_id;
ALTER INDEX public.customers_pkey RENAME TO "~rekey";
ALTER INDEX public.rekey_customers_pkey RENAME TO customers_pkey;
ALTER INDEX public."~rekey" RENAME TO rekey_customers_pkey;
ALTER TABLE public.customers ALTER COLUMN rekey_id DROP DEFAULT;
CREATE OR REPLACE FUNCTION rekeyed.new_of_0(given bigint) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key uuid;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.rekey_id INTO found_key FROM ONLY public.customers t WHERE t.id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.new_key::uuid INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('old 0 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, old_key, new_key) VALUES (0, given::text, (sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING RETURNING p.new_key::uuid INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.customers';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.new_of_0(bigint) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.old_of_0(given uuid) RETURNS bigint LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_variable
DECLARE
    found_key bigint;
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.id INTO found_key FROM ONLY public.customers t WHERE t.rekey_id = given;
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.old_key::bigint INTO found_key FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.new_key = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            hash := hashtextextended(('new 0 ' || given) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO rekeyed.rekey_pending AS p (key, new_key, old_key) VALUES (0, given::text, (nextval('public.customers_id_seq'))::text) ON CONFLICT DO NOTHING RETURNING p.old_key::bigint INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, 'of public.customers';
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.old_of_0(uuid) FROM PUBLIC;
CREATE OR REPLACE FUNCTION rekeyed.fill_0() RETURNS trigger LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $rekey$
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.rekey_id IS NOT NULL THEN
            SELECT t.id::text INTO chosen FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('new 0 ' || NEW.rekey_id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.id::text INTO chosen FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
            END IF;
            IF FOUND THEN
                NEW.id := chosen::bigint;
            ELSE
                SELECT p.old_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.new_key = NEW.rekey_id::text COLLATE "C";
                IF FOUND THEN
                    NEW.id := chosen::bigint;
                    hash := hashtextextended(('old 0 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                    PERFORM FROM ONLY public.customers t WHERE t.rekey_id = NEW.rekey_id FOR NO KEY UPDATE;
                ELSE
                    IF NEW.id IS NULL THEN
                        NEW.id := nextval('public.customers_id_seq');
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.id::text COLLATE "C");
                        NEW.id := nextval('public.customers_id_seq');
                    END LOOP;
                END IF;
            END IF;
        ELSE
            IF NEW.id IS NULL THEN
                NEW.id := nextval('public.customers_id_seq');
            END IF;
            SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.customers t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            IF NOT FOUND THEN
                hash := hashtextextended(('old 0 ' || NEW.id) COLLATE "C", 0); INSERT INTO rekeyed.rekey_claims VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
                SELECT t.rekey_id INTO NEW.rekey_id FROM ONLY public.customers t WHERE t.id = NEW.id AND current_setting('transaction_isolation') <> 'serializable' FOR NO KEY UPDATE;
            END IF;
            IF NOT FOUND THEN
                IF current_setting('transaction_isolation') = 'serializable' THEN
                    -- This fails if another transaction has deleted the row since the snapshot.
                    INSERT INTO rekeyed.rekey_pending AS p VALUES (0, NEW.id::text COLLATE "C", (sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING RETURNING p.ctid, p.new_key INTO probe, chosen;
                    DELETE FROM rekeyed.rekey_pending p WHERE p.ctid = probe;
                END IF;
                IF chosen IS NULL THEN
                    SELECT p.new_key INTO chosen FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.id::text COLLATE "C";
                END IF;
                NEW.rekey_id := coalesce(chosen::uuid, sortkey.next_sno(10, 99));
            END IF;
        END IF;
    ELSIF TG_OP = 'UPDATE' THEN
        IF NEW.id IS DISTINCT FROM OLD.id OR NEW.rekey_id IS DISTINCT FROM OLD.rekey_id THEN
            INSERT INTO rekeyed.rekey_pending VALUES (0, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING;
            IF OLD.rekey_id IS NULL THEN -- the backfill sets it
                SELECT p.new_key::uuid INTO NEW.rekey_id FROM rekeyed.rekey_pending p WHERE p.key = 0 AND p.old_key = NEW.id::text COLLATE "C";
            ELSIF NEW.rekey_id IS NOT DISTINCT FROM OLD.rekey_id THEN
                NEW.rekey_id := rekeyed.new_key_0(NEW.id);
            ELSIF NEW.id IS NOT DISTINCT FROM OLD.id THEN
                NEW.id := rekeyed.old_key_0(NEW.rekey_id);
            END IF;
        END IF;
    ELSE
        INSERT INTO rekeyed.rekey_pending VALUES (0, OLD.id::text, coalesce(OLD.rekey_id, sortkey.next_sno(10, 99))::text) ON CONFLICT DO NOTHING;
        RETURN OLD;
    END IF;
    RETURN NEW;
END
$rekey$;
REVOKE EXECUTE ON FUNCTION rekeyed.fill_0() FROM PUBLIC;
COMMENT ON FUNCTION rekeyed.fill_0() IS 'Keeps both keys of public.customers equal during a rekey.';

-- abort, check: look for other objects in schema rekeyed
SELECT pg_describe_object('pg_class'::regclass, c.oid, 0) || ' is in schema rekeyed; move it to another one with SET SCHEMA'
    FROM pg_class c WHERE c.relnamespace = 'rekeyed'::regnamespace
    AND c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND c.relname NOT IN ('customers', 'orders', 'log', 'report', 'rekey_pending', 'rekey_claims', 'rekey_state', '')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i'))
    UNION ALL SELECT pg_describe_object('pg_proc'::regclass, p.oid, 0) || ' is in schema rekeyed; move it to another one with SET SCHEMA'
    FROM pg_proc p WHERE p.pronamespace = 'rekeyed'::regnamespace AND p.proname !~ '^(new_key|old_key|new_of|old_of|fill)_[0-9]+$';
SELECT DISTINCT (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) || ' depends on the views of rekey; drop it, or let it read the tables'
    FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid::regclass::text IN ('rekeyed.customers', 'rekeyed.orders', 'rekeyed.log', 'rekeyed.report', '') AND d.deptype = 'n'
    AND (SELECT i.type || ' ' || i.identity FROM pg_catalog.pg_identify_object(CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.classid ELSE 'pg_catalog.pg_class'::regclass END, coalesce((SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN'), d.objid), CASE WHEN (SELECT r.ev_class FROM pg_catalog.pg_rewrite r WHERE d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid AND r.rulename = '_RETURN') IS NULL THEN d.objsubid ELSE 0 END) i) NOT IN (SELECT 'view ' || v FROM unnest(ARRAY['rekeyed.customers', 'rekeyed.orders', 'rekeyed.log', 'rekeyed.report', '']) v);

-- abort, ddl: drop the views
DROP VIEW IF EXISTS rekeyed.report, rekeyed.log, rekeyed.orders, rekeyed.customers;

-- abort, ddl: drop foreign key rekey_orders_customer_id_fkey of public.orders
LOCK TABLE public.customers, public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers, public.orders IN ACCESS EXCLUSIVE MODE;
ALTER TABLE public.orders DROP CONSTRAINT IF EXISTS rekey_orders_customer_id_fkey;

-- abort, ddl: drop the new columns of public.orders
-- index "", fill <nil>, objects &{[public.orders] [public.orders.id public.orders.customer_id] []}
LOCK TABLE public.orders IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.orders;
DROP TRIGGER IF EXISTS " rekey update" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey update" ON public.orders;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.orders;
DROP INDEX IF EXISTS public.rekey_orders_times;
ALTER TABLE public.orders DROP COLUMN IF EXISTS rekey_id, DROP COLUMN IF EXISTS rekey_customer_id;

-- abort, ddl: drop the new columns of public.log
-- index "", fill <nil>, objects &{[public.log] [public.log.customer_id] []}
LOCK TABLE public.log IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.log IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.log;
DROP TRIGGER IF EXISTS " rekey update" ON public.log;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.log;
DROP TRIGGER IF EXISTS "~rekey update" ON public.log;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.log;
ALTER TABLE public.log DROP COLUMN IF EXISTS rekey_customer_id;

-- abort, ddl: drop the new columns of public.customers
-- index "", fill <nil>, objects &{[public.customers] [public.customers.id] []}
LOCK TABLE public.customers IN SHARE UPDATE EXCLUSIVE MODE;
LOCK TABLE public.customers IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER IF EXISTS " rekey insert" ON public.customers;
DROP TRIGGER IF EXISTS " rekey update" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey insert" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey update" ON public.customers;
DROP TRIGGER IF EXISTS "~rekey delete" ON public.customers;
ALTER TABLE public.customers DROP COLUMN IF EXISTS rekey_id;

-- abort, end: drop schema rekeyed
SELECT sortkey.unreserve_node('sno', 10);
SELECT sortkey.unreserve_node('sno', 11);
SELECT sortkey.unreserve_node('snowflake', 20);
SELECT sortkey.unreserve_node('snowflake', 21);
DROP FUNCTION IF EXISTS rekeyed.fill_0();
DROP FUNCTION IF EXISTS rekeyed.fill_1();
DROP FUNCTION IF EXISTS rekeyed.fill_2();
DROP FUNCTION IF EXISTS rekeyed.new_key_0, rekeyed.old_key_0, rekeyed.new_of_0, rekeyed.old_of_0;
DROP FUNCTION IF EXISTS rekeyed.new_key_1, rekeyed.old_key_1, rekeyed.new_of_1, rekeyed.old_of_1;
DROP TABLE IF EXISTS rekeyed.rekey_pending, rekeyed.rekey_claims, rekeyed.rekey_state;
DROP SCHEMA rekeyed;

