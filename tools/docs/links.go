package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
)

var (
	linkInHTML    = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	headingInHTML = regexp.MustCompile(`<h[1-6]>(.*)</h[1-6]>`)
	notInAnchor   = regexp.MustCompile(`<[^>]*>|&\w+;|[^\pL\pM\pN _-]`)
	// linkLike matches text that its author may have meant as a doc link.
	linkLike = regexp.MustCompile(`(?:^|[\s[:punct:]])\[(\*?\pL[\pL\d_]*(?:[./][\pL\d_]+)*)\](?:$|[\s[:punct:]])`)
)

// deadLinks returns the dead links in the Markdown files and doc comments of
// the repository. It ignores links to other sites.
func deadLinks(root string) (dead []string, err error) {
	fsys := os.DirFS(root)
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == "testdata" || d.Name() == ".bin") {
			return fs.SkipDir
		}
		if err == nil && path.Ext(name) == ".md" {
			dead = append(dead, deadInMarkdown(fsys, name)...)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	packages, err := listPackages(root)
	for importPath := range packages {
		if strings.HasPrefix(importPath, "github.com/sortkey/sortkey/") {
			dead = append(dead, packages.deadInComments(importPath)...)
		}
	}
	return dead, err
}

func deadInMarkdown(fsys fs.FS, name string) (dead []string) {
	for _, m := range linkInHTML.FindAllStringSubmatch(toHTML(fsys, name), -1) {
		if err := follow(fsys, name, m[1]); err != nil {
			dead = append(dead, fmt.Sprintf("%s: dead link %s: %v", name, m[1], err))
		}
	}
	return dead
}

func follow(fsys fs.FS, from, link string) error {
	u, err := url.Parse(link)
	if err != nil || u.IsAbs() {
		return err
	}
	target := from
	if u.Path != "" {
		target = path.Join(path.Dir(from), u.Path)
	}
	if _, err := fs.Stat(fsys, target); err != nil {
		return err // also for a target outside of the repository
	}
	if u.Fragment == "" || path.Ext(target) != ".md" || anchors(toHTML(fsys, target))[u.Fragment] {
		return nil
	}
	if source, err := fs.ReadFile(fsys, target); err == nil && strings.Contains(string(source), `<a id="`+u.Fragment+`"></a>`) {
		return nil // such as in the row of a table
	}
	return fmt.Errorf("%s has no such heading", target)
}

func toHTML(fsys fs.FS, name string) string {
	var page strings.Builder
	source, err := fs.ReadFile(fsys, name)
	if err = errors.Join(err, goldmark.Convert(source, &page)); err != nil {
		panic(err) // the caller has found the file
	}
	return page.String()
}

// anchors returns the anchors that GitHub creates for the headings of a page.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range headingInHTML.FindAllStringSubmatch(page, -1) {
		slug := strings.ReplaceAll(strings.ToLower(notInAnchor.ReplaceAllString(m[1], "")), " ", "-")
		anchor := slug
		for i := 1; found[anchor]; i++ {
			anchor = fmt.Sprintf("%s-%d", slug, i)
		}
		found[anchor] = true
	}
	return found
}

// packageFiles holds the Go files of packages by import path.
type packageFiles map[string][]string

// listPackages returns the packages of the standard library and of all modules of go.work, with
// their dependencies.
func listPackages(root string) (packageFiles, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}{{range .GoFiles}}\t{{$.Dir}}/{{.}}{{end}}", "std", "work")
	cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), "GOWORK="), os.Stderr
	out, err := cmd.Output()
	packages := packageFiles{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		packages[fields[0]] = fields[1:]
	}
	return packages, err
}

// deadInComments returns the dead links in the doc comments of a package, of
// exported and unexported declarations.
func (p packageFiles) deadInComments(importPath string) (dead []string) {
	files, pkg := p.parse(importPath)
	complain := func(link string) {
		dead = append(dead, fmt.Sprintf("%s: dead link [%s] in a comment", importPath, link))
	}
	printer := &comment.Printer{DocLinkURL: func(link *comment.DocLink) string {
		_, target := p.parse(link.ImportPath)
		if link.ImportPath != "" && (p[link.ImportPath] == nil || link.Name != "" && !target.Parser().LookupSym(link.Recv, link.Name)) {
			complain(strings.Trim(link.ImportPath+"."+link.Recv+"."+link.Name, "."))
		}
		return ""
	}}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if group, ok := n.(*ast.CommentGroup); ok {
				// A dead link within the package remains text.
				text := printer.HTML(pkg.Parser().Parse(group.Text()))
				text = regexp.MustCompile(`(?s)<pre>.*?</pre>`).ReplaceAll(text, nil)
				for _, m := range linkLike.FindAllSubmatch(text, -1) {
					complain(string(m[1]))
				}
			}
			_, body := n.(*ast.BlockStmt)
			return !body
		})
	}
	return dead
}

// parse returns the files of a package and its declarations.
func (p packageFiles) parse(importPath string) (files []*ast.File, pkg *doc.Package) {
	fset := token.NewFileSet()
	for _, name := range p[importPath] {
		if f, err := parser.ParseFile(fset, name, nil, parser.ParseComments); err == nil {
			files = append(files, f)
		}
	}
	pkg, err := doc.NewFromFiles(fset, files, importPath, doc.AllDecls|doc.PreserveAST)
	if err != nil { // no files
		return nil, &doc.Package{}
	}
	return files, pkg
}
