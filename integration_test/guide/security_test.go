package guide

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/idtype/seal"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
)

// An attacker who knows the second and the node of a key has the number of
// candidates in the page: one per unit of time, and for a UID60 one per start of the
// sequence and random number as well. The tests of idtype cover the starts.
func TestSecurityCandidates(t *testing.T) {
	page := docs.Page(t, "security")
	units := func(unit time.Duration) int { return int(time.Second / unit) }
	last := idtype.UID60(idtype.MaxUID60)
	starts, randoms := (last.Sequence()+1)/2, last.Random()+1 // a millisecond starts with one of the lower half of the sequence numbers
	for name, n := range map[string]int{
		"Snowflake": units(idtest.Snowflake.Unit), "SnowflakeSI": units(idtest.SnowflakeSI.Unit), "UID60": units(idtest.UID60.Unit) * starts * randoms,
		"Spread64": units(idtest.Spread64.Unit), "Sno": units(idtest.Sno.Unit),
	} {
		if !regexp.MustCompile(`(?m)^\| ` + "`" + name + "`" + ` \|.*\| ` + thousands(n) + ` \|$`).MatchString(page) {
			t.Errorf("%s: the page doesn't have %d candidates", name, n)
		}
	}
	for name, bits := range map[string]float64{"UUIDv7": 74 + math.Log2(1000), "UUIDv4": 122} {
		row := regexp.MustCompile(`(?m)^\| ` + name + ` \|.*\| 10\^(\d+) and more \|$`).FindStringSubmatch(page)
		power := math.Floor(bits * math.Log10(2))
		if row == nil || number(t, row[1]) != power {
			t.Errorf("%s: expected 10^%v candidates in the page, got %v", name, power, row)
		}
	}
}

// The handler finds its owner's ticket by the sealed ID that it returned, and answers the same
// for everything else.
func TestSecurityTickets(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		g := db.GORM(t, nil)
		must(t, g.AutoMigrate(&guide.Ticket{}))
		ids := idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{}))
		must(t, g.Use(gormplugin.New(gormplugin.For(ids))))
		ada, eve := idtype.SnowflakeOf[guide.User](1), idtype.SnowflakeOf[guide.User](2)
		ticket := guide.Ticket{OwnerID: ada, Title: "leak"}
		must(t, g.Create(&ticket).Error)
		key := sha256.Sum256([]byte("a test"))
		s, err := seal.New(key[:])
		must(t, err)
		get := func(user idtype.SnowflakeOf[guide.User], id string) (int, string) {
			mux := http.NewServeMux()
			mux.Handle("GET /tickets/{id}", guide.TicketHandler(g, s, func(*http.Request) idtype.SnowflakeOf[guide.User] { return user }))
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequest("GET", "/tickets/"+id, nil))
			return w.Code, w.Body.String()
		}
		sealed := seal.Text(s, ticket.ID)
		if code, body := get(ada, sealed); code != http.StatusOK || !strings.Contains(body, `"id":"`+sealed+`"`) || strings.Contains(body, ticket.ID.String()) {
			t.Errorf("the owner got %d %s", code, body)
		}
		for _, c := range []struct {
			user idtype.SnowflakeOf[guide.User]
			id   string
		}{{eve, sealed}, {ada, ticket.ID.String()}, {ada, seal.Text(s, ticket.ID+1)}, {ada, "tkt_x"}} {
			if code, body := get(c.user, c.id); code != http.StatusNotFound || body != "no such ticket\n" {
				t.Errorf("user %d got %d %q for %s", c.user, code, body, c.id)
			}
		}
	})
}

