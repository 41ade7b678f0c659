package guide

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// NodeOfPod gives a pod of a StatefulSet the numbers from first on: pod shop-3
// gets first+3. No two StatefulSets that mint for the same tables may overlap.
func NodeOfPod(name string, first, count int) (datacenter, worker int, err error) {
	digits := name[strings.LastIndexByte(name, '-')+1:]
	ordinal, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(ordinal) != digits || digits == name {
		return 0, 0, fmt.Errorf("expected the name of a StatefulSet's pod, such as shop-3, got %q", name)
	}
	if first < 0 || ordinal >= count || first+count > 1024 {
		return 0, 0, fmt.Errorf("expected pod %s to be one of %d, with numbers from %d to below 1024: change the range of this StatefulSet", name, count, first)
	}
	node := first + ordinal
	return node >> 5, node & 31, nil // 5 bits of each in the default layout
}

// ClaimIDs mints under a claim, and under the next one if that is lost. Close
// what it gives.
func ClaimIDs(ctx context.Context, store nodelease.Store, log *slog.Logger) (*nodelease.Generator[idtype.Snowflake], error) {
	return nodelease.NewSnowflakeGenerator(ctx, store, idtype.DefaultSnowflakeLayout(),
		nodelease.Options{TTL: 30 * time.Second, Reacquire: true, Logger: log})
}

// AfterNewest makes a generator with a configured number that begins after all
// that is in the table, whatever the clock shows now.
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

// ResumeSnos goes on where a snapshot in a file, as JSON, was taken. It is used
// once, so the file goes: after a crash there is none, which is fs.ErrNotExist.
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

// PublishStats has /debug/vars show how ids is doing. Counters begin anew with
// each claim.
func PublishStats(name string, ids *nodelease.Generator[idtype.Snowflake]) {
	expvar.Publish(name, expvar.Func(func() any {
		lease := ids.Keeper().Stats()
		gen := ids.Current().(*idtype.SnowflakeGenerator) // which ClaimIDs builds
		return map[string]any{
			"minting":            gen.Stats(), // Minted, Waits, SequenceOverflows, ClockRegressions
			"remaining_seconds":  gen.Remaining().Seconds(),
			"lease_number":       lease.Number,
			"lease_left_seconds": lease.Left.Seconds(),
			"lease_failures":     lease.Failures,
			"clock_skew_seconds": lease.Skew.Seconds(),
		}
	}))
}

// Ready answers 503 while nothing can be minted.
func Ready(ids *nodelease.Generator[idtype.Snowflake]) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := ids.Keeper().Err(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

// Stop ends a process: first those who mint, then the claim, and last what the
// claim is kept in.
func Stop(ctx context.Context, server *http.Server, ids *nodelease.Generator[idtype.Snowflake], leases *sql.DB) error {
	return errors.Join(server.Shutdown(ctx), ids.Close(), leases.Close())
}
