package main

import (
	"strings"
	"testing"
	"time"
)

func TestRange(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"snowflake --since 2026-01-01 --until 2026-02-01", `lo     661720242585600000
hi     672954266419200000
where  id >= 661720242585600000 AND id < 672954266419200000
`},
		{"snowflake --since -24h", `lo     779677492838400000
hi     9223372036854775807
where  id >= 779677492838400000
`},
		{`snowflake --since -24h --column "Order"."ID"`, `lo     779677492838400000
hi     9223372036854775807
where  "Order"."ID" >= 779677492838400000
`},
		{"uid60 --until -7d --column order_id", `lo     0
hi     72081211392000000
where  order_id < 72081211392000000
`},
		{"sno --since 2026-01-01 --until 2026-02-01 --column o.\"key\"", `lo     39643576-6538-3232-3232-323232323232
hi     39656473-6a63-6932-3232-323232323232
where  o."key" >= '39643576-6538-3232-3232-323232323232' AND o."key" < '39656473-6a63-6932-3232-323232323232'
`},
		{"uuid7 --since 2026-01-01 --until 2026-02-01", `lo     019b76da-a800-7000-8000-000000000000
hi     019c167f-cc00-7000-8000-000000000000
where  id >= '019b76da-a800-7000-8000-000000000000' AND id < '019c167f-cc00-7000-8000-000000000000'
`},
		{"uuid7 --since 2026-01-01", `lo     019b76da-a800-7000-8000-000000000000
hi     ffffffff-ffff-7fff-bfff-ffffffffffff
where  id >= '019b76da-a800-7000-8000-000000000000'
`},
		{"snowflake-si --epoch 2024-01-01 --since 2026-01-01 --until now -o json", `{"type":"snowflake-si","since":"2026-01-01T00:00:00Z","until":"2026-11-23T12:00:00Z","lo":"517393612800000","hi":"748486656000000","where":"id >= 517393612800000 AND id < 748486656000000"}
`},
		{"snowflake --since 2026-01-01 -o json", `{"type":"snowflake","since":"2026-01-01T00:00:00Z","until":null,"lo":"661720242585600000","hi":"9223372036854775807","where":"id >= 661720242585600000"}
`},
		{"snowflake --since 2026-01-01 --until 2200-01-01", `lo     661720242585600000
hi     9223372036854775807
where  id >= 661720242585600000
`},
		{"snowflake --until 2200-01-01", `lo     0
hi     9223372036854775807
where  true
`},
	} {
		out, err := executeAt(t, time.UTC, "", append([]string{"range"}, strings.Fields(tt.args)...)...)
		if err != nil || out != tt.want {
			t.Errorf("range %s: error %v, got\n%swant\n%s", tt.args, err, out, tt.want)
		}
	}
	checkUsage(t, "range", []usageTest{
		{"snowflake", "no window: pass --since, --until or both"},
		{"spread64 --since -1h", "spread64: the IDs don't sort by time, so a time window has no bounds: filter by sortkey.spread64_time(id)"},
		{"--since -1h", "accepts 1 arg(s), received 0"},
		{"ulid --since -1h", `type "ulid": want snowflake`},
		{"snowflake-si --since -1h", "pass it as --epoch"},
		{"snowflake --since 1h", `--since: time "1h": want a time such as`},
		{"snowflake --until 1h", `--until: time "1h": want a time such as`},
		{"snowflake --since 0001-01-01", `--since: time "0001-01-01": want a time after 0001-01-01`},
		{"snowflake --since 2026-01-01 --until 0001-01-01T01:00:00+01:00", "--until: time"},
		{"snowflake --since 2026-02-01 --until 2026-01-01", "--until 2026-01-01T00:00:00Z: the end is before the start"},
	})
}
