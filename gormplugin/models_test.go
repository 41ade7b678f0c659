package gormplugin

import (
	"database/sql/driver"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/idtype"
)

// The models of several tests.

type order struct {
	ID   idtype.Snowflake
	Note string
}

type line struct {
	OrderID idtype.Snowflake `gorm:"primaryKey"`
	ID      idtype.Snowflake `gorm:"primaryKey;idgen"`
	Name    string
}

type two struct {
	Left  idtype.Snowflake `gorm:"primaryKey"`
	Right idtype.Snowflake `gorm:"primaryKey"`
}

type optedOut struct {
	ID   idtype.Snowflake `gorm:"idgen:-"`
	Name string
}

// Base is exported, because GORM ignores unexported embedded structs.
type Base struct {
	ID idtype.Snowflake `gorm:"primaryKey"`
}

// text stores an ID as text, as a column type of package sqltypes does.
type text[T interface {
	comparable
	fmt.Stringer
}] struct{ ID T }

func (v text[T]) Value() (driver.Value, error) { return v.ID.String(), nil }

func (text[T]) GormDataType() string { return "text" }

// ownText is an ID type of the caller that is stored as text.
type ownText struct{ Text }

// Text is exported, because other packages can set an embedded field only if its type is
// exported.
type Text = text[idtype.Sno]

// A lineID is the caller's own ID type, which embeds one of package idtype.
type lineID struct{ idtype.Snowflake }

// An otherLineID is another ID type of the caller.
type otherLineID struct{ idtype.Snowflake }

// optional and raw are column types, as in package sqltypes.
type (
	optional[T interface {
		IsZero() bool
		GormDataType() string
	}] struct{ ID T }
	raw struct{ ID idtype.Sno }
)

func (v optional[T]) IsZero() bool { return v.ID.IsZero() }

func (v optional[T]) GormDataType() string { return v.ID.GormDataType() }

func (v text[T]) IsZero() bool { return v == text[T]{} }

func (raw) GormDataType() string { return "bytea" }

// The models of a shop. The keys of Shopper are Snos with a metabyte.
type (
	Sale struct {
		ID        idtype.SnowflakeOf[Sale]
		ShopperID *idtype.SnoOf[Shopper]
		Shopper   *Shopper
		Note      string
	}
	Shopper struct {
		ID    idtype.SnoOf[Shopper]
		Sales []Sale
	}
	Ticket struct {
		ID   idtype.SnoOf[Ticket]
		Note string
	}
	// A SaleKey embeds a typed key.
	SaleKey struct{ idtype.SnowflakeOf[Sale] }
)

func (Shopper) IDPrefix() string { return "sho" }

func (Shopper) IDMeta() byte { return 's' }

// A keyed is a model with a key of type F.
type keyed[F any] struct {
	ID   F
	Name string
}

type parent struct {
	ID       idtype.Snowflake
	Children []child
	Twin     *twin  `gorm:"foreignKey:ParentID"`
	Notes    []note `gorm:"polymorphic:Owner"`
	BossID   *idtype.Snowflake
	Boss     *parent
	Crew     []*parent `gorm:"foreignKey:BossID"`
	Tags     []label   `gorm:"many2many:parent_tags"`
	Friends  []*parent `gorm:"many2many:parent_friends"`
}

type child struct {
	ID       idtype.Snowflake
	ParentID idtype.Snowflake
	Parent   *parent
}

type twin struct {
	ID       idtype.Sno
	ParentID idtype.Snowflake
}

type note struct {
	ID        idtype.Snowflake
	OwnerID   idtype.Snowflake
	OwnerType string
}

type label struct {
	ID idtype.Sno `gorm:"idgen:labels"`
}

type contact struct {
	ID    idtype.Snowflake
	Email string `gorm:"unique"`
	Name  string
}

var onEmail = []clause.Column{{Name: "email"}}

// create runs a Create, and returns its SQL.
func create(t *testing.T, db *gorm.DB, value any) string {
	t.Helper()
	tx := db.Create(value)
	if tx.Error != nil {
		t.Fatalf("Create: %v", tx.Error)
	}
	return sqlOf(tx)
}

func wantSQL(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("SQL\n got %s\nwant %s", got, want)
	}
}
