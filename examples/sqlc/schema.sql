-- Two tables have a domain each for their keys, over the domains that package migrations installs.
CREATE DOMAIN customer_id AS sortkey.sno;
CREATE DOMAIN order_id AS sortkey.snowflake;
CREATE TABLE customers (
    id         customer_id PRIMARY KEY,
    email      text NOT NULL,
    invited_by customer_id REFERENCES customers
);
CREATE TABLE orders (
    id          order_id PRIMARY KEY,
    customer_id customer_id NOT NULL REFERENCES customers,
    replaces    order_id REFERENCES orders,
    cents       bigint NOT NULL
);
-- Two tables have columns of Postgres's own types. sqlc.yaml lists the IDs among them.
-- IDs are declared as bigint, never as int8: see the README about arrays.
CREATE TABLE visits (
    id          bigint PRIMARY KEY,        -- a UID60
    customer_id uuid REFERENCES customers, -- like every uuid here
    page        text NOT NULL
);
CREATE TABLE vouchers (
    code     text COLLATE "C" PRIMARY KEY, -- the text of a Sno
    order_id bigint REFERENCES orders,     -- the key of an order
    cents    bigint NOT NULL               -- a number, not an ID
);
