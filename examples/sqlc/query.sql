-- The queries that are the same for both schemas.

-- name: CreateCustomer :one
INSERT INTO customers (id, email, invited_by) VALUES ($1, $2, $3) RETURNING *;

-- name: CreateOrder :one
INSERT INTO orders (id, customer_id, replaces, cents) VALUES ($1, $2, $3, $4) RETURNING *;

-- name: CreateOrders :batchone
INSERT INTO orders (id, customer_id, replaces, cents) VALUES ($1, $2, $3, $4) RETURNING id;

-- name: CreateVoucher :one
INSERT INTO vouchers (code, order_id) VALUES ($1, $2) RETURNING *;

-- name: CopyVisits :copyfrom
INSERT INTO visits (id, customer_id, page) VALUES ($1, $2, $3);

-- name: GetCustomer :one
SELECT * FROM customers WHERE id = $1;

-- name: GetOrder :one
SELECT * FROM orders WHERE id = $1;

-- name: GetVoucher :one
SELECT * FROM vouchers WHERE code = $1;

-- The next page begins after the last ID of this one.
-- name: ListOrders :many
SELECT * FROM orders WHERE id > @after ORDER BY id LIMIT @size;

-- The layout of the IDs gives lo and hi: see Range.
-- name: OrdersBetween :many
SELECT * FROM orders WHERE id >= @lo AND id < @hi ORDER BY id;

-- name: VisitsBetween :many
SELECT * FROM visits WHERE id >= @lo AND id < @hi ORDER BY id;

-- name: OrdersReplacing :many
SELECT id FROM orders WHERE replaces = @id ORDER BY id;

-- name: MoveOrders :batchexec
UPDATE orders SET customer_id = @customer_id WHERE id = @id;
