package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const (
	versionsVar = "POSTGRES_VERSIONS"
	urlVar      = "DATABASE_URL"

	// defaultVersion is that of the container where no version is asked for.
	defaultVersion = "17"
)

// sharedServers are those that Each goes through.
var sharedServers = sync.OnceValues(func() ([]*server, error) {
	if os.Getenv(versionsVar) != "" {
		return containerServers()
	}
	if url := os.Getenv(urlVar); url != "" {
		s, err := serverAt(url)
		if err != nil {
			return nil, fmt.Errorf("expected a Postgres server at %s, which is set: %w", urlVar, err)
		}
		return []*server{s}, nil
	}
	_, noDocker := docker()
	if noDocker == nil {
		return containerServers()
	}
	s, noBinaries := localServer()
	if noBinaries == nil {
		return []*server{s}, nil
	}
	return nil, fmt.Errorf(`expected a Postgres server to test against, got none:
	%s and %s are not set
	%w
	%w
Start Docker; or set %[2]s to a server where you may create databases; or install
the server's programs, on Debian with: apt-get install postgresql`, versionsVar, urlVar, noDocker, noBinaries)
})

// containerServers are servers in containers, not started yet.
var containerServers = sync.OnceValues(func() ([]*server, error) {
	versions, err := containerVersions()
	if err != nil {
		return nil, err
	}
	var servers []*server
	for _, v := range versions {
		servers = append(servers, &server{name: "pg" + v, start: func() (*running, error) { return runContainer(v, shared) }})
	}
	return servers, nil
})

// containerVersions are the versions of which to have containers.
func containerVersions() ([]string, error) {
	asked := os.Getenv(versionsVar)
	versions, err := parseVersions(asked)
	if err != nil {
		return nil, err
	}
	if _, err := docker(); err != nil {
		return nil, fmt.Errorf("expected Docker, for containers of Postgres %s (%s is %q): %w; start Docker, or unset %[2]s",
			strings.Join(versions, ", "), versionsVar, asked, err)
	}
	return versions, nil
}

// parseVersions reads major versions with spaces or commas between them.
func parseVersions(s string) ([]string, error) {
	var versions []string
	for _, v := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' }) {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || v != strconv.Itoa(n) {
			return nil, fmt.Errorf("expected %s as major versions of Postgres such as \"15 17 18\", got %q in %q", versionsVar, v, s)
		}
		if !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		versions = []string{defaultVersion}
	}
	return versions, nil
}

// serverAt is a server that runs already.
func serverAt(url string) (*server, error) {
	r := &running{url: url}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	if err := r.connect(ctx, nil); err != nil {
		return nil, errors.Join(err, r.close())
	}
	atEnd(r.close)
	s := &server{name: "pg" + r.version, r: r}
	s.once.Do(func() {}) // it has started
	return s, nil
}
