SET lock_timeout = '2s';
ALTER TABLE customers ADD CONSTRAINT customers_new_id_not_null CHECK (new_id IS NOT NULL) NOT VALID;
ALTER TABLE customers VALIDATE CONSTRAINT customers_new_id_not_null;
VACUUM ANALYZE orders;
