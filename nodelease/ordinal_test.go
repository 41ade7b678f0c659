package nodelease

import (
	"errors"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/idtype"
)

func TestOrdinal(t *testing.T) {
	for _, test := range []struct {
		value        string
		first, count int
		want         int
		says         string
	}{
		{value: "3", count: 8, want: 3},
		{value: "0", count: 1, want: 0},
		{value: "1023", count: 1024, want: 1023},
		{value: "7", first: 512, count: 512, want: 519},
		{value: "shop-7", count: 8, want: 7},
		{value: "shop-eu1-7", first: 512, count: 512, want: 519},
		{value: "shop-7.shop.default.svc.cluster.local", count: 8, want: 7},
		{value: "", count: 8, says: `in the environment variable TEST_ORDINAL, which is "": want a number without leading zeros, or a name that ends in one, such as shop-7; set it to the number of this instance`},
		{value: " 3", count: 8, says: `which is " 3"`},
		{value: "+3", count: 8, says: `which is "+3"`},
		{value: "03", count: 8, says: `which is "03"`},
		{value: "-3", count: 8, says: `which is "-3"`},
		{value: "99999999999999999999", count: 8, says: "want a number"},
		{value: "8", count: 8, says: `which is "8": want 0 to 7, the range of this program; raise count, or run fewer instances`},
		{value: "shop", count: 8, says: "want a number"},
		{value: "shop-", count: 8, says: "want a number"},
		{value: "shop-07", count: 8, says: "want a number without leading zeros"},
		{value: "shop.eu-7", count: 8, says: "want a number"},
		{value: "shop-6d4cf56db6-x7k2p", count: 8, says: "want a number"},
		{value: "shop-8", count: 8, says: "want 0 to 7, the range of this program; raise count if the name is of a StatefulSet, or set it to the number"},
		{value: "shop-7d4b9c6f5d-24567", count: 65536, says: "ends in at most four digits"},
		{value: "shop-2024", count: 1024, says: "want 0 to 1023"},
		{value: "24567", count: 65536, want: 24567},
		// Addresses.
		{value: "ip-10-0-1-23", count: 1024, says: "a name that ends in one number, such as shop-7; set it to the number of this instance, such as 7; in a StatefulSet, from the label"},
		{value: "ip-10-0-2-23.eu-west-1.compute.internal", count: 1024, says: "a name that ends in one number"},
		{value: "10-7", count: 8, says: "a name that ends in one number"},
		{value: "shop--7", count: 8, says: "a name that ends in one number"},
		{value: "7", first: -1, count: 8, says: "got -1 and 8"},
		{value: "7", count: 0, says: "got 0 and 0"},
	} {
		t.Setenv("TEST_ORDINAL", test.value)
		got, err := Ordinal("TEST_ORDINAL", test.first, test.count)
		if got != test.want || (err == nil) != (test.says == "") || err != nil && (!errors.Is(err, idtype.ErrNode) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%+v: got %d, %v", test, got, err)
		}
	}
	// The host name isn't read.
	for env, says := range map[string]string{"": "the name of the environment variable is empty; pass one", "TEST_ORDINAL_UNSET": `TEST_ORDINAL_UNSET, which is ""`} {
		if n, err := Ordinal(env, 0, 1<<30); !errors.Is(err, idtype.ErrNode) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %d, %v", env, n, err)
		}
	}
}
