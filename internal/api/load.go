package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// root is the module's folder, from this package's.
const root = "../.."

// Load gives the packages of this module that others can import: not those in folders named internal, and no programs.
func Load() ([]*types.Package, error) {
	// The compiler has compiled them already, or will have; what it knows of their
	// dependencies needn't be found out again.
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,DepOnly", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("expected go list to give the module's packages: %w", err)
	}
	if _, err := os.ReadDir(root); err != nil { // where a package may be added
		return nil, err
	}
	exports := make(map[string]string)
	var public []string
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Name, Dir, Export string
			DepOnly                       bool
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if p.DepOnly {
			continue
		}
		// The go command takes a test's result from its cache unless the test looks
		// itself at what has changed.
		if _, err := os.ReadDir(p.Dir); err != nil {
			return nil, err
		}
		if p.Name != "main" && !strings.Contains(p.ImportPath+"/", "/internal/") {
			public = append(public, p.ImportPath)
		}
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		name := exports[path]
		if name == "" {
			return nil, fmt.Errorf("expected the compiled package %s, found none", path)
		}
		return os.Open(name)
	})
	var packages []*types.Package
	for _, path := range public {
		p, err := imp.Import(path)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}
