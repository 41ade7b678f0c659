package main

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
)

// checkConnString rejects connection strings that pgx accepts, but with a part of the
// password as a host, the user, the database or the name of a setting, which errors print.
// Its errors contain no values.
func checkConnString(s string) error {
	scheme, rest, isURL := strings.Cut(s, "://")
	var err error
	switch {
	case !isURL || strings.Contains(scheme, "="):
		err = checkKeywords(s)
	case scheme != "postgres" && scheme != "postgresql":
		err = errors.New("cannot parse the connection string: want a URL that begins with postgres:// or postgresql://, or keywords such as host=db.example user=app")
	default:
		err = checkURL(rest)
	}
	if err != nil {
		return err
	}
	config, err := pgconn.ParseConfig(s)
	if err != nil {
		return nil // the caller parses s, too
	}
	return checkTarget(config)
}

// These characters separate settings, or a user and a password, in formats that pgx doesn't
// read.
const (
	separators     = ";=&"
	nameSeparators = separators + "?:/" // in a user or a database
)

// checkURL checks a URL without its scheme.
func checkURL(rest string) error {
	user := ""
	// pgx ends the user and the password at the first of these characters.
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, _, _ = strings.Cut(rest[:i], ":")
		rest = rest[i+1:]
	}
	address, query, _ := strings.Cut(rest, "?")
	if strings.Contains(address, "@") {
		return errors.New("cannot parse the URL of the database: it has an @ in a wrong place; " + percentEncode)
	}
	_, database, _ := strings.Cut(address, "/")
	wrong := strings.ContainsAny(user+database, nameSeparators)
	for setting := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(setting, "=")
		wrong = wrong || isName(name) && strings.ContainsAny(value, nameSeparators)
	}
	if wrong {
		return errors.New("cannot parse the URL of the database: the user or the database has one of the characters ; = & ? : /; begin settings with ? and separate them by &, and write these characters as %3B, %3D, %26, %3F, %3A and %2F in names")
	}
	return nil
}

// isName reports whether a setting is the user or the database.
func isName(setting string) bool {
	return setting == "user" || setting == "dbname" || setting == "database"
}

// keyword matches a setting of a connection string with keywords. Values with spaces are in
// quotes.
var keyword = regexp.MustCompile(`(?s)([A-Za-z_]+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s\\]|\\.)*)`)

// checkKeywords rejects a string with keywords in which a value outside of quotes has a
// separator, as in host=db;password=secret. pgx would take the rest for a part of the host.
func checkKeywords(s string) error {
	for _, m := range keyword.FindAllStringSubmatch(s, -1) {
		name, value, wrong := m[1], m[2], separators
		if isName(name) {
			wrong = nameSeparators
		}
		if name != "password" && name != "sslpassword" && !strings.HasPrefix(value, "'") && strings.ContainsAny(value, wrong) {
			return errors.New("cannot parse the connection string: a value has one of the characters ; = &, or the user or the database has one of ? : /; separate settings by spaces, and quote values that have these characters, as in user='...'")
		}
	}
	return nil
}

var (
	hostName    = regexp.MustCompile(`^[\pL\pM\pN._-]+$`)
	settingName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	// passwordLike matches a URL or a setting with a password in a name.
	passwordLike = regexp.MustCompile(`(?i)://|pass(word|wd)?\s*[=:]|pwd\s*[=:]`)
)

// checkTarget checks the hosts, the user, the database and the names of settings, also
// those from the environment and the service file.
func checkTarget(config *pgconn.Config) error {
	hosts := []string{config.Host}
	for _, fallback := range config.Fallbacks {
		hosts = append(hosts, fallback.Host)
	}
	for _, host := range hosts {
		_, err := netip.ParseAddr(host)
		socket, _ := pgconn.NetworkAddress(host, config.Port)
		if err != nil && socket != "unix" && !hostName.MatchString(host) {
			return errors.New("cannot use the connection settings: a host is not a name, an IP address or an absolute path; write the port as a setting of its own, as in host=db.example port=5432, and quote a password with spaces, as in password='...'")
		}
	}
	if slices.ContainsFunc(append(hosts, config.User, config.Database), passwordLike.MatchString) {
		return errors.New("cannot use the connection settings: a URL or a password is in the host, the user or the database; write them as settings of their own, as in host=db.example user=app password='...'")
	}
	for name := range config.RuntimeParams {
		if !settingName.MatchString(name) {
			return errors.New("cannot use the connection settings: the name of a setting has a character other than letters, digits, _ and .; separate settings by spaces, in a URL by &, and quote values with spaces, as in password='...'")
		}
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
		cause := lastCause(failed.Unwrap(), failed.Config)
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
func lastCause(err error, config *pgconn.Config) error {
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
			if namesSetting(server, config) { // which can be a part of the password
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
