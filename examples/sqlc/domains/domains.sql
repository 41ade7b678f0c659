-- The domains, as far as this example needs them.
CREATE SCHEMA sortkey;
CREATE DOMAIN sortkey.snowflake AS bigint CHECK (VALUE > 0);
CREATE DOMAIN sortkey.uid60 AS bigint CHECK (VALUE > 0);
CREATE DOMAIN sortkey.sno AS uuid;
CREATE DOMAIN sortkey.sno_text AS text COLLATE "C";
