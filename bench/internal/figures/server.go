package figures

import (
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Server returns the configuration of the server of DATABASE_URL. It skips b if
// DATABASE_URL is unset. folder is the package of the benchmark, for the message.
func Server(b *testing.B, folder string) *pgx.ConnConfig {
	b.Helper()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		b.Skipf("DATABASE_URL is unset; run scripts/with-postgres go test %s -bench ...", folder)
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	return config
}
