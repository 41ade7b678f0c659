package dbhealth

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
)

// A Pool is a pool of node numbers.
type Pool struct {
	Pool        string  `json:"pool"`
	Size        *int    `json:"size"` // nil until the first claim creates the pool
	Layout      *string `json:"layout"`
	Held        int     `json:"held"`
	Reserved    int     `json:"reserved"`
	Free        *int    `json:"free"`
	Ahead       int     `json:"ahead"`
	FencedUntil *Moment `json:"fenced_until"` // nil: not fenced

	Fence float64 `json:"-"` // seconds until FencedUntil; can be infinite
}

// Pools returns all pools.
func (e *Examination) Pools(ctx context.Context) ([]Pool, error) {
	return recall(e, "pools", func() ([]Pool, error) {
		// A pool has up to 65,536 numbers, most of them never used. The query drops these first:
		// counting all in one GROUP BY takes three times as long.
		pools, err := collect(ctx, e, func(p *Pool) []any {
			return []any{&p.Pool, &p.Size, &p.Layout, &p.Held, &p.Reserved, &p.Free, &p.Ahead, &p.FencedUntil, &p.Fence}
		}, `SELECT coalesce(p.name, s.pool), p.size, p.layout, coalesce(s.held, 0), coalesce(s.reserved, 0), p.size - coalesce(s.taken, 0), coalesce(s.taken - s.held - s.reserved, 0),
				CASE WHEN p.fenced_until > clock_timestamp() THEN `+MomentOf("p.fenced_until")+` END,
				CASE WHEN p.fenced_until = 'infinity' THEN 'infinity' ELSE greatest(0, extract(epoch FROM nullif(p.fenced_until, '-infinity') - clock_timestamp())) END::float8
			FROM $s.node_pool p FULL JOIN (
				SELECT pool, count(*) FILTER (WHERE state <> 'free' OR mark > clock_timestamp()) AS taken, count(*) FILTER (WHERE state = 'held') AS held, count(*) FILTER (WHERE state = 'reserved') AS reserved
				FROM $s.node_status WHERE state <> 'free' OR mark IS NOT NULL OR pool NOT IN (SELECT name FROM $s.node_pool) GROUP BY pool
			) s ON s.pool = p.name ORDER BY 1`)
		return pools, err
	})
}

// A Number is a node number of a pool.
type Number struct {
	Pool      string   `json:"pool"`
	Number    int      `json:"number"`
	State     string   `json:"state"` // held, reserved or free
	Holder    *string  `json:"holder"`
	ClaimedAt *Moment  `json:"claimed_at"` // by the holder, or by the last one
	RenewedAt *Moment  `json:"renewed_at"`
	ExpiresAt *Moment  `json:"expires_at"`
	TTL       *float64 `json:"ttl_seconds"`
	Mark      *Moment  `json:"mark"`               // nil: never used
	Ahead     *float64 `json:"mark_ahead_seconds"` // Mark minus the server's clock; nil if that is infinite
	Term      int64    `json:"term"`
	Note      *string  `json:"note"` // nil: not reserved

	// FarAhead is set if the mark is further ahead than the one of a holder whose clock is
	// at most a second ahead.
	FarAhead bool `json:"-"`
	// Now is the time by the server's clock.
	Now time.Time `json:"-"`
}

