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

// AfterConnect is [Register], and asks the server for the domains over the
// column types that hold IDs, those of schema sortkey and all others, so that
// what is said of the column types holds for them too: in arrays, in COPY, and
// in what is refused. It wraps codecs that the caller has registered for domains.
// It fits pgxpool.Config.AfterConnect and stdlib.OptionAfterConnect.
//
// It asks once per connection, in one round trip. See [Loader].
func AfterConnect(ctx context.Context, conn *pgx.Conn) error {
	return new(Loader).AfterConnect(ctx, conn)
}

// A Loader is an [AfterConnect] for the connections of one pool: it remembers
// the domains of a database for a minute, and doesn't ask again before.
// (Connections that open at the same moment may each ask.)
//
// Migrations may create domains after a program's first connection. A connection
// that opens a minute after them, or later, knows the domains. If the database
// has no domains at first, the Loader caches that answer for as long as it has
// been finding none, up to a minute: with empty answers at 0 s and 2 s it asks
// again after 4 s. The second connection therefore always asks, and later ones
// rarely do.
//
// Databases differ in the numbers that they give to domains. A Loader tells
// them apart by the server's address and version, the user, and the database's
// name. Call [Loader.Forget] when domains or the database were created anew, or
// when a proxy may have gone to another server, and the next connection asks.
//
// The zero Loader is ready to use. It must not be copied.
type Loader struct {
	mu    sync.Mutex
	known map[database]answer
}

// An answer is a database's last answer about its domains.
type answer struct {
	domains []domain
	until   time.Time // the Loader trusts the answer
	since   time.Time // the Loader has seen no domains, if there are none
}

// maxTrust is how long a Loader trusts an answer.
const maxTrust = time.Minute

// A database is what a Loader remembers domains by. The user's name is that of
// the database where the latter is left out.
type database struct{ address, user, name, version string }

// A domain is a row of pg_type, of a domain or the type citext.
type domain struct {
	schema, name        string
	oid, arrayOID, base uint32
}

// Forget has the next connection ask for the domains again.
func (l *Loader) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = nil
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
		d.register(m)
	}
	return nil
}

func (l *Loader) domains(ctx context.Context, conn *pgx.Conn) ([]domain, error) {
	key := database{
		address: fmt.Sprint(conn.PgConn().Conn().RemoteAddr()), // of several hosts, the one that answered
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
	// After Forget, which replaces the map, this keeps nothing: it asked before.
	if !known[key].until.After(next.until) {
		known[key] = next
	}
	return domains, nil
}

// The types that domains are over, at the bottom: those of builtin. citext is
// text with another way to compare, and an extension, whose OID is any.
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
	// This mode takes one round trip, leaves no prepared statement behind, and
	// goes through any PgBouncer.
	rows, err := conn.Query(ctx, domainsSQL, pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d domain, err error) {
		err = row.Scan(&d.schema, &d.name, &d.oid, &d.arrayOID, &d.base)
		return d, err
	})
}

// register gives a domain, and its array, the codec of its base type. A codec
// that the caller has registered for it is wrapped.
func (d domain) register(m *pgtype.Map) {
	base := wrapperOf(m, d.base)
	if base == nil {
		return
	}
	c := base.holder()
	// With the schema, so that no type of the caller's has the same name.
	name, arrayName := d.schema+"."+d.name, d.schema+"._"+d.name

	known, knownArray := knownType(m, d.oid, name), knownType(m, d.arrayOID, arrayName)
	arrayBase := pgtype.Codec(&pgtype.ArrayCodec{})
	if knownArray != nil {
		arrayBase = unwrap(knownArray.Codec)
	}
	array, ofElements := arrayBase.(*pgtype.ArrayCodec)

	element := &pgtype.Type{Name: name, OID: d.oid, Codec: base}
	own := callersCodec(known, base)
	if own == nil && ofElements {
		own = callersCodec(array.ElementType, base)
	}
	if own != nil {
		element.Codec = &elementCodec{own, c, true}
	}
	registerAs(m, element, known)
	if d.arrayOID != 0 {
		registerAs(m, arrayType(arrayName, d.arrayOID, element, c, arrayBase, own != nil || !ofElements), knownArray)
	}
}

// knownType is the type that a map has for an OID, or else under a name: the
// caller can have registered it with the OID that another database has.
func knownType(m *pgtype.Map, oid uint32, name string) *pgtype.Type {
	t, ok := m.TypeForOID(oid)
	if !ok {
		t, _ = m.TypeForName(name)
	}
	return t
}

// callersCodec is the codec of a domain's type if it is the caller's own: one
// that is not of this package, nor the one of the base type, which
// [pgx.Conn.LoadType] gives to domains.
func callersCodec(t *pgtype.Type, base wrapper) pgtype.Codec {
	if t == nil {
		return nil
	}
	if w, ok := t.Codec.(wrapper); ok && !w.ofCaller() {
		return nil
	}
	if codec := unwrap(t.Codec); !reflect.DeepEqual(codec, base.wrapped()) {
		return codec
	}
	return nil
}

// registerAs registers a type under its name and the name that the map knows it
// by. Names that the map has for other types stay theirs.
func registerAs(m *pgtype.Map, t, known *pgtype.Type) {
	names := []string{t.Name}
	if known != nil && known.Name != t.Name {
		names = append(names, known.Name)
	}
	for _, name := range names {
		if other, ok := m.TypeForName(name); !ok || other == known || other.OID == t.OID {
			m.RegisterType(&pgtype.Type{Name: name, OID: t.OID, Codec: t.Codec})
		}
	}
}
