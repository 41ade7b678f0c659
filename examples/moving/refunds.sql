CREATE TABLE refunds (
	id          bigint PRIMARY KEY,
	order_id    bigint NOT NULL REFERENCES orders (id),
	replaces_id bigint REFERENCES refunds (id)
);
