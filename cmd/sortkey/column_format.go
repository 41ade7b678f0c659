package main

import (
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/internal/dbhealth"
)

// columnFormats are common table expressions behind one named key, which has the rows of
// pg_attribute of some columns. base has the type of each, which is the base type of a domain.
// known has the format of the IDs, if a domain, the default or the comment tells it, in this
// order, and the schema of the installation to which the domain or the default belongs. $1 is the
// schema of this installation, and $2 is the result of sqlFormats.
const columnFormats = `installations AS (
			` + dbhealth.Installations + ` UNION SELECT oid, nspname FROM pg_namespace WHERE nspname = $1::text
		), types AS (
			SELECT key.attrelid, key.attnum, 0 AS depth, t.* FROM key JOIN pg_type t ON t.oid = key.atttypid
			UNION ALL SELECT types.attrelid, types.attnum, types.depth + 1, t.* FROM types JOIN pg_type t ON t.oid = types.typbasetype AND types.typtype = 'd'
		), base AS (
			SELECT DISTINCT ON (attrelid, attnum) attrelid, attnum, format_type(oid, NULL) AS type FROM types ORDER BY attrelid, attnum, depth DESC
		), known AS (
			SELECT DISTINCT ON (attrelid, attnum) * FROM (
				SELECT attrelid, attnum, 'domain', i.nspname, typname::text, depth FROM types JOIN installations i ON i.oid = typnamespace WHERE typname = ANY ($2::text[])
				UNION ALL SELECT key.attrelid, key.attnum, 'default', i.nspname, replace(substr(p.proname, 6), '_meta', ''), 1000 FROM key JOIN pg_attrdef d ON d.adrelid = key.attrelid AND d.adnum = key.attnum
					JOIN pg_depend u ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid AND u.refclassid = 'pg_proc'::regclass
					JOIN pg_proc p ON p.oid = u.refobjid JOIN installations i ON i.oid = p.pronamespace AND replace(p.proname, '_meta', '') = ANY (SELECT 'next_' || f FROM unnest($2::text[]) f)
				UNION ALL SELECT key.attrelid, key.attnum, 'comment', $1::text, f, 1001 FROM key, unnest($2::text[]) f
					WHERE 'sortkey: ' || f = ANY (string_to_array(col_description(key.attrelid, key.attnum), E'\n')) -- of rekey
			) k (attrelid, attnum, source, installation, format, rank) ORDER BY attrelid, attnum, rank
		)`

// sqlFormats returns the names of the formats as in SQL.
func sqlFormats() []string {
	return strings.Split(strings.ReplaceAll(strings.Join(ids.Names(), " "), "-", "_"), " ")
}
