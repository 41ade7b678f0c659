//go:build go1.27

package bench

import (
	"testing"
	"time"
	"uuid"

	"github.com/sortkey/sortkey/idtype"
)

// The UUIDs of the standard library, since Go 1.27.
func init() {
	minters = append(minters, subject{"uuid", time.Millisecond, 0, 2048, func(idtype.Options) (minter, error) {
		return minter{next: func(n int) error {
			return repeat(n, func() (uuid.UUID, error) { return uuid.NewV7(), nil })
		}}, nil
	}})
}

// BenchmarkStandardUUID compares the text of a UUID with that of the standard library's type.
func BenchmarkStandardUUID(b *testing.B) {
	id := uuid.UUID(uuidID)
	measure(b, "String/UUID", func(b *testing.B) {
		for b.Loop() {
			sink = uuidID.String()
		}
	})
	measure(b, "String/uuid", func(b *testing.B) {
		for b.Loop() {
			sink = id.String()
		}
	})
	measure(b, "Parse/UUID", func(b *testing.B) {
		for b.Loop() {
			_, _ = idtype.ParseUUID(uuidText)
		}
	})
	measure(b, "Parse/uuid", func(b *testing.B) {
		for b.Loop() {
			_, _ = uuid.Parse(uuidText)
		}
	})
}
