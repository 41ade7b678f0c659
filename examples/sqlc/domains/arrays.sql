-- name: OrdersByID :many
SELECT * FROM orders WHERE id = ANY(@ids::sortkey.snowflake[]) ORDER BY id;

-- name: CustomersByID :many
SELECT * FROM customers WHERE id = ANY(@ids::sortkey.sno[]) ORDER BY id;

-- name: VisitsByID :many
SELECT * FROM visits WHERE id = ANY(@ids::sortkey.uid60[]) ORDER BY id;

-- A domain follows the join: order_id is nullable here, though orders.id isn't.
-- name: CustomersAndOrders :many
SELECT customers.id, orders.id AS order_id
FROM customers LEFT JOIN orders ON orders.customer_id = customers.id
ORDER BY customers.id, orders.id;

-- An aggregate has no type for sqlc unless it is cast.
-- name: OrdersOfCustomers :many
SELECT customer_id, max(id)::sortkey.snowflake AS last, array_agg(id ORDER BY id)::sortkey.snowflake[] AS ids
FROM orders GROUP BY customer_id ORDER BY customer_id;
