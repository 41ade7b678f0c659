package api

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// List gives what a package exports, as sorted lines. Fields and methods that a
// type has by embedding an exported one are that one's lines; those that it has
// by embedding an unexported one are its own, since nothing else shows them.
func List(pkg *types.Package) []string {
	l := lister{pkg: pkg}
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) {
			l.object(pkg.Scope().Lookup(name))
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines)
}

type lister struct {
	pkg   *types.Package
	lines []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add("const %s %s = %s", o.Name(), l.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		l.add("var %s %s", o.Name(), l.text(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o.Signature()))
	case *types.TypeName:
		l.typeName(o)
	}
}

func (l *lister) typeName(o *types.TypeName) {
	if o.IsAlias() {
		alias := o.Type().(*types.Alias)
		l.add("type %s%s = %s", o.Name(), l.typeParams(alias.TypeParams()), l.text(alias.Rhs()))
		return
	}
	named := o.Type().(*types.Named)
	head := "type " + o.Name() + l.typeParams(named.TypeParams())
	switch t := named.Underlying().(type) {
	case *types.Struct:
		if types.Comparable(named) {
			l.add("%s struct, comparable", head)
		} else {
			l.add("%s struct", head)
		}
		l.fields(o.Name(), t)
	case *types.Interface:
		l.add("%s interface", head)
		l.interfaceOf(o.Name(), t)
	default:
		l.add("%s %s", head, l.text(t))
	}
	l.methods(named)
}

func (l *lister) fields(owner string, s *types.Struct) {
	for i := range s.NumFields() {
		f := s.Field(i)
		if !f.Exported() {
			if f.Embedded() {
				l.promoted(owner, f.Type())
			}
			continue
		}
		line := fmt.Sprintf("field %s.%s %s", owner, f.Name(), l.text(f.Type()))
		if f.Embedded() {
			line = fmt.Sprintf("field %s embeds %s", owner, l.text(f.Type()))
		}
		if tag := s.Tag(i); tag != "" {
			line += " " + strconv.Quote(tag)
		}
		l.lines = append(l.lines, line)
	}
}

// promoted are the fields of an embedded struct whose type isn't exported.
func (l *lister) promoted(owner string, t types.Type) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		l.fields(owner, s)
	}
}

func (l *lister) interfaceOf(owner string, t *types.Interface) {
	for i := range t.NumEmbeddeds() {
		l.add("interface %s embeds %s", owner, l.text(t.EmbeddedType(i)))
	}
	for i := range t.NumExplicitMethods() {
		if m := t.ExplicitMethod(i); m.Exported() {
			l.add("interface %s.%s%s", owner, m.Name(), l.signature(m.Signature()))
		} else {
			// Nobody else can implement it, which a caller may try to.
			l.add("interface %s has unexported methods", owner)
		}
	}
}

func (l *lister) methods(named *types.Named) {
	if types.IsInterface(named) {
		return
	}
	values := types.NewMethodSet(named)
	set := types.NewMethodSet(types.NewPointer(named))
	for i := range set.Len() {
		sel := set.At(i)
		if !sel.Obj().Exported() || l.byExported(named, sel.Index()) {
			continue
		}
		receiver := "*" + named.Obj().Name()
		if values.Lookup(l.pkg, sel.Obj().Name()) != nil {
			receiver = named.Obj().Name()
		}
		l.add("method (%s%s) %s%s", receiver, typeArgs(named.TypeParams()), sel.Obj().Name(), l.signature(sel.Type().(*types.Signature)))
	}
}

// byExported says whether the path to a method goes through an embedded type
// that is exported.
func (l *lister) byExported(t types.Type, path []int) bool {
	for _, i := range path[:len(path)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		f := t.Underlying().(*types.Struct).Field(i)
		if f.Exported() {
			return true
		}
		t = f.Type()
	}
	return false
}

// signature is that of a function, without the word func.
func (l *lister) signature(s *types.Signature) string {
	return l.typeParams(s.TypeParams()) + strings.TrimPrefix(l.text(s), "func")
}

// module begins the paths of this module's packages.
const module = "github.com/sortkey/sortkey/"

// text is a type as this package's files write it, but for other packages, which
// it names by their paths, within this module if they are of it, and for
// parameters, which have no names.
func (l *lister) text(t types.Type) string {
	return types.TypeString(unnamed(t), func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return strings.TrimPrefix(p.Path(), module)
	})
}

func unnamed(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, unnamedTuple(t.Params()), unnamedTuple(t.Results()), t.Variadic())
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	}
	return t
}

func unnamedTuple(params *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range params.Variables() {
		vars = append(vars, types.NewParam(token.NoPos, nil, "", unnamed(v.Type())))
	}
	return types.NewTuple(vars...)
}

func (l *lister) typeParams(params *types.TypeParamList) string {
	var texts []string
	for p := range params.TypeParams() {
		texts = append(texts, p.Obj().Name()+" "+l.text(p.Constraint()))
	}
	return bracketed(texts)
}

func typeArgs(params *types.TypeParamList) string {
	var names []string
	for p := range params.TypeParams() {
		names = append(names, p.Obj().Name())
	}
	return bracketed(names)
}

func bracketed(texts []string) string {
	if len(texts) == 0 {
		return ""
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// Compare gives the lines that have gone and those that have come.
func Compare(old, now []string) (gone, come []string) {
	for _, line := range old {
		if !slices.Contains(now, line) {
			gone = append(gone, line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			come = append(come, line)
		}
	}
	return gone, come
}

// Demands are those of the lines that have come which ask more of who implements
// an interface, or is to satisfy a constraint, that there was before.
func Demands(old, come []string) (demands []string) {
	for _, line := range come {
		rest, ok := strings.CutPrefix(line, "interface ")
		if !ok {
			continue
		}
		name := rest[:strings.IndexAny(rest, ". ")]
		if slices.ContainsFunc(old, func(o string) bool {
			return strings.HasPrefix(o, "type "+name+" ") || strings.HasPrefix(o, "type "+name+"[")
		}) {
			demands = append(demands, line)
		}
	}
	return demands
}
