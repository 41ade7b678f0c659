package main

import (
	"strings"
	"testing"
)

func TestQuoteFigures(t *testing.T) {
	page := readBenchmarks("# Benchmarks\n\n## Grow\n\n| key | rows/s, all | index, MB |\n| --- | ---: | ---: |\n| `Sno` | 1,320,836 ± 3 % | 315 |\n" +
		"\n## Insert\n\n| clients | key | ratio |\n| --- | --- | ---: |\n| `8` | `next_sno()` | 1.478 ± 6 % |\n| `1` | `next_sno()` |  |\n")
	for _, test := range []struct{ in, want, err string }{
		{"no figures", "no figures", ""},
		{"<!-- figure: Grow; Sno; index, MB -->9<!-- end --> MB", "<!-- figure: Grow; Sno; index, MB -->315<!-- end --> MB", ""},
		{"<!-- figure: Grow; Sno; rows/s, all; millions -->9.9<!-- end --> M", "<!-- figure: Grow; Sno; rows/s, all; millions -->1.32<!-- end --> M", ""},
		{"<!-- figure: Insert; 8 next_sno(); ratio --><!-- end -->", "<!-- figure: Insert; 8 next_sno(); ratio -->1.478<!-- end -->", ""},
		{"<!-- figure: Insert; 1 next_sno(); ratio -->1<!-- end -->", "", `no figure in section "Insert", row "1 next_sno()", column "ratio"`},
		{"<!-- figure: Grow; Sno; ratio -->1<!-- end -->", "", `no figure in section "Grow", row "Sno", column "ratio"`},
		{"<!-- figure: Grow; Sno; index, MB -->1", "", "1 of 1 figures aren't of the form"},
	} {
		got, err := page.quoteFigures("README.md", []byte(test.in))
		if test.err == "" {
			if err != nil || string(got) != test.want {
				t.Errorf("%s: expected %q, got %q, %v", test.in, test.want, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: expected an error with %q, got %v", test.in, test.err, err)
		}
	}
}
