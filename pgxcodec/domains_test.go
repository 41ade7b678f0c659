package pgxcodec_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/pgxcodec"
	"github.com/sortkey/sortkey/sqltypes"
)

// A server is a fake Postgres server that answers the query for domains and counts the
// queries.
type server struct {
	t       *testing.T
	rows    [][]string // the domains; nil makes the query fail
	queries atomic.Int32
	version string
	user    string
	address string
	name    string // of the database; "d" if empty
	onQuery func() // runs when a query arrives
}

func (s *server) connect(after func(context.Context, *pgx.Conn) error) (*pgx.Conn, error) {
	s.t.Helper()
	config, err := pgx.ParseConfig("host=server user=u" + s.user + " dbname=" + cmp.Or(s.name, "d") + " sslmode=disable")
	if err != nil {
		s.t.Fatal(err)
	}
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"192.0.2.1"}, nil }
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		client, backend := net.Pipe()
		go s.serve(backend)
		return addressed{client, s.address}, nil
	}
	conn, err := pgx.ConnectConfig(s.t.Context(), config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn, after(s.t.Context(), conn)
}

func (s *server) serve(conn net.Conn) {
	b := pgproto3.NewBackend(conn, conn)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: s.version})
	b.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for b.Flush() == nil {
		msg, err := b.Receive()
		if err != nil {
			return
		}
		switch msg.(type) {
		case *pgproto3.Parse:
			s.queries.Add(1)
			if s.onQuery != nil {
				s.onQuery()
			}
			b.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			b.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			var fields []pgproto3.FieldDescription
			for _, oid := range []uint32{pgtype.TextOID, pgtype.TextOID, pgtype.OIDOID, pgtype.OIDOID, pgtype.OIDOID} {
				fields = append(fields, pgproto3.FieldDescription{Name: []byte("f"), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1})
			}
			b.Send(&pgproto3.RowDescription{Fields: fields})
		case *pgproto3.Execute:
			if s.rows == nil {
				b.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: "42501", Message: "no"})
				continue
			}
			for _, row := range s.rows {
				var values [][]byte
				for _, v := range row {
					values = append(values, []byte(v))
				}
				b.Send(&pgproto3.DataRow{Values: values})
			}
			b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT")})
		case *pgproto3.Sync:
			b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
	}
}

// An addressed is a connection with a chosen remote address.
type addressed struct {
	net.Conn
	address string
}

func (a addressed) RemoteAddr() net.Addr { return &net.UnixAddr{Name: a.address, Net: "unix"} }

var domainRows = [][]string{
	{"sortkey", "snowflake", "16401", "16402", "20"},
	{"sortkey", "sno", "16403", "16404", "2950"},
	{"sortkey", "sno_as_text", "16405", "16406", "25"},
	{"app", "order_id", "16407", "16408", "20"},
	{"app", "late", "305419896", "305419897", "20"},
	{"app", "lonely", "16413", "0", "20"},         // without an array
	{"app", "positive", "16409", "16410", "1700"}, // over numeric
	{"app", "stray", "16411", "0", "99999"},       // over a type that pgx doesn't know
}

