package gorm

import (
	"errors"
	"reflect"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/integration_test/internal/idtest"
	"github.com/sortkey/sortkey/integration_test/internal/pgtest"
	"github.com/sortkey/sortkey/sqltypes"
)

// A subscriber has a serial key, a public ID, and a number from a named generator. A ticket
// number is an integer type without the methods of an ID.
type (
	subscriber struct {
		ID       uint
		PublicID typedSno         `gorm:"idgen;uniqueIndex;not null"`
		Ticket   ticket           `gorm:"idgen:tickets;not null"`
		Code     sqltypes.SnoText `gorm:"idgen;not null"`
		Email    string           `gorm:"unique"`
		Name     string
		Readings []reading `gorm:"foreignKey:OwnerID;references:PublicID"`
	}
	reading struct {
		ID      ticket
		OwnerID typedSno
	}
	ticket int64
)

// GormDataType keeps GORM from declaring a key as bigserial.
func (ticket) GormDataType() string { return "bigint" }

// The plugin fills a public ID beside a serial key, and the structs get the IDs of the
// stored rows.
func TestPublicIDs(t *testing.T) {
	onClients(t, func(t *testing.T, g *gorm.DB) {
		gen := must1(t, idtest.Snowflake.NewGenerator)
		tickets := idtype.MapGenerator(gen, func(id idtype.Snowflake) ticket { return ticket(id) })
		must(t, g.Use(gormplugin.New(gormplugin.For(must1(t, idtest.Sno.NewGenerator)), gormplugin.For(tickets), gormplugin.Named("tickets", tickets))))
		models := []any{&subscriber{}, &reading{}}
		must(t, g.AutoMigrate(models...))
		if isPostgres(g) {
			for column, want := range map[string]string{"public_id": "uuid", "ticket": "bigint", "code": "text"} {
				checkColumn(t, g, "subscribers", column, want)
			}
			checkColumn(t, g, "readings", "id", "bigint")
			r := pgtest.NewRecorder()
			must(t, g.Session(&gorm.Session{Logger: r}).AutoMigrate(models...))
			if got := r.With("ALTER"); len(got) > 0 {
				t.Errorf("the second AutoMigrate issued %q", got)
			}
		}

		a := subscriber{Email: "a", Name: "a", Readings: []reading{{}, {}}}
		must(t, g.Create(&a).Error)
		if a.ID == 0 || a.PublicID.IsZero() || a.PublicID.Untyped().Meta() != 'c' || a.Ticket == 0 || a.Code.IsZero() || a.Readings[1].ID == 0 || a.Readings[1].OwnerID != a.PublicID {
			t.Errorf("created %+v", a)
		}
		batch := []subscriber{{Email: "b"}, {Email: "c"}, {Email: "d"}}
		must(t, g.CreateInBatches(&batch, 2).Error)
		checkStored(t, g, append(batch, a)...)
		m := map[string]any{"email": "m"}
		must(t, g.Model(&subscriber{}).Create(m).Error)
		var ofMap subscriber
		if must(t, g.First(&ofMap, "email = 'm'").Error); ofMap.PublicID != m["public_id"] || ofMap.Ticket != m["ticket"] {
			t.Errorf("from a map: stored %+v, the map has %v", ofMap, m)
		}

		// An upsert leaves the public ID of the existing row, and the struct gets it.
		onEmail := []clause.Column{{Name: "email"}}
		again := []subscriber{{Email: "a", Name: "again"}, {Email: "e", Name: "new"}}
		must(t, g.Clauses(clause.OnConflict{Columns: onEmail, UpdateAll: true}).Create(&again).Error)
		if again[0].ID != a.ID || again[0].PublicID != a.PublicID || again[0].Ticket != a.Ticket || again[0].Code != a.Code {
			t.Errorf("upsert: got %+v, want the IDs of %+v", again[0], a)
		}
		checkStored(t, g, again...)
		one := subscriber{Email: "a", Name: "third"}
		must(t, g.Clauses(clause.OnConflict{Columns: onEmail, DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&one).Error)
		if checkStored(t, g, one); one.PublicID != a.PublicID {
			t.Errorf("upsert: got %+v, want the IDs of %+v", one, a)
		}
		skipped := subscriber{Email: "a"}
		must(t, g.Clauses(clause.OnConflict{DoNothing: true}).Create(&skipped).Error)
		if !reflect.DeepEqual(skipped, subscriber{Email: "a"}) {
			t.Errorf("DO NOTHING: got %+v, want no IDs", skipped)
		}

		// Save updates a row by its serial key, and a slice by an upsert.
		one.Name = "saved"
		must(t, g.Save(&one).Error)
		rows := []subscriber{one, {Email: "f"}}
		rows[0].Name = "saved again"
		must(t, g.Save(&rows).Error)
		if checkStored(t, g, rows...); rows[0].PublicID != a.PublicID {
			t.Errorf("Save: got %+v, want the IDs of %+v", rows[0], a)
		}
		if err := g.Model(&subscriber{ID: one.ID}).Updates(subscriber{Name: "updated"}).Error; err != nil {
			t.Error(err)
		}
		one.Name = "updated"
		checkStored(t, g, one)
		if err := g.Take(&subscriber{}, "public_id = ?", a.PublicID).Error; errors.Is(err, gorm.ErrRecordNotFound) {
			t.Error("no row with the public ID")
		}
	})
}

// checkStored checks that the table has the rows.
func checkStored(t *testing.T, g *gorm.DB, rows ...subscriber) {
	t.Helper()
	for _, want := range rows {
		var got subscriber
		want.Readings = nil
		if must(t, g.Take(&got, want.ID).Error); !reflect.DeepEqual(got, want) {
			t.Errorf("stored %+v, want %+v", got, want)
		}
	}
}

func checkColumn(t *testing.T, g *gorm.DB, table, column, want string) {
	t.Helper()
	of[idtype.Sno, snoPerson]{}.checkColumns(t, g, map[string]map[string]string{table: {column: want}})
}
