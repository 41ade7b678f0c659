package pgxcodec

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// AfterConnect calls [Register] and then registers the domains over the column types
// that can hold IDs, in all schemas. A domain then works like its base type: in arrays,
// in COPY, and in the check for wrong column types. AfterConnect leaves a domain alone if the
// caller has registered a codec for it or its array. Its signature fits pgxpool.Config.AfterConnect
// and stdlib.OptionAfterConnect.
//
// It queries the server once per connection, in one round trip. A [Loader] caches the
// result for a pool.
func AfterConnect(ctx context.Context, conn *pgx.Conn) error {
	return new(Loader).AfterConnect(ctx, conn)
}

// A Loader does the work of [AfterConnect] for the connections of one pool, and caches
// the domains of a database for one minute. (Connections that open at the same moment
// may each query the server.)
//
// A connection that opens a minute or more after a migration knows the domains that the
// migration created. If the database had no domains before, the Loader finds them
// sooner: it caches an empty result for as long as it has found none so far, up to a
// minute. After empty results at 0 s and 2 s, for example, it queries again at 4 s. The
// second connection therefore always queries, and later ones rarely do.
//
// Domains have different OIDs in different databases. A Loader distinguishes databases
// by the server's address and version, the user, and the database's name. Call
// [Loader.Forget] after a domain or the database is dropped and created again, or if a
// proxy may have switched to another server.
//
// The zero Loader is ready to use. It must not be copied.
type Loader struct {
	mu    sync.Mutex
	known map[database]answer
}

// An answer is the last query result for a database.
type answer struct {
	domains []domain
	until   time.Time // when the answer expires
	since   time.Time // if domains is empty: when the Loader first found none
}

// maxTrust is the maximum time for which a Loader trusts an answer.
const maxTrust = time.Minute

// A database is the cache key of a Loader. If name is empty, the database is named
// like the user.
type database struct{ address, user, name, version string }

// A domain is a row of pg_type: a domain, or the type citext.
type domain struct {
	schema, name        string
	oid, arrayOID, base uint32
}

// Forget empties the cache, so that the next connection queries the domains again.
func (l *Loader) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
}

// AfterConnect is like the function [AfterConnect], but queries the domains only if the
// cache has no current result for the database.
func (l *Loader) AfterConnect(ctx context.Context, conn *pgx.Conn) error {
	m := conn.TypeMap()
	Register(m)
	domains, err := l.domains(ctx, conn)
	if err != nil {
		return err
	}
	for _, d := range domains {
		d.register(m)
	}
	return nil
}

