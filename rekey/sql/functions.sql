{{/* The function that translates a key. The query locks the table, and reads no row. */}}
{{define "translator"}}
BEGIN
    PERFORM FROM ONLY {{.table}} LIMIT 0;
    RETURN {{.look_up}}(given);
END
{{end}}

{{/* The function that looks a key up. */}}
{{define "look up"}}
#variable_conflict use_variable
DECLARE
    found_key {{.type}};
    hash bigint;
BEGIN
    IF given IS NULL THEN
        RETURN NULL;
    END IF;
    FOR attempt IN 1 .. 2 LOOP
        SELECT t.{{.to}} INTO found_key FROM ONLY {{.table}} t WHERE t.{{.from}} = given{{.collation}};
        IF FOUND THEN
            RETURN found_key; -- NULL before the backfill
        END IF;
        SELECT p.{{.to_text}}::{{.type}} INTO found_key FROM {{.pending}} p WHERE p.key = {{.key}} AND p.{{.from_text}} = given::text COLLATE "C";
        IF FOUND THEN
            RETURN found_key;
        END IF;
        IF attempt = 1 THEN
            {{.claim}}
        END IF;
    END LOOP;
    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
        INSERT INTO {{.pending}} AS p (key, {{.from_text}}, {{.to_text}}) VALUES ({{.key}}, given::text, ({{.fresh}})::text) ON CONFLICT DO NOTHING RETURNING p.{{.to_text}}::{{.type}} INTO found_key;
        IF FOUND THEN
            RETURN found_key;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'no unused key for key % %', given, {{.named}};
END
{{end}}

{{/* The function of the triggers of a table. */}}
{{define "trigger"}}
#variable_conflict use_column
DECLARE
    chosen text;
    hash bigint;
    probe tid;
BEGIN
    IF TG_OP = 'INSERT' THEN{{.inserts}}
    ELSIF TG_OP = 'UPDATE' THEN{{.updates}}
    ELSE{{.deletes}}
        RETURN OLD;
    END IF;
    RETURN NEW;
END
{{end}}

{{/* These set one key of a reference from the other one. */}}
{{define "insert a reference"}}
        IF NEW.{{.new}} IS NULL THEN
            NEW.{{.new}} := {{.to_new}};
        ELSIF NEW.{{.old}} IS NULL THEN
            NEW.{{.old}} := {{.to_old}};
        ELSIF NEW.{{.new}} IS DISTINCT FROM {{.to_new}} THEN
            {{.error}}
        END IF;{{end}}

{{define "update a reference"}}
        IF NEW.{{.new}} IS NOT DISTINCT FROM OLD.{{.new}} THEN
            IF NEW.{{.old}} IS DISTINCT FROM OLD.{{.old}} OR NEW.{{.new}} IS NULL OR {{.redirected}} THEN
                NEW.{{.new}} := {{.to_new}};
            END IF;
        ELSIF NEW.{{.old}} IS NOT DISTINCT FROM OLD.{{.old}} THEN
            NEW.{{.old}} := {{.to_old}};
        ELSIF NEW.{{.new}} IS DISTINCT FROM {{.to_new}} THEN
            {{.error}}
        END IF;{{end}}

{{/* These are for references whose keys are equal, unless a trigger of the user has changed the one that it sees. */}}
{{define "follow an insert"}}
        NEW.{{.follower}} := {{.followed}};{{end}}

{{define "follow an update"}}
        IF {{.changed}} OR {{.redirected}} THEN
            NEW.{{.follower}} := {{.followed}};
        END IF;{{end}}

