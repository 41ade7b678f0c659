// Package gormplugin fills in the primary keys of the rows that GORM creates.
// It takes a generator, and one line where the database is opened:
//
//	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}) // no two processes with the same number
//	...
//	err = db.Use(gormplugin.New(gormplugin.For(gen)))
//
// From then on every model whose key is of the type that gen mints gets an ID
// from it: a struct, a slice or an array of them, maps created through a Model,
// associations, custom join tables. A key that is set is never changed, nor is
// one that GORM takes from another table.
//
// # Which generator
//
// The first of these that says something decides:
//
//   - the field's tag: `gorm:"idgen:orders"` names a generator registered with
//     [Named], `gorm:"idgen"` means the one that [For] bound to the field's
//     type, and `gorm:"idgen:-"` leaves the key alone (idgen:-;default:(-) leaves
//     it to a default of the database, which GORM then reads);
//   - the type: T, *T, [database/sql.Null] of T. T may be wrapped in a struct
//     with no other field, such as the column forms of package sqltypes and ID
//     types of your own.
//
// Generators get the context of the statement, with Fill, and may go by what is
// in it. Next serves statements without one.
//
// Of a composite key only parts with a tag are filled; the others are the
// caller's. Where no part has one, and one part alone could be filled, that is an
// error, since it was forgotten. A key with a default in the database is filled if
// it has a generator.
//
// # Keys of other rows
//
// A key that refers to another row is never made up. GORM tells of those of a
// belongs-to:
//
//	type Profile struct {
//		UserID idtype.Snowflake `gorm:"primaryKey"`
//		User   User
//	}
//
// Of the other direction it tells once it has met the User, and never if the
// has-one is in a struct that User embeds. A tag tells in any case:
//
//	type User struct {
//		ID      idtype.Snowflake
//		Profile Profile `gorm:"foreignKey:ID"`
//	}
//
//	type Profile struct {
//		ID idtype.Snowflake `gorm:"idgen:-"`
//	}
//
// # Foreign keys of another type
//
// GORM copies IDs to the foreign keys of associations, and converts them to the
// keys' types. Some conversions store another value without an error: a string
// gets the integer's rune, mostly U+FFFD, an int32 the lower bits, a float64 a
// number nearby. The plugin refuses relations with such keys, polymorphic ones
// and join tables included. The first Create or Update of the model that
// declares the relation fails with a [gorm.ErrUnsupportedRelation] that names
// both fields. Keys of other types than package idtype's, such as int64, are
// checked only if a generator fills them. Declare the foreign key with the type
// of the ID:
//
//	type Order struct {
//		ID    idtype.Snowflake
//		Notes []Note `gorm:"polymorphic:Owner"`
//	}
//
//	type Note struct {
//		ID        idtype.Snowflake
//		OwnerID   idtype.Snowflake // not string
//		OwnerType string
//	}
//
// To keep a text column, declare the key as sql.Null[string], which stores the
// decimal digits of an integer. Preload of a has-many then compares text with a bigint, which
// pgx refuses outside of its simple protocol.
//
// The plugin accepts keys of any type in a relation that GORM never saves: one
// whose field has the tag `gorm:"<-:false"` or `gorm:"->"`. GORM still reads such
// a field, and creates the row without it. Association().Append stores nothing
// there.
//
// Reads are left alone: a model that is only read may have string keys.
// FirstOrInit, FirstOrCreate, Attrs, Assign and Update convert the values that
// they put into a struct in the same way, and the plugin doesn't see them: give
// a string field id.String().
//
// # Errors
//
// A model whose tag names no generator, or one that mints another type, fails at
// its first Create with an [ErrNoGenerator] that says what to write. So does a row without an ID where the key has one of package idtype's
// types and nothing fills it, instead of being inserted with a zero key. Two kinds
// of key are left alone and may be zero: that of a belongs-to, which the
// database's foreign key refuses, and parts of a composite key.
//
// If a generator fails, the statement isn't run, and [errors.Is] finds the
// error.
//
// # When
//
// IDs are set before anything else happens in a Create, so BeforeSave and
// BeforeCreate hooks see them and may replace them. [gorm.Session.SkipHooks]
// makes no difference. A Select that leaves the key out gets it added, since
// struct and row would disagree otherwise; Omit("ID") leaves the key alone.
//
// A struct keeps its ID if the database then refuses the row, and in a DryRun:
// that it has one doesn't mean that it was stored.
//
// # Upserts
//
// An ON CONFLICT on another unique key than the primary one may keep a row
// whose ID is not the new one. Where the database supports RETURNING, the
// structs then get the IDs that their rows have: one by one, and in batches if
// the update has no WHERE, with which rows could be missing from the answer. If
// rows of a batch are missing all the same, which a trigger can bring about, it
// fails: nobody knows which.
//
// After an ON CONFLICT that changed nothing, the ID that was made up for a
// single struct, or the only one of a slice, is zero again. In a larger batch
// with DO NOTHING nobody says which rows were skipped: their structs keep IDs
// that no row has. GORM saves associations that way, so rows that belong to one
// with a unique column of its own, and that are created in a slice, may refer to
// a row that was skipped: look such rows up first. Maps keep what they were given.
//
// # Time windows and pages
//
// [MintedBetween] finds the rows minted in a window of time by the index of
// the key, without a column for the time. [PageAfter] and [PageBefore] go
// through rows page by page, oldest or newest first. [G] is for the generic
// interface of GORM.
//
// # Lists of IDs
//
// A list is a condition after IN, or in a map:
//
//	db.Find(&orders, "id IN ?", ids)
//	db.Where(map[string]any{"id": ids}).Delete(&Order{})
//
// GORM gives other forms another meaning:
//
//   - Find(&orders, ids), Where(ids) and Delete(&Order{}, ids) take a slice of
//     structs for models. sqltypes.Text, Optional and SnoBytes are structs, as
//     are ID types of your own that embed an ID. The database then knows no
//     such column. Zero IDs are no condition at all, so a list of them finds
//     every row, as an empty list does.
//   - Find(&orders, id) takes a single sqltypes.SnoBytes for a list of bytes.
//     Write "id = ?".
//   - Where("id", ids) is id = (1, 2), which Postgres refuses. A list of one
//     works.
//
// GORM doesn't store a slice field as an array: its INSERT writes (1, 2), and NULL
// for an empty slice. A column of type bigint[] needs a type of its own, here
// with pgx's:
//
//	type OrderIDs []idtype.Snowflake
//
//	func (OrderIDs) GormDataType() string { return "bigint[]" }
//
//	func (v OrderIDs) Value() (driver.Value, error) {
//		text, err := pgtype.NewMap().Encode(pgtype.Int8ArrayOID, pgtype.TextFormatCode, []idtype.Snowflake(v), nil)
//		if text == nil || err != nil {
//			return nil, err
//		}
//		return string(text), nil
//	}
//
//	func (v *OrderIDs) Scan(src any) error {
//		var text sql.Null[string]
//		if err := text.Scan(src); err != nil || !text.Valid {
//			*v = nil
//			return err
//		}
//		return pgtype.NewMap().Scan(pgtype.Int8ArrayOID, pgtype.TextFormatCode, []byte(text.V), (*[]idtype.Snowflake)(v))
//	}
//
// It is a parameter for ANY as well: Where("id = ANY (?)", OrderIDs(ids)).
//
// # Columns of domains
//
// The tag `gorm:"type:sortkey.snowflake"` makes a column of a domain. Primary keys
// need no more. For another column AutoMigrate learns the name of the domain's
// base type, and sends an ALTER TABLE each time that the program starts. That
// rewrites no row, but it waits for all others who use the table, drops the
// column's statistics, and fails if a view has the column. A dialector that knows
// domains as other names of their base types sends none:
//
//	type dialector struct{ *postgres.Dialector }
//
//	func (d dialector) Migrator(db *gorm.DB) gorm.Migrator {
//		return migrator{d.Dialector.Migrator(db).(postgres.Migrator)}
//	}
//
//	type migrator struct{ postgres.Migrator }
//
//	// GetTypeAliases returns what the type in a tag may begin with.
//	func (m migrator) GetTypeAliases(name string) []string {
//		return append(slices.Clone(m.Migrator.GetTypeAliases(name)), "sortkey.")
//	}
//
//	db, err := gorm.Open(dialector{postgres.Open(dsn).(*postgres.Dialector)}, &gorm.Config{})
//
// # Reading
//
// These are ways of GORM's own:
//
//   - Scan takes a Sno for a list of rows. Read a single one by Pluck into a
//     slice, or into a sqltypes.Optional.
//   - A NULL becomes a zero ID in a struct, without an error: a field that may
//     tell them apart is a *T. Pluck of NULLs takes a slice of [database/sql.Null]
//     or sqltypes.Optional.
//   - A map gets what the driver gives: an int64, or the 36 characters of a uuid.
//
// # Generated code
//
// In code of gorm.io/gen a key has the conditions of its own kind, such as
// o.ID.Gt(cursor); a window is layout.Range and o.ID.Gte(lo), o.ID.Lt(hi). In takes
// IDs one by one, and a slice as
//
//	o.WithContext(ctx).Where(o.WithContext(ctx).Columns(o.ID).In(field.Values(ids)))
package gormplugin
