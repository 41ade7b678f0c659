package rekey

import "testing"

func TestBesideLiteral(t *testing.T) {
	for query, want := range map[string]string{
		" SELECT o.id\n   FROM orders o\n  WHERE (o.customer_id = ANY (ARRAY[(3)::bigint, (4)::bigint]));":                              "( o . customer_id = ANY ( ARRAY [ ( 3 ) :: bigint , ( 4 ) :: bigint ] ) )",
		" SELECT (orders.id % (4)::bigint) AS shard\n   FROM orders;":                                                                   "( orders . id % ( 4 ) :: bigint )",
		" SELECT lpad((orders.id)::text, 8, '0'::text) AS number FROM orders;":                                                          "( ( orders . id ) :: text , 8 , '0' :: text )",
		" SELECT CASE o.id WHEN 3 THEN 'a'::text ELSE NULL::text END AS a FROM orders o;":                                               "CASE o . id WHEN 3",
		" SELECT o.id AS number FROM orders o WHERE (number > 3);":                                                                      "( number > 3 )",
		" SELECT o.id, (o.total + (3)::numeric) AS total FROM orders o WHERE ((o.total > (100)::numeric) AND (o.customer_id IS NULL));": "",
		" SELECT ( SELECT l.order_id FROM lines l WHERE (l.kind = 'x'::text) LIMIT 1) AS a FROM (orders o JOIN c ON ((c.id = o.id)));":  "",
		" SELECT count(DISTINCT o.id) AS n, (o.id)::text AS t FROM orders o GROUP BY o.customer_id LIMIT 3;":                            "",
	} {
		if got := besideLiteral(query, map[string]bool{"id": true, "customer_id": true, "order_id": true}); got != want {
			t.Errorf("%s: expected %q, got %q", query, want, got)
		}
	}
}
