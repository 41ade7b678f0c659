package api

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of what packages export anew")

// What packages export is what the lists say.
func TestAPI(t *testing.T) {
	packages, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Fatal("expected packages in this module, found none")
	}
	files, err := filepath.Glob("*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		// Folders within folders, if there ever are any, give idtype.sub.txt.
		path := strings.TrimPrefix(p.Path(), module)
		name := strings.ReplaceAll(path, "/", ".") + ".txt"
		files = slices.DeleteFunc(files, func(f string) bool { return f == name })
		now := List(p)
		if *update {
			if err := os.WriteFile(name, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("expected a list of what %s exports: %v; if it is to be public: go test ./internal/api -update", p.Path(), err)
			continue
		}
		report(t, path, strings.Split(strings.TrimSpace(string(b)), "\n"), now)
	}
	for _, gone := range files {
		if *update {
			if err := os.Remove(gone); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Errorf("a break for callers: the package of %s is gone; if it is meant: go test ./internal/api -update, and a line in CHANGELOG.md", gone)
	}
}

func report(t *testing.T, path string, old, now []string) {
	t.Helper()
	gone, come := Compare(old, now)
	if len(gone) > 0 {
		t.Errorf("a break for callers of %s: gone, or changed, is\n\t%s\nif it is meant: go test ./internal/api -update, and a line in CHANGELOG.md",
			path, strings.Join(gone, "\n\t"))
	}
	if demands := Demands(old, come); len(demands) > 0 {
		t.Errorf("a break for those who implement an interface of %s: it asks more of them\n\t%s\nif it is meant: go test ./internal/api -update, and a line in CHANGELOG.md",
			path, strings.Join(demands, "\n\t"))
	}
	if len(come) > 0 {
		t.Errorf("%s exports more than its list says:\n\t%s\nif it is to stay: go test ./internal/api -update", path, strings.Join(come, "\n\t"))
	}
	if len(gone)+len(come) == 0 && !slices.Equal(old, now) {
		t.Errorf("the list of %s isn't sorted: go test ./internal/api -update", path)
	}
}

const source = `package p

const (
	A       = 1 << 3
	B Kind  = "b"
	c       = 2
)

var V, w = f()

func f() (x []byte, y int) { return }

type Kind string

func (k Kind) Known(other Kind) (ok bool) { return }
func (k *Kind) Set(s string)              {}
func (k Kind) known()                     {}

type Number interface{ ~int | ~int64 }

type Getter[T any] interface {
	Embedded
	Get(key string) (T, error)
}

type Embedded interface{ Close() error }

type Sealed interface{ seal() }

type base struct {
	Promoted int
	hidden   int
}

func (b *base) Reset()     {}
func (b base) String() string { return "" }
func (b base) hide()       {}

type Options struct{ Name string }

func (o Options) Validate() error { return nil }

type Config[K comparable, V Number] struct {
	Options
	*base
	Clock  func(now int) (then int)
	Values map[K][]V ` + "`json:\"v\"`" + `
	hidden bool
}

func (c *Config[K, V]) Get(key K) V { return c.Values[key][0] }

type Alias = Config[string, int]

type unexported struct{ Field int }

func (unexported) Method() {}

func Map[T, U any](in []T, f func(t T) (u U), rest ...int) (out []U) { return nil }

func New(name string) (c *Config[string, int], send chan<- struct{}) { return nil, nil }
`

func TestList(t *testing.T) {
	want := strings.Split(strings.TrimSpace(`
const A untyped int = 8
const B Kind = "b"
field Config embeds Options
field Config.Clock func(int) int
field Config.Promoted int
field Config.Values map[K][]V "json:\"v\""
field Options.Name string
func Map[T any, U any]([]T, func(T) U, ...int) []U
func New(string) (*Config[string, int], chan<- struct{})
interface Embedded.Close() error
interface Getter embeds Embedded
interface Getter.Get(string) (T, error)
interface Number embeds ~int | ~int64
interface Sealed has unexported methods
method (*Config[K, V]) Get(K) V
method (*Kind) Set(string)
method (Config[K, V]) Reset()
method (Config[K, V]) String() string
method (Kind) Known(Kind) bool
method (Options) Validate() error
type Alias = Config[string, int]
type Config[K comparable, V Number] struct
type Embedded interface
type Getter[T any] interface
type Kind string
type Number interface
type Options struct, comparable
type Sealed interface
var V []byte
`), "\n")
	if gone, come := Compare(want, List(check(t, source))); len(gone)+len(come) > 0 {
		t.Errorf("expected\n\t%s\ngot instead\n\t%s", strings.Join(gone, "\n\t"), strings.Join(come, "\n\t"))
	}
}

// Names of parameters may change, and types may not.
func TestCompare(t *testing.T) {
	list := func(s string) []string { return List(check(t, "package p\n"+s)) }
	for _, c := range []struct{ before, after, gone, come string }{
		{"func F(a int) error { return nil }", "func F(b int) (err error) { return nil }", "", ""},
		{"func F(a int) {}", "func F(a int64) {}", "func F(int)", "func F(int64)"},
		{"type T struct{ A int }", "type T struct{ A, B int }", "", "field T.B int"},
		{"type T struct{ A int; b int }", "type T struct{ A int; c int }", "", ""},
		{"type T struct{ A int; b int }", "type T struct{ A int; b []int }", "type T struct, comparable", "type T struct"},
		{"const C = 1", "const C = 2", "const C untyped int = 1", "const C untyped int = 2"},
		{"type T int; func (T) M() {}", "type T int; func (*T) M() {}", "method (T) M()", "method (*T) M()"},
	} {
		gone, come := Compare(list(c.before), list(c.after))
		if strings.Join(gone, "; ") != c.gone || strings.Join(come, "; ") != c.come {
			t.Errorf("from %q to %q: expected that %q goes and %q comes, got %q and %q", c.before, c.after, c.gone, c.come, gone, come)
		}
	}
}

// Another method is a break for who implements the interface, unless that is new.
func TestDemands(t *testing.T) {
	list := func(s string) []string { return List(check(t, "package p\n"+s)) }
	for _, c := range []struct{ before, after, want string }{
		{"type I interface{ A() }", "type I interface{ A(); B() }", "interface I.B()"},
		{"type I[T any] interface{ A(T) }", "type I[T any] interface{ A(T); comparable }", "interface I embeds comparable"},
		{"type I interface{ A() }", "type I interface{ A() }; type J interface{ B() }", ""},
		{"type I interface{ A() }", "type I interface{ A() }; type T struct{ B int }; func (T) C() {}", ""},
		{"type I interface{ A(); B() }", "type I interface{ A() }", ""},
	} {
		old := list(c.before)
		_, come := Compare(old, list(c.after))
		if got := strings.Join(Demands(old, come), "; "); got != c.want {
			t.Errorf("from %q to %q: expected %q, got %q", c.before, c.after, c.want, got)
		}
	}
}

func check(t *testing.T, source string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(types.Config).Check("p", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
