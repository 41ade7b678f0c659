package nodelease

import (
	"fmt"
	"log/slog"
	"os"
	"time"
)

// Options are what a claim can be told. The zero value is what most programs
// want.
type Options struct {
	// TTL is how long a number stays its holder's if it isn't renewed, by the
	// store's clock: 1 s to 1 h, by default 30 s. It is renewed after a third of
	// that. A longer one lasts through longer outages of the store; a shorter one
	// frees the number of a process that was killed sooner.
	TTL time.Duration
	// Wait is how long Acquire waits for a free number, for the clock to get
	// past the high-water marks of the free ones, and for a store that fails to
	// answer again. 0 means twice the TTL, after which the numbers of processes
	// that were killed are free; a negative value, not to wait.
	Wait time.Duration
	// Clock must be the one that the generator is given. Nil means the system's.
	Clock func() time.Time
	// Holder is what the store shows people, at most 200 bytes. By default
	// the host's name and the process's ID.
	Holder string
	// Reacquire has a [Generator] claim a number anew when it has lost one. Not
	// for [Acquire], whose Keeper is one claim.
	Reacquire bool
	// Logger gets waits for a number, claims and renewals that failed, losses, and
	// numbers claimed anew. Nil means that nothing is logged.
	Logger *slog.Logger
}

const (
	minTTL     = time.Second
	maxTTL     = time.Hour
	defaultTTL = 30 * time.Second
	// maxHolder leaves stores room for what makes a holder unique.
	maxHolder = 200
)

// normal fills in the defaults.
func (o Options) normal() (Options, error) {
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	if o.TTL < minTTL || o.TTL > maxTTL {
		return o, fmt.Errorf("nodelease: expected a TTL from %v to %v, got %v", minTTL, maxTTL, o.TTL)
	}
	if o.Wait == 0 {
		o.Wait = 2 * o.TTL
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
		return o, fmt.Errorf("nodelease: expected a holder of at most %d bytes of printable UTF-8, got %d bytes: %.50q", maxHolder, len(o.Holder), o.Holder)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// request is what to ask of a store now: to mint for as long as a claim of this
// TTL is going to be trusted.
func (o Options) request(holder string, ttl time.Duration) Request {
	now := o.Clock().UnixMilli()
	return Request{Holder: holder, TTL: o.TTL, Now: now, Until: now + window(ttl).Milliseconds()}
}

// window is how long a claim of this TTL is trusted, from before it was asked
// for. The rest is for clocks that don't run at the same speed.
func window(ttl time.Duration) time.Duration { return ttl - ttl/10 }
