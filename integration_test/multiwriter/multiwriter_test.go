package multiwriter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// must is pgtest.Must.
var must = pgtest.Must

// nodes are the node numbers of the defaults, in the setting sortkey.node of each server.
var nodes = map[string]int{"a": 1022, "b": 1023}

// twoSites calls f with two servers that replicate in both directions.
func twoSites(t *testing.T, f func(t *testing.T, a, b *site, link *pgtest.Link)) {
	t.Helper()
	pgtest.OnePair(t, func(t *testing.T, dbA, dbB *pgtest.DB, link *pgtest.Link) {
		a := newSite(t, "a", dbA)
		b := newSite(t, "b", dbB)
		a.follow(t, b, link)
		b.follow(t, a, link)
		f(t, a, b, link)
	})
}

// If each generator has its own node number, two servers converge to the same rows
// without a conflict, even if both write while the link between them is cut. The servers
// have the same tables and differ in the setting sortkey.node.
//
// Server a keeps the claims, also for programs at b. The cut separates the servers,
// but not those programs from a.
//
// With equal node numbers, the servers don't converge. That part comes last, because it ends
// replication.
func TestTwoServers(t *testing.T) {
	twoSites(t, func(t *testing.T, a, b *site, link *pgtest.Link) {
		claims := pglease.New(a.db.SQL(t), pglease.Config{})
		a.claim(t, claims)
		b.claim(t, claims)

		write(t, a, b)()
		converged(t, a, b)
		for _, s := range []*site{a, b} {
			if v := s.state(t); v.errors != 0 {
				t.Errorf("%s: expected no replication errors, got %d", s.name, v.errors)
			}
		}
		numbers(t, a, b)

		t.Run("cut", func(t *testing.T) {
			// Cut the link during writes, and wait until both servers notice.
			wait := write(t, a, b)
			link.Cut(t, b.db)
			wait()
			for _, s := range []*site{a, b} {
				pgtest.Eventually(t, s.name+" notices the cut", func() error {
					if v := s.state(t); v.senders != 0 || v.errors == 0 {
						return fmt.Errorf("%d connections from the other server and %d replication errors, want 0 and some", v.senders, v.errors)
					}
					return nil
				})
			}
			errorsOfCut := map[*site]int64{a: a.state(t).errors, b: b.state(t).errors}
			write(t, a, b)()
			for _, table := range tables {
				if got, all := a.has(t, table, b.name), b.wrote[table]; got.Rows >= all.Rows {
					t.Errorf("%s: expected %s without the rows that b wrote since the cut, got all %d", a.name, table, got.Rows)
				}
				if got, all := b.has(t, table, a.name), a.wrote[table]; got.Rows >= all.Rows {
					t.Errorf("%s: expected %s without the rows that a wrote since the cut, got all %d", b.name, table, got.Rows)
				}
			}

			// Heal the link during writes.
			wait = write(t, a, b)
			link.Heal(t, b.db)
			wait()
			converged(t, a, b)
			for s, n := range errorsOfCut {
				if v := s.state(t); v.errors != n {
					t.Errorf("%s: expected only the %d replication errors of the cut, got %d", s.name, n, v.errors)
				}
			}
			numbers(t, a, b)
		})
		t.Run("same number", func(t *testing.T) { sameNumber(t, a, b) })
	})
}

// converged waits until both servers have the same rows, and checks that these are
// all rows that were written.
func converged(t *testing.T, a, b *site) {
	t.Helper()
	for _, s := range []*site{a, b} {
		pgtest.Eventually(t, "the other server connects to "+s.name, func() error {
			if v := s.state(t); v.senders != 1 {
				return fmt.Errorf("got %d connections, want 1", v.senders)
			}
			return nil
		})
	}
	for _, s := range []*site{a, b} {
		end := s.end(t)
		pgtest.Eventually(t, "the other server applies all changes of "+s.name, func() error { return s.applied(t.Context(), end) })
	}
	pgtest.Eventually(t, "both servers have the same rows", func() error {
		for _, table := range tables {
			atA, err := a.digest(t.Context(), table)
			if err != nil {
				return err
			}
			atB, err := b.digest(t.Context(), table)
			if err != nil {
				return err
			}
			if atA != atB {
				return fmt.Errorf("%s: a has %s, b has %s", table, atA, atB)
			}
		}
		return nil
	})
	for _, writer := range []*site{a, b} {
		for _, table := range tables {
			if got, want := a.has(t, table, writer.name), writer.wrote[table]; got != want {
				t.Errorf("%s: expected %+v written by %s, got %+v", table, want, writer.name, got)
			}
		}
		if v := writer.state(t); v.senders != 1 || !v.enabled || !v.ready || v.conflict != 0 {
			t.Errorf("%s: expected replication to continue without a conflict, got %+v", writer.name, v)
		}
	}
}

