-- name: CreateCustomer :one
INSERT INTO customers (id, email, invited_by) VALUES ($1, $2, $3) RETURNING *;

-- name: CreateOrder :one
INSERT INTO orders (id, customer_id, replaces, cents) VALUES ($1, $2, $3, $4) RETURNING *;

-- name: CreateOrders :batchone
INSERT INTO orders (id, customer_id, replaces, cents) VALUES ($1, $2, $3, $4) RETURNING id;

-- name: CreateVoucher :one
INSERT INTO vouchers (code, order_id, cents) VALUES ($1, $2, $3) RETURNING *;

-- name: CopyVisits :copyfrom
INSERT INTO visits (id, customer_id, page) VALUES ($1, $2, $3);

-- The next page begins after the last ID of this one.
-- name: ListOrders :many
SELECT * FROM orders WHERE id > @after ORDER BY id LIMIT @size;

-- The layout of the IDs gives lo and hi: see Range.
-- name: OrdersBetween :many
SELECT * FROM orders WHERE id >= @lo AND id < @hi ORDER BY id;

-- name: OrdersReplacing :many
SELECT id FROM orders WHERE replaces = @id ORDER BY id;

-- name: OrdersByID :many
SELECT * FROM orders WHERE id = ANY(@ids::order_id[]) ORDER BY id;

-- name: VisitsByID :many
SELECT * FROM visits WHERE id = ANY(@ids::sortkey.uid60[]) ORDER BY id;

-- name: VisitsOfCustomers :many
SELECT * FROM visits WHERE customer_id = ANY(@ids::uuid[]) ORDER BY id;

-- name: VouchersOfOrders :many
SELECT * FROM vouchers WHERE order_id = ANY(@ids::int8[]) ORDER BY code;

-- A domain follows the join: order_id is nullable here, though orders.id isn't.
-- name: CustomersAndOrders :many
SELECT customers.id, orders.id AS order_id
FROM customers LEFT JOIN orders ON orders.customer_id = customers.id
ORDER BY customers.id, orders.id;

-- An aggregate has no type for sqlc unless it is cast.
-- name: OrdersOfCustomers :many
SELECT customer_id, max(id)::order_id AS last, array_agg(id ORDER BY id)::order_id[] AS ids
FROM orders GROUP BY customer_id ORDER BY customer_id;
