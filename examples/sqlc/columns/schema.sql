-- The columns have Postgres' own types. sqlc.yaml says which of them are IDs.
-- What is an ID here is spelt bigint, never int8: see the README about arrays.
CREATE TABLE customers (
    id         uuid PRIMARY KEY,           -- a Sno, as every uuid here
    email      text NOT NULL,
    invited_by uuid REFERENCES customers
);
CREATE TABLE orders (
    id          bigint PRIMARY KEY,        -- a Snowflake
    customer_id uuid NOT NULL REFERENCES customers,
    replaces    bigint REFERENCES orders,
    cents       bigint NOT NULL            -- a number, and no ID
);
CREATE TABLE visits (
    id          bigint PRIMARY KEY,        -- a UID60
    customer_id uuid REFERENCES customers,
    page        text NOT NULL
);
CREATE TABLE vouchers (
    code     text COLLATE "C" PRIMARY KEY, -- a Sno's text
    order_id bigint REFERENCES orders
);
