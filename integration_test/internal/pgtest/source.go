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
	progressVar = "TESTS_PROGRESS"

	// defaultVersion is the version of the container if no version is requested.
	defaultVersion = "17"
)

// sharedServers returns the servers for [Each].
var sharedServers = sync.OnceValues(func() ([]*server, error) {
	// go test uses the cached result of a package until an environment variable that its tests
	// read changes. This one has another value in each run of make test.
	_ = os.Getenv(progressVar)
	if os.Getenv(versionsVar) != "" {
		return containerServers()
	}
	if url := os.Getenv(urlVar); url != "" {
		s, err := serverAt(url)
		if err != nil {
			return nil, fmt.Errorf("connect to the Postgres server in %s: %w", urlVar, err)
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
	return nil, fmt.Errorf(`no Postgres server to test against:
	%s and %s are not set
	%w
	%w
Start Docker; or set %[2]s to a server on which you can create databases; or install
the server's programs, on Debian with: apt-get install postgresql`, versionsVar, urlVar, noDocker, noBinaries)
})

// containerServers returns servers in containers, not started yet.
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

// containerVersions returns the requested versions, for servers in containers.
func containerVersions() ([]string, error) {
	asked := os.Getenv(versionsVar)
	versions, err := parseVersions(asked)
	if err != nil {
		return nil, err
	}
	if _, err := docker(); err != nil {
		return nil, fmt.Errorf("containers of Postgres %s (%s is %q) need Docker: %w; start Docker, or unset %[2]s",
			strings.Join(versions, ", "), versionsVar, asked, err)
	}
	return versions, nil
}

// parseVersions parses major versions separated by spaces or commas.
func parseVersions(s string) ([]string, error) {
	var versions []string
	for _, v := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' }) {
		if n, err := strconv.Atoi(v); err != nil || n < 1 || v != strconv.Itoa(n) {
			return nil, fmt.Errorf("parse %s: %q in %q is not a major version of Postgres; write versions such as \"15 17 18\"", versionsVar, v, s)
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

// serverAt returns the running server at a URL.
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
