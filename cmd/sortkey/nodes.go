package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/spf13/cobra"
)

func (c *app) nodesCommand() *cobra.Command {
	return group("nodes", "List, reserve and release node numbers", `Nodes shows and changes the node numbers of a database.

Programs claim numbers from pools, and column defaults use reserved numbers. The
pools of the formats are snowflake, snowflake-si, sno, and spread64-0 to
spread64-15, one per cluster. The name spread64 stands for all pools of
Spread64: its numbers are generator << 4 | cluster.`,
		c.nodesListCommand(), c.nodesReserveCommand(), c.nodesReleaseCommand())
}

// The privileges for the tables and functions of node numbers.
const (
	mayList    = "SELECT ON $s.node_pool, $s.node_status"
	mayReserve = "EXECUTE ON FUNCTION $s.reserve_node"
	mayRelease = "EXECUTE ON FUNCTION $s.unreserve_node"
	mayTake    = "SELECT, UPDATE ON $s.node_lease"
)

// parsePoolNumber parses the arguments POOL and NUMBER. A number of pool spread64 is
// one of a cluster's pool, as in the SQL function reserve_node.
func parsePoolNumber(args []string) (pool string, number int, err error) {
	pool = args[0]
	number, err = parseNumber(args[1])
	if err == nil && pool == "spread64" {
		pool, number = fmt.Sprintf("spread64-%d", number&15), number>>4
	}
	return pool, number, err
}

func parseNumber(s string) (int, error) {
	number, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, cli.Usagef("node number %q: want 0 to 65535", s)
	}
	return int(number), nil
}

// outOfRange returns the error of a number that a pool doesn't have.
func outOfRange(pool string, number, size int) error {
	return cli.Usagef("number %d of pool %s is out of range; want 0 to %d", number, pool, size-1)
}

// poolHealth returns an examination of the pools.
func (db database) poolHealth() *dbhealth.Examination {
	return dbhealth.New(db.std, dbhealth.Options{Config: db.Config, Areas: []string{"claims"}})
}

// unknownPool returns an error unless the pool exists or has reservations.
func unknownPool(name string, pools []dbhealth.Pool) error {
	if len(pools) == 0 {
		return fmt.Errorf("pool %q doesn't exist, and there are no others: the first claim or reservation creates a pool", name)
	}
	var names []string
	for _, p := range pools {
		if p.Pool == name || name == "spread64" && strings.HasPrefix(p.Pool, "spread64-") {
			return nil
		}
		names = append(names, p.Pool)
	}
	return fmt.Errorf("pool %q doesn't exist; the pools are %s", name, strings.Join(names, ", "))
}
