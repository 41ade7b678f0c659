//go:build linux || darwin

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func exportPlain(t *testing.T, folder string) (errs string, code int) {
	t.Helper()
	_, errs, code = execute(t, "", "migrate", "export", "--tool", "plain", folder)
	return errs, code
}

// TestExportLink checks that export follows no symbolic link to a file that it would create.
func TestExportLink(t *testing.T) {
	folder, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
	link := filepath.Join(folder, "0001_schema.up.sql")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if errs, code := exportPlain(t, folder); code != exitError || !strings.Contains(errs, "write "+link+": a symbolic link") {
		t.Errorf("code %d, errors %q", code, errs)
	}
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("export wrote through the link: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if errs, code := exportPlain(t, folder); code != exitOK {
		t.Errorf("without the link: code %d, errors %q", code, errs)
	}
}

// TestExportModes checks that only the owner can change the files, whatever the umask is.
func TestExportModes(t *testing.T) {
	for _, mask := range []int{0, 0o002, 0o022, 0o077} {
		folder := filepath.Join(t.TempDir(), "db", "sortkey")
		before := syscall.Umask(mask)
		errs, code := exportPlain(t, folder)
		syscall.Umask(before)
		if code != exitOK {
			t.Fatalf("umask %#o: code %d, errors %q", mask, code, errs)
		}
		err := filepath.WalkDir(filepath.Dir(folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			want := fs.FileMode(0o644)
			if entry.IsDir() {
				want = 0o755
			}
			want &^= fs.FileMode(mask)
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("umask %#o: %s has mode %v, want %v", mask, path, info.Mode().Perm(), want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestExportFull checks that an export which fails in the middle of a file, as on a full
// disk, leaves only complete files, and that the next one adds the others.
func TestExportFull(t *testing.T) {
	if folder := os.Getenv("TEST_EXPORT_FULL"); folder != "" { // the process below
		limit := syscall.Rlimit{Cur: 4096, Max: 4096} // the first file is smaller, the second larger
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		os.Exit(run(t.Context(), []string{"migrate", "export", "--tool", "plain", folder}, os.Stdin, os.Stdout, os.Stderr))
	}
	folder := t.TempDir()
	command := exec.Command(os.Args[0], "-test.run=^TestExportFull$")
	command.Env = append(os.Environ(), "TEST_EXPORT_FULL="+folder)
	if out, err := command.CombinedOutput(); command.ProcessState.ExitCode() != exitError || !strings.Contains(string(out), "file too large") {
		t.Errorf("%v, output %q", err, out)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 || entries[0].Name() != "0001_schema.down.sql" {
		t.Errorf("after the error: %v, %v", entries, err)
	}
	if errs, code := exportPlain(t, folder); code != exitOK {
		t.Errorf("the next export: code %d, errors %q", code, errs)
	}
}
