package figures

import (
	"cmp"
	"slices"
)

// Median is the middle one of some figures, which it sorts.
func Median[T cmp.Ordered](figures []T) T {
	slices.Sort(figures)
	return figures[len(figures)/2]
}
