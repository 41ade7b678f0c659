// Package gormplugin generates the primary keys and the public IDs of the rows that GORM
// creates. Pass a generator to [For], the binding to [New], and the plugin to [gorm.DB.Use]:
//
//	gen, err := idtype.NewSnowflakeGenerator(idtype.SnowflakeConfig{Worker: 3}) // unique per process
//	err = db.Use(gormplugin.New(gormplugin.For(gen)))
//
// Create then fills every zero primary key of gen's ID type, and every typed key of
// that type:
//
//	type Order struct {
//		ID         idtype.SnowflakeOf[Order]
//		CustomerID idtype.SnowflakeOf[Customer]
//		Customer   *Customer
//	}
//
// The plugin fills keys in a struct, in a slice or an array of structs, in the maps
// that db.Model(&Order{}).Create inserts, in associations, and in custom join tables.
// It never changes a key that is set, nor a key that GORM copies from another table.
//
// The key can also be in a struct that the models embed:
//
//	type Model[M any] struct {
//		ID        idtype.SnowflakeOf[M] `gorm:"primaryKey"`
//		CreatedAt time.Time
//	}
//
//	type Order struct {
//		Model[Order]
//	}
//
// If the model of an idtype.SnoOf declares a metabyte with IDMeta, the plugin sets the
// metabyte of each ID that the generator of Snos creates for the model.
//
// # Public IDs
//
// The plugin also fills other columns that have an idgen tag, such as a public ID beside a
// serial key. The database still generates the key, and GORM reads it back:
//
//	type Order struct {
//		ID       uint
//		PublicID idtype.SnoOf[Order] `gorm:"idgen;uniqueIndex;not null"`
//		Ticket   idtype.Snowflake    `gorm:"idgen:tickets"`
//	}
//
// This documentation calls all columns that the plugin fills keys. Only Create fills them:
// Save of a row that exists, and Update, store the struct's value, even if it is zero.
// A foreign key can't have the tag, because GORM copies its ID from another row.
//
// # Several generators
//
// [For] binds a generator to a type of key, and [Named] to a name. The tag of a key
// takes precedence over its type:
//
//   - `gorm:"idgen:orders"` selects the generator with that name.
//   - `gorm:"idgen"` selects the generator of the field's type.
//   - `gorm:"idgen:-"` leaves the key alone. With `gorm:"idgen:-;default:(-)"`
//     the database's default sets the key, and GORM reads it back.
//   - Without a tag, the generator of T fills keys of type V, *V and
//     [database/sql.Null] of V. V is T or a typed key of T, and may be wrapped in a
//     struct with no other field, such as the column types of package sqltypes and
//     your own ID types.
//
// If several generators fit the type of a key, the one of the nearest type fills it:
// for an idtype.SnowflakeOf[Order] a generator of that type, such as
// idtype.GeneratorOf[idtype.SnowflakeOf[Order]](gen), and otherwise a generator of idtype.Snowflake.
//
// A type without an ID of package idtype, such as type InvoiceID int64, needs a generator
// of that type, which idtype.MapGenerator makes from another one. If a key has an integer
// type without a method GormDataType, GORM declares it as bigserial. The plugin doesn't
// detect a zero key of such a type without a generator.
//
// If a key has both a generator and a default in the database, the generator fills
// it. The plugin passes the context of the statement to the generator's Fill, so a
// generator may depend on values in the context. The plugin doesn't call Next.
//
// # Zero keys
//
// The plugin fills a key that is zero, nil, a pointer to zero, or an invalid
// sql.Null. If a key with one of package idtype's types is zero and no generator
// fills it, Create fails with [ErrNoGenerator] instead of inserting a zero key.
// That doesn't apply to a key with the tag idgen:- or with a default in the database,
// to the key of a belongs-to, which a foreign key constraint rejects, or, with the
// exception below, to the parts of a composite key.
//
// A program that forgets db.Use has no plugin, and stores the first row with the key zero.
// Let the database reject it: with [Domains], or with a CHECK, which AutoMigrate creates on
// every database. The text of a zero Sno's uuid is 32323232-3232-3232-3232-323232323232:
//
//	ID idtype.SnowflakeOf[Order] `gorm:"check:id <> 0"`
//	ID idtype.UUIDOf[Order]      `gorm:"check:id <> '00000000-0000-0000-0000-000000000000'"`
//	ID idtype.SnoOf[Order]       `gorm:"check:id <> '32323232-3232-3232-3232-323232323232'"`
//
// # Composite keys
//
// In a composite key, the plugin fills the parts that have an idgen tag. The caller
// sets the others. If no part has a tag, and exactly one part is an ID that has no
// default in the database and is not the key of a belongs-to, the tag was probably
// forgotten. Create then fails with [ErrNoGenerator] if that part is zero.
//
// # NULL
//
// GORM reads NULL into a field of type T as a zero ID, without an error. For a
// column that may be NULL, declare a *T, a [database/sql.Null] of T or a
// sqltypes.Optional. Pluck of a column with NULLs needs a slice of
// [database/sql.Null] or of sqltypes.Optional.
//
// # Associations and shared keys
//
// The plugin doesn't generate a key if GORM has detected that it refers to another
// row. In a belongs-to, GORM always detects it:
//
//	type Profile struct {
//		UserID idtype.SnowflakeOf[User] `gorm:"primaryKey"`
//		User   User
//	}
//
// In a has-one or a has-many, GORM detects it only after it has parsed the owner,
// and never if the relation is in a struct that the owner embeds. Until GORM has
// detected the key, the plugin generates it if the row is created alone. After that,
// creating the row alone with a zero key fails with [gorm.ErrPrimaryKeyRequired]. The
// tag idgen:- always prevents a generated key:
//
//	type User struct {
//		ID      idtype.SnowflakeOf[User]
//		Profile Profile `gorm:"foreignKey:ID"`
//	}
//
//	type Profile struct {
//		ID idtype.SnowflakeOf[User] `gorm:"idgen:-"`
//	}
//
// # Foreign keys of another type
//
// GORM copies the ID of a row to the foreign keys of its associations, and
// converts it to their type. Some conversions store another value without an
// error: a string gets the rune of the integer, usually U+FFFD, an int32 gets the
// lower bits, a float64 gets a nearby number, and a typed key gets another model's
// ID. The plugin rejects such relations, including polymorphic ones and join tables.
// The first Create or Update of the model that declares the relation fails with an
// error that names both fields and wraps [gorm.ErrUnsupportedRelation].
//
// A foreign key has a matching type if it has the ID type of the key to which it refers and
// the same column type: the type itself, its base type, or a wrapper. It can also be a plain
// type of the same column: an integer of 64 bits for bigint, a string or a uuid.UUID for
// uuid, a string or a []byte for text, and a []byte for bytea.
//
// A foreign key that is a typed key must have the model of the key to which it
// refers. If that key has no model, the foreign key's model must be the one to which
// it refers. The plugin checks keys of other types than package idtype's, such as
// int64, only if a generator fills them. Declare the foreign key with the type of the
// ID. The foreign key of a polymorphic relation can't have a model:
//
//	type Order struct {
//		ID    idtype.SnowflakeOf[Order]
//		Notes []Note `gorm:"polymorphic:Owner"`
//	}
//
//	type Note struct {
//		ID        idtype.SnowflakeOf[Note]
//		OwnerID   idtype.Snowflake // not string
//		OwnerType string
//	}
//
// To keep a text column, declare the foreign key as sql.Null[string], which
// stores the decimal digits of an integer. Preload of a has-many then compares
// text with a bigint, which pgx accepts only in its simple protocol.
//
// A relation may have a foreign key of any type if GORM never saves it, because its
// field has the tag `gorm:"<-:false"` or `gorm:"->"`. GORM still reads such a field.
// Create ignores it, and Association().Append stores nothing there.
//
// The plugin does not check reads: a model that is only read may have string
// keys. FirstOrInit, FirstOrCreate, Attrs, Assign and Update convert the values
// that they put into a struct in the same way. The plugin can't detect that, so pass
// id.String() for a string field.
//
// # Errors
//
// The first Create of a model fails with [ErrNoGenerator] if a tag names no
// registered generator, or a generator of another type, or if a foreign key that is not
// a primary key has the tag. The error contains the remedy. If a generator fails, the
// statement isn't run, and [errors.Is] finds the generator's error.
//
// # Hooks, Select and Omit
//
// The plugin sets IDs before everything else in a Create. BeforeSave and
// BeforeCreate hooks see the IDs and may replace them.
// [gorm.Session.SkipHooks] has no effect on the plugin. If a Select leaves out
// the key, the plugin adds it to the INSERT, so that struct and row have the same
// ID. Omit("ID") leaves the key to the database.
//
// # Repeated calls
//
// If a Create fails, rows keep their IDs, in associations and maps too: the rows may have been
// stored, for example if the answer to COMMIT was lost. Then a repeated call is refused as a
// duplicate (SQLSTATE 23505), and the program can look for the row by its ID.
//
// If the database refused the generated IDs of a column as a duplicate, the plugin resets the
// IDs that it generated for this column in the statement to zero, and a repeated call generates
// new ones. Only Postgres names the column: with TranslateError in gorm.Config, or on another
// database, the plugin resets all IDs that it generated for the statement. Other unique columns
// cause the same error. Postgres accepts no further statement in a transaction after an error, so
// repeat the call in a nested transaction, for which GORM sets a savepoint. CreateAgain in
// docs/gorm.md does.
//
// # Taken IDs
//
// A generated ID can be the ID of an existing row if two processes have the same node number, or
// if UID60s of two processes collide. A plain INSERT is then refused, and the plugin keeps an ON
// CONFLICT from changing the existing row. It changes nothing else in the INSERT:
//
//   - If all rows of a statement have generated IDs, an ON CONFLICT that updates rows with the
//     same ID, such as the one of Save, is left out, so that the database refuses a taken ID.
//   - In an update by a constraint, and if rows with and without generated IDs are mixed, the
//     update gets a condition that excludes the generated IDs. If rows are missing then, the
//     call fails with [gorm.ErrDuplicatedKey]. With SkipDefaultTransaction, the other rows have
//     been stored. With a WHERE of the caller, rows may be missing, and the call succeeds.
//   - GORM saves belongs-to and many2many associations with DO NOTHING, for rows that exist. The
//     plugin leaves it out if all rows of the association have generated IDs. So an association
//     with a new ID is always inserted: if a customer with the same unique email exists, Create
//     fails. Look up existing customers first.
//
// What another DO NOTHING skips is skipped without an error, as in GORM: the caller's, the one of a
// custom join table, and the one of an association whose rows are mixed or occur twice. If it
// skips a row because of a taken ID, the struct has the ID of another row. Therefore use no upsert
// and no such association with UID60s that may collide. On databases without RETURNING, updates
// get no condition.
//
// # Upserts
//
// If an upsert conflicts with an existing row, the row keeps its primary key and its
// public IDs. UpdateAll, which Save of a slice uses too, leaves out all columns with an
// idgen tag of their own. To replace a public ID, name its column in DoUpdates.
//
// On a database with RETURNING, the struct then gets the IDs of the existing row. In a
// batch, this requires a DO UPDATE without WHERE, since a WHERE could leave rows out
// of the result. If a batch returns fewer rows for another reason, such as a trigger,
// Create fails, because the rows can't be matched to the structs.
//
// If an ON CONFLICT changes nothing, the plugin resets the generated ID of a
// single struct, or of a slice with one element, to zero. In a larger batch with
// DO NOTHING, the database doesn't report the skipped rows: their structs keep
// the keys that were generated, which no row has. If the database generates the primary key, GORM
// then puts the keys of the inserted rows into the wrong structs. Maps keep their generated IDs,
// too.
//
// A struct whose primary key was set before may be an existing row, such as Account{ID: 7} in a
// belongs-to. Unless the plugin knows that the row was inserted, or has read its public IDs, it
// resets the generated ones in the struct to zero, so that a later Updates doesn't store them.
//
// # Time windows and pages
//
// [CreatedBetween] finds the rows whose IDs were created in a time window. It
// uses the index of the key, and needs no column for the time. [PageAfter] and
// [PageBefore] read rows page by page, oldest or newest first. [G] adapts these
// scopes to GORM's generic interface. Put alternatives before them in parentheses:
//
//	db.Where(db.Where("paid").Or("total = 0")).Scopes(gormplugin.PageAfter("", cursor)).Limit(20).Find(&orders)
//
// # Lists of IDs
//
// Pass a list of IDs to IN, or in a map:
//
//	db.Find(&orders, "id IN ?", ids)
//	db.Where(map[string]any{"id": ids}).Delete(&Order{})
//
// In GORM, other forms mean something else:
//
//   - Find(&orders, ids), Where(ids) and Delete(&Order{}, ids) treat a slice of
//     structs as models. The types of package idtype and typed keys are not structs,
//     and work. sqltypes.Text, Optional and SnoBytes are structs, as
//     are your own ID types that embed an ID. The statement then fails, because
//     the table has no column for the field of such a struct. Zero IDs of these
//     types add no condition: a list of zero IDs finds every row, as an empty list
//     does.
//   - Find(&orders, id) treats a single sqltypes.SnoBytes as a list of bytes.
//     Write "id = ?".
//   - Where("id", ids) becomes id = (1, 2), which Postgres rejects. A list with
//     one ID works.
//   - A sqltypes.Array is one value. Write "id = ANY (?)", which sends one parameter for
//     any number of IDs.
//
// GORM doesn't store a slice field as an array: its INSERT contains (1, 2), or
// NULL for an empty slice. For a column of type bigint[] or uuid[], declare the field as
// a sqltypes.Array, such as sqltypes.Array[idtype.Snowflake].
//
// # Columns of domains
//
// [Domains] makes AutoMigrate declare columns of the domains of package migrations, in which the
// database accepts only IDs. It needs no tags, and changes nothing on other databases than
// Postgres, so tests can run the same models on SQLite:
//
//	err = errors.Join(db.Use(gormplugin.New(gormplugin.For(gen))), db.Use(gormplugin.Domains{}))
//
// A column of an ID type, a typed key, a pointer to one, a [database/sql.Null], or an Optional of
// package sqltypes gets the domain of the ID type, such as sortkey.snowflake instead of bigint.
// A sqltypes.Text[idtype.Sno] gets sortkey.sno_as_text. The domain of a UUID, sortkey.uuid7, accepts only
// version 7. A type tag takes precedence: `gorm:"type:uuid"` declares a column for all versions.
// Arrays, and the other types of package sqltypes, keep their column type.
//
// AutoMigrate doesn't change the type of existing columns from the base type to the domain. ALTER
// TABLE does, and rewrites the table. A program that runs AutoMigrate without Domains repeats an
// ALTER TABLE at each start if a column has a domain in a type tag.
//
// # Scanning
//
// GORM itself, not the plugin, has these limits:
//
//   - Scan mistakes a single Sno for a slice. Use Pluck with a slice, or Scan
//     into a sqltypes.Optional.
//   - A map gets the driver's value: an int64, or the 36 characters of a uuid.
//
// # Generated code
//
// In code generated by gorm.io/gen, a key has typed conditions such as
// o.ID.Gt(cursor). For a time window, use the bounds of layout.Range:
// o.ID.Gte(lo), o.ID.Lt(hi). o.ID.In takes the IDs as separate arguments. For a
// slice, write
//
//	o.WithContext(ctx).Where(o.WithContext(ctx).Columns(o.ID).In(field.Values(ids)))
package gormplugin
