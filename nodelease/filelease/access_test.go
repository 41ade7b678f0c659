//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// claimOnce claims number 3 of a pool in dir, and releases it. It needs a fake clock.
func claimOnce(t *testing.T, dir string) error {
	t.Helper()
	k, err := nodelease.Acquire(t.Context(), New(dir, Config{Numbers: []int{3}}), nodelease.ForSnowflake(idtype.SnowflakeLayout{}), nodelease.Options{Wait: -1})
	if err == nil {
		err = k.Close()
		time.Sleep(maxTTL) // until the clock has passed the high-water mark
	}
	return err
}

// Only the user of the process can open the files of a pool. The store corrects the modes of
// its own files, such as those from a Kubernetes fsGroup, which adds rights of the group.
func TestModes(t *testing.T) {
	names := []string{"snowflake", "snowflake/pool.lock", "snowflake/3.lock", "snowflake/3.json"}
	check := func(t *testing.T, dir string) {
		t.Helper()
		for _, name := range names {
			info, err := os.Lstat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			want := fs.FileMode(fileMode)
			if info.IsDir() {
				want = dirMode
			}
			if info.Mode() != want {
				t.Errorf("%s: want mode %v, got %v", name, want, info.Mode())
			}
		}
	}
	for name, bits := range map[string]fs.FileMode{"readable": 0o044, "fsGroup": 0o060} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T) {
				dir := t.TempDir()
				if err := claimOnce(t, dir); err != nil {
					t.Fatal(err)
				}
				check(t, dir)
				if err := os.Chmod(dir, 0o775); err != nil {
					t.Fatal(err)
				}
				for i, name := range names {
					mode := fileMode | bits
					if i == 0 {
						mode = 0o700 | bits | bits>>2&0o011
					}
					if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
						t.Fatal(err)
					}
				}
				if err := claimOnce(t, dir); err != nil {
					t.Fatal(err)
				}
				check(t, dir)
			})
		})
	}
}

// A claim fails if another user could have changed the pool, and doesn't change it.
func TestOtherUsers(t *testing.T) {
	const another = 12345
	chown := func(name string) func(dir string) error {
		return func(dir string) error { return os.Lchown(filepath.Join(dir, name), another, another) }
	}
	chmod := func(name string, mode fs.FileMode) func(dir string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) }
	}
	for name, test := range map[string]struct {
		root   bool // only root can give files away
		change func(dir string) error
		says   string // "" if the claim succeeds
	}{
		"owner of the directory": {true, chown(""), "user 12345 owns it, with mode drwx"},
		"owner of the pool":      {true, chown("snowflake"), "snowflake: user 12345 owns it, with mode drwx------, but this process runs as user 0; run all processes that use the directory as one user"},
		"owner of the pool lock": {true, chown("snowflake/pool.lock"), "pool.lock: user 12345 owns it"},
		"owner of a lock":        {true, chown("snowflake/3.lock"), "3.lock: user 12345 owns it"},
		"owner of a record":      {true, chown("snowflake/3.json"), "3.json: user 12345 owns it, with mode -rw-------"},
		"mode of the directory":  {false, chmod("", 0o777), fmt.Sprintf("all users can write to it: its owner is user %d and its mode is drwxrwxrwx; check that nobody has changed its content, then run chmod o-w", os.Geteuid())},
		"sticky directory":       {false, chmod("", 0o777|fs.ModeSticky), ""},
		"group of the directory": {false, chmod("", 0o775), ""},
		"mode of the pool":       {false, chmod("snowflake", 0o777), "snowflake: all users can write to it"},
		"sticky pool":            {false, chmod("snowflake", 0o777|fs.ModeSticky), "snowflake: all users can write to it"},
		"mode of the pool lock":  {false, chmod("snowflake/pool.lock", 0o666), "pool.lock: all users can write to it"},
		"mode of a lock":         {false, chmod("snowflake/3.lock", 0o666), "3.lock: all users can write to it"},
		"mode of a record":       {false, chmod("snowflake/3.json", 0o666), "3.json: all users can write to it"},
		"link of another user": {true, func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-victim"), os.Symlink(dir+"-victim", dir), os.Lchown(dir, another, another))
		}, "user 12345 owns it, with mode Lrwxrwxrwx"},
		"own link": {false, func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-volume"), os.Symlink(dir+"-volume", dir))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				t.Skip("only root can change the owner of a file")
			}
			onFakeTime(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "leases")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := claimOnce(t, dir); err != nil {
					t.Fatal(err)
				}
				if err := test.change(dir); err != nil {
					t.Fatal(err)
				}
				before := listing(t, dir)
				err := claimOnce(t, dir)
				if test.says == "" {
					if err != nil {
						t.Fatal(err)
					}
					return
				}
				if !errors.Is(err, nodelease.ErrMisconfigured) || !strings.Contains(err.Error(), test.says) {
					t.Errorf("want %v with %q, got %v", nodelease.ErrMisconfigured, test.says, err)
				}
				if after := listing(t, dir); after != before {
					t.Errorf("want no change, got\n%s\nafter\n%s", after, before)
				}
			})
		})
	}
}

