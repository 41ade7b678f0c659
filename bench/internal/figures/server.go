package figures

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Server is the configuration of the server that DATABASE_URL names. Without
// one the benchmark, which is in that folder, is skipped.
func Server(b *testing.B, folder string) *pgx.ConnConfig {
	b.Helper()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		b.Skipf("expected DATABASE_URL, the URL of a Postgres server, got none: run it by scripts/with-postgres go test %s -bench ...", folder)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	return config
}
