ALTER TABLE customers ALTER COLUMN id DROP DEFAULT;
DROP SEQUENCE customers_id_seq;
ALTER TABLE orders ALTER COLUMN id DROP IDENTITY; -- or, after bigserial, as above
