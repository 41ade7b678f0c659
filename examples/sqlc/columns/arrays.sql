-- name: OrdersByID :many
SELECT * FROM orders WHERE id = ANY(@ids::int8[]) ORDER BY id;

-- name: CustomersByID :many
SELECT * FROM customers WHERE id = ANY(@ids::uuid[]) ORDER BY id;