// numbers checks that each generator used its own node number.
func numbers(t *testing.T, a, b *site) {
	t.Helper()
	seen := make(map[string]string) // the generator that used a number
	own := func(table, format string, s *site, want int, got []int) {
		t.Helper()
		if slices.Sort(got); !slices.Equal(slices.Compact(got), []int{want}) {
			t.Errorf("%s at %s: expected IDs of %s %d, got %v", table, s.name, format, want, slices.Compact(got))
		}
		number, generator := fmt.Sprintf("%s %d", format, want), table+" at "+s.name
		if other, taken := seen[number]; taken {
			t.Errorf("expected one generator with %s, got %s and %s", number, other, generator)
		}
		seen[number] = generator
	}
	node := func(id idtype.Snowflake) int {
		p, err := idtype.DefaultSnowflakeLayout().Parts(id)
		must(t, err)
		return p.Datacenter<<5 | p.Worker
	}
	partition := func(id idtype.Sno) int { return int(id.Partition().Uint16()) }
	for _, s := range []*site{a, b} {
		own("orders", "snowflake", s, s.orders.(*nodelease.Generator[idtype.Snowflake]).Keeper().Number(), numbersOf(t, s, "orders", node))
		own("payments", "snowflake", s, nodes[s.name], numbersOf(t, s, "payments", node))
		own("events", "sno", s, s.events.(*nodelease.Generator[idtype.Sno]).Keeper().Number(), numbersOf(t, s, "events", partition))
		own("notes", "sno", s, nodes[s.name], numbersOf(t, s, "notes", partition))
	}
}

// numbersOf returns the node numbers in the keys of a site's rows.
func numbersOf[T any](t *testing.T, s *site, table string, number func(T) int) (numbers []int) {
	t.Helper()
	rows, err := s.pool.Query(t.Context(), "SELECT id FROM "+table+" WHERE server = $1", s.name)
	must(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[T])
	must(t, err)
	for _, id := range ids {
		numbers = append(numbers, number(id))
	}
	return numbers
}

// sameNumber creates keys with two generators that have the same node number at the same time.
// Each server stores its own row and can never apply the other's. So TestTwoServers does fail if
// node numbers aren't separate.
func sameNumber(t *testing.T, a, b *site) {
	now := time.Now()
	clock := func() time.Time { return now }
	for _, s := range []*site{a, b} {
		orders, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 1, Options: idtype.Options{Clock: clock}})
		must(t, err)
		partition := idtype.SnoPartitionFrom(1)
		events, err := idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition, Options: idtype.Options{Clock: clock}})
		must(t, err)
		s.useGenerators(t, orders, events)
	}
	for _, s := range []*site{a, b} {
		s.replicate(t, "DISABLE")
		pgtest.Eventually(t, s.name+" stops applying changes", func() error {
			if n := s.workers(t); n != 0 {
				return fmt.Errorf("%d workers are running", n)
			}
			return nil
		})
	}
	must(t, a.createByGORM(t.Context()))
	must(t, b.copyByPgx(t.Context()))
	must(t, b.createByGORM(t.Context()))
	must(t, a.copyByPgx(t.Context()))
	before := map[*site]int64{a: a.state(t).errors, b: b.state(t).errors}
	for _, s := range []*site{a, b} {
		s.replicate(t, "ENABLE")
	}
	for _, s := range []*site{a, b} {
		// The later errors come from retries of the row.
		pgtest.Eventually(t, "replication fails at "+s.name, func() error {
			if v := s.state(t); v.errors < before[s]+3 || s.db.Version >= "18" && v.conflict == 0 {
				return fmt.Errorf("got %+v", v)
			}
			return nil
		})
		if err := s.applied(t.Context(), s.end(t)); err == nil {
			t.Errorf("expected the changes of %s not to be applied, but they were", s.name)
		}
	}
	atA, err := a.digest(t.Context(), "orders")
	must(t, err)
	atB, err := b.digest(t.Context(), "orders")
	must(t, err)
	if atA == atB {
		t.Error("expected different orders with the same key on the two servers, got the same orders")
	}
}
