CREATE SCHEMA sales;
CREATE DOMAIN order_id AS sortkey.snowflake;
CREATE DOMAIN given_order AS order_id NOT NULL;
CREATE TABLE customers (
    id         sortkey.sno PRIMARY KEY,
    email      text UNIQUE,
    invited_by sortkey.sno REFERENCES customers
);
-- 1:1, a reference to it, and one to that: all are keys of customers.
CREATE TABLE profiles (customer_id sortkey.sno PRIMARY KEY REFERENCES customers, picture uuid);
CREATE TABLE orders (
    id         order_id PRIMARY KEY,
    profile_id uuid NOT NULL UNIQUE REFERENCES profiles,
    replaces   order_id REFERENCES orders
);
CREATE TABLE reviews (id uuid PRIMARY KEY, writer uuid NOT NULL REFERENCES orders (profile_id), order_id given_order REFERENCES orders);
-- Tables with the same name.
CREATE TABLE sales.orders (id bigint PRIMARY KEY DEFAULT sortkey.next_spread64());
-- Names.
CREATE TABLE api_keys (id uuid PRIMARY KEY, "Owner.Id" bigint REFERENCES orders, small int);
CREATE TABLE "Order Items" ("ID" bigint PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders, sales_id bigint REFERENCES sales.orders);
COMMENT ON COLUMN "Order Items"."ID" IS E'Of the shop.\nsortkey: uid60';
CREATE TABLE "2fa_codes" (id uuid PRIMARY KEY);
CREATE TABLE types (id uuid PRIMARY KEY, "naïve*?\;`: ""x" uuid REFERENCES "2fa_codes");
CREATE TABLE type_ids (id uuid PRIMARY KEY, x_y uuid REFERENCES types, "X-Y" uuid REFERENCES types);
CREATE TABLE U&"*/ a\000aforged: fine\001b[31m\202e`;" (id uuid PRIMARY KEY, U&"b\000aforged: fine""\001b[31m\202e" uuid);
-- Numbers, and columns that refer to them.
CREATE TABLE accounts (id serial PRIMARY KEY);
CREATE TABLE counters (id bigserial PRIMARY KEY);
CREATE TABLE meters (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, counter_id bigint REFERENCES counters);
CREATE TABLE counter_details (counter_id bigint PRIMARY KEY REFERENCES counters);
CREATE TABLE legacy (id bigint PRIMARY KEY, parent bigint REFERENCES legacy, short int REFERENCES legacy);
CREATE TABLE labels (id text PRIMARY KEY);
-- Composite keys, and references to partitioned tables and to partitions.
CREATE TABLE events (id sortkey.uuid7, at date, order_id bigint NOT NULL REFERENCES orders, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE events_2026 PARTITION OF events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE event_notes (
    id       sortkey.snowflake_si PRIMARY KEY,
    event_id uuid,
    at       date,
    other    uuid,
    other_at date,
    FOREIGN KEY (event_id, at) REFERENCES events,
    FOREIGN KEY (other, other_at) REFERENCES events_2026 (id, at)
);
CREATE TABLE readings (id bigint, at date, PRIMARY KEY (id, at));
CREATE TABLE order_lines (order_id bigint REFERENCES orders, line bigint, PRIMARY KEY (order_id, line));
CREATE TABLE parts (order_id bigint REFERENCES orders, part_id sortkey.snowflake, n int, PRIMARY KEY (order_id, part_id, n));
CREATE TABLE part_notes (id uuid PRIMARY KEY, o bigint, p bigint, n int, FOREIGN KEY (o, p, n) REFERENCES parts);
CREATE TABLE links (a uuid, b uuid, PRIMARY KEY (a, b));
-- A cycle, and two keys for one column.
CREATE TABLE heads (id uuid PRIMARY KEY);
CREATE TABLE bodies (id uuid PRIMARY KEY REFERENCES heads);
ALTER TABLE heads ADD FOREIGN KEY (id) REFERENCES bodies;
CREATE TABLE tails (id uuid PRIMARY KEY, head_id uuid REFERENCES heads, two uuid REFERENCES reviews REFERENCES api_keys);
