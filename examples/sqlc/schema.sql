-- Two tables have columns of domains, which package migrations has installed: sqlc.yaml needs no list of them.
CREATE TABLE customers (
    id         sortkey.sno PRIMARY KEY,
    email      text NOT NULL,
    invited_by sortkey.sno REFERENCES customers
);
CREATE TABLE orders (
    id          sortkey.snowflake PRIMARY KEY,
    customer_id sortkey.sno NOT NULL REFERENCES customers,
    replaces    sortkey.snowflake REFERENCES orders,
    cents       bigint NOT NULL
);
-- Two have columns of Postgres' own types. sqlc.yaml says which of them are IDs.
-- What is an ID here is spelt bigint, never int8: see the README about arrays.
CREATE TABLE visits (
    id          bigint PRIMARY KEY,        -- a UID60
    customer_id uuid REFERENCES customers, -- a Sno, as every uuid here
    page        text NOT NULL
);
CREATE TABLE vouchers (
    code     text COLLATE "C" PRIMARY KEY, -- a Sno's text
    order_id bigint REFERENCES orders,     -- a Snowflake
    cents    bigint NOT NULL               -- a number, and no ID
);
