UPDATE orders SET new_customer_id = new_id FROM customers
WHERE customers.id = customer_id AND new_customer_id IS NULL AND orders.id BETWEEN 1 AND 100000;
