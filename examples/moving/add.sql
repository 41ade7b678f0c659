ALTER TABLE customers ADD COLUMN new_id uuid;
ALTER TABLE orders ADD COLUMN new_customer_id uuid;
CREATE UNIQUE INDEX CONCURRENTLY customers_new_id ON customers (new_id);
CREATE INDEX CONCURRENTLY orders_new_customer_id ON orders (new_customer_id);
CREATE INDEX CONCURRENTLY customers_without_new_id ON customers (created_at, id) WHERE new_id IS NULL;
