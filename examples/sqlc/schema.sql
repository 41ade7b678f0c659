-- Two tables have columns of domains, which package migrations installs. sqlc.yaml needs no list of these columns.
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
-- Two tables have columns of Postgres's own types. sqlc.yaml lists the IDs among them.
-- IDs are declared as bigint, never as int8: see the README about arrays.
CREATE TABLE visits (
    id          bigint PRIMARY KEY,        -- a UID60
    customer_id uuid REFERENCES customers, -- a Sno, like every uuid here
    page        text NOT NULL
);
CREATE TABLE vouchers (
    code     text COLLATE "C" PRIMARY KEY, -- the text of a Sno
    order_id bigint REFERENCES orders,     -- a Snowflake
    cents    bigint NOT NULL               -- a number, not an ID
);
