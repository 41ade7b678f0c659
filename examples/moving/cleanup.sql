ALTER TABLE customers ALTER COLUMN id DROP DEFAULT;
DROP SEQUENCE customers_id_seq;
ALTER TABLE orders ALTER COLUMN id DROP IDENTITY; -- for bigserial, use the two statements above
