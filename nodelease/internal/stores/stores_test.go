package stores

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// The record of a number through two claims. The JSON is the content of files and znodes.
func TestRecord(t *testing.T) {
	var m Record
	for i, step := range []struct {
		change func()
		want   string
	}{
		{func() { m = m.Claimed(nodelease.Request{Holder: "web-3 KJ", Until: 100}) }, `{"term":1,"holder":"web-3 KJ","nonce":"","after":0,"until":100}`},
		{func() { m = m.Renewed(nodelease.Request{Until: 200, Nonce: "4Q"}) }, `{"term":1,"holder":"web-3 KJ","nonce":"4Q","after":0,"until":200}`},
		{func() { m = m.Renewed(nodelease.Request{Until: 150, Nonce: "7M"}) }, `{"term":1,"holder":"web-3 KJ","nonce":"7M","after":0,"until":200}`},
		{func() { m = m.Released(120) }, `{"term":1,"holder":"","nonce":"7M","after":0,"until":120}`},
		{func() { m = m.Claimed(nodelease.Request{Holder: "web-4 XB", Until: 300}) }, `{"term":2,"holder":"web-4 XB","nonce":"","after":120,"until":300}`},
		{func() { m = m.Released(-1) }, `{"term":2,"holder":"","nonce":"","after":120,"until":120}`},
	} {
		step.change()
		if got, err := json.Marshal(m); string(got) != step.want || err != nil || m.Validate() != nil {
			t.Errorf("step %d: got %s, %v, %v, want %s", i, got, err, m.Validate(), step.want)
		}
	}
}

// A claim is over once another holder has the number, and after its release. A copy of its holder
// is told apart by the nonce.
func TestCheck(t *testing.T) {
	held := Record{Term: 3, Holder: "web-3 KJ", Nonce: "4Q", Until: 9}
	c := held.Claim(7, time.Minute, time.UnixMilli(5))
	if want := (nodelease.Claim{Number: 7, Term: 3, Holder: "web-3 KJ", Until: 9, TTL: time.Minute, Time: time.UnixMilli(5), Nonce: "4Q"}); c.Number != want.Number ||
		c.Holder != want.Holder || c.Nonce != want.Nonce || c.TTL != want.TTL || !c.Time.Equal(want.Time) || held.Check(c) != nil {
		t.Errorf("got %+v, %v, want %+v", c, held.Check(c), want)
	}
	for says, m := range map[string]Record{
		`held by "web-4 XB" in term 4`: held.Claimed(nodelease.Request{Holder: "web-4 XB"}),
		"released in term 3":           held.Released(5),
		"released in term 0":           {},
		"a copy of this process":       held.Renewed(nodelease.Request{Nonce: "7M"}),
	} {
		if err := m.Check(c); !errors.Is(err, nodelease.ErrSuperseded) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: got %v, want %q", m, err, says)
		}
	}
	if err := (Record{}).Check(nodelease.Claim{}); err == nil {
		t.Error("a number without a holder: want an error for the claim without one")
	}
}

// A result is received, or late, but never both.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errLate := errors.New("no answer")
		for _, test := range []struct {
			takes, limit time.Duration
			want         int
			is           error
		}{{time.Second, 2 * time.Second, 7, nil}, {2 * time.Second, time.Second, 0, errLate}} {
			ctx, cancel := context.WithTimeout(t.Context(), test.limit)
			defer cancel()
			var received bool
			got, err := Await(ctx, func(ended error) error { return errors.Join(errLate, ended) }, func(finish func(int, error) bool) {
				time.Sleep(test.takes)
				received = finish(7, nil)
			})
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got != test.want || !errors.Is(err, test.is) || received != (test.is == nil) || test.is != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v of %v: got %d, %v, received %v", test.takes, test.limit, got, err, received)
			}
		}
	})
}
