package main

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
)

// checkConnString rejects connection strings that pgx accepts, but with a part of the
// password as the host or as the name of a setting, which errors print.
func checkConnString(s string) error {
	scheme, rest, isURL := strings.Cut(s, "://")
	switch {
	case !isURL || strings.Contains(scheme, "="):
		return nil
	case scheme != "postgres" && scheme != "postgresql":
		return errors.New("cannot parse the connection string: want a URL that begins with postgres:// or postgresql://, or keywords such as host=db.example user=app")
	}
	// pgx ends the user and the password at the first of these characters.
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		rest = rest[i+1:]
	}
	if address, _, _ := strings.Cut(rest, "?"); strings.Contains(address, "@") {
		return errors.New("cannot parse the URL of the database: it has an @ in a wrong place; " + percentEncode)
	}
	return nil
}

const percentEncode = "in the user and the password, write @ as %40, / as %2F, : as %3A and % as %25"

// safeParseError returns an error of pgxpool.ParseConfig without the connection string and
// without values, since a part of a malformed string can be a part of the password.
func safeParseError(err error) error {
	var parse *pgconn.ParseConfigError
	if !errors.As(err, &parse) {
		return errors.New("cannot parse the connection string")
	}
	withoutString := *parse
	withoutString.ConnString = ""
	reason := strings.TrimPrefix(withoutString.Error(), "cannot parse ``: ")
	inner := ""
	if parse.Unwrap() != nil {
		inner = parse.Unwrap().Error()
		reason = strings.TrimSuffix(reason, " ("+inner+")")
	}
	// pgx prints values in quotes or behind a colon.
	reason, _, _ = strings.Cut(reason, ":")
	inner, _, _ = strings.Cut(inner, ":")
	if inner != "" && !strings.ContainsAny(inner, "\"'`") {
		reason += ": " + inner
	}
	switch {
	case parse.Unwrap() != nil && !strings.HasPrefix(reason, "failed to parse"): // reason names the setting
	case strings.Contains(parse.ConnString, "://"):
		reason += "; " + percentEncode
	default:
		reason += "; quote values with spaces, as in password='...'"
	}
	return errors.New("cannot parse the connection string: " + reason)
}

// isLost reports whether err is that of a lost connection.
func isLost(err error) bool {
	return slices.ContainsFunc([]error{
		driver.ErrBadConn, io.ErrUnexpectedEOF, syscall.EPIPE, syscall.ECONNRESET, net.ErrClosed, pgconn.ErrConnClosed,
	}, func(lost error) bool { return errors.Is(err, lost) })
}

// explainConnection adds the address, the user and the database to the error of a lost
// or failed connection, and what to check.
func explainConnection(command *cobra.Command, err error) error {
	var failed *pgconn.ConnectError
	var server *pgconn.PgError
	switch {
	case errors.As(err, &failed):
		cause := lastCause(failed.Unwrap())
		return fmt.Errorf("connect to %s: %w%s", target(failed.Config), cause, remedy(cause))
	case errors.As(err, &server) || !isLost(err):
		return err
	}
	flag := command.Flags().Lookup("database")
	if flag == nil {
		return err
	}
	urls := []string{flag.Value.String()}
	if list, ok := flag.Value.(interface{ GetSlice() []string }); ok { // of audit
		urls = list.GetSlice()
	}
	var targets []string
	for _, url := range urls {
		config, configErr := (&databaseFlags{url: url}).config()
		if configErr != nil {
			return err
		}
		targets = append(targets, target(&config.ConnConfig.Config))
	}
	return fmt.Errorf("lost the connection to %s: %w; check the log of the server", strings.Join(targets, ", or to "), err)
}

// target describes the destination of a connection.
func target(config *pgconn.Config) string {
	_, address := pgconn.NetworkAddress(config.Host, config.Port)
	addresses := []string{address}
	for _, fallback := range config.Fallbacks {
		if _, address := pgconn.NetworkAddress(fallback.Host, fallback.Port); !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	database := config.Database
	if database == "" {
		database = config.User // as in libpq
	}
	return fmt.Sprintf("%s as %s, database %s", strings.Join(addresses, " or "), config.User, database)
}

// lastCause returns the most relevant of the errors of a connection's attempts: the
// server's last error, or else the last error. pgx makes an attempt per address, and with
// sslmode=prefer first with TLS and then without.
func lastCause(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		list, ok := e.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		attempts := list.Unwrap()
		for _, attempt := range slices.Backward(attempts) {
			var server *pgconn.PgError
			if !errors.As(attempt, &server) {
				continue
			}
			if server.Code == "42704" { // the message has the setting's name, which can be a part of the password
				return errors.New("the server rejects a setting in the connection string; check the names of the settings, and quote values with spaces, as in password='...'")
			}
			return server
		}
		last := attempts[len(attempts)-1]
		var dial *net.OpError
		if errors.As(last, &dial) {
			return dial
		}
		if inner := errors.Unwrap(last); inner != nil {
			return inner // without the address, which target has
		}
		return last
	}
	return err
}

// remedy returns what to check, or "" if the error names it.
func remedy(err error) string {
	var server *pgconn.PgError
	var lookup *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &server):
		switch server.Code {
		case "28P01", "28000":
			return "; check the user and the password, which PGPASSWORD or ~/.pgpass can hold"
		case "3D000":
			return "; check the name of the database"
		}
		return ""
	case errors.As(err, &lookup):
		return "; check the host"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return "; check the host and the port, and that the server runs"
	case pgconn.Timeout(err), errors.As(err, &timeout) && timeout.Timeout():
		return "; check the host, the port and the firewall"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "; check that this is the port of a Postgres server, and its log"
	case strings.Contains(err.Error(), "tls"):
		return "; check sslmode and sslrootcert"
	}
	return ""
}
