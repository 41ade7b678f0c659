BEGIN;
SET LOCAL lock_timeout = '2s';
ALTER TABLE orders ALTER COLUMN customer_id TYPE bigint;
ALTER TABLE customers ALTER COLUMN id TYPE bigint;
COMMIT;
