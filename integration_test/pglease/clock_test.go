package pglease

import (
	"errors"
	"testing"
	"time"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/nodelease"
)

// The server's clock is first an hour ahead, then correct, then an hour behind.
// Renewed claims stay. Other claims expire within a TTL of the next attempt to claim a
// number. Free numbers can be claimed at any time.
func TestServerClockSteps(t *testing.T) {
	t.Parallel()
	const short, long = 5 * time.Minute, 30 * time.Minute
	pgtest.OneFaketime(t, func(t *testing.T, db *pgtest.DB, clock *pgtest.Clock) {
		ctx, s, p := t.Context(), up(t, db), small(5)
		// No request goes beyond its holder's clock, so no high-water mark is ahead of
		// the next holder's clock.
		ask := func(holder string, ttl time.Duration) nodelease.Request {
			now := time.Now().UnixMilli()
			return nodelease.Request{Holder: holder, TTL: ttl, Now: now, Until: now}
		}
		renew := func(c nodelease.Claim) {
			t.Helper()
			if _, err := s.Renew(ctx, p, c, ask("", long)); err != nil {
				t.Errorf("expected a renewal of number %d, got %v", c.Number, err)
			}
		}
		exhausted := func() *nodelease.BusyError {
			t.Helper()
			var busy *nodelease.BusyError
			if _, err := s.Claim(ctx, p, ask("nobody", long)); !errors.Is(err, nodelease.ErrPoolExhausted) || !errors.As(err, &busy) || busy.Held != 5 {
				t.Fatalf("expected all numbers to be held, got %v", err)
			}
			return busy
		}
		clock.Step(t, time.Hour)
		live, dead := claim(t, s, p, ask("live", long)), claim(t, s, p, ask("dead", short))
		if ahead := time.Until(live.Time); ahead < 50*time.Minute {
			t.Fatalf("expected the server's clock to be ahead by an hour, got %v", ahead)
		}

		clock.Step(t, 0)
		renew(live)
		first := claim(t, s, p, ask("first", long))
		if first.Number == live.Number || first.Number == dead.Number {
			t.Errorf("expected a free number, got %d", first.Number)
		}
		second, third := claim(t, s, p, ask("second", long)), claim(t, s, p, ask("third", long))
		if busy := exhausted(); busy.RetryAfter <= 0 || busy.RetryAfter > short {
			t.Errorf("expected the first number to be free within %v, got %v", short, busy.RetryAfter)
		}
		// The claim expires after a TTL, not after an hour.
		clock.Step(t, short)
		heir := claim(t, s, p, ask("heir", long))
		if heir.Number != dead.Number || heir.Term != dead.Term+1 || heir.After != dead.Until {
			t.Errorf("expected number %d after %d, got %+v", dead.Number, dead.Until, heir)
		}

		clock.Step(t, -time.Hour)
		for _, c := range []nodelease.Claim{live, first, second, third, heir} {
			renew(c)
		}
		must(t, s.Release(ctx, p, second, time.Now().UnixMilli()-1))
		if again := claim(t, s, p, ask("again", long)); again.Number != second.Number {
			t.Errorf("expected number %d, got %d", second.Number, again.Number)
		}
		if busy := exhausted(); busy.RetryAfter <= 0 || busy.RetryAfter > long {
			t.Errorf("expected the first number to be free within %v, got %v", long, busy.RetryAfter)
		}

		// Setting the clock forward ends claims early. An expired claim can be renewed
		// until another holder gets the number.
		clock.Step(t, time.Hour)
		renew(live)
		last := claim(t, s, p, ask("last", long))
		if last.Number == live.Number {
			t.Errorf("expected another number than %d, which was renewed", live.Number)
		}
		for _, c := range []nodelease.Claim{first, third, heir} {
			r := ask("", long)
			switch _, err := s.Renew(ctx, p, c, r); {
			case c.Number != last.Number:
				must(t, err)
			case last.After < c.Until:
				t.Errorf("expected a claim after %d, got %d", c.Until, last.After)
			default:
				wrong(t, err, nodelease.ErrSuperseded)
			}
		}
	})
}
