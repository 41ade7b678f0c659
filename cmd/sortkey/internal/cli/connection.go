package cli

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// parseConfig parses a connection string. pgx keeps the password out of its errors only if
// the string is well-formed. In a malformed string, a part of the password can be a host,
// the user, the database or the name of a setting, which errors print. parseConfig rejects
// a value that isn't like a name. Its errors contain no values.
func parseConfig(s string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(s)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the connection string: %s; %s", parseReason(err), connectionHint)
	}
	c := &config.ConnConfig.Config
	strange := strings.ContainsAny(c.User+c.Database, ";=&?:/")
	for name := range c.RuntimeParams {
		strange = strange || !settingName.MatchString(name)
	}
	for _, server := range append([]*pgconn.FallbackConfig{{Host: c.Host}}, c.Fallbacks...) {
		_, err := netip.ParseAddr(server.Host)
		socket, _ := pgconn.NetworkAddress(server.Host, c.Port)
		strange = strange || err != nil && socket != "unix" && !hostName.MatchString(server.Host)
	}
	if strange {
		return nil, errors.New("cannot use the connection string: a host, the user, the database or the name of a setting has an unexpected character; " + connectionHint)
	}
	return config, nil
}

var (
	hostName    = regexp.MustCompile(`^[\pL\pM\pN._-]+$`)
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
)

const connectionHint = "want a URL such as postgres://user@host:5432/database?sslmode=require, with @ : / % in the user and the password " +
	"as %40 %3A %2F %25, or settings such as host=db.example user=app password='...', with spaces between them"

// parseReason returns the reason of pgx, without the connection string and without values,
// which pgx prints in quotes or behind a colon.
func parseReason(err error) string {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return "invalid setting"
	}
	withoutString := *parse
	withoutString.ConnString = ""
	reason, inner, _ := strings.Cut(strings.TrimPrefix(withoutString.Error(), "cannot parse ``: "), " (")
	reason, _, _ = strings.Cut(reason, ":")
	inner, _, _ = strings.Cut(strings.TrimSuffix(inner, ")"), ":")
	if inner != "" && !strings.ContainsAny(inner, "\"'`") {
		reason += ": " + inner
	}
	return reason
}

// Config returns the connection settings of a URL or connection string, by default of the
// variables in the environment.
func Config(url string) (*pgxpool.Config, error) {
	if url == "" {
		url = os.Getenv("DATABASE_URL")
	}
	if url == "" && os.Getenv("PGHOST") == "" && os.Getenv("PGSERVICE") == "" {
		return nil, Usagef("no database: pass --database postgres://user@host/name, or set DATABASE_URL, or PGHOST and libpq's other variables")
	}
	config, err := parseConfig(url)
	if err != nil {
		return nil, Usage(err)
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 10 * time.Second
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "sortkey"
	}
	// Behind PgBouncer, a prepared statement can be on another server session. The connection string can choose another mode.
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	// An interrupt cancels the statement on the server, too. Otherwise it would still wait
	// for its locks after the process has ended, and block other sessions behind it.
	config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 5 * time.Second}
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		utc := &pgtype.TimestamptzCodec{ScanLocation: time.UTC} // JSON has times in UTC
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: utc})
		return nil
	}
	return config, nil
}

// ExplainConnection adds to the error of a failed connection where a password can be, and to the one of a lost connection
// what to check. If the server names a setting, which can be a part of the password, it returns another error.
func ExplainConnection(err error) error {
	var failed *pgconn.ConnectError
	var server *pgconn.PgError
	switch {
	case errors.As(err, &failed):
		servers := serverErrors(failed)
		if slices.ContainsFunc(servers, func(s *pgconn.PgError) bool { return namesSetting(s, failed.Config) }) {
			return errors.New("the server rejects a setting in the connection string; check the names of the settings, and quote values with spaces, as in password='...'")
		}
		if slices.ContainsFunc(servers, func(s *pgconn.PgError) bool { return s.Code == "28P01" || s.Code == "28000" }) {
			return fmt.Errorf("%w; check the user and the password, which PGPASSWORD or ~/.pgpass can hold", err)
		}
	case errors.As(err, &server):
	case slices.ContainsFunc(lost, func(lost error) bool { return errors.Is(err, lost) }):
		return fmt.Errorf("lost the connection to the server: %w; check its log", err)
	}
	return err
}

// lost are the errors of a connection that has ended.
var lost = []error{driver.ErrBadConn, io.ErrUnexpectedEOF, syscall.ECONNRESET, net.ErrClosed, pgconn.ErrConnClosed}

// serverErrors returns the errors of servers in err. pgx makes an attempt per address, and with sslmode=prefer first with TLS
// and then without.
func serverErrors(err error) (list []*pgconn.PgError) {
	switch err := err.(type) {
	case *pgconn.PgError:
		return []*pgconn.PgError{err}
	case interface{ Unwrap() []error }:
		for _, attempt := range err.Unwrap() {
			list = append(list, serverErrors(attempt)...)
		}
	case interface{ Unwrap() error }:
		return serverErrors(err.Unwrap())
	}
	return list
}

// namesSetting reports whether the message of a server or of a connection pooler names a
// setting that the server would have to know.
func namesSetting(server *pgconn.PgError, config *pgconn.Config) bool {
	switch {
	case server.Code == "42704": // undefined_object
		return true
	case server.Code != "08P01" && !strings.HasPrefix(server.Code, "22") && !strings.HasPrefix(server.Code, "42"):
		return false // such as a wrong password, or too many connections
	}
	for name := range config.RuntimeParams {
		if name != "application_name" && strings.Contains(server.Message, name) {
			return true
		}
	}
	return false
}
