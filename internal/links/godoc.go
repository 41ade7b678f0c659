package links

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A Tree is a folder with modules, one of them at its root.
type Tree struct {
	root    string
	modules map[string]string     // folders by module path
	symbols map[string]lookupFunc // of packages, by import path
}

// A lookupFunc says whether a package exports a name, of a type's if recv isn't "".
type lookupFunc func(recv, name string) bool

// Open finds the modules in a folder.
func Open(root string) (*Tree, error) {
	t := &Tree{root: root, modules: make(map[string]string), symbols: make(map[string]lookupFunc)}
	err := t.walk(func(name string) error {
		if filepath.Base(name) != "go.mod" {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		m := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(b)
		if m == nil {
			return fmt.Errorf("expected a line with the module's path in %s, found none", name)
		}
		t.modules[string(m[1])] = filepath.Dir(name)
		return nil
	})
	return t, err
}

// walk calls f with the files that are the project's.
func (t *Tree) walk(f func(name string) error) error {
	return filepath.WalkDir(t.root, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); name != t.root && (strings.HasPrefix(base, ".") || base == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		return f(name)
	})
}

// Packages gives the folders that have Go files.
func (t *Tree) Packages() (dirs []string, err error) {
	seen := make(map[string]bool)
	err = t.walk(func(name string) error {
		if dir := filepath.Dir(name); strings.HasSuffix(name, ".go") && !seen[dir] {
			seen[dir] = true
			dirs = append(dirs, dir)
		}
		return nil
	})
	return dirs, err
}

// parse gives a folder's files by the name of their package, for all systems
// alike: those of a package, and those of its tests apart.
func parse(dir string) (fset *token.FileSet, sources, tests map[string][]*ast.File, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, nil, err
	}
	fset, sources, tests = token.NewFileSet(), make(map[string][]*ast.File), make(map[string][]*ast.File)
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, nil, err
		}
		to := sources
		if strings.HasSuffix(name, "_test.go") {
			to = tests
		}
		to[f.Name.Name] = append(to[f.Name.Name], f)
	}
	return fset, sources, tests, nil
}

// documented gives a package's documentation: of what it exports, or of all.
func documented(dir string, mode doc.Mode) ([]*doc.Package, error) {
	fset, sources, _, err := parse(dir)
	if err != nil {
		return nil, err
	}
	var packages []*doc.Package
	for _, files := range sources {
		// The path says nothing that a link depends on.
		p, err := doc.NewFromFiles(fset, files, "", mode)
		if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// PackageComment complains if a package has no comment, in a file of its or, if
// there are none but tests, of these. What a generator has written has to have
// none.
func PackageComment(dir string) error {
	_, sources, tests, err := parse(dir)
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		// The package and its external tests may be of two names, with a comment for both.
		var all []*ast.File
		for _, files := range tests {
			all = append(all, files...)
		}
		sources = map[string][]*ast.File{filepath.Base(dir): all}
	}
	var errs []error
	for name, files := range sources {
		found, generated := false, true
		for _, f := range files {
			found = found || f.Doc != nil
			generated = generated && ast.IsGenerated(f)
		}
		if !found && !generated {
			errs = append(errs, fmt.Errorf("%s: expected a comment above one of the package clauses of %s, found none", dir, name))
		}
	}
	return errors.Join(errs...)
}

// Comments complains about links in the comments of a package, those of what it
// doesn't export included. There is no link to what isn't exported.
func (t *Tree) Comments(dir string) error {
	var errs []error
	packages, err := documented(dir, doc.AllDecls)
	if err != nil {
		return err
	}
	for _, p := range packages {
		c := checker{tree: t, dir: dir, pkg: p, parser: p.Parser()}
		c.all()
		errs = append(errs, c.errs...)
	}
	return errors.Join(errs...)
}

// moduleOf is the folder of the module that a folder is of.
func (t *Tree) moduleOf(dir string) string {
	best := ""
	for _, root := range t.modules {
		if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) && len(root) >= len(best) {
			best = root
		}
	}
	return best
}