func TestAfterConnect(t *testing.T) {
	s := &server{t: t, rows: domainRows, version: "18.0"}
	conn, err := s.connect(pgxcodec.AfterConnect)
	if err != nil {
		t.Fatal(err)
	}
	if s.queries.Load() != 1 {
		t.Errorf("%d queries", s.queries.Load())
	}
	m := conn.TypeMap()
	for _, c := range []struct {
		oid         uint32
		value, same any
		base        uint32
	}{
		{16401, snowflake, snowflake, pgtype.Int8OID},
		{16403, &sno, sno, pgtype.UUIDOID},
		{16405, sqltypes.TextOf(sno), sqltypes.TextOf(sno), pgtype.TextOID},
		{16407, snowflake, snowflake, pgtype.Int8OID},
	} {
		viaCodec(t, c.value, m.PlanEncode(c.oid, binaryFormat, c.value))
		got, want := encode(t, m, c.oid, binaryFormat, c.value), encode(t, m, c.base, binaryFormat, c.same)
		if !bytes.Equal(got, want) {
			t.Errorf("%T as OID %d: %q, want %q", c.value, c.oid, got, want)
		}
	}
	// The binary form of an array contains the OID of its element type.
	array := encode(t, m, 16402, binaryFormat, []idtype.Snowflake{snowflake})
	if !bytes.Contains(array, []byte{0, 0, 16401 >> 8, 16401 & 0xff}) {
		t.Errorf("the array %q doesn't have the domain's OID", array)
	}
	roundTrip(t, m, 16402, binaryFormat, []idtype.Snowflake{snowflake})
	roundTrip(t, m, 16402, textFormat, []*idtype.Snowflake{&[]idtype.Snowflake{snowflake}[0], nil})
	if _, err := m.Encode(16405, textFormat, sno, nil); err == nil || !strings.Contains(err.Error(), "sqltypes.Text[idtype.Sno]") {
		t.Errorf("a Sno as sno_as_text: %v", err)
	}
	// An OID above 16 bits, in an empty array.
	if got := encode(t, m, 305419897, binaryFormat, []idtype.Snowflake{}); string(got) != "\x00\x00\x00\x00\x00\x00\x00\x00\x12\x34\x56\x78" {
		t.Errorf("an empty array: % x", got)
	}
	viaCodec(t, snowflake, m.PlanEncode(16413, binaryFormat, snowflake))
	for _, oid := range []uint32{0, 16409, 16411} {
		if typ, ok := m.TypeForOID(oid); ok {
			t.Errorf("OID %d has the codec %T", oid, typ.Codec)
		}
	}
	if _, ok := m.TypeForName("sno"); ok {
		t.Error("a domain is registered under a name without its schema")
	}
}

func TestAfterConnectWithoutDomains(t *testing.T) {
	s := &server{t: t, rows: [][]string{}, version: "18.0"}
	conn, err := s.connect(pgxcodec.AfterConnect)
	if err != nil {
		t.Fatal(err)
	}
	viaCodec(t, sno, conn.TypeMap().PlanEncode(pgtype.UUIDOID, binaryFormat, sno))
}

func TestAfterConnectError(t *testing.T) {
	s := &server{t: t, version: "18.0"}
	var pgErr *pgconn.PgError
	if _, err := s.connect(pgxcodec.AfterConnect); !errors.As(err, &pgErr) || pgErr.Code != "42501" || !strings.Contains(err.Error(), `pgxcodec: load the domains of database "d": `) {
		t.Errorf("error %v", err)
	}
}

// A ticket is a caller's type, which ticketCodec stores as a number.
type ticket string

// A ticketCodec is a caller's codec for a domain over bigint. The only ID type it
// knows is UID60, which it stores as the number plus one.
type ticketCodec struct{ pgtype.Int8Codec }

func (c ticketCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	switch value.(type) {
	case ticket, idtype.UID60:
		return encodeTicket{m}
	}
	return c.Int8Codec.PlanEncode(m, oid, format, value)
}

func (c ticketCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	switch target.(type) {
	case *ticket, *idtype.UID60:
		return scanTicket{m, format}
	}
	return c.Int8Codec.PlanScan(m, oid, format, target)
}

func (c ticketCodec) DecodeValue(m *pgtype.Map, oid uint32, format int16, src []byte) (any, error) {
	var v ticket
	err := m.Scan(oid, format, src, &v)
	return v, err
}

type encodeTicket struct{ m *pgtype.Map }

func (p encodeTicket) Encode(value any, buf []byte) ([]byte, error) {
	var n int64
	switch v := value.(type) {
	case ticket:
		if _, err := fmt.Sscanf(string(v), "T-%d", &n); err != nil {
			return nil, err
		}
	case idtype.UID60:
		n = int64(v) + 1
	}
	return p.m.Encode(pgtype.Int8OID, binaryFormat, n, buf)
}

type scanTicket struct {
	m      *pgtype.Map
	format int16
}

