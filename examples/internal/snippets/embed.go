package snippets

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pieces of source into the documents that show them")

// languages are those whose blocks in a document have to come from a source.
var languages = []string{"go", "sql", "yaml"}

var (
	fence = regexp.MustCompile("^( *)```([a-z]*)\n$")
	// marker is the line above a block: a file, and which pieces of it.
	marker = regexp.MustCompile(`^ *<!-- (\S+\.[a-z]+)((?: \S+)*) -->\n$`)
	// heading is the line of a file that begins a piece, up to the next one.
	heading = regexp.MustCompile(`^(?://|--|#) \[([a-z0-9-]*)\]\n$`)
)

// Embed sees that each block of code in a document is what the comment above it
// names: a file, by its path from the document, and the pieces of it, such as
//
//	<!-- ../examples/guide/storage.go Order CreateOrder -->
//	<!-- ../examples/guide/storage.sql sizes -->
//
// A piece of a Go file is a declaration, with its comment, by its name (a
// method's is Type.Method), or else, as in other files, what follows a line
//
//	// [sizes]
//
// up to the next such line, which may be // []. A file without a name is shown
// whole. With -update the document is written anew.
func Embed(t *testing.T, document string) {
	t.Helper()
	before := Read(t, document)
	after, err := embed(before, func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(filepath.Dir(document), name))
	})
	switch {
	case err != nil:
		t.Errorf("%s: %v", document, err)
	case after == before:
	case *update:
		if err := os.WriteFile(document, []byte(after), 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("%s shows other code than there is: run go test with -update", document)
	}
}

// embed gives a document with the blocks that its comments name.
func embed(document string, read func(name string) ([]byte, error)) (string, error) {
	var out strings.Builder
	lines := slices.Collect(strings.Lines(document))
	for i := 0; i < len(lines); i++ {
		out.WriteString(lines[i])
		opening := fence.FindStringSubmatch(lines[i])
		if opening == nil {
			continue
		}
		indent, language := opening[1], opening[2]
		n := slices.Index(lines[i+1:], indent+"```\n")
		if n < 0 {
			return "", fmt.Errorf("line %d: expected an end of the block, got none", i+1)
		}
		end := i + 1 + n
		if !slices.Contains(languages, language) {
			out.WriteString(strings.Join(lines[i+1:end], ""))
		} else {
			var source []string
			if i > 0 {
				source = marker.FindStringSubmatch(lines[i-1])
			}
			if source == nil {
				return "", fmt.Errorf("line %d: expected a comment above the block that names its source, got none", i+1)
			}
			text, err := read(source[1])
			if err != nil {
				return "", err
			}
			shown, err := pieces(source[1], text, strings.Fields(source[2]))
			if err != nil {
				return "", fmt.Errorf("line %d: %w", i+1, err)
			}
			for line := range strings.Lines(shown) {
				if line != "\n" {
					line = indent + line
				}
				out.WriteString(line)
			}
		}
		out.WriteString(lines[end])
		i = end
	}
	return out.String(), nil
}

// pieces are those of a file, with a line between them, or the whole file.
func pieces(name string, text []byte, names []string) (string, error) {
	if len(names) == 0 {
		return string(text), nil
	}
	found := map[string]string{}
	if filepath.Ext(name) == ".go" {
		if err := declarations(name, text, found); err != nil {
			return "", err
		}
	}
	piece := ""
	for line := range strings.Lines(string(text)) {
		if h := heading.FindStringSubmatch(line); h != nil {
			piece = h[1]
		} else if piece != "" {
			found[piece] += line
		}
	}
	shown := make([]string, len(names))
	for i, n := range names {
		if found[n] == "" {
			return "", fmt.Errorf("expected %s to have %s, got no such declaration or heading", name, n)
		}
		shown[i] = strings.Trim(found[n], "\n") + "\n"
	}
	return strings.Join(shown, "\n"), nil
}

// declarations adds those of a Go file, with their comments.
func declarations(name string, text []byte, found map[string]string) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		begin, names := d.Pos(), []string(nil)
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc != nil {
				begin = d.Doc.Pos()
			}
			n := d.Name.Name
			if d.Recv != nil {
				var receiver bytes.Buffer
				for _, f := range d.Recv.List {
					receiver.Write(text[fset.Position(f.Type.Pos()).Offset:fset.Position(f.Type.End()).Offset])
				}
				n = strings.TrimPrefix(receiver.String(), "*") + "." + n
			}
			names = append(names, n)
		case *ast.GenDecl:
			if d.Doc != nil {
				begin = d.Doc.Pos()
			}
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
		for _, n := range names {
			found[n] = string(text[fset.Position(begin).Offset:fset.Position(d.End()).Offset]) + "\n"
		}
	}
	return nil
}
