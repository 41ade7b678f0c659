package nodelease

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
)

func TestOrdinal(t *testing.T) {
	const unset = "\x00"
	for _, test := range []struct {
		name, value, host string
		first, count      int
		want              int
		says              string
	}{
		{name: "", host: "shop-7", count: 8, want: 7},
		{name: "", host: "shop-0", count: 1, want: 0},
		{name: "POD_INDEX", value: unset, host: "shop-eu-7", first: 512, count: 512, want: 519},
		{name: "", host: "shop-7.shop.default.svc.cluster.local", count: 8, want: 7},
		{name: "POD_INDEX", value: "3", host: "shop-7", count: 8, want: 3},
		{name: "POD_INDEX", value: "1023", host: "db", count: 1024, want: 1023},
		// The variable doesn't fall back to the host name if it is set to nonsense.
		{name: "POD_INDEX", value: "", host: "shop-7", count: 8, says: `environment variable POD_INDEX, which is "": want a number without leading zeros; set it`},
		{name: "POD_INDEX", value: " 3", host: "shop-7", count: 8, says: `which is " 3"`},
		{name: "POD_INDEX", value: "+3", host: "shop-7", count: 8, says: `which is "+3"`},
		{name: "POD_INDEX", value: "03", host: "shop-7", count: 8, says: `which is "03"`},
		{name: "POD_INDEX", value: "-3", host: "shop-7", count: 8, says: `which is "-3"`},
		{name: "POD_INDEX", value: "99999999999999999999", host: "shop-7", count: 8, says: "want a number"},
		{name: "POD_INDEX", value: "8", host: "shop-7", count: 8, says: `which is "8": want 0 to 7`},
		{name: "POD_INDEX", value: unset, host: "shop-6d4cf56db6-x7k2p", count: 8, says: `host name "shop-6d4cf56db6-x7k2p": want a number without leading zeros; run it in a StatefulSet, whose host names are like shop-7, or set the environment variable POD_INDEX`},
		{name: "", host: "shop", count: 8, says: `host name "shop": want a number`},
		{name: "", host: "7", count: 8, says: `host name "7"`},
		{name: "", host: "-7", count: 8, says: `host name "-7"`},
		{name: "", host: "shop-", count: 8, says: `host name "shop-"`},
		{name: "", host: "shop-07", count: 8, says: `host name "shop-07"`},
		{name: "", host: "shop.eu-7", count: 8, says: `host name "shop.eu-7"`},
		{name: "", host: "shop-8", count: 8, says: `host name "shop-8": want 0 to 7`},
		{name: "", host: "shop-7", first: -1, count: 8, says: "got -1 and 8"},
		{name: "", host: "shop-7", count: 0, says: "got 0 and 0"},
	} {
		got, err := ordinal(test.name, test.first, test.count,
			func(name string) (string, bool) {
				if name != test.name {
					t.Errorf("want the variable %s, got %s", test.name, name)
				}
				return test.value, test.value != unset
			},
			func() (string, error) { return test.host, nil })
		if got != test.want || (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, idtype.ErrNode) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%+v: got %d, %v", test, got, err)
		}
	}
	unknown := errors.New("no host name")
	if _, err := ordinal("", 0, 1, nil, func() (string, error) { return "", unknown }); !errors.Is(err, unknown) || !errors.Is(err, idtype.ErrNode) {
		t.Errorf("want %v, got %v", unknown, err)
	}
	t.Setenv("TEST_ORDINAL", "5")
	if n, err := Ordinal("TEST_ORDINAL", 10, 6); n != 15 || err != nil {
		t.Errorf("want 15, got %d, %v", n, err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	n, err := Ordinal("", 0, 1<<30)
	if err == nil && !strings.HasSuffix(strings.SplitN(host, ".", 2)[0], fmt.Sprint("-", n)) || err != nil && !strings.Contains(err.Error(), host) {
		t.Errorf("host name %q: got %d, %v", host, n, err)
	}
}
