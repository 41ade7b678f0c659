// Command docs writes the generated parts of the documentation: the code
// blocks in Markdown files, the figures that they quote from docs/benchmarks.md,
// and the drawings of the ID layouts. It fails if docs/errors.md doesn't explain an
// exported error or an SQLSTATE. With -check it writes nothing, and also fails if it finds outdated
// files, dead links, or phrases that phrases.txt rejects.
//
//	cd tools && GOWORK=off go run ./docs [-check]
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	root := flag.String("root", "..", "the root of the repository")
	check := flag.Bool("check", false, "report outdated files, dead links and rejected phrases instead of writing files")
	flag.Parse()
	problems, err := run(*root, *check)
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || len(problems) > 0 {
		os.Exit(1)
	}
}

func run(root string, check bool) (problems []string, err error) {
	files, err := drawings()
	if err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	benchmarks, err := os.ReadFile(filepath.Join(root, "docs", "benchmarks.md"))
	if err != nil {
		return nil, err
	}
	figures := readBenchmarks(string(benchmarks))
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		name, err := filepath.Rel(root, page)
		if err != nil {
			return nil, err
		}
		text, err := embed(os.DirFS(root), filepath.ToSlash(name))
		if err == nil {
			text, err = figures.quoteFigures(name, text)
		}
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		files[name] = text
	}
	missing, err := unexplained(os.DirFS(root))
	if err != nil {
		return nil, err
	}
	problems = append(problems, missing...)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case err == nil && bytes.Equal(got, want):
		case check:
			problems = append(problems, name+" is out of date: run make docs")
		default:
			if err := os.WriteFile(filepath.Join(root, name), want, 0o644); err != nil {
				return nil, err
			}
		}
	}
	if !check {
		return problems, nil
	}
	dead, err := deadLinks(root)
	if err != nil {
		return nil, err
	}
	rejected, err := rejectedPhrases(os.DirFS(root), phrases)
	problems = slices.Concat(problems, dead, rejected)
	slices.Sort(problems)
	return problems, err
}
