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

// NodeOfPod returns the node number of a pod in a StatefulSet of count pods: for
// pod shop-3 it is first+3. StatefulSets that write to the same tables need
// ranges that don't overlap.
func NodeOfPod(name string, first, count int) (datacenter, worker int, err error) {
	digits := name[strings.LastIndexByte(name, '-')+1:]
	ordinal, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(ordinal) != digits || digits == name {
		return 0, 0, fmt.Errorf("node number of pod %q: want the name of a StatefulSet's pod, such as shop-3", name)
	}
	if first < 0 || ordinal >= count || first+count > 1024 {
		return 0, 0, fmt.Errorf("node number of pod %q: want one of %d pods, with numbers from %d to below 1024; change the range of this StatefulSet", name, count, first)
	}
	node := first + ordinal
	return node >> 5, node & 31, nil // the default layout has 5 bits for each
}

// ClaimIDs claims a node number and returns a generator that uses it. If the
// claim is lost, the generator claims another number. The caller closes it.
func ClaimIDs(ctx context.Context, store nodelease.Store, log *slog.Logger) (*nodelease.Generator[idtype.Snowflake], error) {
	return nodelease.NewSnowflakeGenerator(ctx, store, idtype.DefaultSnowflakeLayout(),
		nodelease.Options{TTL: 30 * time.Second, Reacquire: true, Logger: log})
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

// PublishStats publishes the counters of ids at /debug/vars. They start at zero
// with each claim.
func PublishStats(name string, ids *nodelease.Generator[idtype.Snowflake]) {
	expvar.Publish(name, expvar.Func(func() any {
		lease := ids.Keeper().Stats()
		gen := ids.Current().(*idtype.SnowflakeGenerator) // the type that ClaimIDs builds
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

// Ready responds with status 503 while ids holds no node number.
func Ready(ids *nodelease.Generator[idtype.Snowflake]) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := ids.Keeper().Err(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

// Stop stops the requests that create IDs, then releases the node number, then
// closes the pool that holds the claim.
func Stop(ctx context.Context, server *http.Server, ids *nodelease.Generator[idtype.Snowflake], leases *sql.DB) error {
	return errors.Join(server.Shutdown(ctx), ids.Close(), leases.Close())
}
