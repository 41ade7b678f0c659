package main

import "github.com/spf13/cobra"

func (c *app) partitionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "partitions",
		Short: "Maintain the partitions of tables by time",
		Long: `Partitions shows and maintains the partitions of the tables that the SQL function
manage_partitions manages.`,
		Args: asUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.partitionsListCommand(), c.partitionsRunCommand())
	return cmd
}

// mayMaintain is the privilege for the functions of partitions.
const mayMaintain = "USAGE ON SCHEMA $s, $s_internal"
