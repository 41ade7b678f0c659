package pglease

import (
	"context"
	"database/sql"
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
	return fmt.Errorf("pglease: %s of pool %q: %w", what, p.Name, s.explain(ctx, err, p))
}

// explain adds the remedy to an error of the server. If the error persists until the
// setup changes, it also adds [nodelease.ErrMisconfigured]. Other errors, such as
// errors during a failover, are temporary.
func (s *Store) explain(ctx context.Context, err error, p nodelease.Pool) error {
	switch code := pgerror.State(err); code {
	case "SK001":
		return fmt.Errorf("%w; give this process the layout of the pool, or install its layout in another schema, as in migrations.Config: %w", err, nodelease.ErrPoolMismatch)
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
	case pgerror.InsufficientPrivilege:
		remedy, ok := s.grants(ctx)
		if !ok {
			return fmt.Errorf("%w; no session can begin: grant the role CONNECT on the database, or correct the role and the settings in the connection string: %w", err, nodelease.ErrMisconfigured)
		}
		return fmt.Errorf("%w; as the owner of schema %q, run %s: %w", err, s.schema, remedy, nodelease.ErrMisconfigured)
	case "28000", "28P01", "3D000", "22023": // invalid_authorization_specification, invalid_password, invalid_catalog_name, invalid_parameter_value
		return fmt.Errorf("%w: %w", err, nodelease.ErrMisconfigured)
	}
	return err
}

// grants returns the statements that grant this session's role what a program needs. It reports
// whether there is a session.
func (s *Store) grants(ctx context.Context) (statements string, ok bool) {
	role := "this_role"
	err := s.db.QueryRowContext(ctx, "SELECT pg_catalog.quote_ident(current_user)").Scan(&role)
	return fmt.Sprintf("GRANT USAGE ON SCHEMA %[1]s TO %[2]s; GRANT EXECUTE ON FUNCTION %[1]s.claim_node, %[1]s.renew_node, %[1]s.release_node TO %[2]s", s.schema, role), err == nil
}

// checkGrants returns an error if the role can claim a number, but can't renew or release it:
// then it would use the claim for one TTL, and lose it.
func (s *Store) checkGrants(ctx context.Context, p nodelease.Pool) error {
	var denied sql.Null[string]
	err := s.call(ctx, p, "read the privileges for a claim",
		// Without claim_node, the claim has the better error.
		`SELECT CASE WHEN NOT pg_catalog.bool_or(p.proname = 'claim_node') THEN pg_catalog.string_agg(DISTINCT p.proname::pg_catalog.text, ' and ') END
			FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
			WHERE '"' || n.nspname || '"' = '%s' AND p.proname IN ('claim_node', 'renew_node', 'release_node') AND NOT pg_catalog.has_function_privilege(p.oid, 'EXECUTE')`,
		nil, []any{&denied})
	if err != nil || !denied.Valid {
		return err
	}
	remedy, _ := s.grants(ctx)
	return fmt.Errorf("pglease: claim a number of pool %q: this role can't execute %s of schema %q, which a claim needs later; as the owner of the schema, run %s: %w",
		p.Name, denied.V, s.schema, remedy, nodelease.ErrMisconfigured)
}
