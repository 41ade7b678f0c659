package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// converted returns a form of the input.
func converted(input, from, to, name, prefix string, formats []*format) (string, error) {
	found := ownReadings(input, from, formats)
	if len(found) == 0 {
		if foreign := foreignReadings(input); len(foreign) > 0 {
			return "", fmt.Errorf("convert %q: want an ID of type %s, got a %s", input, strings.Join(formatNames(), ", "), foreign[0].title)
		}
		return "", notID(fmt.Sprintf("%.60q", input), name, from)
	}
	if found = withoutZero(found); len(found) == 0 {
		return "", fmt.Errorf("convert %q: zero, which is not an ID", input)
	}
	if name == "" && from == "" && found[0].format.name == "uid60" && found[0].form == "text" && hexDigits.MatchString(input) {
		return "", fmt.Errorf("convert %q: want --type or --from, since this can be the text of a uid60, or the rest of 16 or 20 hex digits", input)
	}
	var results, types, list []string
	for _, r := range found {
		if !slices.Contains(types, r.format.name) {
			types = append(types, r.format.name)
		}
		b, err := appendForm(nil, r.id, to, cmp.Or(prefix, r.prefix))
		if errors.Is(err, errNoForm) {
			continue
		}
		if err != nil {
			return "", err
		}
		if result := string(b); !slices.Contains(results, result) {
			results = append(results, result)
			list = append(list, fmt.Sprintf("%s if it is the %s of a %s", result, r.form, r.format.name))
		}
	}
	switch len(results) {
	case 0:
		return "", fmt.Errorf("convert %q to %s: an ID of type %s has no such form", input, to, strings.Join(types, " or "))
	case 1:
		return results[0], nil
	}
	flags := "--type"
	if slices.ContainsFunc(found, func(r reading) bool { return r.form != found[0].form }) {
		flags = "--type, --from or both"
		if len(formats) == 1 {
			flags = "--from"
		}
	}
	return "", fmt.Errorf("convert %q to %s: the result is %s; pass %s", input, to, strings.Join(list, ", or "), flags)
}

// hexDigits matches digits as hex encoders print them. Of the UID60s of 10 characters,
// one in half a million matches.
var hexDigits = regexp.MustCompile(`^([0-9a-f]+|[0-9A-F]+)$`)
