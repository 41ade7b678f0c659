package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	// block matches a block of code and the comment above it, which names a file
	// and pieces of the file.
	block = regexp.MustCompile("(?m)(^ *<!-- (sql|\\S+\\.[a-z]+)((?: \\S+)*) -->\n)?^( *)```(go|sql|yaml|json|dockerfile)\n(?:.*\n)*? *```$")
	// heading matches the line above a piece.
	heading = regexp.MustCompile(`^# \[([a-z0-9-]*)\]\n$`)
)

// embed returns a Markdown file with each block of Go, YAML, JSON or Docker replaced by
// the code that the comment above the block names, relative to the Markdown
// file:
//
//	<!-- ../examples/guide/storage.go Order Order.BeforeCreate -->
//	<!-- ../examples/guide/kubernetes.yaml statefulset -->
//
// A piece of a Go file is a top-level declaration with its doc comment. A
// piece of any other file follows a line such as "# [statefulset]" and ends at the
// next such line. A comment without pieces names the whole file.
//
// A block of SQL stays. The comment above it has the name by which a test runs it:
//
//	<!-- sql sizes -->
func embed(fsys fs.FS, document string) ([]byte, error) {
	text, err := fs.ReadFile(fsys, document)
	if err != nil {
		return nil, err
	}
	embedded := block.ReplaceAllStringFunc(string(text), func(old string) string {
		m := block.FindStringSubmatch(old)
		comment, source, names, indent, language := m[1], m[2], strings.Fields(m[3]), m[4], m[5]
		if comment == "" && language == "json" {
			return old // such as a response
		}
		if comment == "" {
			err = fmt.Errorf("%s: no comment above this block names its source:\n%s", document, old)
			return old
		}
		if source == "sql" && language == "sql" {
			return old
		}
		code, e := show(fsys, path.Join(path.Dir(document), source), names)
		if e != nil {
			err = fmt.Errorf("%s: %w", document, e)
			return old
		}
		code = regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(code, indent+"$1")
		return comment + indent + "```" + language + "\n" + code + indent + "```"
	})
	return []byte(embedded), err
}

// show returns pieces of a file, separated by empty lines, or the whole file.
func show(fsys fs.FS, file string, names []string) (string, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil || len(names) == 0 {
		return string(text), err
	}
	pieces := map[string]string{}
	if path.Ext(file) == ".go" {
		if pieces, err = declarations(file, text); err != nil {
			return "", err
		}
	}
	name := ""
	for line := range strings.Lines(string(text)) {
		if m := heading.FindStringSubmatch(line); m != nil {
			name = m[1]
		} else if name != "" {
			pieces[name] += line
		}
	}
	var shown []string
	for _, n := range names {
		if pieces[n] == "" {
			return "", fmt.Errorf("%s has no piece %s", file, n)
		}
		shown = append(shown, strings.Trim(pieces[n], "\n")+"\n")
	}
	return strings.Join(shown, "\n"), nil
}

// declarations returns the source of each top-level declaration by name. The
// name of a method is Type.Method.
func declarations(file string, text []byte) (map[string]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	add := func(name string, d ast.Decl, doc *ast.CommentGroup) {
		start := d.Pos()
		if doc != nil {
			start = doc.Pos()
		}
		found[name] = string(text[start-f.FileStart : d.End()-f.FileStart])
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + name
			}
			add(name, d, d.Doc)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name.Name, d, d.Doc)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						add(n.Name, d, d.Doc)
					}
				}
			}
		}
	}
	return found, nil
}