// Only its owner finds a document, by its token. Its JSON doesn't contain the key.
func TestSecurityDocuments(t *testing.T) {
	t.Parallel()
	pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
		g := db.GORM(t, nil)
		gen := idtype.Must(idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{}))
		must(t, errors.Join(g.Use(gormplugin.New(gormplugin.For(gen))), g.AutoMigrate(&guide.Document{})))
		documents := []guide.Document{{OwnerID: 1, Title: "hers"}, {OwnerID: 2, Title: "his"}}
		must(t, g.Create(&documents).Error)
		hers := documents[0]
		if !regexp.MustCompile(`^[A-Z2-7]{26}$`).MatchString(hers.Token) || hers.Token == documents[1].Token || hers.ID.IsZero() {
			t.Errorf("got %v", documents)
		}
		found, err := guide.DocumentOf(g, 1, hers.Token)
		if err != nil || found != hers {
			t.Errorf("got %v, %v", found, err)
		}
		_, notOwned := guide.DocumentOf(g, 2, hers.Token)
		_, missing := guide.DocumentOf(g, 2, "none")
		if !errors.Is(notOwned, gorm.ErrRecordNotFound) || notOwned.Error() != missing.Error() {
			t.Errorf("expected the same error for another user's document and a missing one, got %v and %v", notOwned, missing)
		}
		if err := g.Create(&guide.Document{OwnerID: 1, Token: hers.Token}).Error; err != nil {
			t.Errorf("expected BeforeCreate to replace the token, got %v", err)
		}
		b, err := json.Marshal(hers)
		if err != nil || strings.Contains(string(b), hers.ID.String()) || !strings.Contains(string(b), hers.Token) {
			t.Errorf("got %s, %v", b, err)
		}
	})
}

