package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// unexplained returns a problem for each exported error and each SQLSTATE of the library
// that docs/errors.md doesn't explain.
func unexplained(fsys fs.FS) (problems []string, err error) {
	page, err := fs.ReadFile(fsys, "docs/errors.md")
	if err != nil {
		return nil, err
	}
	files, err := sources(fsys)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, file := range files {
		source, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		if path.Ext(file) == ".sql" {
			for _, m := range raise.FindAllStringSubmatch(string(source), -1) {
				names[m[1]] = true
			}
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, source, 0)
		if err != nil {
			return nil, err
		}
		for _, name := range exportedErrors(f) {
			names[f.Name.Name+"."+name] = true
		}
	}
	delete(names, "SK000") // the function itself catches it
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !strings.Contains(string(page), "`"+name+"`") {
			problems = append(problems, "docs/errors.md doesn't explain `"+name+"`")
		}
	}
	return problems, nil
}

// raise matches a statement that raises an error, including a statement in a string.
var raise = regexp.MustCompile(`RAISE EXCEPTION USING ERRCODE = '{1,2}(\w+)'`)

// sources returns the library's Go files, without tests, and SQL files.
func sources(fsys fs.FS) (files []string, err error) {
	for _, root := range []string{"idtype", "sqltypes", "gormplugin", "pgxcodec", "migrations", "rekey", "nodelease"} {
		err := fs.WalkDir(fsys, root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "leasetest"):
				return fs.SkipDir
			case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"), strings.HasPrefix(name, "migrations/sql/"):
				files = append(files, name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// exportedErrors returns the exported error variables and error types of a file.
func exportedErrors(f *ast.File) (names []string) {
	for _, d := range f.Decls {
		d, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && strings.HasPrefix(n.Name, "Err") {
						names = append(names, n.Name)
					}
				}
			case *ast.TypeSpec:
				if s.Name.IsExported() && strings.HasSuffix(s.Name.Name, "Error") {
					names = append(names, s.Name.Name)
				}
			}
		}
	}
	return names
}
