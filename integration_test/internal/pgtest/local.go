package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// localServer starts a server from the programs on this machine. scripts/with-postgres
// runs the server as long as a given command runs. Our command prints the URL and ends
// when its stdin closes, which happens even if this process is killed.
func localServer() (*server, error) {
	if !onPath("bash") {
		return nil, errors.New("scripts/with-postgres needs bash, which is not on PATH")
	}
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	// A file, because the script cleans up after this process has died, when writing to
	// a pipe would fail.
	output, err := os.CreateTemp("", "with-postgres-*.log")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(output.Name()) // the open file stays usable
	cmd := exec.Command("bash", filepath.Join(root, "scripts", "with-postgres"), "sh", "-c", `echo "$DATABASE_URL"; exec cat >/dev/null`)
	cmd.Stderr = output
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() error {
		in.Close()
		defer time.AfterFunc(adminTimeout, func() { _ = cmd.Process.Kill() }).Stop()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("scripts/with-postgres: %w: %s", err, contents(output))
		}
		return nil
	}

	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(out).ReadString('\n')
		line <- strings.TrimSpace(s)
	}()
	select {
	case url := <-line:
		if url == "" {
			return nil, errors.Join(stop(), errors.New("scripts/with-postgres printed no URL"))
		}
		atEnd(stop)
		return serverBeside(url)
	case <-time.After(startTimeout):
		_ = cmd.Process.Signal(os.Interrupt)
		return nil, errors.Join(fmt.Errorf("scripts/with-postgres printed no URL within %s", startTimeout), stop())
	}
}

// serverBeside returns the server that scripts/with-postgres has started.
func serverBeside(url string) (*server, error) {
	s, err := serverAt(url)
	if err == nil {
		err = keepLog(s.r)
	}
	if err != nil {
		return nil, fmt.Errorf("scripts/with-postgres printed %s: %w", url, err)
	}
	return s, nil
}

// keepLog sets r.log and the log's line prefix. The log is next to the server's data.
func keepLog(r *running) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	var data string
	if err := r.admin.QueryRow(ctx, "show data_directory").Scan(&data); err != nil {
		return err
	}
	r.log = func() (string, error) {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(data), "log"))
		return string(b), err
	}
	for _, sql := range []string{"alter system set log_line_prefix = '" + logPrefix + "'", "select pg_reload_conf()"} {
		if _, err := r.admin.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func contents(f *os.File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	return lastLines(string(b), 20)
}