// Root's files are trusted, unless a group can write to them. Files of users other than root
// and this one are not.
func TestRestrict(t *testing.T) {
	path := filepath.Join(t.TempDir(), "3.json")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		mode fs.FileMode
		user int
		want string // "" for no error
	}{
		{0o644, os.Geteuid(), ""},
		{0o666, os.Geteuid(), "all users can write"},
		{0o644, os.Geteuid() + 1, map[bool]string{false: "owns it"}[os.Geteuid() == 0]},
		{0o664, os.Geteuid() + 1, "owns it"},
	} {
		if err := os.Chmod(path, test.mode); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = restrict(f, fileMode, test.user)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("mode %v, user %d: want %q, got %v", test.mode, test.user, test.want, err)
		}
		_ = f.Close()
	}
}

// The store never writes through a symbolic link.
func TestLinks(t *testing.T) {
	const content = "of another program"
	for _, name := range []string{"snowflake", "snowflake/pool.lock", "snowflake/3.lock", "snowflake/3.json", "snowflake/3.json.new"} {
		for _, dangling := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dangling=%v", filepath.Base(name), dangling), func(t *testing.T) {
				onFakeTime(t, func(t *testing.T) {
					dir, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
					path := filepath.Join(dir, name)
					err := os.MkdirAll(filepath.Dir(path), 0o700)
					switch {
					case dangling:
					case name == "snowflake":
						err = errors.Join(err, os.Mkdir(target, 0o755))
					default:
						err = errors.Join(err, os.WriteFile(target, []byte(content), 0o644))
					}
					if err = errors.Join(err, os.Symlink(target, path)); err != nil {
						t.Fatal(err)
					}
					err = claimOnce(t, dir)
					if temporary := strings.HasSuffix(name, ".new"); temporary && err != nil {
						t.Errorf("want the store to remove an old temporary file, got %v", err)
					} else if !temporary && (!errors.Is(err, nodelease.ErrMisconfigured) || !strings.Contains(err.Error(), "symbolic link; move the file itself")) {
						t.Errorf("want %v with a remedy, got %v", nodelease.ErrMisconfigured, err)
					}
					info, err := os.Lstat(target)
					switch {
					case dangling:
						if !errors.Is(err, fs.ErrNotExist) {
							t.Errorf("want no file at the target, got %v, %v", info, err)
						}
					case err != nil:
						t.Fatal(err)
					case info.IsDir():
						if files, err := os.ReadDir(target); err != nil || len(files) > 0 || info.Mode().Perm() != 0o755 {
							t.Errorf("want the target unchanged, got %v, %v with mode %v", files, err, info.Mode())
						}
					default:
						if data, err := os.ReadFile(target); err != nil || string(data) != content || info.Mode().Perm() != 0o644 {
							t.Errorf("want the target unchanged, got %q, %v with mode %v", data, err, info.Mode())
						}
					}
				})
			})
		}
	}
}

// listing returns the names, modes, owners, times and sizes of the files in dir.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&out, path, info.Mode(), owner(info), info.ModTime().UnixNano(), info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
