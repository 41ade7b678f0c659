package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// peers are the modules that this project is measured next to.
var peers = []string{
	"github.com/bwmarrin/snowflake", "github.com/gofrs/uuid/v5", "github.com/google/uuid", "github.com/oklog/ulid/v2", "github.com/rs/xid",
	"github.com/segmentio/ksuid", "github.com/sony/sonyflake/v2", "github.com/jackc/pgx/v5", "github.com/vgarvardt/pgx-google-uuid/v5",
	"gorm.io/gorm", "gorm.io/driver/postgres",
}

// settings are those of a server that have a part in its figures.
var settings = []string{"shared_buffers", "fsync", "synchronous_commit", "full_page_writes", "max_wal_size"}

const quickCommand = "make bench QUICK=1"

// environment is the head of a file of results: where, when and of what they are.
func environment(ctx context.Context, server string, quick bool) ([]byte, error) {
	var head bytes.Buffer
	say := func(key, value string) { fmt.Fprintf(&head, "%s%s: %s\n", factMark, key, value) }
	say("date", time.Now().UTC().Format(time.DateOnly))
	if quick {
		say("command", quickCommand)
	} else {
		say("command", "make bench")
	}
	say("commit", commit(ctx))
	say("go", runtime.Version())
	say("cores", fmt.Sprint(runtime.NumCPU()))
	say("system", system(ctx))

	versions, err := output(ctx, "go", append([]string{"list", "-m", "-f", "{{.Path}} {{.Version}}"}, peers...)...)
	if err != nil {
		return nil, err
	}
	say("peers", strings.ReplaceAll(versions, "\n", ", "))

	if server == "" {
		return head.Bytes(), nil
	}
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	var version string
	if err := conn.QueryRow(ctx, "select current_setting('server_version')").Scan(&version); err != nil {
		return nil, err
	}
	say("postgres", version)
	var values []string
	for _, name := range settings {
		var value string
		if err := conn.QueryRow(ctx, "select current_setting($1)", name).Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, name+" = "+value)
	}
	say("postgres settings", strings.Join(values, ", "))
	return head.Bytes(), nil
}

// commit is the one that is measured, as far as git knows.
func commit(ctx context.Context) string {
	name, err := output(ctx, "git", "describe", "--tags", "--always", "--abbrev=12")
	if err != nil {
		return "unknown"
	}
	if changes, err := output(ctx, "git", "status", "--porcelain"); err != nil || changes != "" {
		name += ", with changes"
	}
	return name
}

// system is the operating system's name, with the kernel's version.
func system(ctx context.Context) string {
	kernel, err := output(ctx, "uname", "-srm")
	if err != nil {
		kernel = runtime.GOOS + " " + runtime.GOARCH
	}
	release, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(release)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`) + ", " + kernel
		}
	}
	return kernel
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
