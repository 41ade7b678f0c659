package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func (c *cli) convertCommand() *cobra.Command {
	var (
		name, prefix string
		from, to     string
	)
	cmd := &cobra.Command{
		Use:   "convert --to FORM [ID...]",
		Short: "Convert IDs between their forms",
		Long: `Convert prints one form of each ID, one per line. It recognizes
` + idForms + `.
The result has no prefix, unless it is a TypeID. Put -- before negative numbers.

    text    the form in URLs and JSON
    int64   the value of a bigint column
    uuid    the value of a uuid column: of a sno or a UUID
    typeid  the TypeID of a UUID, with --prefix or the prefix of the input
    hex     the big-endian bytes of the binary form
    bytea   the same as a literal in SQL

If an input can be several IDs, and their results differ, Convert fails: pass
--type, --from or both. Scripts should always pass them. Convert also fails if
the text of a uid60 can be a part of another ID's hex digits. It reads 0x and
hex digits as text only with --type uid60 --from text. It reads digits without a
letter as hex digits only with --from hex. Convert stops at the
first ID that it can't convert. Zero is not an ID.`,
		Example: `  sortkey convert --to uuid 9edd8o6o2v2im222
  sortkey convert --to text --type uid60 72234076334582745
  sortkey convert --to typeid --prefix user 01890a5d-ac96-774b-bcce-b302099a8057
  sortkey new spread64 | sortkey convert --from text --to int64 -t spread64`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(forms, to) {
				return usagef("--to %q: want %s", to, strings.Join(forms, ", "))
			}
			if from != "" && !slices.Contains(forms, from) {
				return usagef("--from %q: want %s", from, strings.Join(forms, ", "))
			}
			if !typeIDPrefix.MatchString(prefix) {
				return usagef("--prefix %q: want up to 63 lower-case letters and underscores, with a letter at both ends", prefix)
			}
			// The text of a snowflake is the same in every layout.
			formats, err := c.candidateFormats(name, layoutFlags{})
			if err != nil {
				return err
			}
			out := bufio.NewWriterSize(c.out, 1<<16)
			encoder := json.NewEncoder(out)
			err = c.eachInput(cmd.Context(), args, out.Flush, func(input string) error {
				result, err := converted(input, from, to, name, prefix, formats)
				if err != nil {
					return err
				}
				if !c.json() {
					_, err = out.WriteString(result + "\n")
					return err
				}
				return encoder.Encode(map[string]string{"input": input, to: result})
			})
			if flushed := out.Flush(); err == nil {
				err = flushed
			}
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`form` of the results")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&from, "from", "", "`form` of the IDs (default: any)")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&prefix, "prefix", "", "`prefix` of the TypeIDs (default: that of the input)")
	addTypeFlag(cmd, &name)
	acceptIDs(cmd)
	return cmd
}

// converted returns a form of the input.
func converted(input, from, to, name, prefix string, formats []*format) (string, error) {
	found := ownReadings(input, from, formats)
	if len(found) == 0 {
		if foreign := foreignReadings(input); len(foreign) > 0 {
			return "", fmt.Errorf("convert %q: Convert supports %s, got a %s", input, strings.Join(formatNames(), ", "), foreign[0].title)
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
