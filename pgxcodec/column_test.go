package pgxcodec

import (
	"runtime"
	"sync"
	"testing"

	"github.com/sortkey/sortkey/idtype"
)

// Connections whose maps share a registry can add types concurrently without losing
// one.
func TestAddConcurrently(t *testing.T) {
	// On one processor, the workers would rarely run concurrently.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))))
	members := []member{
		memberOf[idtype.Snowflake, bigintBinary[idtype.Snowflake], bigintText[idtype.Snowflake]]{},
		memberOf[idtype.SnowflakeSI, bigintBinary[idtype.SnowflakeSI], bigintText[idtype.SnowflakeSI]]{},
		memberOf[idtype.UID60, bigintBinary[idtype.UID60], bigintText[idtype.UID60]]{},
		memberOf[idtype.Spread64, bigintBinary[idtype.Spread64], bigintText[idtype.Spread64]]{},
	}
	// One column per round. Each worker goes through them at its own speed.
	columns := make([]column, 100_000)
	start := make(chan struct{})
	var workers sync.WaitGroup
	for _, m := range append(members, members[0]) {
		workers.Go(func() {
			<-start
			for i := range columns {
				columns[i].add(m)
			}
		})
	}
	close(start)
	workers.Wait()
	for i := range columns {
		if n := len(columns[i].all()); n != len(members) {
			t.Fatalf("column %d has %d members, want %d", i, n, len(members))
		}
	}
}
