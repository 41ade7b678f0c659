ALTER TABLE orders DROP COLUMN old_customer_id;
ALTER TABLE customers DROP COLUMN old_id;
