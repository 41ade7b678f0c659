CREATE TABLE customers (id bigserial PRIMARY KEY, created_at timestamptz, updated_at timestamptz, deleted_at timestamptz, name text);
CREATE TABLE orders (id bigserial PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customers, total bigint);
CREATE TABLE logins (customer_id bigint NOT NULL, at timestamptz NOT NULL); -- without a foreign key
INSERT INTO customers (created_at, name) SELECT now() - n * interval '1 hour', 'Customer ' || n FROM generate_series(1, 5000) n;
INSERT INTO orders (customer_id, total) SELECT 1 + n % 5000, n FROM generate_series(1, 20000) n;
INSERT INTO logins SELECT 1 + n % 5000, now() FROM generate_series(1, 5000) n;
ANALYZE;
