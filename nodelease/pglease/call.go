package pglease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sortkey/sortkey/internal/pgerror"
	"github.com/sortkey/sortkey/nodelease"
)

// attempts is the maximum number of attempts at a call that conflicts with other
// transactions.
const attempts = 10

// call calls a SQL function in a transaction of its own, and retries after conflicts. The text
// has %s in place of the schema. Conflicts occur if the default isolation level of the database
// is higher than read committed. A call that failed with a conflict changed nothing, and
// succeeds once the other transaction has ended.
func (s *Store) call(ctx context.Context, p nodelease.Pool, what, text string, args, results []any) error {
	switch {
	case s.err != nil:
		return s.err
	case s.db == nil:
		return fmt.Errorf("pglease: the Store is a zero value; create it with New: %w", nodelease.ErrMisconfigured)
	}
	if err := p.Validate(); err != nil {
		return err
	}
	text = fmt.Sprintf(text, `"`+s.schema+`"`)
	var err error
	for attempt := range attempts {
		if err = s.db.QueryRowContext(ctx, text, args...).Scan(results...); err == nil {
			return nil
		}
		if code := pgerror.State(err); code != "40001" && code != "40P01" || ctx.Err() != nil {
			break
		}
		timer := time.NewTimer(rand.N(time.Millisecond << attempt))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
	return fmt.Errorf("pglease: %s of pool %q: %w", what, p.Name, s.explain(err, p))
}

// explain adds the remedy to an error of the server. If the error persists until the
// setup changes, it also adds [nodelease.ErrMisconfigured]. Other errors, such as
// errors during a failover, are temporary.
func (s *Store) explain(err error, p nodelease.Pool) error {
	switch code := pgerror.State(err); code {
	case "SK001":
		return fmt.Errorf("%w: %w", err, nodelease.ErrPoolMismatch)
	case "25006": // read_only_sql_transaction
		return fmt.Errorf("%w: the server or its default is read-only; connect to the primary (target_session_attrs=read-write if the URL names several hosts)", err)
	case "42704":
		if strings.Contains(err.Error(), "pool "+p.Name+" doesn't exist") {
			return fmt.Errorf("%w; it isn't a default pool of this installation, so only the owner can create it: as the owner of schema %q, run SELECT %[2]s.create_node_pool('%[3]s', %[4]d, '%[5]s'): %[6]w",
				err, s.schema, p.Name, p.Size, strings.ReplaceAll(p.Layout, "'", "''"), nodelease.ErrMisconfigured)
		}
		fallthrough
	case "3F000", "42883", "42P01": // invalid_schema_name, undefined_function, undefined_table, undefined_object
		// Triggers of the database's owner can fail with these codes too.
		if code == "3F000" || s.ours.MatchString(err.Error()) {
			// Citus copies functions to its workers, but not tables and their types.
			return fmt.Errorf("%w: schema %q lacks objects of package migrations; run migrations.Up, set Config.Schema to the schema of migrations.Up, or, on a Citus worker, connect to the coordinator: %w",
				err, s.schema, nodelease.ErrMisconfigured)
		}
	case "42501": // insufficient_privilege
		return fmt.Errorf("%w; as the owner of schema %q, run GRANT USAGE ON SCHEMA %[2]s TO this role and GRANT EXECUTE on claim_node, renew_node and release_node, as in the documentation of pglease: %w",
			err, s.schema, nodelease.ErrMisconfigured)
	case "28000", "28P01", "3D000", "22023": // invalid_authorization_specification, invalid_password, invalid_catalog_name, invalid_parameter_value
		return fmt.Errorf("%w: %w", err, nodelease.ErrMisconfigured)
	}
	return err
}