// Numbers returns the numbers that are not free or were claimed before: one number of a pool, or
// all if number is -1. Without a pool it returns the numbers of all pools. Pool spread64
// stands for the pools of all clusters.
func (e *Examination) Numbers(ctx context.Context, pool string, number int) ([]Number, error) {
	numbers, err := collect(ctx, e, func(n *Number) []any {
		return []any{&n.Pool, &n.Number, &n.State, &n.Holder, &n.ClaimedAt, &n.RenewedAt, &n.ExpiresAt, &n.TTL, &n.Mark, &n.Ahead, &n.Term, &n.Note, &n.FarAhead, &n.Now}
	}, `SELECT s.pool, s.number, s.state, s.holder, `+MomentOf("s.claimed_at")+`, `+MomentOf("(s.expires_at - s.ttl)")+`, `+MomentOf("s.expires_at")+`,
			CASE WHEN s.holder IS NOT NULL THEN extract(epoch FROM s.ttl)::float8 END,
			`+MomentOf("s.mark")+`, CASE WHEN isfinite(s.mark) THEN extract(epoch FROM s.mark - clock_timestamp())::float8 END, s.term, s.reserved,
			coalesce(s.mark > clock_timestamp() + coalesce(s.ttl, '0') + interval '1 second', false), clock_timestamp()
		FROM $s.node_status s
		WHERE $1::text IN ('', s.pool, regexp_replace(s.pool, '^spread64-[0-9]+$', 'spread64')) AND $2::integer IN (-1, s.number)
			AND (s.state <> 'free' OR s.mark IS NOT NULL OR s.term > 0) -- a claim that was released unused leaves no mark
		ORDER BY s.pool, s.number`, pool, number)
	for i := range numbers {
		n := &numbers[i]
		n.Holder, n.Note = visiblePointer(n.Holder), visiblePointer(n.Note)
	}
	return numbers, err
}

// A PoolFormat is the format of a pool's IDs.
type PoolFormat struct {
	Name string // as in SQL
	Size int    // the number of numbers
	// Node returns the node number of a number of the pool, as in the setting sortkey.node.
	Node func(number int) int
}

// FormatOf returns the format of a pool of an installation. Without a layout, since no claim
// has created the pool, the name of the pool determines the format. It returns nil if the
// format is unknown.
func FormatOf(c migrations.Config, pool, layout string) *PoolFormat {
	same := func(number int) int { return number }
	if pool == "spread64" { // the numbers of all clusters
		return &PoolFormat{"spread64", 1 << 10, same}
	}
	var found *PoolFormat
	try := func(name string, p nodelease.Pool, node func(int) int) {
		if layout == p.Layout || layout == "" && pool == p.Name {
			found = &PoolFormat{name, p.Size, node}
		}
	}
	try("snowflake", nodelease.ForSnowflake(c.Snowflake), same)
	try("sno", nodelease.ForSno(), same)
	if c.SnowflakeSI != (idtype.SnowflakeSILayout{}) {
		try("snowflake_si", nodelease.ForSnowflakeSI(c.SnowflakeSI), same)
	}
	for cluster := 0; found == nil && cluster < 16; cluster++ {
		try("spread64", nodelease.ForSpread64(cluster), func(number int) int { return number<<4 | cluster })
	}
	return found
}

// A reservation is a reserved number in a pool of a format, or in one that a program has
// created.
type reservation struct {
	pool, note, layout string
	number             int

	size    int // of the pool or of its format
	setting int // the value of the setting; -1: no ID can have this number
}

// rangeText returns the range of the numbers.
func (r reservation) rangeText() string { return fmt.Sprintf("%s has 0 to %d", r.pool, r.size-1) }

// reservations returns the reservations in pools whose size is known. A pool can be misspelled,
// or one that a program will create.
func (e *Examination) reservations(ctx context.Context) ([]reservation, error) {
	return recall(e, "reservations", func() (known []reservation, err error) {
		list, err := collect(ctx, e, func(r *reservation) []any { return []any{&r.pool, &r.number, &r.note, &r.size, &r.layout} }, `
			SELECT s.pool, s.number, s.reserved, coalesce(p.size, 0), coalesce(p.layout, '')
			FROM $s.node_status s LEFT JOIN $s.node_pool p ON p.name = s.pool WHERE s.reserved IS NOT NULL ORDER BY s.pool, s.number`)
		for _, r := range list {
			r.setting = r.number
			if f := FormatOf(e.Config, r.pool, r.layout); f != nil {
				r.size, r.setting = cmp.Or(r.size, f.Size), f.Node(r.number)
			}
			if r.number >= r.size {
				r.setting = -1
			}
			if r.size > 0 {
				known = append(known, r)
			}
		}
		return known, err
	})
}