func (p scanTicket) Scan(src []byte, target any) error {
	var n int64
	if err := p.m.Scan(pgtype.Int8OID, p.format, src, &n); err != nil {
		return err
	}
	switch target := target.(type) {
	case *ticket:
		*target = ticket(fmt.Sprintf("T-%d", n))
	case *idtype.UID60:
		*target = idtype.UID60(n - 1)
	}
	return nil
}

// AfterConnect leaves a domain alone if the caller has registered a codec for it or its array,
// even if it runs again.
func TestCallersCodecs(t *testing.T) {
	types := func(name string, oid uint32) func(*pgtype.Map) {
		return func(m *pgtype.Map) {
			own := &pgtype.Type{Name: name, OID: oid, Codec: ticketCodec{}}
			m.RegisterType(own)
			m.RegisterType(&pgtype.Type{Name: strings.Replace(name, "order", "_order", 1), OID: oid + 1, Codec: &pgtype.ArrayCodec{ElementType: own}})
		}
	}
	element := func(m *pgtype.Map) { m.RegisterType(&pgtype.Type{Name: "own", OID: 16407, Codec: ticketCodec{}}) }
	array := func(m *pgtype.Map) {
		m.RegisterType(&pgtype.Type{Name: "owns", OID: 16408, Codec: &pgtype.ArrayCodec{
			ElementType: &pgtype.Type{Name: "own", OID: 16407, Codec: ticketCodec{}},
		}})
	}
	text := func(m *pgtype.Map) {
		m.RegisterType(&pgtype.Type{Name: "app._order_id", OID: 16408, Codec: pgtype.TextCodec{}})
	}
	for name, register := range map[string]func(*pgtype.Map){
		"by the domain's name":                          types("app.order_id", 16407),
		"by another name":                               types("order_id", 16407),
		"by the name, with the OID of another database": types("app.order_id", 20001),
		"the domain alone":                              element,
		"the array alone":                               array,
		"the array alone, not an ArrayCodec":            text,
	} {
		for how, after := range map[string]func(context.Context, *pgx.Conn) error{"AfterConnect": pgxcodec.AfterConnect, "Loader": new(pgxcodec.Loader).AfterConnect} {
			t.Run(name+", "+how, func(t *testing.T) {
				s := &server{t: t, rows: domainRows, version: "18.0"}
				// The caller's types are the same before and after.
				types := func(m *pgtype.Map) (list []*pgtype.Type) {
					for _, oid := range []uint32{16407, 16408, 20001, 20002} {
						typ, _ := m.TypeForOID(oid)
						list = append(list, typ)
					}
					for _, name := range []string{"app.order_id", "app._order_id", "order_id", "_order_id"} {
						typ, _ := m.TypeForName(name)
						list = append(list, typ)
					}
					return list
				}
				var want []*pgtype.Type
				conn, err := s.connect(func(ctx context.Context, conn *pgx.Conn) error {
					register(conn.TypeMap())
					want = types(conn.TypeMap())
					return errors.Join(after(ctx, conn), after(ctx, conn))
				})
				if err != nil {
					t.Fatal(err)
				}
				if got := types(conn.TypeMap()); !slices.Equal(got, want) {
					t.Errorf("types %v, want %v", got, want)
				}
				viaCodec(t, "others", conn.TypeMap().PlanEncode(16401, binaryFormat, []idtype.Snowflake{1}))

				var own pgtype.Codec
				conn, err = s.connect(func(ctx context.Context, conn *pgx.Conn) error {
					err := after(ctx, conn)
					element(conn.TypeMap())
					err = errors.Join(err, after(ctx, conn))
					typ, _ := conn.TypeMap().TypeForOID(16407)
					own = typ.Codec
					return err
				})
				if err != nil || own != (ticketCodec{}) {
					t.Errorf("a codec that is registered between two calls became %T, %v", own, err)
				}
				m := conn.TypeMap()
				if got := encode(t, m, 16407, binaryFormat, ticket("T-7")); !bytes.Equal(got, encode(t, m, pgtype.Int8OID, binaryFormat, int64(7))) {
					t.Errorf("a ticket as the domain: %q", got)
				}
			})
		}
	}
}

