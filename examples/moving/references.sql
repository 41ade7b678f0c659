SELECT conrelid::regclass AS table_name, conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE contype = 'f' AND confrelid = 'customers'::regclass;
