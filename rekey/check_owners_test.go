package rekey

import (
	"strings"
	"testing"
)

// An old key is one expression, which can't end the statement around it.
func TestExpression(t *testing.T) {
	for _, text := range []string{
		"", "nextval('public.order_numbers')", `nextval('"Odd"."n;o"')`, "gen_random_uuid()", "('x' || nextval('s'))::text", "CASE WHEN a > 1 THEN (2) ELSE 3 END",
		"lower(') ; --')", `"col;umn" + 1`, "a - -1",
	} {
		if reason := checkExpression(text); reason != "" {
			t.Errorf("%q: want no reason, got %q", text, reason)
		}
	}
	for text, want := range map[string]string{
		"1); COMMIT; SELECT (1":   "parentheses",
		"1; COMMIT":               ";",
		"(1":                      "unbalanced",
		"1) + (2":                 "unbalanced",
		"1 -- comment":            "--",
		"1 +-- comment":           "--",
		"1 /* comment */":         "/*",
		"$$x$$":                   "$",
		"$t$;$t$":                 "$",
		"'unterminated":           "'",
		`"unterminated`:           `"`,
		`E'\'; DROP TABLE t; --'`: `\`,
		`'\'' || 'x`:              `\`,
		`e'\\'`:                   `\`,
	} {
		if reason := checkExpression(text); reason == "" || !strings.Contains(reason, want) && want != "parentheses" {
			t.Errorf("%q: want a reason with %q, got %q", text, want, reason)
		}
	}
}

// No text ends the body of a function.
func TestBody(t *testing.T) {
	for _, text := range []string{"", "BEGIN END", `"$rekey$;GRANT x TO y;$rekey$"`, "$rekey$ $rekey_1$ $rekey_2$", "$rekey_1$"} {
		quoted := body(text)
		tag := quoted[:strings.Index(quoted[1:], "$")+2]
		if inner := strings.TrimSuffix(strings.TrimPrefix(quoted, tag), tag); inner != text || strings.Contains(inner, tag) {
			t.Errorf("%q: got %q", text, quoted)
		}
	}
}
