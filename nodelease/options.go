package nodelease

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sortkey/sortkey/idtype"
)

// Options configure a claim. The zero value suits most programs.
type Options struct {
	// TTL is how long a claim lasts without a renewal, by the store's clock: 1 s to
	// 1 h, 30 s by default. The claim is renewed after a third of the TTL. With a
	// longer TTL a claim survives longer outages of the store. With a shorter one
	// the number of a killed process is free sooner.
	TTL time.Duration
	// Wait is how long Acquire waits for a free number, for the clock to pass the
	// high-water marks of the free numbers, and for a failing store to recover. 0 means
	// twice the TTL, after which the numbers of killed processes are free. A negative
	// value means a single attempt.
	Wait time.Duration
	// MaxSkew is the largest difference between this machine's clock and the store's at
	// which the store grants or renews a claim: at least 1 s, 24 h by default. It keeps a
	// clock that is years ahead from leaving a high-water mark years ahead, which would
	// make the number unusable until then. Acquire retries until Wait is over, because
	// the clock may be corrected soon after the machine has started. If renewals are
	// refused, the claim is lost like in an outage of the store, and the errors wrap
	// [ErrClockSkew]. A negative value means no limit.
	MaxSkew time.Duration
	// Clock must be the generator's clock. Nil means the system clock. The constructors of
	// the formats, such as [NewSnowflakeGenerator], call it one goroutine at a time. Otherwise
	// the Keeper calls it while the generator does.
	Clock func() time.Time
	// Holder names the holder for people who inspect the store, in at most 200 bytes of
	// printable UTF-8. The default is the host name and the process ID.
	Holder string
	// Logger logs waits for a number, failed claims, renewals and releases, losses, and
	// numbers claimed after a loss. The alerts of package metrics send an operator to this
	// log. Nil means [slog.Default] at the call that claims; slog.New(slog.DiscardHandler)
	// discards it.
	Logger *slog.Logger
}

const (
	minTTL     = time.Second
	maxTTL     = time.Hour
	defaultTTL = 30 * time.Second
	// The default is more than any error of a time zone.
	defaultMaxSkew = 24 * time.Hour
	minMaxSkew     = time.Second
	// maxHolder leaves stores room for the suffix that makes a holder unique.
	maxHolder = 200
)

// normal returns the options with defaults filled in, or an error if one is invalid.
func (o Options) normal() (Options, error) {
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	if o.TTL < minTTL || o.TTL > maxTTL {
		return o, fmt.Errorf("nodelease: Options.TTL: %v is out of range; want %v to %v: %w", o.TTL, minTTL, maxTTL, idtype.ErrConfig)
	}
	if o.Wait == 0 {
		o.Wait = 2 * o.TTL
	}
	switch {
	case o.MaxSkew == 0:
		o.MaxSkew = defaultMaxSkew
	case o.MaxSkew > 0 && o.MaxSkew < minMaxSkew:
		return o, fmt.Errorf("nodelease: Options.MaxSkew: %v is too short, because the duration of a call counts as skew; want at least %v, or a negative value for no limit: %w", o.MaxSkew, minMaxSkew, idtype.ErrConfig)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Holder == "" {
		host, err := os.Hostname()
		if err != nil || !printable(host) {
			host = "unknown host"
		}
		o.Holder = fmt.Sprintf("%.100s, process %d", host, os.Getpid())
	}
	if len(o.Holder) > maxHolder || !printable(o.Holder) {
		return o, fmt.Errorf("nodelease: Options.Holder: want at most %d bytes of printable UTF-8, got %d bytes: %.50q: %w", maxHolder, len(o.Holder), o.Holder, idtype.ErrConfig)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}
