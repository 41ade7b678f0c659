package guide

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// lines runs statements and returns the rows of the last one, as text with |
// between the columns.
func lines(t testing.TB, conn *pgx.Conn, statements string) (found []string) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), statements).ReadAll()
	if err != nil {
		t.Fatalf("%v\nin: %s", err, statements)
	}
	for _, row := range results[len(results)-1].Rows {
		found = append(found, string(bytes.Join(row, []byte("|"))))
	}
	return found
}

// has reports an error unless got equals want. A * in want matches any text.
func has(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(g, w string) bool {
		for i, part := range strings.Split(w, "*") {
			n := strings.Index(g, part)
			if n < 0 || i == 0 && n != 0 {
				return false
			}
			g = g[n+len(part):]
		}
		return g == "" || strings.HasSuffix(w, "*")
	}) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// claimIDs calls ClaimIDs of the page, and closes the generator when the test ends.
func claimIDs(t *testing.T, leases *sql.DB) *nodelease.Generator[idtype.Snowflake] {
	t.Helper()
	ids, err := guide.ClaimIDs(t.Context(), pglease.New(leases, pglease.Config{}), slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(func() { _ = ids.Close() })
	return ids
}

// The SQL of docs/node-numbers.md and docs/operations.md works, and the queries of operations.sql.
func TestOperationsSQL(t *testing.T) {
	migrated.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool, conn := t.Context(), db.SQL(t), db.Conn(t)
		db.Exec(t, `CREATE TABLE events (id sortkey.snowflake PRIMARY KEY) PARTITION BY RANGE (id);
			SELECT sortkey.manage_partitions('events', '1 month')`)
		var ids *nodelease.Generator[idtype.Snowflake]
		var numbers string // of reserve_for_copy
		checkDefaults := func(node int) {
			t.Helper()
			for _, table := range []string{"payments", "refunds"} {
				has(t, "the default of "+table, lines(t, db.Conn(t), "INSERT INTO "+table+" (amount) VALUES (1) RETURNING sortkey.snowflake_node(id)"), fmt.Sprint(node))
			}
		}
		all := append(docs.SQL(t, "node-numbers", "reserve", "setting"), docs.File(t, "examples/guide/operations.sql")...)
		for _, p := range append(all, docs.SQL(t, "operations", "restored", "original", "reserve-copy", "confirm-copy", "end-copy")...) {
			switch p.Name {
			case "reserve", "setting":
				p.Run(t, db)
			case "status":
				checkDefaults(1023)
				ids = claimIDs(t, pool)
				has(t, p.Name, lines(t, conn, p.SQL), "snowflake|0|held|*, process *|*|1|*|", "snowflake|1023|reserved|*|defaults of shop")
			case "partitions":
				long, err := migrations.MaintainPartitions(ctx, pool, migrations.Config{}, migrations.PartitionOptions{At: time.Now().AddDate(-1, 0, 0)})
				must(t, err)
				if len(long) != 6 {
					t.Errorf("expected 6 steps, got %v", long)
				}
				db.Exec(t, "INSERT INTO events SELECT sortkey.snowflake_floor(now())")
				has(t, p.Name, lines(t, conn, p.SQL), "events|4|1")
				_, err = migrations.MaintainPartitions(ctx, pool, migrations.Config{}, migrations.PartitionOptions{})
				must(t, err)
				has(t, p.Name, lines(t, conn, p.SQL))
			case "maintained":
				has(t, p.Name, lines(t, conn, p.SQL), "events|*|0")
				db.Exec(t, "CREATE TABLE never (LIKE events) PARTITION BY RANGE (id); SELECT sortkey.manage_partitions('never', '1 month', default_partition => false)")
				has(t, p.Name, lines(t, conn, p.SQL), "never||0", "events|*-*|0")
			case "analyzed":
				has(t, p.Name, lines(t, conn, p.SQL), "events|", "never|")
				db.Exec(t, "ANALYZE events")
				has(t, p.Name, lines(t, conn, p.SQL), "never|")
			case "defaults":
				db.Exec(t, "INSERT INTO events VALUES (1)")
				has(t, p.Name, lines(t, conn, p.SQL), "events|events_default|8192")
			case "restored":
				p.Run(t, db)
				layout := nodelease.ForSnowflake(idtype.SnowflakeLayout{})
				_, err := nodelease.Acquire(ctx, pglease.New(pool, pglease.Config{}), layout, nodelease.Options{Wait: -1})
				pgtest.Fails(t, err, nodelease.ErrClockBehind) // before the TTL is over
				if _, err := ids.Next(); err != nil {
					t.Errorf("expected a generator with a claim to continue, got %v", err)
				}
			case "original":
				// The pool is fenced after [restored].
				db.Exec(t, "UPDATE sortkey.node_pool SET fenced_until = '-infinity'; UPDATE sortkey.node_home SET database = 'other'")
				pgtest.Fails(t, migrations.CheckDefaults(ctx, db.SQL(t), migrations.Config{}), migrations.ErrCopied, "confirm_original")
				p.Run(t, db)
				checkDefaults(1023)
			case "reserve-copy":
				numbers = regexp.MustCompile(`"place": "[^"]*"`).ReplaceAllString(lines(t, conn, p.SQL)[0], `"place": "of the original"`)
			case "end-copy":
				const reserved = "SELECT count(*) FROM sortkey.node_status WHERE pool = 'snowflake' AND reserved = 'staging'"
				db.Exec(t, "SELECT sortkey.confirm_original(); SELECT sortkey.reserve_for_copy('staging', 4)")
				has(t, "before "+p.Name, lines(t, conn, reserved), "4")
				p.Run(t, db)
				has(t, p.Name, lines(t, conn, reserved), "0")
			case "confirm-copy":
				for _, statement := range lines(t, conn, strings.Replace(p.SQL, `{"pools": …}`, numbers, 1)) {
					db.Exec(t, statement)
				}
				checkDefaults(1022)
				options := pgtest.Config(func(c *pgx.ConnConfig) { c.RuntimeParams["options"] = "-c sortkey.node=1010" }) // as in the URL of the page
				db.Exec(t, "SELECT sortkey.reserve_node('snowflake', 1010, 'a connection string')")
				has(t, "a connection string", lines(t, db.Conn(t, options), "SELECT sortkey.snowflake_node(sortkey.next_snowflake())"), "1010")
				// As in a copy, which has no such setting.
				db.Exec(t, "ALTER DATABASE "+db.Name+" RESET sortkey.node")
				_, err := db.Conn(t).Exec(ctx, "INSERT INTO refunds (amount) VALUES (1)")
				pgtest.Fails(t, err, nil, "sortkey.node is not set")
			default:
				t.Errorf("no test runs %s", p.Name)
			}
		}
	})
}