// A caller's type with another OID keeps its name, even if it is the name of a domain that is
// registered.
func TestCallersNames(t *testing.T) {
	s := &server{t: t, rows: domainRows, version: "18.0"}
	late := &pgtype.Type{Name: "app.late", OID: 20002, Codec: pgtype.TextCodec{}}
	conn, err := s.connect(func(ctx context.Context, conn *pgx.Conn) error {
		err := pgxcodec.AfterConnect(ctx, conn)
		conn.TypeMap().RegisterType(late)
		return errors.Join(err, pgxcodec.AfterConnect(ctx, conn))
	})
	if err != nil {
		t.Fatal(err)
	}
	m := conn.TypeMap()
	viaCodec(t, snowflake, m.PlanEncode(305419896, binaryFormat, snowflake))
	if typ, _ := m.TypeForName("app.late"); typ != late {
		t.Errorf("app.late is %v", typ)
	}
}

// pgx's LoadType registers the base type's codec for a domain. AfterConnect doesn't
// treat it as a caller's codec, so slices of IDs use this package's plans.
func TestLoadedBeforeAfterConnect(t *testing.T) {
	s := &server{t: t, rows: domainRows, version: "18.0"}
	conn, err := s.connect(func(ctx context.Context, conn *pgx.Conn) error {
		m := conn.TypeMap()
		bigint, _ := m.TypeForOID(pgtype.Int8OID)
		loaded := &pgtype.Type{Name: "order_id", OID: 16407, Codec: bigint.Codec}
		m.RegisterType(loaded)
		m.RegisterType(&pgtype.Type{Name: "_order_id", OID: 16408, Codec: &pgtype.ArrayCodec{ElementType: loaded, Delimiter: ';'}})
		return errors.Join(pgxcodec.AfterConnect(ctx, conn), pgxcodec.AfterConnect(ctx, conn))
	})
	if err != nil {
		t.Fatal(err)
	}
	m := conn.TypeMap()
	for _, name := range []string{"order_id", "app.order_id"} {
		typ, _ := m.TypeForName(name)
		viaCodec(t, name, typ.Codec.PlanEncode(m, typ.OID, binaryFormat, snowflake))
	}
	for _, name := range []string{"_order_id", "app._order_id"} {
		typ, _ := m.TypeForName(name)
		viaCodec(t, name, typ.Codec.PlanEncode(m, typ.OID, binaryFormat, []idtype.Snowflake{1}))
		if got := encode(t, m, typ.OID, textFormat, []idtype.Snowflake{1, 2}); string(got) != "{1;2}" {
			t.Errorf("%s: %q, want its delimiter", name, got)
		}
	}
}

func TestLoader(t *testing.T) {
	s := &server{t: t, rows: domainRows, version: "17.1"}
	var l pgxcodec.Loader
	connect := func(want int32) {
		t.Helper()
		conn, err := s.connect(l.AfterConnect)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.queries.Load(); n != want {
			t.Errorf("%d queries, want %d", n, want)
		}
		if typ, ok := conn.TypeMap().TypeForName("sortkey.sno"); !ok || typ.OID != 16403 {
			t.Errorf("sortkey.sno is %v", typ)
		}
	}
	connect(1)
	connect(1)
	connect(1)
	s.version = "18.0" // another server, with other OIDs
	connect(2)
	s.user = "other" // the default database is named like the user
	connect(3)
	connect(3)
	l.Forget()
	connect(4)
	connect(4)
	l.Forget()
	s.onQuery = l.Forget // discards the result of a query under way, too
	connect(5)
	s.onQuery = nil
	connect(6)
	connect(6)
}

