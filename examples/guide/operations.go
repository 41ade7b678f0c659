package guide

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/filelease"
	"github.com/sortkey/sortkey/nodelease/ready"
)

// ClaimIDs claims a node number and returns a generator that uses it. If the
// claim is lost, the generator claims another number. The caller closes it.
func ClaimIDs(ctx context.Context, store nodelease.Store, log *slog.Logger) (*nodelease.Generator[idtype.Snowflake], error) {
	return nodelease.NewSnowflakeGenerator(ctx, store, idtype.SnowflakeConfig{}, nodelease.Options{Logger: log})
}

// OrdinalIDs returns a generator whose node number is the ordinal of this instance. dir is
// on a volume that stays with the instance.
func OrdinalIDs(ctx context.Context, dir string, log *slog.Logger) (*nodelease.Generator[idtype.Snowflake], error) {
	number, err := nodelease.Ordinal("POD_INDEX", 0, 1024)
	if err != nil {
		return nil, err
	}
	store := filelease.New(dir, filelease.Config{Numbers: []int{number}})
	return ClaimIDs(ctx, store, log)
}

// AfterNewest returns a generator with a configured node number. Its IDs come
// after every ID in the table, even if the clock has stepped back.
func AfterNewest(ctx context.Context, db *sql.DB, datacenter, worker int) (*idtype.SnowflakeGenerator, error) {
	var newest sql.Null[idtype.Snowflake]
	if err := db.QueryRowContext(ctx, "SELECT max(id) FROM payments").Scan(&newest); err != nil {
		return nil, err
	}
	c := idtype.SnowflakeConfig{Datacenter: datacenter, Worker: worker}
	if newest.Valid {
		c.NotBefore = c.Layout.Time(newest.V)
	}
	return idtype.NewSnowflakeGenerator(c)
}

// ResumeSnos returns a generator that continues from a snapshot, which the file
// holds as JSON. A snapshot is valid once, so ResumeSnos deletes the file. After
// a crash there is no file, and the error is fs.ErrNotExist.
func ResumeSnos(file string) (*idtype.SnoGenerator, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	var s idtype.SnoSnapshot
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return idtype.NewSnoGenerator(idtype.SnoConfig{Snapshot: &s})
}

// Probes adds the handlers for the probes of a load balancer or of Kubernetes to the mux of a
// port that clients can't reach. ctx ends when the shutdown begins.
func Probes(ctx context.Context, mux *http.ServeMux, ids *nodelease.Generator[idtype.Snowflake]) {
	mux.Handle("/readyz", ready.Handler(ids, ready.While(ctx)))
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
}

// Stop stops the requests that create IDs, then releases the node number, then
// closes the pool that holds the claim.
func Stop(ctx context.Context, server *http.Server, ids *nodelease.Generator[idtype.Snowflake], leases *sql.DB) error {
	return errors.Join(server.Shutdown(ctx), ids.Close(), leases.Close())
}
