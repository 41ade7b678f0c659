ALTER TABLE customers ADD COLUMN new_id uuid;
CREATE UNIQUE INDEX CONCURRENTLY customers_new_id ON customers (new_id);
