package main

import (
	"context"
	"fmt"
	"go/token"
	"path"
	"regexp"
	"strings"

	"github.com/sortkey/sortkey/cmd/sortkey/internal/cli"
	"github.com/spf13/cobra"
)

// sqlcFlags are the flags of sqlc.
type sqlcFlags struct {
	types, dir, bigint, file string
	gorm, typescript         bool
}

func (c *app) sqlcCommand() *cobra.Command {
	var o sqlcFlags
	bigints := []string{"snowflake", "snowflake-si", "uid60", "spread64"}
	cmd := databaseCommand(&cobra.Command{
		Use:   "sqlc --types IMPORT",
		Short: "Print the overrides of sqlc for the columns with IDs",
		Long: `Sqlc reads the catalog of a database, and prints an override of sqlc for each
column that holds an ID: primary keys, and the foreign keys that lead to them.
The overrides name a type per table, such as OrderID for orders, in the package
with the import path of --types. --dir writes this package to keys.go. If the
file exists, sqlc prints the missing declarations on standard error instead.

The format of a key comes from the domain or default of the column, or from its
comment after sortkey rekey. Other keys of type uuid are UUIDs. Other keys of
type bigint have the format of --bigint, or are left out. On standard error,
sqlc names the keys that it leaves out, such as serial columns and keys of an
installation in another schema, and the tables of roles that the session doesn't
trust.

--gorm prints the keys and references as fields of GORM models instead, and
--typescript prints types for the texts of the keys, with functions that check
them.

With --file, sqlc runs SQL in a temporary database on the server, and drops it.
If the file doesn't install the SQL of sortkey, sqlc does. The file can't have
commands of psql, COPY or CREATE INDEX CONCURRENTLY.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			switch {
			case o.gorm && o.typescript:
				return cli.Usagef("--gorm and --typescript: pass one of them")
			case o.types == "" && (!o.typescript || o.dir != ""):
				return cli.Usagef("no types: pass --types with the import path of the package of the keys, such as example.com/shop/key")
			case o.types != "" && (!importPath.MatchString(o.types) || token.IsKeyword(path.Base(o.types))):
				return cli.Usagef("--types %q: want an import path that ends in the name of the package, such as example.com/shop/key", o.types)
			}
			return nil
		},
	}, func(ctx context.Context, db database, _ []string) error {
		if o.file == "" {
			return c.sqlc(ctx, db, &o)
		}
		return inFile(ctx, db, o.file, func(db database) error { return c.sqlc(ctx, db, &o) })
	})
	cmd.Flags().StringVar(&o.types, "types", "", "`path` to import the package with the types of the keys")
	cmd.Flags().StringVar(&o.dir, "dir", "", "`directory` of that package, for keys.go")
	choiceFlag(cmd, &o.bigint, "bigint", "", "`format` of bigint keys whose format nothing else tells: "+strings.Join(bigints, ", "), bigints)
	cmd.Flags().StringVar(&o.file, "file", "", "`file` of SQL to read instead of the database")
	cmd.Flags().BoolVar(&o.gorm, "gorm", false, "print fields of GORM models")
	cmd.Flags().BoolVar(&o.typescript, "typescript", false, "print types in TypeScript")
	_ = cmd.MarkFlagDirname("dir")
	_ = cmd.MarkFlagFilename("file", "sql")
	return cmd
}

// sqlc reads the catalog and prints the result.
func (c *app) sqlc(ctx context.Context, db database, o *sqlcFlags) error {
	catalog, err := readCatalog(ctx, db, o.bigint, o.file != "")
	if err != nil {
		return err
	}
	catalog.setTypes()
	for _, note := range catalog.notes {
		fmt.Fprintln(c.Errs, cli.Printable(note))
	}
	if o.dir != "" {
		if err := c.writeKeys(o.dir, path.Base(o.types), catalog.columns); err != nil {
			return err
		}
	}
	text := []byte(catalog.overrides(o.types))
	switch {
	case c.JSON():
		return cli.PrintRows(c.Terminal, catalog.columns, nil, nil)
	case o.typescript:
		text = []byte(catalog.typeScript())
	case o.gorm:
		text, err = catalog.gormModels(path.Base(o.types))
	}
	if err == nil {
		_, err = c.Out.Write(text)
	}
	return err
}

// importPath matches the import path of a package in Go that ends in the name of the package.
var importPath = regexp.MustCompile(`^([A-Za-z0-9_.~-]+/)*[A-Za-z_][A-Za-z0-9_]*$`)
