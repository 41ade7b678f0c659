package main

import "github.com/spf13/cobra"

func (c *app) partitionsCommand() *cobra.Command {
	return group("partitions", "Maintain the partitions of tables by time", `Partitions shows and maintains the partitions of the tables that the SQL function
manage_partitions manages.`, c.partitionsListCommand(), c.partitionsRunCommand())
}

// mayMaintain is the privilege for the functions of partitions.
const mayMaintain = "USAGE ON SCHEMA $s, $s_internal"
