package pglease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
)

// DefaultSchema is the schema of a [Config] without Schema.
const DefaultSchema = "sortkey"

// A Config locates the SQL functions.
type Config struct {
	Schema string // as in migrations.Config: [a-z_][a-z0-9_]*, at most 54 bytes; "" means sortkey
	// Install makes the first claim run migrations.Up, with the default layouts, if the
	// database has no installation in the schema. Several programs can do so at once. The
	// installation may take up to 2 minutes, also if a claim has to end before. The role needs
	// CREATE on the database, and owns the installation. Call migrations.Up yourself if programs
	// have other roles, or IDs other layouts.
	Install bool
}

// A Store is a [nodelease.Store] in a database. Its only state is an installation that runs, so
// it needs no Close, and a process may have several.
type Store struct {
	db      *sql.DB
	schema  string
	install bool
	ours    *regexp.Regexp // matches the schema's name before a dot
	err     error          // set if the Config is invalid

	mu      sync.Mutex
	running *installation // nil: none
}

var _ nodelease.Store = (*Store)(nil)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,53}$`)

// New returns the store of a database in which migrations.Up has run, or will; see
// [Config.Install]. If the name of the schema is invalid or db is nil, all calls of the store
// fail.
func New(db *sql.DB, c Config) *Store {
	s := &Store{db: db, schema: c.Schema, install: c.Install}
	if s.schema == "" {
		s.schema = DefaultSchema
	}
	if db == nil {
		s.err = fmt.Errorf("pglease: the database is nil; pass New an open sql.DB: %w", nodelease.ErrMisconfigured)
	}
	if !schemaName.MatchString(s.schema) {
		s.err = fmt.Errorf("pglease: Config.Schema: want at most 54 lower-case letters, digits and underscores, the first not a digit, got %q: %w", c.Schema, nodelease.ErrMisconfigured)
	}
	s.ours = regexp.MustCompile(`\b` + regexp.QuoteMeta(s.schema) + `\.`)
	return s
}

// Claim grants a number; see [nodelease.Store].
func (s *Store) Claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	c, err := s.claim(ctx, p, r)
	if err == nil || !s.install || !errors.Is(err, nodelease.ErrMisconfigured) {
		return c, err
	}
	if err := s.installed(ctx); err != nil {
		return nodelease.Claim{}, fmt.Errorf("pglease: install schema %q: %w", s.schema, err)
	}
	return s.claim(ctx, p, r)
}

// maxInstall is the longest time that an installation may take.
const maxInstall = 2 * time.Minute

// An installation is a call of [migrations.Up].
type installation struct {
	done chan struct{} // closed when err is set
	err  error
}

// installed waits for an installation. On a slow server, one takes longer than a claim may. So
// it continues when ctx ends, and the next call waits for the same one.
func (s *Store) installed(ctx context.Context) error {
	s.mu.Lock()
	i := s.running
	if i == nil {
		i = &installation{done: make(chan struct{})}
		s.running = i
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxInstall)
			defer cancel()
			i.err = s.up(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running = nil
			close(i.done)
		}()
	}
	s.mu.Unlock()
	select {
	case <-i.done:
		return i.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// up runs migrations.Up if the database has no installation in the schema. Otherwise a claim
// finds out what is wrong.
func (s *Store) up(ctx context.Context) error {
	config := migrations.Config{Schema: s.schema}
	if !errors.Is(migrations.Check(ctx, s.db, config), migrations.ErrNotInstalled) {
		return nil
	}
	err := migrations.Up(ctx, s.db, config)
	if pgerror.State(err) == pgerror.InsufficientPrivilege {
		remedy, _ := s.grants(ctx)
		option := ""
		if s.schema != migrations.DefaultSchema {
			option = " --schema " + s.schema
		}
		return fmt.Errorf("%w; or run sortkey migrate up%s as the owner of the database, and then %s: %w", err, option, remedy, nodelease.ErrMisconfigured)
	}
	return err
}

func (s *Store) claim(ctx context.Context, p nodelease.Pool, r nodelease.Request) (nodelease.Claim, error) {
	if err := s.checkGrants(ctx, p); err != nil {
		return nodelease.Claim{}, err
	}
	var number, term, after, until sql.Null[int64]
	var now int64
	var held, reserved, ahead, frees, highWaterMark sql.Null[int64]
	var reservations sql.Null[string]
	var rejected bool
	err := s.call(ctx, p, "claim a number",
		// The casts are for drivers that send all numbers as bigint and ranges as text.
		`SELECT number, term, after, until, time_ms, held_count, reserved_count, ahead_count, frees_ms, lowest_mark, reservations, skewed
			FROM %s.claim_node($1::pg_catalog.text, $2::integer, $3::pg_catalog.text, $4::pg_catalog.text::pg_catalog.int4multirange, $5::pg_catalog.text, $6::bigint, $7::bigint, $8::bigint, $9::bigint)`,
		[]any{p.Name, p.Size, p.Layout, multirange(p.Reserved), r.Holder, milliseconds(r.TTL), r.Now, r.Until, maxSkew(r)},
		[]any{&number, &term, &after, &until, &now, &held, &reserved, &ahead, &frees, &highWaterMark, &reservations, &rejected})
	if err != nil {
		return nodelease.Claim{}, err
	}
	if rejected {
		return nodelease.Claim{}, fmt.Errorf("pglease: claim a number of pool %q: %w", p.Name, skewed(r, now))
	}
	if !number.Valid {
		busy := &nodelease.BusyError{
			Held: int(held.V), Reserved: int(reserved.V), Ahead: int(ahead.V),
			RetryAfter: time.Duration(frees.V) * time.Millisecond,
		}
		if busy.Ahead > 0 {
			busy.RetryAfter = r.TimeToPass(highWaterMark.V)
		}
		if reservations.Valid {
			return nodelease.Claim{}, fmt.Errorf("%w; reserved in the database: %s; %s.unreserve_node frees a reserved number", busy, reservations.V, s.schema)
		}
		return nodelease.Claim{}, busy
	}
	return nodelease.Claim{
		Number: int(number.V), Term: term.V, Holder: r.Holder,
		After: after.V, Until: until.V, TTL: r.TTL, Time: time.UnixMilli(now),
	}, nil
}

// Renew extends a claim; see [nodelease.Store].
func (s *Store) Renew(ctx context.Context, p nodelease.Pool, c nodelease.Claim, r nodelease.Request) (nodelease.Claim, error) {
	var renewed, rejected bool
	var now int64
	var after, until, term sql.Null[int64]
	var holder sql.Null[string]
	err := s.call(ctx, p, fmt.Sprintf("renew number %d", c.Number),
		`SELECT renewed, after, until, time_ms, present_term, present_holder, skewed
			FROM %s.renew_node($1::pg_catalog.text, $2::integer, $3::bigint, $4::pg_catalog.text, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::pg_catalog.text, $10::pg_catalog.text::pg_catalog.text[])`,
		[]any{p.Name, c.Number, c.Term, c.Holder, milliseconds(r.TTL), r.Until, r.Now, maxSkew(r), r.Nonce, nonces(c)},
		[]any{&renewed, &after, &until, &now, &term, &holder, &rejected})
	if err != nil {
		return nodelease.Claim{}, err
	}
	if rejected {
		return nodelease.Claim{}, fmt.Errorf("pglease: renew number %d of pool %q: %w", c.Number, p.Name, skewed(r, now))
	}
	if !renewed {
		now := fmt.Sprintf("released in term %d", term.V)
		if holder.Valid {
			now = fmt.Sprintf("held by %q in term %d", holder.V, term.V)
			if term.V == c.Term {
				now += ", reserved, or renewed by a copy of this process"
			}
		} else if !term.Valid {
			now = "missing in the database"
		}
		return nodelease.Claim{}, fmt.Errorf("pglease: renew number %d of pool %q in term %d: the number is %s; claim another: %w",
			c.Number, p.Name, c.Term, now, nodelease.ErrSuperseded)
	}
	c.After, c.Until, c.TTL, c.Time = after.V, until.V, r.TTL, time.UnixMilli(now)
	c.Nonce, c.Sent = r.Nonce, nil
	return c, nil
}

// Release ends a claim; see [nodelease.Store].
func (s *Store) Release(ctx context.Context, p nodelease.Pool, c nodelease.Claim, highWaterMark int64) error {
	var released bool // false if the term was over already
	return s.call(ctx, p, fmt.Sprintf("release number %d", c.Number),
		`SELECT %s.release_node($1::pg_catalog.text, $2::integer, $3::bigint, $4::pg_catalog.text, $5::bigint, $6::pg_catalog.text::pg_catalog.text[])`,
		[]any{p.Name, c.Number, c.Term, c.Holder, highWaterMark, nonces(c)},
		[]any{&released})
}

// nonces returns the text form of the nonces that the holder of a claim knows, as a text[].
func nonces(c nodelease.Claim) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	text := `{"` + quote.Replace(c.Nonce) + `"`
	for _, nonce := range slices.Concat(c.Sent, c.Past) {
		text += `,"` + quote.Replace(nonce) + `"`
	}
	return text + "}"
}

// multirange returns the text form of the numbers as an int4multirange. Consecutive
// numbers are one range, so that the call stays short if a program reserves most of a
// pool. The form is text because drivers have different types for ranges.
func multirange(numbers []int) string {
	sorted := slices.Clone(numbers)
	slices.Sort(sorted)
	var text []byte
	for i := 0; i < len(sorted); {
		first, last := sorted[i], sorted[i]
		for i++; i < len(sorted) && sorted[i] <= last+1; i++ {
			last = sorted[i]
		}
		if len(text) > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, "[%d,%d]", first, last)
	}
	return "{" + string(text) + "}"
}

// maxAhead is the largest distance of a high-water mark from the server's clock, in addition
// to the TTL of the claim. The server enforces it; the constant is for the error.
const maxAhead = 24 * time.Hour

// skewed returns the error of a request that the server has rejected because of a clock. now
// is the server's clock, in Unix milliseconds.
func skewed(r nodelease.Request, now int64) error {
	if err := r.CheckSkew(time.UnixMilli(now)); err != nil && r.Until <= now+milliseconds(r.TTL+maxAhead) {
		return err
	}
	return r.SkewError(time.UnixMilli(now), fmt.Sprintf("the claim would end more than its TTL and %v after the server's clock; correct the clock that is wrong, because no MaxSkew raises this limit", maxAhead))
}

// maxSkew returns the limit of the skew in milliseconds, or NULL if there is none.
func maxSkew(r nodelease.Request) sql.Null[int64] {
	return sql.Null[int64]{V: milliseconds(r.MaxSkew), Valid: r.MaxSkew > 0}
}

// milliseconds rounds up, since a claim may last longer than requested, but not
// shorter.
func milliseconds(d time.Duration) int64 {
	return (d + time.Millisecond - 1).Milliseconds()
}
