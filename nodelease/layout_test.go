package nodelease_test

import (
	"testing"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
)

// A Generator reports the layout of the generator that it wraps, so that the keys of a model
// are created in the layout in which they are read.
func TestLayout(t *testing.T) {
	onFakeTime(t, func(t *testing.T) {
		layout := idtype.SnowflakeLayout{WorkerBits: 6, SequenceBits: 14}
		g, err := nodelease.NewSnowflakeGenerator(t.Context(), new(faulty), idtype.SnowflakeConfig{Layout: layout}, nodelease.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Close() }()
		if l := idtype.LayoutOf(g); l == nil || l.Fingerprint() != layout.Fingerprint() {
			t.Errorf("expected %v, got %v", layout, l)
		}
	})
}
