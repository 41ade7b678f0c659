package main

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// declared matches the declaration of an exported error, a variable or a type.
	declared = regexp.MustCompile(`(?m)^(?:var |\t)(Err[A-Z]\w*) +(?:error )?=|^type ([A-Z]\w*Error) `)
	// raise matches a statement that raises an error, including a statement in a string.
	raise       = regexp.MustCompile(`RAISE EXCEPTION USING ERRCODE = '{1,2}(\w+)'`)
	packageName = regexp.MustCompile(`(?m)^package (\w+)`)
)

// unexplained returns a problem for each exported error and each SQLSTATE of the library
// that docs/errors.md doesn't explain.
func unexplained(fsys fs.FS) (problems []string, err error) {
	page, err := fs.ReadFile(fsys, "docs/errors.md")
	if err != nil {
		return nil, err
	}
	explain := func(name string) {
		if !strings.Contains(string(page), "`"+name+"`") && name != "SK000" { // which the function itself catches
			problems = append(problems, "docs/errors.md doesn't explain `"+name+"`")
		}
	}
	for _, root := range []string{"idtype", "sqltypes", "gormplugin", "pgxcodec", "migrations", "rekey", "nodelease"} {
		err := fs.WalkDir(fsys, root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "testdata" || d.Name() == "leasetest":
				return fs.SkipDir
			case strings.HasSuffix(name, "_test.go") || path.Ext(name) != ".go" && path.Dir(name) != "migrations/sql":
				return nil
			}
			text, err := fs.ReadFile(fsys, name)
			if path.Ext(name) != ".go" {
				for _, m := range raise.FindAllStringSubmatch(string(text), -1) {
					explain(m[1])
				}
				return err
			}
			for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
				explain(packageName.FindStringSubmatch(string(text))[1] + "." + m[1] + m[2])
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems), nil
}
