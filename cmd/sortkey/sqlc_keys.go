package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jinzhu/inflection"
)

// writeKeys writes the declarations of the key types that a directory lacks to keys.go in it. If the file exists, it prints
// them instead.
func (c *app) writeKeys(dir, pkg string, columns []*catalogColumn) error {
	declared, err := declaredTypes(dir)
	if err != nil {
		return err
	}
	var lines strings.Builder
	var missing []string
	for _, column := range columns {
		if column.key != column || declared[column.Type] {
			continue
		}
		missing = append(missing, column.Type)
		if !declared[column.Model] {
			fmt.Fprintf(&lines, "\n// A %s distinguishes the keys of the table %s.\ntype %s struct{}\n", column.Model, column.tableName(), column.Model)
		}
		fmt.Fprintf(&lines, "\n// A %s is a key of the table %s.\ntype %s = idtype.%sOf[%s]\n", column.Type, column.tableName(), column.Type, strings.TrimSuffix(column.format.Title, "v7"), column.Model)
	}
	if len(missing) == 0 {
		return nil
	}
	text := regexp.MustCompile("(?m)^// A ([AEIO])").ReplaceAllString(lines.String(), "// An $1")
	path := filepath.Join(dir, "keys.go")
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		fmt.Fprintf(c.Errs, "%s lacks %s; add:\n%s", path, strings.Join(missing, ", "), text)
		return err
	}
	code, err := format.Source([]byte("// Package " + pkg + " has the types of the keys of the tables.\npackage " + pkg + "\n\nimport \"github.com/sortkey/sortkey/idtype\"\n" + text))
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err == nil {
		err = os.WriteFile(path, code, 0o666)
	}
	if err == nil {
		fmt.Fprintf(c.Errs, "wrote %s\n", path)
	}
	return err
}

// declaredTypes returns the names of the types that the package in a directory declares.
func declaredTypes(dir string) (map[string]bool, error) {
	files, err := fs.Glob(os.DirFS(dir), "*.go")
	declared := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				declared[spec.Name.Name] = true
			}
			return true
		})
	}
	return declared, err
}

// initialisms are the words that Go names have in capitals.
var initialisms = " ACL API ASCII CPU CSS DNS EOF GUID HTML HTTP HTTPS ID IP JSON QPS RAM RPC SLA SMTP SQL SSH TCP TLS TTL UDP UI UID URI URL UTF8 UUID VM XML XMPP XSRF XSS "

// goName returns a name in SQL as an exported name in Go. If it can't begin with a capital letter, other stands before it.
func goName(name, other string, singular bool) string {
	words := nameWords(name)
	var b strings.Builder
	for i, word := range words {
		if word = strings.ToLower(word); singular && i == len(words)-1 {
			word = cmp.Or(inflection.Singular(word), word)
		}
		if upper := strings.ToUpper(word); strings.Contains(initialisms, " "+upper+" ") {
			b.WriteString(upper)
			continue
		}
		first, size := utf8.DecodeRuneInString(word)
		b.WriteString(string(unicode.ToUpper(first)) + word[size:])
	}
	if first, _ := utf8.DecodeRuneInString(b.String()); !unicode.IsUpper(first) {
		return other + b.String()
	}
	return b.String()
}

// nameWords returns the words of a name: they end at characters other than letters and digits, and before a capital
// letter behind a small one.
func nameWords(name string) []string {
	spaced := regexp.MustCompile(`(\p{Ll})(\p{Lu})`).ReplaceAllString(name, "$1 $2")
	return strings.FieldsFunc(spaced, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// setTypes sets the Go names of the models and types: a type is named after the table of the key. Tables that would
// have the same name have their schema in front.
func (c *catalog) setTypes() {
	tables := map[string]int{} // the number of tables by name
	for i, column := range c.columns {
		if i == 0 || column.OID != c.columns[i-1].OID {
			tables[goName(column.Table, "Table", true)]++
		}
	}
	models, used := map[uint32]string{}, map[string]bool{}
	for _, column := range c.columns {
		if models[column.OID] == "" {
			name := goName(column.Table, "Table", true)
			if tables[name] > 1 {
				name = goName(column.Schema+" "+column.Table, "Table", true)
			}
			models[column.OID] = addName(used, name, "", "ID")
		}
	}
	for _, column := range c.columns {
		column.Model, column.Type = models[column.OID], models[column.key.OID]+"ID"
	}
}

// addName returns a name, with a number if one of the names that it makes with the suffixes is in use, and adds these names.
func addName(used map[string]bool, name string, suffixes ...string) string {
	free := name
	for i := 2; slices.ContainsFunc(suffixes, func(suffix string) bool { return used[free+suffix] }); i++ {
		free = fmt.Sprint(name, i)
	}
	for _, suffix := range suffixes {
		used[free+suffix] = true
	}
	return free
}