// A Loader caches an empty result for as long as it has found no domains, up to a
// minute. So few connections query the domains, and connections that open after the
// migrations of a program's first connection have them.
func TestLoaderWithoutDomains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{t: t, rows: [][]string{}, version: "18.0"}
		var l pgxcodec.Loader
		connect := func() (asked, loaded bool) {
			t.Helper()
			before := s.queries.Load()
			conn, err := s.connect(l.AfterConnect)
			if err != nil {
				t.Fatal(err)
			}
			_, loaded = conn.TypeMap().TypeForOID(16404)
			viaCodec(t, sno, conn.TypeMap().PlanEncode(pgtype.UUIDOID, binaryFormat, sno))
			return s.queries.Load() > before, loaded
		}
		// Ten connections a second for two minutes.
		var asked []time.Duration
		start := time.Now()
		for range 120 * 10 {
			if ask, _ := connect(); ask {
				asked = append(asked, time.Since(start))
			}
			time.Sleep(time.Second / 10)
		}
		if len(asked) > 16 {
			t.Errorf("queried %d times, after %v", len(asked), asked)
		}
		// The domains are created. Every connection that opens a minute later has them.
		s.rows = domainRows
		time.Sleep(time.Minute)
		if asked, loaded := connect(); !asked || !loaded {
			t.Errorf("a minute after the domains were created: asked %v, loaded %v", asked, loaded)
		}
		time.Sleep(time.Minute - 1)
		if asked, loaded := connect(); asked || !loaded {
			t.Errorf("within a minute: asked %v, loaded %v", asked, loaded)
		}
		time.Sleep(time.Nanosecond)
		if asked, loaded := connect(); !asked || !loaded {
			t.Errorf("after a minute: asked %v, loaded %v", asked, loaded)
		}

		// A program's first connection runs the migrations.
		for _, took := range []time.Duration{time.Millisecond, time.Second, time.Hour} {
			l, s.rows = pgxcodec.Loader{}, [][]string{}
			connect()
			s.rows = domainRows
			time.Sleep(took)
			if asked, loaded := connect(); !asked || !loaded {
				t.Errorf("after migrations of %v: asked %v, loaded %v", took, asked, loaded)
			}
		}
		// Forget takes effect at once.
		l, s.rows = pgxcodec.Loader{}, [][]string{}
		connect()
		time.Sleep(time.Second)
		connect()
		if asked, _ := connect(); asked {
			t.Error("queried again at once")
		}
		s.rows = domainRows
		l.Forget()
		if asked, loaded := connect(); !asked || !loaded {
			t.Errorf("after Forget: asked %v, loaded %v", asked, loaded)
		}
	})
}

// A Loader queries each database once.
func TestLoaderKeys(t *testing.T) {
	var l pgxcodec.Loader
	s := &server{t: t, rows: domainRows, version: "18.0"}
	for i, c := range []struct {
		address, name string
		queries       int32
	}{{"a", "d", 1}, {"b", "d", 2}, {"a", "e", 3}, {"a", "d", 3}, {"b", "d", 3}, {"a", "e", 3}} {
		s.address, s.name = c.address, c.name
		if _, err := s.connect(l.AfterConnect); err != nil {
			t.Fatal(err)
		}
		if n := s.queries.Load(); n != c.queries {
			t.Errorf("%d: %s on %s: %d queries, want %d", i, c.name, c.address, n, c.queries)
		}
	}
}

func TestLoaderConcurrently(t *testing.T) {
	s := &server{t: t, rows: domainRows, version: "18.0"}
	var l pgxcodec.Loader
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := s.connect(l.AfterConnect)
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func ExampleRegister() {
	m := pgtype.NewMap() // of a connection: conn.TypeMap()
	pgxcodec.Register(m)

	id := idtype.Must(idtype.ParseSno("brpk4q72xwf2m63l"))
	b, _ := m.Encode(pgtype.UUIDOID, pgtype.BinaryFormatCode, id, nil)
	fmt.Printf("%s\n", b)

	_, err := m.Encode(pgtype.TextOID, pgtype.TextFormatCode, id, nil)
	_, reason, _ := strings.Cut(err.Error(), "(OID 25): ")
	fmt.Println(reason)
	// Output:
	// brpk4q72xwf2m63l
	// pgxcodec: encode idtype.Sno: want a uuid parameter, got text; write $1::uuid if the query gives the parameter no type, pass id.String() to a function that takes text, or use sqltypes.Text[idtype.Sno] for text columns, sqltypes.SnoBytes for bytea columns
}
