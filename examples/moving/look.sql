SELECT attrelid::regclass AS table_name, attname AS column_name, format_type(atttypid, atttypmod) AS type,
	attidentity::text AS identity, pg_get_expr(adbin, adrelid) AS default_value
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid IN ('customers'::regclass, 'orders'::regclass) AND attname IN ('id', 'customer_id');
