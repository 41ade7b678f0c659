package guide

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sortkey/sortkey/examples/guide"
	"github.com/sortkey/sortkey/integration_test/internal/docs"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/migrations"
)

// The role of the page reads all metrics of the database, whether the owner of the installation
// owns the database or not.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	for _, owned := range []bool{true, false} {
		pgtest.One(t, func(t *testing.T, db *pgtest.DB) {
			owner, monitoring := db.NewRole(t, "shop_owner", pgtest.LoginPassword), "monitoring_"+db.Name
			if owned {
				db.Exec(t, "ALTER DATABASE "+db.Name+" OWNER TO "+owner)
				t.Cleanup(func() {
					_, err := db.SQL(t).ExecContext(context.Background(), "ALTER DATABASE "+db.Name+" OWNER TO CURRENT_USER")
					must(t, err)
				})
			} else {
				db.Exec(t, "GRANT CREATE ON DATABASE "+db.Name+" TO "+owner)
			}
			must(t, migrations.Up(t.Context(), as(t, db, owner), migrations.Config{}))
			t.Cleanup(func() {
				for _, sql := range []string{"DROP OWNED BY " + monitoring, "DROP ROLE " + monitoring} {
					_, err := db.SQL(t).ExecContext(context.Background(), sql)
					must(t, err)
				}
			})
			names := []string{"ROLE monitoring", "ROLE " + monitoring, "TO monitoring", "TO " + monitoring, "shop_owner", owner}
			docs.One(t, "monitoring", "role").Replace(names...).Run(t, db)
			if !owned {
				const grant = "GRANT shop_owner TO monitoring WITH INHERIT FALSE, SET FALSE"
				if !strings.Contains(docs.Page(t, "monitoring"), "`"+grant+"`") {
					t.Errorf("docs/monitoring.md: want %s", grant)
				}
				db.Exec(t, strings.NewReplacer(names...).Replace(grant))
			}
			address, err := url.Parse(db.URL)
			must(t, err)
			address.User = url.UserPassword(monitoring, "secret")
			var log strings.Builder
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			handler, err := guide.ServeDatabaseMetrics(ctx, address.String(), slog.New(slog.NewTextHandler(&log, nil)))
			must(t, err)
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
			if !strings.Contains(response.Body.String(), `sortkey_database_up{database="shop"} 1`+"\n") {
				t.Errorf("owned %t: want sortkey_database_up 1, got\n%s\nand the log\n%s", owned, response.Body, &log)
			}
		})
	}
}
