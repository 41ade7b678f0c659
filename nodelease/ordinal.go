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
// The ordinal is the value of the environment variable env, or, if that isn't set or env is
// "", the number at the end of the host name: 7 for shop-7. In a StatefulSet the host name
// is the name of the pod, and POD_INDEX can be set from the label
// apps.kubernetes.io/pod-index. Pods of a Deployment have no ordinals. There is no default:
// without a valid ordinal, Ordinal returns an error that wraps [idtype.ErrNode].
func Ordinal(env string, first, count int) (int, error) {
	return ordinal(env, first, count, os.LookupEnv, os.Hostname)
}

func ordinal(env string, first, count int, lookup func(string) (string, bool), hostname func() (string, error)) (int, error) {
	if first < 0 || count < 1 {
		return 0, fmt.Errorf("nodelease: read the ordinal: want first from 0 and count from 1, got %d and %d: %w", first, count, idtype.ErrNode)
	}
	var text, source, remedy string
	set := false
	if env != "" {
		text, set = lookup(env)
		source = fmt.Sprintf("environment variable %s, which is %q", env, text)
		remedy = "set it to the number of this instance, such as 7"
	}
	if !set {
		host, err := hostname()
		if err != nil {
			return 0, fmt.Errorf("nodelease: read the ordinal in the host name: %w: %w", err, idtype.ErrNode)
		}
		name, _, _ := strings.Cut(host, ".") // without the domain
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			text = name[i+1:]
		}
		source = fmt.Sprintf("host name %q", host)
		remedy = "run it in a StatefulSet, whose host names are like shop-7"
		if env != "" {
			remedy += ", or set the environment variable " + env
		}
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || strconv.Itoa(n) != text || n < 0:
		return 0, fmt.Errorf("nodelease: read the ordinal in the %s: want a number without leading zeros; %s: %w", source, remedy, idtype.ErrNode)
	case n >= count:
		return 0, fmt.Errorf("nodelease: read the ordinal in the %s: want 0 to %d, the range of this program; raise count, or run fewer instances: %w", source, count-1, idtype.ErrNode)
	}
	return first + n, nil
}