func (l *Loader) domains(ctx context.Context, conn *pgx.Conn) ([]domain, error) {
	key := database{
		address: fmt.Sprint(conn.PgConn().Conn().RemoteAddr()), // of several configured hosts, the connected one
		user:    conn.Config().User,
		name:    conn.Config().Database,
		version: conn.PgConn().ParameterStatus("server_version"),
	}
	l.mu.Lock()
	if l.known == nil {
		l.known = map[database]answer{}
	}
	known := l.known
	last := known[key]
	l.mu.Unlock()

	asked := time.Now()
	if asked.Before(last.until) {
		return last.domains, nil
	}
	domains, err := queryDomains(ctx, conn)
	if err != nil {
		return nil, fmt.Errorf("pgxcodec: load the domains of database %q: %w", key.name, err)
	}
	next := answer{domains: domains, until: asked.Add(maxTrust)}
	if len(domains) == 0 {
		next.since = asked
		if !last.since.IsZero() {
			next.since = last.since
		}
		next.until = asked.Add(min(asked.Sub(next.since), maxTrust))
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	// If Forget has replaced l.known meanwhile, this stores into the discarded map:
	// the query began before Forget.
	if !known[key].until.After(next.until) {
		known[key] = next
	}
	return domains, nil
}

// domainsSQL selects the domains whose base type, at the end of a chain of domains,
// is in builtin or is citext. citext is text with another comparison. It is an
// extension's type, so its OID differs between databases.
var domainsSQL = func() string {
	var oids []string
	for _, b := range builtin {
		oids = append(oids, strconv.Itoa(int(b.oid)))
	}
	return fmt.Sprintf(`with recursive chain (oid, base) as (
	select t.oid, case t.typtype when 'd' then t.typbasetype else t.oid end
	from pg_catalog.pg_type t
	where t.typtype operator(pg_catalog.=) 'd' or t.typname operator(pg_catalog.=) 'citext' and t.typtype operator(pg_catalog.=) 'b'
	union all
	select c.oid, t.typbasetype
	from chain c join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) c.base and t.typtype operator(pg_catalog.=) 'd'
)
select n.nspname::text, t.typname::text, t.oid, t.typarray, case when b.typname operator(pg_catalog.=) 'citext' then %d else b.oid end
from chain c
join pg_catalog.pg_type t on t.oid operator(pg_catalog.=) c.oid
join pg_catalog.pg_type b on b.oid operator(pg_catalog.=) c.base
join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) t.typnamespace
where (b.oid operator(pg_catalog.=) any ('{%s}'::pg_catalog.oid[]) or b.typname operator(pg_catalog.=) 'citext' and b.typtype operator(pg_catalog.=) 'b')
	and n.nspname operator(pg_catalog.<>) 'information_schema'`, pgtype.TextOID, strings.Join(oids, ","))
}()

func queryDomains(ctx context.Context, conn *pgx.Conn) ([]domain, error) {
	// This mode takes one round trip, leaves no prepared statement behind, and works
	// through any PgBouncer.
	rows, err := conn.Query(ctx, domainsSQL, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d domain, err error) {
		err = row.Scan(&d.schema, &d.name, &d.oid, &d.arrayOID, &d.base)
		return d, err
	})
}

// register registers the base type's codec for a domain and its array, unless the caller
// has registered another codec for one of them.
func (d domain) register(m *pgtype.Map) {
	base, ok := codecOf(m, d.base, "").(*elementCodec)
	if !ok {
		return
	}
	// The schema in the name avoids a clash with a type of the caller's.
	element := &pgtype.Type{Name: d.schema + "." + d.name, OID: d.oid, Codec: base}
	array := codecOf(m, d.arrayOID, d.schema+"._"+d.name)
	if array == nil {
		array = &pgtype.ArrayCodec{}
	}
	elements, ok := unwrap(array).(*pgtype.ArrayCodec)
	if !ok || !base.replaces(codecOf(m, d.oid, element.Name)) || elements.ElementType != nil && !base.replaces(elements.ElementType.Codec) {
		return
	}
	registerAs(m, element)
	if d.arrayOID != 0 {
		registerAs(m, arrayType(d.schema+"._"+d.name, d.arrayOID, element, base.column, elements))
	}
}

// codecOf returns the codec that a map has for an OID, or else for a name: the caller may have
// registered it with the OID of another database. It returns nil if there is none.
func codecOf(m *pgtype.Map, oid uint32, name string) pgtype.Codec {
	t, ok := m.TypeForOID(oid)
	if !ok {
		t, ok = m.TypeForName(name)
	}
	if !ok {
		return nil
	}
	return t.Codec
}

// replaces reports whether a domain's codec is none, one of this package, or the codec of
// the base type, which [pgx.Conn.LoadType] registers for domains.
func (c *elementCodec) replaces(codec pgtype.Codec) bool {
	_, own := codec.(*elementCodec)
	return codec == nil || own || reflect.DeepEqual(codec, c.Codec)
}

// registerAs registers a type under its own name, unless the map uses it for another type,
// and under the name that the map has for its OID.
func registerAs(m *pgtype.Map, t *pgtype.Type) {
	known, ok := m.TypeForOID(t.OID)
	if ok && known.Name != t.Name {
		m.RegisterType(&pgtype.Type{Name: known.Name, OID: t.OID, Codec: t.Codec})
	}
	if other, ok := m.TypeForName(t.Name); !ok || other.OID == t.OID {
		m.RegisterType(t)
	}
}
