package dbhealth

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
)

// Since Postgres 19, a subscription can copy the publisher's sequences over the sequences of the defaults. The
// rule finds it. If that happens between statements, no ID repeats. During a statement, IDs can repeat.
func TestSubscribedSequences(t *testing.T) {
	pgtest.OnePair(t, func(t *testing.T, publisher, db *pgtest.DB, link *pgtest.Link) {
		if db.Version < "19" {
			t.Log("Postgres before 19 publishes no sequences")
			return
		}
		for _, d := range []*pgtest.DB{publisher, db} {
			pgtest.Must(t, migrations.Up(t.Context(), d.SQL(t), migrations.Config{}))
		}
		publisher.Exec(t, "SELECT sortkey.next_uid60(); CREATE PUBLICATION rows; CREATE PUBLICATION sequences FOR ALL SEQUENCES")
		subscriber := db.SQL(t)
		subscribed := func() bool {
			return slices.ContainsFunc(find(t, subscriber, dbhealth.Options{}), func(f string) bool {
				return strings.HasPrefix(f, "generator-subscribed problem sortkey_internal.uid60_clock: is a sequence of subscription s")
			})
		}
		db.Exec(t, `SELECT sortkey.next_uid60(); SELECT sortkey.reserve_node('snowflake', 7, 'here'); CREATE TABLE t (id bigint DEFAULT sortkey.next_snowflake(7))`)
		if subscribed() {
			t.Error("found before the subscription")
		}
		db.Exec(t, fmt.Sprintf("CREATE SUBSCRIPTION s CONNECTION '%s' PUBLICATION rows, sequences", link.URL(t, publisher)))
		if !subscribed() {
			t.Error("the rule doesn't find a subscription of all sequences")
		}

		conn := db.Conn(t)
		pgtest.Eventually(t, "the first synchronization ends", func() error {
			if n := pgtest.Value[int](t, conn, "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'"); n > 0 {
				return fmt.Errorf("%d sequences are left", n)
			}
			return nil
		})
		for range 5 {
			execute(t, db, conn, "INSERT INTO t SELECT FROM generate_series(1, 20000)")
			before := pgtest.Value[int64](t, conn, "SELECT last_value FROM sortkey_internal.snowflake_clock")
			db.Exec(t, "ALTER SUBSCRIPTION s REFRESH SEQUENCES")
			pgtest.Eventually(t, "the sequence is set back", func() error {
				if now := pgtest.Value[int64](t, conn, "SELECT last_value FROM sortkey_internal.snowflake_clock"); now >= before {
					return fmt.Errorf("%d, and before the refresh %d", now, before)
				}
				return nil
			})
		}
		if n := pgtest.Value[int64](t, conn, "SELECT count(*) - count(DISTINCT id) FROM t"); n != 0 {
			t.Errorf("expected no duplicates, got %d", n)
		}

		db.Exec(t, "ALTER SUBSCRIPTION s DROP PUBLICATION sequences") // the remedy
		if subscribed() {
			t.Error("found after the remedy")
		}
		db.Exec(t, "DROP SUBSCRIPTION s")
	})
}