{{/*
These set one key of a row from the other one. A pair of keys stays the same: rows that refer to this one may
have come first and chosen the pair, or refer to a row that was deleted.
*/}}
{{define "insert a row"}}{{template "insert by the new key" .}}
        ELSE
            IF NEW.{{.old}} IS NULL THEN
                NEW.{{.old}} := {{.default}};
            END IF;
            {{.existing_old}}
            IF NOT FOUND THEN
                IF current_setting('transaction_isolation') = 'serializable' THEN
                    -- This fails if another transaction has deleted the row since the snapshot.
                    INSERT INTO {{.pending}} AS p VALUES ({{.key}}, {{.old_text}}, ({{.next}})::text) ON CONFLICT DO NOTHING RETURNING p.ctid, p.new_key INTO probe, chosen;
                    DELETE FROM {{.pending}} p WHERE p.ctid = probe;
                END IF;
                IF chosen IS NULL THEN
                    SELECT p.new_key INTO chosen FROM {{.pending}} p WHERE p.key = {{.key}} AND p.old_key = {{.old_text}};
                END IF;
                NEW.{{.new}} := coalesce(chosen::{{.new_type}}, {{.next}});
            END IF;
        END IF;{{end}}

{{define "insert by the new key"}}
        IF NEW.{{.new}} IS NOT NULL THEN
            {{.existing_new}}
            IF FOUND THEN
                NEW.{{.old}} := chosen::{{.old_type}};
            ELSE
                SELECT p.old_key INTO chosen FROM {{.pending}} p WHERE p.key = {{.key}} AND p.new_key = {{.new_text}};
                IF FOUND THEN
                    NEW.{{.old}} := chosen::{{.old_type}};
                    {{.claim_old}}
                    {{.find_new}}
                ELSE
                    IF {{.choose_old}} THEN
                        NEW.{{.old}} := {{.old_expr}};
                    END IF;
                    FOR attempt IN 1 .. 1000 LOOP -- a sequence can return a key of a deleted row
                        EXIT WHEN NOT EXISTS (SELECT FROM {{.pending}} p WHERE p.key = {{.key}} AND p.old_key = {{.old_text}});
                        NEW.{{.old}} := {{.old_expr}};
                    END LOOP;
                END IF;
            END IF;{{end}}

{{/* This keeps the pair for the triggers of the user, which can insert rows that refer to this one. */}}
{{define "remember a row"}}{{template "insert by the new key" .}}
            INSERT INTO {{.pending}} VALUES ({{.key}}, NEW.{{.old}}::text, NEW.{{.new}}::text) ON CONFLICT DO NOTHING;
        END IF;{{end}}

{{/* This changes both keys, as if the row were another one. */}}
{{define "update a row"}}
        IF NEW.{{.old}} IS DISTINCT FROM OLD.{{.old}} OR NEW.{{.new}} IS DISTINCT FROM OLD.{{.new}} THEN
            INSERT INTO {{.pending}} VALUES ({{.key}}, OLD.{{.old}}::text, coalesce(OLD.{{.new}}, {{.former}})::text) ON CONFLICT DO NOTHING;
            IF OLD.{{.new}} IS NULL THEN -- the backfill sets it
                SELECT p.new_key::{{.new_type}} INTO NEW.{{.new}} FROM {{.pending}} p WHERE p.key = {{.key}} AND p.old_key = {{.old_text}};
            ELSIF NEW.{{.new}} IS NOT DISTINCT FROM OLD.{{.new}} THEN
                NEW.{{.new}} := {{.new_key}}(NEW.{{.old}});
            ELSIF NEW.{{.old}} IS NOT DISTINCT FROM OLD.{{.old}} THEN
                NEW.{{.old}} := {{.old_key}}(NEW.{{.new}});
            END IF;
        END IF;{{end}}

{{/* This keeps the pair for rows that still refer to the row, and for a row that is inserted with the same key. */}}
{{define "delete a row"}}
        INSERT INTO {{.pending}} VALUES ({{.key}}, OLD.{{.old}}::text, coalesce(OLD.{{.new}}, {{.former}})::text) ON CONFLICT DO NOTHING;{{end}}


{{/*
Claims the variable hash. A new version of the row makes others wait, and a transaction with an older snapshot
fails, since it can't see what the other one has inserted.
*/}}
{{define "claim" -}}
INSERT INTO {{.}} VALUES (hash) ON CONFLICT (claim) DO UPDATE SET claim = excluded.claim;
{{- end}}

{{/* Whether a statement changes a column. */}}
{{define "changed" -}}
OLD.{{.Quoted}} IS DISTINCT FROM NEW.{{.Quoted}} OR OLD.{{.Fresh}} IS DISTINCT FROM NEW.{{.Fresh}}
{{- end}}
