package frameworks

import (
	"testing"

	"github.com/google/uuid"
	"go.jetify.com/typeid"

	"github.com/sortkey/sortkey/idtype"
)

type parcel struct{}

func (parcel) IDPrefix() string { return "lost_parcel" }

// The TypeIDs of jetify's package, the reference, and of a UUIDOf are the same text.
func TestTypeID(t *testing.T) {
	ids := idtype.Must(idtype.NewUUIDGenerator(idtype.UUIDConfig{}))
	for n := range 2000 {
		id, err := ids.Next()
		if n%2 == 0 {
			id = idtype.UUID(uuid.New())
		}
		must(t, err)
		theirs, err := typeid.FromUUIDWithPrefix("lost_parcel", id.String())
		must(t, err)
		ours := idtype.UUIDOf[parcel](id)
		if theirs.String() != ours.String() {
			t.Fatalf("%v is %s in the reference, and %s here", id, theirs, ours)
		}
		back, err := idtype.Parse[idtype.UUIDOf[parcel]](theirs.String())
		must(t, err)
		read, err := typeid.FromString(back.String())
		must(t, err)
		if read.UUID() != id.String() {
			t.Fatalf("%s reads as %s, want %v", back, read.UUID(), id)
		}
	}
}