// Roles can do everything that the page grants, and nothing else.
func TestSecurityGrants(t *testing.T) {
	migrated.EachParallel(t, func(t *testing.T, db *pgtest.DB) {
		app, monitoring, appOwner := db.NewRole(t, "app", ""), db.NewRole(t, "monitoring", ""), db.NewRole(t, "app_owner", "")
		db.Exec(t, "CREATE SCHEMA app")
		owner := db.Conn(t)
		as := func(role string) *pgx.Conn {
			conn := db.Conn(t)
			lines(t, conn, "SET SESSION AUTHORIZATION "+role)
			return conn
		}
		appConn, monitoringConn := as(app), as(monitoring)
		allowed := func(conn *pgx.Conn, sql string) {
			t.Helper()
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Errorf("%s: expected the right to run it, got %v", sql, err)
			}
		}
		denied := func(conn *pgx.Conn, sql string) {
			t.Helper()
			_, err := conn.Exec(t.Context(), sql)
			pgtest.Fails(t, fmt.Errorf("%s: %w", sql, err), nil, "permission denied")
		}
		never := func() { // denied after every grant of the page
			t.Helper()
			for _, sql := range []string{
				"SELECT sortkey.next_uid60()", "SELECT setval('sortkey_internal.snowflake_clock', 1)", "SELECT nextval('sortkey_internal.snowflake_clock')",
				"SELECT * FROM sortkey.node_lease", "UPDATE sortkey.node_lease SET mark = 0", "SELECT sortkey.reserve_node('snowflake', 1, 'x')",
				"SELECT sortkey.unreserve_node('snowflake', 1)", "SELECT * FROM sortkey.node_pool",
			} {
				denied(appConn, sql)
			}
		}
		claim := "SELECT sortkey.claim_node('p', 4, 'l', '{}', 'host 7 secret', 30000, 1793491200000, 1793491230000)"
		db.Exec(t, `CREATE TABLE documents (id sortkey.snowflake PRIMARY KEY, token uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
			owner_id bigint NOT NULL, title text NOT NULL)`)
		db.Exec(t, "GRANT INSERT, SELECT ON documents TO "+app)
		// A program that generates IDs in Go needs no right to the schema of the domains.
		allowed(appConn, "INSERT INTO documents (id, owner_id, title) VALUES (779300444248735744, 1, 'x')")
		if _, err := appConn.Exec(t.Context(), "INSERT INTO documents (id, owner_id, title) VALUES (0, 1, 'x')"); err == nil {
			t.Error("expected the domain to reject zero, but the INSERT succeeded")
		}
		has(t, "the version of the uuid", lines(t, appConn, "SELECT substr(token::text, 15, 1) FROM documents"), "4")
		denied(appConn, "SELECT sortkey.snowflake_time(1)")
		never()
		for _, p := range docs.SQL(t, "security", "program", "maintenance", "monitoring", "pinned", "audit") {
			p = p.Replace("TO app_owner", "TO "+appOwner, "TO app", "TO "+app, "FROM app", "FROM "+app, "TO monitoring", "TO "+monitoring)
			switch p.Name {
			case "program":
				denied(appConn, claim)
				db.Exec(t, "SELECT sortkey.create_node_pool('p', 4, 'l')")
				p.Run(t, db)
				allowed(appConn, claim)
				never()
			case "maintenance":
				p.Run(t, db) // see TestPartitioningGrants
			case "pinned":
				db.Exec(t, fmt.Sprintf(`SELECT sortkey.reserve_node('snowflake', 1023, 'defaults of shop'); ALTER DATABASE %s SET sortkey.node = 1023;
					CREATE TABLE payments (id sortkey.snowflake PRIMARY KEY DEFAULT sortkey.next_snowflake(), amount bigint NOT NULL);
					GRANT INSERT ON payments TO %s`, db.Name, app))
				appConn = as(app) // with the new setting
				db.Exec(t, "REVOKE EXECUTE ON FUNCTION sortkey.next_snowflake() FROM "+app)
				denied(appConn, "INSERT INTO payments (amount) VALUES (1)") // a default runs with the rights of the role that inserts
				db.Exec(t, "GRANT EXECUTE ON FUNCTION sortkey.next_snowflake() TO "+app)
				allowed(appConn, "INSERT INTO payments (amount) VALUES (1)")
				denied(appConn, "SELECT sortkey.next_snowflake(1)")
				// The role can choose another number with settings of its session.
				allowed(appConn, "BEGIN; SET LOCAL sortkey.node = 7; SET LOCAL sortkey.snowflake_7 = '28672'; SELECT sortkey.next_snowflake(); ROLLBACK")
				allowed(appConn, "SELECT sortkey.snowflake_time(1)")
				never()
				p.Run(t, db)
				allowed(appConn, "INSERT INTO payments (amount) VALUES (2)")
				denied(appConn, "SELECT sortkey.next_snowflake()")
				denied(monitoringConn, "SELECT next_payment_id()")
				has(t, "keys with the reserved number", lines(t, owner, "SELECT count(*) FROM payments WHERE sortkey.snowflake_node(id) = 1023"), "2")
				never()
			case "monitoring":
				denied(monitoringConn, "SELECT * FROM sortkey.node_status")
				p.Run(t, db)
				has(t, "the holder, without its secret", lines(t, monitoringConn, "SELECT holder FROM sortkey.node_status WHERE state = 'held'"), "host 7")
				denied(monitoringConn, "SELECT * FROM sortkey.node_lease")
				denied(monitoringConn, claim)
			case "audit":
				got := strings.ReplaceAll(psql(t, owner, p), app, "app")
				if squeezed(got) != squeezed(p.Output) {
					t.Errorf("%s: expected the output in the page\n%sgot\n%s", p.Name, p.Output, got)
				}
				// After a restore without privileges, every role can call the functions.
				db.Exec(t, `CREATE FUNCTION sortkey.for_all() RETURNS int LANGUAGE sql SECURITY DEFINER RETURN 1;
					CREATE FUNCTION sortkey.for_many() RETURNS int LANGUAGE sql SECURITY DEFINER RETURN 1;
					GRANT EXECUTE ON FUNCTION sortkey.for_many() TO `+app)
				got = squeezed(strings.ReplaceAll(psql(t, owner, p), app, "app"))
				if !strings.Contains(got, "for_all | 0 | PUBLIC") || !strings.Contains(got, "for_many | 0 | PUBLIC, app") {
					t.Errorf("expected functions granted to PUBLIC in the list, got\n%s", got)
				}
			default:
				t.Errorf("no test runs %s", p.Name)
			}
		}
	})
}

// squeezed returns a table without the padding of its columns.
func squeezed(table string) string {
	return regexp.MustCompile(` +|-+`).ReplaceAllString(table, " ")
}