// exported gives what a package exports, be it ours, of the standard library or
// of a module that the one around dir requires.
func (t *Tree) exported(dir, importPath string) (lookupFunc, error) {
	if f, ok := t.symbols[importPath]; ok {
		return f, nil
	}
	source := ""
	for module, root := range t.modules {
		if rel, ok := strings.CutPrefix(importPath+"/", module+"/"); ok {
			if at := filepath.Join(root, filepath.FromSlash(rel)); t.moduleOf(at) == root {
				source = at
			}
		}
	}
	if source == "" {
		cmd := exec.Command("go", "list", "-find", "-f", "{{.Dir}}", importPath)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("expected package %s: %s", importPath, strings.TrimSpace(string(out)))
		}
		source = strings.TrimSpace(string(out))
	}
	packages, err := documented(source, 0)
	if err != nil {
		return nil, err
	}
	f := func(recv, name string) bool {
		for _, p := range packages {
			// A link to the package itself has no name.
			if recv == "" && name == "" || p.Parser().LookupSym(recv, name) {
				return true
			}
		}
		return false
	}
	t.symbols[importPath] = f
	return f, nil
}

// A checker goes through the comments of a package.
type checker struct {
	tree   *Tree
	dir    string
	pkg    *doc.Package
	parser *comment.Parser
	errs   []error
}

func (c *checker) all() {
	c.text("the package comment", c.pkg.Doc)
	c.values(c.pkg.Consts)
	c.values(c.pkg.Vars)
	c.funcs(c.pkg.Funcs)
	for _, t := range c.pkg.Types {
		c.text(t.Name, t.Doc)
		c.fields(t.Name, t.Decl)
		c.values(t.Consts)
		c.values(t.Vars)
		c.funcs(t.Funcs)
		c.funcs(t.Methods)
	}
}

func (c *checker) values(values []*doc.Value) {
	for _, v := range values {
		c.text(strings.Join(v.Names, ", "), v.Doc)
		for _, spec := range v.Decl.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok {
				c.text(spec.Names[0].Name, spec.Doc.Text())
				c.text(spec.Names[0].Name, spec.Comment.Text())
			}
		}
	}
}

func (c *checker) funcs(funcs []*doc.Func) {
	for _, f := range funcs {
		name := f.Name
		if f.Recv != "" {
			name = strings.TrimPrefix(f.Recv, "*") + "." + name
		}
		c.text(name, f.Doc)
	}
}

// fields are those of structs, and methods of interfaces.
func (c *checker) fields(owner string, decl *ast.GenDecl) {
	ast.Inspect(decl, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			name := owner
			if len(f.Names) > 0 {
				name += "." + f.Names[0].Name
			}
			c.text(name, f.Doc.Text())
			c.text(name, f.Comment.Text())
		}
		return true
	})
}

func (c *checker) complain(what, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %s: %s", c.dir, what, fmt.Sprintf(format, args...)))
}

// linkLike is what somebody may have meant as a link, where the rules of doc
// comments would have one.
var linkLike = regexp.MustCompile(`(?:^|[\s[:punct:]])(\[\*?[\pL_][\pL\d_]*(?:[./][\pL\d_]+)*\])(?:$|[\s[:punct:]])`)

func (c *checker) text(what, text string) {
	d := c.parser.Parse(text)
	for _, def := range d.Links {
		if !def.Used {
			c.complain(what, "[%s] is defined, and nowhere used", def.Text)
		}
	}
	c.blocks(what, d.Content)
}

func (c *checker) blocks(what string, blocks []comment.Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case *comment.Paragraph:
			c.texts(what, b.Text)
		case *comment.Heading:
			c.texts(what, b.Text)
		case *comment.List:
			for _, item := range b.Items {
				c.blocks(what, item.Content)
			}
		}
	}
}

func (c *checker) texts(what string, texts []comment.Text) {
	for _, text := range texts {
		switch text := text.(type) {
		case comment.Plain:
			for _, m := range linkLike.FindAllStringSubmatch(string(text), -1) {
				c.complain(what, "%s looks like a link and is none: expected a name of this package, or one of a package that it imports", m[1])
			}
		case *comment.DocLink:
			if text.ImportPath == "" {
				continue // one of this package, which the parser has looked up
			}
			has, err := c.tree.exported(c.dir, text.ImportPath)
			if err != nil {
				c.complain(what, "%v", err)
			} else if !has(text.Recv, text.Name) {
				c.complain(what, "[%s] leads to nothing in %s", plain(text.Text), text.ImportPath)
			}
		}
	}
}

func plain(texts []comment.Text) (s string) {
	for _, t := range texts {
		if t, ok := t.(comment.Plain); ok {
			s += string(t)
		}
	}
	return s
}
