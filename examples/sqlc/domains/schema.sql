-- The columns have domains as their types, which package migrations has installed: sqlc.yaml needs no list of columns.
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
CREATE TABLE visits (
    id          sortkey.uid60 PRIMARY KEY,
    customer_id sortkey.sno REFERENCES customers,
    page        text NOT NULL
);
CREATE TABLE vouchers (
    code     sortkey.sno_as_text PRIMARY KEY,
    order_id sortkey.snowflake REFERENCES orders
);
