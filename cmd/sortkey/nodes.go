package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/cmd/sortkey/internal/ids"
	"github.com/sortkey/sortkey/internal/dbhealth"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

func (c *app) nodesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List, reserve and release node numbers",
		Long: `Nodes shows and changes the node numbers of a database.

Programs claim numbers from pools, and column defaults use reserved numbers. The
pools of the formats are snowflake, snowflake-si, sno, and spread64-0 to
spread64-15, one per cluster. The name spread64 stands for all pools of
Spread64: its numbers are generator << 4 | cluster.`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if negative.MatchString(err.Error()) {
			return cli.Usagef("negative node number: want 0 to 65535")
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	cmd.AddCommand(c.nodesListCommand(), c.nodesReserveCommand(), c.nodesReleaseCommand())
	return cmd
}

// parsePoolNumber parses the arguments POOL and NUMBER. A number of pool spread64 is
// one of a cluster's pool, as in the SQL function reserve_node.
func parsePoolNumber(args []string) (pool string, number int, err error) {
	pool = args[0]
	if number, err = parseNumber(args[1]); err != nil {
		return "", 0, err
	}
	if pool == "spread64" {
		pool, number = fmt.Sprintf("spread64-%d", number&15), number>>4
	}
	return pool, number, nil
}

func parseNumber(s string) (int, error) {
	number, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		return 0, cli.Usagef("node number %q: want 0 to 65535", s)
	}
	return int(number), nil
}

// nodes reads and changes the node numbers of an installation.
type nodes struct {
	database
	migrations.Config
}

// openNodes connects to a database with an installation.
func openNodes(ctx context.Context, f *databaseFlags) (*nodes, error) {
	db, config, err := f.openInstalled(ctx)
	return &nodes{db, config}, err
}

// write runs a statement, with begin, and returns the number of rows.
func (n *nodes) write(ctx context.Context, statement string, args ...any) (rows int64, err error) {
	err = cli.Begin(ctx, n, pgx.TxOptions{}, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, n.sql(statement), args...)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}

// sql replaces $s in a query with the schema.
func (n *nodes) sql(query string) string { return inSchema(n.Schema, query) }

// health returns an examination of the pools.
func (n *nodes) health() *dbhealth.Examination {
	return dbhealth.New(n.std, dbhealth.Options{Config: migrations.Config{Schema: n.Schema}, Areas: []string{"claims"}})
}

func (n *nodes) explain(ctx context.Context, err error, privileges ...string) error {
	return n.database.explain(ctx, err, n.Schema, privileges...)
}

// The privileges for the tables and functions of node numbers.
const (
	mayList    = "SELECT ON $s.node_pool, $s.node_status"
	mayReserve = "EXECUTE ON FUNCTION $s.reserve_node"
	mayRelease = "EXECUTE ON FUNCTION $s.unreserve_node"
	mayTake    = "SELECT, UPDATE ON $s.node_lease"
)

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

// A poolFormat is the format of a pool's IDs.
type poolFormat struct {
	*ids.Format
	size int // the number of numbers
	// node returns the node number of a number of the pool, as in the setting sortkey.node.
	node func(number int) int
}

// formatOf returns the format of a pool, or nil if it is unknown.
func (n *nodes) formatOf(pool, layout string) *poolFormat {
	f := dbhealth.FormatOf(n.Config, pool, layout)
	if f == nil {
		return nil
	}
	layouts := ids.Layouts{Snowflake: n.Snowflake, SnowflakeSI: n.SnowflakeSI}
	return &poolFormat{ids.ByName(strings.ReplaceAll(f.Name, "_", "-"), layouts), f.Size, f.Node}
}
