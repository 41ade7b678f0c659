package migrations

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"
)

// Goose returns the migrations as files for goose, such as 00003_snowflake.sql.
func Goose(c Config) (fs.FS, error) { return filesOf(c, gooseFiles) }

func gooseFiles(m Migration) map[string]string {
	// Without these marks, goose would split function bodies at semicolons.
	statement := func(s string) string {
		return "-- +goose StatementBegin\n" + s + "-- +goose StatementEnd\n"
	}
	return map[string]string{fmt.Sprintf("%05d_%s.sql", m.Version, m.Name): "-- +goose Up\n" + statement(m.Up) + "\n-- +goose Down\n" + statement(m.Down)}
}

// GolangMigrate returns the migrations as files for golang-migrate, such as
// 000003_snowflake.up.sql and 000003_snowflake.down.sql.
func GolangMigrate(c Config) (fs.FS, error) {
	return filesOf(c, func(m Migration) map[string]string {
		name := fmt.Sprintf("%06d_%s", m.Version, m.Name)
		return map[string]string{name + ".up.sql": m.Up, name + ".down.sql": m.Down}
	})
}

// Tern returns the migrations as files for tern, such as 003_snowflake.sql.
func Tern(c Config) (fs.FS, error) {
	return filesOf(c, func(m Migration) map[string]string {
		return map[string]string{fmt.Sprintf("%03d_%s.sql", m.Version, m.Name): ternEscape.Replace(m.Up) +
			"\n---- create above / drop below ----\n\n" + ternEscape.Replace(m.Down)}
	})
}

// Flyway returns the migrations as files for Flyway, such as
// V3__sortkey_snowflake.sql and, for editions of Flyway with undo,
// U3__sortkey_snowflake.sql.
func Flyway(c Config) (fs.FS, error) {
	return filesOf(c, func(m Migration) map[string]string {
		name := fmt.Sprintf("%d__sortkey_%s.sql", m.Version, m.Name)
		return map[string]string{"V" + name: m.Up, "U" + name: m.Down}
	})
}

// Plain returns the migrations as files with SQL alone, such as
// 0003_snowflake.up.sql and 0003_snowflake.down.sql, for psql -1, Liquibase's
// sqlFile and other tools that run a file in a transaction. The files don't begin
// or end a transaction.
func Plain(c Config) (fs.FS, error) {
	return filesOf(c, func(m Migration) map[string]string {
		name := fmt.Sprintf("%04d_%s", m.Version, m.Name)
		return map[string]string{name + ".up.sql": m.Up, name + ".down.sql": m.Down}
	})
}

func filesOf(c Config, files func(Migration) map[string]string) (fs.FS, error) {
	list, err := List(c)
	if err != nil {
		return nil, err
	}
	return mapFS(list, files), nil
}

// mapFS returns the files of all migrations.
func mapFS(list []Migration, files func(Migration) map[string]string) fs.FS {
	dir := fstest.MapFS{}
	for _, m := range list {
		for name, text := range files(m) {
			dir[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		}
	}
	return dir
}

// ternEscape escapes SQL for tern, whose files are Go templates.
var ternEscape = strings.NewReplacer("{{", `{{"{{"}}`)

// SQL returns all migrations as one file for psql, in one transaction:
//
//	psql -v ON_ERROR_STOP=1 -f sortkey.sql
//
// If the schema has an installation already, the file fails and changes nothing.
func SQL(c Config) (string, error) { return SQLAfter(c, 0) }

// SQLAfter returns the migrations after a version, as [SQL] does. Use it to upgrade
// an installation at that version, which is the result of SELECT max(version) FROM
// sortkey.revision. If the installation is at another version, the file fails and
// changes nothing.
func SQLAfter(c Config, version int) (string, error) {
	d, err := c.data()
	if err != nil {
		return "", err
	}
	list := d.list()
	if version < 0 || version > len(list) {
		return "", fmt.Errorf("migrations: SQLAfter: version %d is out of range; want 0 to %d", version, len(list))
	}
	var b strings.Builder
	b.WriteString("-- The installation of sortkey. Run it once: psql -v ON_ERROR_STOP=1 -f sortkey.sql\n--\n" +
		"-- It is one transaction, so it is installed completely or not at all.\n\nBEGIN;\nSET LOCAL search_path = pg_catalog, pg_temp; -- unqualified names are the server's\n\n" + d.refuseOther(version))
	for _, m := range list[version:] {
		fmt.Fprintf(&b, "\n-- %s\n-- %d. %s\n-- %[1]s\n\n%[4]s", strings.Repeat("-", 117), m.Version, m.Name, m.Up)
	}
	b.WriteString("\nCOMMIT;\n")
	return b.String(), nil
}

// AddSnowflakeSI returns SQL that adds the functions of SnowflakeSI to an
// installation without a base clock. Use it in a migration of your own if you
// installed sortkey with your own tool. [Up] adds the functions itself.
//
// The SQL needs no down migration: the down migration of snowflake_si also drops
// these functions.
func AddSnowflakeSI(c Config) (string, error) {
	d, err := c.data()
	if err != nil {
		return "", err
	}
	if d.SnowflakeSI == nil {
		return "", errors.New("migrations: AddSnowflakeSI: Config.SnowflakeSI has no BaseClock; set it")
	}
	return d.snowflakeSIFunctions(), nil
}

// refuseOther returns a statement that fails unless the installation is at the
// given version. Version 0 stands for a schema without an installation.
func (d data) refuseOther(version int) string {
	if version > 0 {
		return fmt.Sprintf(`DO $$
BEGIN
    IF (SELECT max(version) FROM %[1]s.revision) IS DISTINCT FROM %[2]d THEN
        RAISE EXCEPTION USING ERRCODE = 'object_not_in_prerequisite_state',
            MESSAGE = format('schema %[1]s is at migration %%s, not %[2]d', (SELECT max(version) FROM %[1]s.revision)),
            HINT = 'SELECT * FROM %[1]s.revision lists the installed migrations.';
    END IF;
END
$$;
`, d.Schema, version)
	}
	return fmt.Sprintf(`DO $$
BEGIN
    IF to_regclass('%[1]s.revision') IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'duplicate_object',
            MESSAGE = 'sortkey is already installed in schema %[1]s',
            HINT = 'SELECT * FROM %[1]s.revision lists the installed migrations.';
    END IF;
END
$$;
`, d.Schema)
}

// WriteNew writes files to a folder, which it creates if necessary. It skips
// existing files, since a released migration never changes. If an existing file
// has other content, WriteNew writes nothing and returns an error.
func WriteNew(folder string, files fs.FS) error {
	var missing []string
	texts := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		there, err := os.ReadFile(filepath.Join(folder, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing, texts[name] = append(missing, name), text
			return nil
		case err == nil && !bytes.Equal(there, text):
			return fmt.Errorf("migrations: write %s: the file exists with other content; pass the Config that it was written with, or undo the change", filepath.Join(folder, name))
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, name := range missing {
		if err := createFile(filepath.Join(folder, name), texts[name]); err != nil {
			return fmt.Errorf("migrations: %w", err)
		}
	}
	return nil
}

// createFile writes a new file that only its owner can change. It follows no symbolic link,
// and leaves no file behind if it fails, such as on a full disk.
func createFile(path string, text []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write %s: a symbolic link or a new file has this name; remove it: %w", path, err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	_, err = f.Write(text)
	return err
}
