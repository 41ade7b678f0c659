// Package typename formats Go types for error messages.
package typename

import (
	"reflect"
	"regexp"
	"strings"
)

// Of returns the name of a type as Go code writes it: without the import paths that
// reflect adds to type arguments, and with idtype's aliases, for example
// []idtype.SnowflakeOf[shop.Order].
func Of(t reflect.Type) string {
	if t == nil {
		return "nil"
	}
	return aliased(withoutPaths(t.String()))
}

// OfValue returns the name of a value's type.
func OfValue(v any) string { return Of(reflect.TypeOf(v)) }

// withoutPaths removes the import paths, and the numbers of types declared in functions.
func withoutPaths(name string) string {
	var out strings.Builder
	for len(name) > 0 {
		// A token ends at a delimiter.
		end := strings.IndexAny(name, "[]*,(){} ;")
		if end < 0 {
			end = len(name)
		}
		token, _, _ := strings.Cut(withoutPath(name[:end]), "·")
		out.WriteString(token)
		if end < len(name) {
			out.WriteByte(name[end])
			end++
		}
		name = name[end:]
	}
	return out.String()
}

// majorVersion matches the part of an import path that is not in the package's name.
var majorVersion = regexp.MustCompile(`(/|%2e)v[0-9]+(_test)?\.`)

// withoutPath removes the import path of a name. reflect writes a dot in the last element
// of a path as %2e.
func withoutPath(name string) string {
	name = majorVersion.ReplaceAllString(name, "$2.")
	return strings.ReplaceAll(name[strings.LastIndexByte(name, '/')+1:], "%2e", ".")
}

// aliased replaces the types behind idtype's aliases.
func aliased(name string) string {
	for _, base := range []string{"Sno", "UUID"} {
		name = replaceGeneric(name, "idtype.Typed"+base+"[*", func(model string) string { return "idtype." + base + "Of[" + model + "]" })
	}
	return replaceGeneric(name, "idtype.Typed[*", func(arguments string) string {
		i := strings.LastIndex(arguments, ",idtype.")
		return arguments[i+1:] + "Of[" + arguments[:i] + "]"
	})
}

// replaceGeneric replaces the instances of a generic type. start is the part of their names
// before the first type argument, and alias returns the new name for the arguments.
func replaceGeneric(name, start string, alias func(arguments string) string) string {
	for from := 0; ; {
		i := strings.Index(name[from:], start)
		if i < 0 {
			return name
		}
		at := from + i
		arguments, rest, found := cutBracket(name[at+len(start):])
		if !found {
			return name
		}
		name = name[:at] + alias(arguments) + rest
		from = at + 1
	}
}

// cutBracket cuts s at the bracket that closes one opened before s.
func cutBracket(s string) (inside, after string, found bool) {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return s[:i], s[i+1:], true
			}
		}
	}
	return s, "", false
}
