package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestNoPassword checks that no part of a password is in an error about the connection
// string.
func TestNoPassword(t *testing.T) {
	t.Setenv("PGCONNECT_TIMEOUT", "2")
	for _, tt := range []struct{ name, url, want string }{
		{"spaces around =", "host=db password = SECRET port=x", "invalid port"},
		{"space in a keyword password", "password=my SECRET host=db", "cannot parse the connection string: failed to parse as keyword/value"},
		{"space in the last keyword password", "host=db password=my SECRET", "cannot parse the connection string: failed to parse as keyword/value"},
		{"space and = in a keyword password", "host=127.0.0.1 port=1 password=my SECRET=x", "127.0.0.1:1"},
		{"semicolons between settings", "host=h;password=SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"semicolons behind the user", "host=127.0.0.1 port=1 user=app;password=SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"ampersands between settings", "host=db&password=SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"a list of hosts", "host=a,b;password=SECRET port=1", "has an unexpected character; want a URL such as postgres://"},
		{"semicolon in the last part of a password", "host=127.0.0.1 port=1 password=my SECRET=a;b", "127.0.0.1:1"},
		{"spaces around = and semicolons", "host = h;password = SECRET", "cannot parse the connection string: failed to parse as keyword/value"},
		{"commas between settings", "host=db,password:SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"slash in the user", "host=127.0.0.1 port=1 user=app/SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"colon in the user", "host=127.0.0.1 port=1 user=app:SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"question mark in the database", "host=127.0.0.1 port=1 dbname=shop?SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"colon in a host", "host=app:SECRET@127.0.0.1 port=1", "has an unexpected character; want a URL such as postgres://"},
		{"no-break space", "host=127.0.0.1\u00a0password:SECRET port=1", "has an unexpected character; want a URL such as postgres://"},
		{"URL as the host", "host=postgres://app:SECRET@127.0.0.1:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"URL as the database", "host=127.0.0.1 port=1 dbname=postgres://app:SECRET@127.0.0.1:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"quoted URL as the database", "host=127.0.0.1 port=1 dbname='postgres://app:SECRET@127.0.0.1:1/shop'", "has an unexpected character; want a URL such as postgres://"},
		{"quoted settings as the user", "host=127.0.0.1 port=1 user='app;password=SECRET'", "has an unexpected character; want a URL such as postgres://"},
		{"colon behind the name of a setting", "host=127.0.0.1 password:SECRET port=1", "failed to parse as keyword/value"},
		{"quote behind a name", "password=\"my SECRET\"host=127.0.0.1", "has an unexpected character; want a URL such as postgres://"},
		{"quote in the middle of a password", "password='a'b'SECRET'port=1 host=127.0.0.1", "has an unexpected character; want a URL such as postgres://"},
		{"semicolons in another format", "Server=127.0.0.1;Port=1;User Id=app;Password=SECRET host=127.0.0.1 port=1", "127.0.0.1:1"},
		{"semicolon behind the database of a URL", "postgres://127.0.0.1:1/shop;password=SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"ampersand behind the database of a URL", "postgres://127.0.0.1:1/shop&password=SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"slash behind the database of a URL", "postgres://127.0.0.1:1/shop/SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"semicolon behind the host of a URL", "postgres://127.0.0.1;password=SECRET:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"semicolon in a setting of a URL", "postgres://127.0.0.1:1/shop?user=app;password%3ASECRET", "has an unexpected character; want a URL such as postgres://"},
		{"colon in the user of a URL", "postgres://127.0.0.1:1/shop?user=app:SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"@ in the settings of a URL", "postgres://127.0.0.1?user=app&password=SECRET@127.0.0.1:1", "has an unexpected character; want a URL such as postgres://"},
		{"semicolon in the user of a URL", "postgres://app;SECRET@127.0.0.1:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"bad name in a URL", "postgres://127.0.0.1:1/shop?password%20SECRET=1", "has an unexpected character; want a URL such as postgres://"},
		{"unterminated quote", "host=db password='SECRET", "unterminated quoted string"},
		{"quote in a password", "host=db password='a'SECRET port=x", "cannot parse the connection string: failed to parse as keyword/value"},
		{"@ in a URL", "postgres://app:a@SECRET@127.0.0.1:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"@ in a long scheme", "postgresql://app:a@SECRET@127.0.0.1:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"# in a URL", "postgres://app:a#SECRET@127.0.0.1:x/shop", "invalid port"},
		{"/ in a URL", "postgres://app:a/SECRET@127.0.0.1:1/shop", "invalid port; want a URL such as"},
		{"/ behind a number in a URL", "postgres://app:1/SECRET@127.0.0.1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"? in a URL", "postgres://app:a/b?SECRET@127.0.0.1:1/shop", "failed to parse as URL"},
		{": in a URL", "postgres://app:a:SECRET", "invalid port"},
		{"bad escape", "postgres://app:%ZZSECRET@127.0.0.1:1/shop", "failed to parse as URL"},
		{"bad port", "postgres://app:SECRET@127.0.0.1:x/shop", "invalid port"},
		{"bad sslmode", "postgres://app:SECRET@127.0.0.1:1/shop?sslmode=SECRET", "failed to configure TLS: sslmode is invalid"},
		{"bad timeout", "postgres://app:SECRET@127.0.0.1:1/shop?connect_timeout=SECRET", "invalid connect_timeout"},
		{"bad session attribute", "postgres://app:x@127.0.0.1:1/shop?target_session_attrs=SECRET", "unknown target_session_attrs value"},
		{"bad cache capacity", "postgres://app:x@127.0.0.1:1/shop?statement_cache_capacity=SECRET", "cannot parse statement_cache_capacity"},
		{"unknown scheme", "mysql://app:SECRET@127.0.0.1:1/shop?sslmode=disable", "has an unexpected character; want a URL such as postgres://"},
		{"unknown scheme without a query", "mysql://app:SECRET@127.0.0.1:1/shop", "cannot parse the connection string: failed to parse as keyword/value"},
		{"space before the scheme", " postgres://app:SECRET@127.0.0.1:1/shop", "cannot parse the connection string: failed to parse as keyword/value"},
		{"no server", "postgres://app:SECRET@127.0.0.1:1/shop", "127.0.0.1:1 (127.0.0.1): dial error: dial tcp 127.0.0.1:1: connect: connection refused"},
	} {
		_, errs, code := execute(t, "", "migrate", "status", "--database", tt.url)
		if code != exitError || !strings.Contains(errs, tt.want) || strings.Contains(errs, "SECRET") {
			t.Errorf("%s: code %d, errors %q; want %q and no password", tt.name, code, errs, tt.want)
		}
	}
}

// Without PGHOST, the other variables of libpq select no database.
func TestNoHost(t *testing.T) {
	t.Setenv("PGDATABASE", "shop")
	checkUsage(t, "doctor", []usageTest{{"", "no database: pass --database postgres://user@host/name, or set DATABASE_URL, or PGHOST and libpq's other variables\n"}})
}

// TestNoPasswordInEnvironment checks the same for the variables of libpq.
func TestNoPasswordInEnvironment(t *testing.T) {
	t.Setenv("DATABASE_URL", "")
	for _, tt := range []struct{ name, value, want string }{
		{"PGHOST", "postgres://app:SECRET@127.0.0.1:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"PGHOST", "127.0.0.1;password=SECRET", "has an unexpected character; want a URL such as postgres://"},
		{"PGDATABASE", "postgres://app:SECRET@127.0.0.1:1/shop", "has an unexpected character; want a URL such as postgres://"},
		{"PGUSER", "app password=SECRET", "has an unexpected character; want a URL such as postgres://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PGHOST", "127.0.0.1")
			t.Setenv("PGPORT", "1")
			t.Setenv(tt.name, tt.value)
			_, errs, code := execute(t, "", "migrate", "status")
			if code != exitError || !strings.Contains(errs, tt.want) || strings.Contains(errs, "SECRET") {
				t.Errorf("%s: code %d, errors %q; want %q and no password", tt.value, code, errs, tt.want)
			}
		})
	}
}

// fakeServer accepts connections without TLS and hands them to serve after the startup
// message. It returns its address.
func fakeServer(t *testing.T, serve func(*pgproto3.Backend)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				backend := pgproto3.NewBackend(conn, conn)
				message, err := backend.ReceiveStartupMessage()
				if _, ok := message.(*pgproto3.SSLRequest); ok {
					_, _ = conn.Write([]byte("N"))
					_, err = backend.ReceiveStartupMessage()
				}
				if err == nil {
					serve(backend)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func login(server *pgproto3.Backend) {
	server.Send(&pgproto3.AuthenticationOk{})
	server.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	server.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}})
	server.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	_ = server.Flush()
}

func TestConnectionErrors(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		serve      func(*pgproto3.Backend)
	}{
		{"closed at startup", "failed to receive message: unexpected EOF", func(*pgproto3.Backend) {}},
		{"closed after startup", "lost the connection to the server: ", login},
		{"closed in a query", "lost the connection to the server: ", func(server *pgproto3.Backend) {
			login(server)
			_, _ = server.Receive()
		}},
		{"wrong password", "FATAL: no (SQLSTATE 28P01); check the user and the password, which PGPASSWORD or ~/.pgpass can hold\n", func(server *pgproto3.Backend) {
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "28P01", Message: "no"})
			_ = server.Flush()
		}},
		{"missing database", "failed to connect to `user=app database=shop`", func(server *pgproto3.Backend) {
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "3D000", Message: "no"})
			_ = server.Flush()
		}},
		{"unknown setting", "the server rejects a setting in the connection string; check the names", func(server *pgproto3.Backend) {
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "42704", Message: `unrecognized configuration parameter "SECRET"`})
			_ = server.Flush()
		}},
		{"unknown setting behind a pooler", "the server rejects a setting in the connection string; check the names", func(server *pgproto3.Backend) {
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: SECRET"})
			_ = server.Flush()
		}},
	} {
		address := fakeServer(t, tt.serve)
		out, errs, code := execute(t, "", "migrate", "status", "--database", "postgres://app:SECRET@"+address+"/shop?SECRET=1")
		if code != exitError || out != "" || !strings.Contains(errs, tt.want) || strings.Contains(errs, "SECRET") {
			t.Errorf("%s: code %d, output %q, errors %q; want code 2 and %q", tt.name, code, out, errs, tt.want)
		}
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// TestWriteErrors checks that output that can't be written is an error, also of help
// texts, and that a broken connection doesn't count as the end of a pipe.
func TestWriteErrors(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, syscall.EPIPE} {
		for _, args := range []string{"new", "--help", "help new", "help", "--version", "completion bash", "migrate"} {
			var errs bytes.Buffer
			code := run(t.Context(), strings.Fields(args), strings.NewReader(""), io.Writer(brokenWriter{err}), &errs)
			if code != exitError || errs.String() != "sortkey: "+err.Error()+"\n" {
				t.Errorf("%s: code %d, errors %q; want code 2 and %q", args, code, &errs, err)
			}
		}
	}
}