// AfterNewest returns a generator that starts after the newest ID of the table, even
// if the clock is behind that ID.
func TestAfterNewest(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		ctx, pool := t.Context(), db.SQL(t)
		db.Exec(t, "CREATE TABLE payments (id bigint PRIMARY KEY)")
		gen, err := guide.AfterNewest(ctx, pool, 1, 2)
		must(t, err)
		first, err := gen.Next()
		must(t, err)
		if p, _ := idtype.DefaultSnowflakeLayout().Parts(first); p.Datacenter != 1 || p.Worker != 2 {
			t.Errorf("expected datacenter 1 and worker 2, got %+v", p)
		}
		newest, err := idtype.DefaultSnowflakeLayout().Compose(idtype.SnowflakeParts{Time: time.Now().Add(700 * time.Millisecond), Datacenter: 31})
		must(t, err)
		_, err = pool.ExecContext(ctx, "INSERT INTO payments VALUES ($1)", newest)
		must(t, err)
		gen, err = guide.AfterNewest(ctx, pool, 1, 2)
		must(t, err)
		if id, err := gen.Next(); err != nil || id <= newest {
			t.Errorf("expected an ID after %v, got %v, %v", newest, id, err)
		}
	})
}

func TestSnosAcrossRestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snos.json")
	partition := idtype.SnoPartitionFrom(7)
	gen := idtype.Must(idtype.NewSnoGenerator(idtype.SnoConfig{Partition: &partition}))
	ids := make([]idtype.Sno, 1000)
	_, err := gen.Fill(t.Context(), ids)
	must(t, err)
	text, err := json.Marshal(gen.Snapshot())
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
	next, err := guide.ResumeSnos(file)
	must(t, err)
	id, err := next.Next()
	must(t, err)
	if id.Partition() != partition || id.Compare(ids[len(ids)-1]) <= 0 {
		t.Errorf("expected an ID of the same partition after %v, got %v", ids[len(ids)-1], id)
	}
	_, err = guide.ResumeSnos(file) // the second use of a snapshot
	pgtest.Fails(t, err, fs.ErrNotExist)
}

// Stop lets a request that has started get its ID, and then frees the number.
func TestStop(t *testing.T) {
	t.Parallel()
	migrated.One(t, func(t *testing.T, db *pgtest.DB) {
		leases := db.SQL(t)
		ids := claimIDs(t, leases)
		started, proceed := make(chan struct{}), make(chan struct{})
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(started)
			<-proceed
			id, err := ids.Next()
			fmt.Fprint(w, !id.IsZero(), err)
		})}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		go func() { _ = server.Serve(listener) }()
		address := listener.Addr().String()
		answer := make(chan string)
		go func() {
			defer close(answer)
			r, err := http.Get("http://" + address)
			if err != nil {
				answer <- err.Error()
				return
			}
			defer r.Body.Close()
			body, err := io.ReadAll(r.Body)
			answer <- fmt.Sprint(string(body), err)
		}()
		<-started
		stopped := make(chan error, 1)
		go func() { stopped <- guide.Stop(context.Background(), server, ids, leases) }()
		pgtest.Eventually(t, "the server stops listening", func() error {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return nil
			}
			c.Close()
			return errors.New("it accepts connections")
		})
		close(proceed)
		if got := <-answer; got != "true <nil><nil>" {
			t.Errorf("expected the last request to get an ID, got %s", got)
		}
		must(t, <-stopped)
		if err := leases.Ping(); err == nil {
			t.Error("expected a closed pool, but it is open")
		}
		has(t, "held numbers", lines(t, db.Conn(t), "SELECT number FROM sortkey.node_status WHERE state = 'held'"))
	})
}
