package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/sortkey/sortkey/migrations"
	"github.com/spf13/cobra"
)

// filesCommand is a command with flags for an installation, but without a database.
func (c *app) filesCommand(cmd *cobra.Command, do func(config migrations.Config, args []string) error) *cobra.Command {
	var schema string
	var layouts configFlags
	schemaFlag(cmd, &schema)
	layouts.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		config, err := c.config(cmd, layouts)
		if err != nil {
			return err
		}
		return do(config, args)
	}
	return cmd
}

func (c *app) migratePrintCommand() *cobra.Command {
	var after int
	cmd := c.filesCommand(&cobra.Command{
		Use:   "print",
		Short: "Print the SQL of sortkey as one file for psql",
		Long: `Print prints all migrations as one transaction for psql. It needs no database. The
SQL fails, and changes nothing, if the schema has an installation.

With --after, it prints the later migrations, to upgrade an installation that
print, psql or another tool created. The SQL fails if the installation is at
another version. sortkey migrate status shows the version.`,
		Args: cobra.NoArgs,
	}, func(config migrations.Config, _ []string) error {
		list, err := migrations.List(config)
		switch {
		case err != nil:
			return err
		case after < 0 || after > len(list):
			return cli.Usagef("--after %d: want 0 to %d", after, len(list))
		}
		text, err := migrations.SQLAfter(config, after)
		if err != nil {
			return err
		}
		switch {
		case after == len(list):
			text = fmt.Sprintf("-- Nothing to do: %d is the last version.\n", after)
		case after > 0:
			text = strings.Replace(text, "-- The installation of sortkey.", fmt.Sprintf("-- The upgrade of sortkey from version %d.", after), 1)
		}
		return c.Print(map[string]string{"sql": text}, "%s", text)
	})
	cmd.Flags().IntVar(&after, "after", 0, "`version` of the installation to upgrade")
	return cmd
}

// An exportTool is a migration tool that reads files.
type exportTool struct {
	name  string
	files func(migrations.Config) (fs.FS, error)
	// next is the command that runs the files of a folder DIR for a SCHEMA. It uses a version
	// table for these files alone, since their versions begin at 1.
	next string
}

func exportTools() []exportTool {
	return []exportTool{
		{"goose", migrations.Goose, `goose -dir DIR -table SCHEMA_goose postgres "$DATABASE_URL" up`},
		{"golang-migrate", migrations.GolangMigrate, `migrate -path DIR -database "$DATABASE_URL?x-migrations-table=SCHEMA_migrations" up   # & if the URL has a ?`},
		{"tern", migrations.Tern, `tern migrate --migrations DIR --version-table public.SCHEMA_tern --conn-string "$DATABASE_URL"`},
		{"flyway", migrations.Flyway, `flyway -locations=filesystem:DIR -table=SCHEMA_flyway -baselineOnMigrate=true -baselineVersion=0 migrate`},
		{"plain", migrations.Plain, nextPlain("DIR/*.up.sql")},
	}
}

// nextPlain returns the command that runs plain files, which have no version table.
func nextPlain(files string) string {
	return fmt.Sprintf(`for file in %s; do psql -X -1 -v ON_ERROR_STOP=1 -f "$file" "$DATABASE_URL" || break; done`, files)
}

func exportToolNames() []string {
	var names []string
	for _, tool := range exportTools() {
		names = append(names, tool.name)
	}
	return names
}

func (c *app) migrateExportCommand() *cobra.Command {
	var tool string
	cmd := c.filesCommand(&cobra.Command{
		Use:   "export --tool NAME DIRECTORY",
		Short: "Write the migrations as files for another migration tool",
		Long: `Export writes the migrations to a directory, which it creates if necessary, and
prints the new files and the command that runs them. It needs no database.

plain writes two files of SQL per migration, which install and remove it, for
psql -1, Liquibase's sqlFile with splitStatements="false", and other tools that
run a file in a transaction.

After an update of the command, export again with the same flags: it adds new
migrations and skips existing files. If an existing file has other content,
export writes nothing.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFolder,
	}, func(config migrations.Config, args []string) error {
		i := slices.IndexFunc(exportTools(), func(t exportTool) bool { return t.name == tool })
		if i < 0 {
			return cli.Usagef("--tool %q: want %s", tool, strings.Join(exportToolNames(), ", "))
		}
		return c.export(exportTools()[i], config, filepath.Clean(args[0]))
	})
	cmd.Flags().StringVar(&tool, "tool", "", "`name` of the tool: "+strings.Join(exportToolNames(), ", "))
	completeFlag(cmd, "tool", exportToolNames())
	return cmd
}

func (c *app) export(tool exportTool, config migrations.Config, folder string) error {
	files, err := tool.files(config)
	if err != nil {
		return err
	}
	names, err := fs.Glob(files, "*")
	if err != nil {
		return err
	}
	var written []string
	for _, name := range names {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			written = append(written, path)
		}
	}
	if err := migrations.WriteNew(folder, files); err != nil {
		return err
	}
	next := strings.NewReplacer("DIR", shellQuote(folder), "SCHEMA", config.Schema).Replace(tool.next)
	if tool.name == "plain" && len(written) < len(names) {
		var added []string
		for _, path := range written {
			if strings.HasSuffix(path, ".up.sql") {
				added = append(added, shellQuote(path))
			}
		}
		next = nextPlain(strings.Join(added, " "))
	}
	if len(written) == 0 {
		return c.note("nothing to do: %s has all migrations\n", folder)
	}
	return c.Print(struct {
		Written []string `json:"written"`
		Next    string   `json:"next"`
	}{written, next}, "%s\n\nTo run them:\n%s\n", strings.Join(written, "\n"), next)
}

// shellQuote returns a path as one word of a shell command.
func shellQuote(path string) string {
	if strings.Trim(path, "/._-+:@%ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
