package pgxcodec

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// DefaultSchema is the schema of the domains that package migrations makes.
const DefaultSchema = "sortkey"

// AfterConnect is [Register], and asks the server for the domains of the
// schema [DefaultSchema] so that their arrays and parameters go the fast way
// too. A database without that schema is no error. It fits
// pgxpool.Config.AfterConnect and stdlib.OptionAfterConnect.
//
// It asks once per connection, in one round trip. See [Loader].
func AfterConnect(ctx context.Context, conn *pgx.Conn) error {
	return new(Loader).AfterConnect(ctx, conn)
}

// A Loader is an [AfterConnect] for the connections of one pool: it remembers
// the domains of a server and asks no second time. (Connections that open at
// the same moment may each ask.)
//
// Databases differ in the numbers that they give to domains. A Loader tells
// them apart by the server's address and version and the database's name, so
// a process has to be restarted, or given a new Loader, when a database is
// dropped and made anew, or the schema is.
//
// The zero Loader is ready to use. It must not be copied.
type Loader struct {
	// Schema is the schema of the domains; "" is [DefaultSchema].
	Schema string

	mu    sync.Mutex
	known map[database][]domain
}

// A database is what a Loader remembers domains by.
type database struct{ address, name, version string }

// A domain is a row of pg_type.
type domain struct {
	name                string
	oid, arrayOID, base uint32
}

// AfterConnect does what the function of this name does.
func (l *Loader) AfterConnect(ctx context.Context, conn *pgx.Conn) error {
	m := conn.TypeMap()
	Register(m)
	domains, err := l.domains(ctx, conn)
	if err != nil {
		return err
	}
	for _, d := range domains {
		d.register(m, l.schema())
	}
	return nil
}

func (l *Loader) schema() string {
	if l.Schema == "" {
		return DefaultSchema
	}
	return l.Schema
}

func (l *Loader) domains(ctx context.Context, conn *pgx.Conn) ([]domain, error) {
	key := database{
		address: fmt.Sprint(conn.PgConn().Conn().RemoteAddr()), // of several hosts, the one that answered
		name:    conn.Config().Database,
		version: conn.PgConn().ParameterStatus("server_version"),
	}
	l.mu.Lock()
	domains := l.known[key]
	l.mu.Unlock()
	if domains != nil {
		return domains, nil
	}
	domains, err := queryDomains(ctx, conn, l.schema())
	if err != nil {
		return nil, fmt.Errorf("pgxcodec: expected the domains of schema %q, got an error from the server: %w", l.schema(), err)
	}
	if len(domains) > 0 { // else they may be created yet
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.known == nil {
			l.known = map[database][]domain{}
		}
		l.known[key] = domains
	}
	return domains, nil
}

// A domain over a domain has the higher OID, and comes after it.
const domainsSQL = `select t.typname::text, t.oid, t.typarray, t.typbasetype
from pg_catalog.pg_type t
join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) t.typnamespace
where n.nspname operator(pg_catalog.=) $1 and t.typtype operator(pg_catalog.=) 'd'
order by t.oid`

func queryDomains(ctx context.Context, conn *pgx.Conn, schema string) ([]domain, error) {
	// This mode takes one round trip, leaves no prepared statement behind, and
	// goes through any PgBouncer.
	rows, err := conn.Query(ctx, domainsSQL, pgx.QueryExecModeExec, schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d domain, err error) {
		err = row.Scan(&d.name, &d.oid, &d.arrayOID, &d.base)
		return d, err
	})
}

// register gives a domain the codec of its base type. Domains over types that
// can't hold IDs stay as they are.
func (d domain) register(m *pgtype.Map, schema string) {
	base, ok := m.TypeForOID(d.base)
	if !ok {
		return
	}
	codec, ok := base.Codec.(wrapper)
	if !ok {
		return
	}
	// With the schema, so that no type of the caller's has the same name.
	t := &pgtype.Type{Name: schema + "." + d.name, OID: d.oid, Codec: base.Codec}
	m.RegisterType(t)
	if d.arrayOID != 0 {
		m.RegisterType(arrayType(schema+"._"+d.name, d.arrayOID, t, codec.holder(), &pgtype.ArrayCodec{}))
	}
}
