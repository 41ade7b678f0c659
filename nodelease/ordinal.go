package nodelease

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/sortkey/sortkey/idtype"
)

// Ordinal returns the node number of an instance that has an ordinal: first plus the ordinal.
// It is for numbers that are configured, or claimed with package filelease. The ordinal is 0
// to count-1. Several StatefulSets that write to the same tables need ranges of numbers
// that don't overlap, such as first 0 and 512 with a count of 512 each.
//
// The ordinal is the value of the environment variable env: a number, or the name of a pod of a
// StatefulSet, such as shop-7. Set it from the label apps.kubernetes.io/pod-index or from
// metadata.name. HOSTNAME has the name of the pod, too, but elsewhere a host name can end in a
// number that other hosts also have. Pods of a Deployment have no ordinals, but five characters at
// the end of their names, which can be digits: a name that ends in five or more is an error. There
// is no default: without a valid ordinal, Ordinal returns an error that wraps [idtype.ErrNode].
func Ordinal(env string, first, count int) (int, error) {
	if first < 0 || count < 1 {
		return 0, fmt.Errorf("nodelease: read the ordinal: want first from 0 and count from 1, got %d and %d: %w", first, count, idtype.ErrNode)
	}
	const remedy = "set it to the number of this instance, such as 7; in a StatefulSet, from the label apps.kubernetes.io/pod-index or from metadata.name"
	if env == "" {
		return 0, fmt.Errorf("nodelease: read the ordinal: the name of the environment variable is empty; pass one, such as POD_INDEX, and %s: %w", remedy, idtype.ErrNode)
	}
	text := os.Getenv(env)
	source := fmt.Sprintf("nodelease: read the ordinal in the environment variable %s, which is %q", env, text)
	digits, named := text, false
	if parts := strings.Split(strings.Split(text, ".")[0], "-"); len(parts) > 1 && parts[0] != "" {
		digits, named = parts[len(parts)-1], true
		if before := parts[len(parts)-2]; strings.Trim(before, "0123456789") == "" {
			return 0, fmt.Errorf("%s: want a number, or a name that ends in one number, such as shop-7; %s: %w", source, remedy, idtype.ErrNode)
		}
	}
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || strconv.Itoa(n) != digits || n < 0:
		return 0, fmt.Errorf("%s: want a number without leading zeros, or a name that ends in one, such as shop-7; %s: %w", source, remedy, idtype.ErrNode)
	case named && len(digits) >= 5:
		return 0, fmt.Errorf("%s: want a name that ends in at most four digits, because names of the pods of a Deployment can end in five; %s: %w", source, remedy, idtype.ErrNode)
	case n >= count && named:
		return 0, fmt.Errorf("%s: want 0 to %d, the range of this program; raise count if the name is of a StatefulSet, or %s: %w", source, count-1, remedy, idtype.ErrNode)
	case n >= count:
		return 0, fmt.Errorf("%s: want 0 to %d, the range of this program; raise count, or run fewer instances: %w", source, count-1, idtype.ErrNode)
	}
	return first + n, nil
}
