package figures

import (
	"cmp"
	"slices"
)

// Median returns the median of figures. It sorts them.
func Median[T cmp.Ordered](figures []T) T {
	slices.Sort(figures)
	return figures[len(figures)/2]
}
