CREATE TABLE customers (
    id sortkey.sno PRIMARY KEY,
    name text NOT NULL
);

CREATE TABLE orders (
    id sortkey.snowflake PRIMARY KEY,
    customer_id sortkey.sno NOT NULL REFERENCES customers,
    item text NOT NULL,
    quantity bigint NOT NULL CHECK (quantity > 0),
    request_key text, -- the Idempotency-Key of the request
    UNIQUE (customer_id, request_key)
);

CREATE INDEX orders_of_customer ON orders (customer_id, id);
