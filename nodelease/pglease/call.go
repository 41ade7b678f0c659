package pglease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sortkey/sortkey/nodelease"
)

// A query is a call of a function, which is all of its transaction.
type query struct {
	text    string // with %s for the schema
	args    []any
	results []any
}

// attempts is how often a call is made that conflicts with others'.
const attempts = 10

// call runs a query. Conflicts come up where the database's default isolation is
// higher than read committed, and are over as soon as the other transaction is;
// a call that failed so changed nothing.
func (s *Store) call(ctx context.Context, p nodelease.Pool, what string, q query) error {
	if s.err != nil {
		return s.err
	}
	if err := p.Validate(); err != nil {
		return err
	}
	text := fmt.Sprintf(q.text, `"`+s.schema+`"`)
	var err error
	for attempt := range attempts {
		if err = s.db.QueryRowContext(ctx, text, q.args...).Scan(q.results...); err == nil {
			return nil
		}
		if code := state(err); code != "40001" && code != "40P01" || ctx.Err() != nil {
			break
		}
		timer := time.NewTimer(rand.N(time.Millisecond << attempt))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return fmt.Errorf("pglease: %s of pool %q: %w", what, p.Name, s.explain(err))
}

// state is the SQLSTATE of an error, "" if it has none. Of pgx it is
// *pgconn.PgError, of lib/pq *pq.Error, both with this method.
func state(err error) string {
	var pg interface{ SQLState() string }
	if !errors.As(err, &pg) {
		return ""
	}
	return pg.SQLState()
}

// explain adds the remedy to an error of the server, and
// [nodelease.ErrMisconfigured] to errors that last until somebody changes the
// setup. Other errors, such as those of a failover, may be over soon.
func (s *Store) explain(err error) error {
	switch code := state(err); code {
	case "SK001":
		return fmt.Errorf("%w: %w", err, nodelease.ErrPoolMismatch)
	case "25006": // read_only_sql_transaction
		return fmt.Errorf("%w: expected the primary, got a server or a default that is read-only: connect to the primary (target_session_attrs=read-write, where a URL names several hosts)", err)
	case "3F000", "42883", "42P01", "42704": // invalid_schema_name, undefined_function, undefined_table, undefined_object
		// Triggers of the database's owner may miss something, too.
		if code == "3F000" || s.ours.MatchString(err.Error()) {
			// Citus copies functions to its workers, but neither tables nor their types.
			return fmt.Errorf("%w: schema %q of this database lacks what package migrations installs; run migrations.Up, set Config.Schema to the schema it ran for, or, on a worker of Citus, connect to the coordinator: %w",
				err, s.schema, nodelease.ErrMisconfigured)
		}
	case "42501": // insufficient_privilege
		return fmt.Errorf("%w: as the owner of schema %q run GRANT USAGE ON SCHEMA %[2]s TO this role, and GRANT EXECUTE on functions claim_node, renew_node and release_node, as the documentation of pglease has it: %w",
			err, s.schema, nodelease.ErrMisconfigured)
	case "28000", "28P01", "3D000", "22023": // invalid_authorization_specification, invalid_password, invalid_catalog_name, invalid_parameter_value
		return fmt.Errorf("%w: %w", err, nodelease.ErrMisconfigured)
	}
	return err
}
