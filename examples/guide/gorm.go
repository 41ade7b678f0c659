package guide

import (
	"errors"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/sortkey/sortkey/gormplugin"
	"github.com/sortkey/sortkey/idtype"
)

// An Article has a key, a reference to its author, and a second ID for URLs.
type Article struct {
	ID       idtype.UUIDOf[Article]
	AuthorID idtype.UUIDOf[Author] // GORM copies the author's key
	Author   Author
	Editors  []Author         `gorm:"many2many:editors"`
	Number   idtype.Snowflake `gorm:"idgen:numbers;uniqueIndex;not null"` // the plugin fills it, too
	Title    string
}

// An Author is referred to by articles.
type Author struct {
	ID   idtype.UUIDOf[Author]
	Name string
}

// OpenArticles returns a database whose plugin fills the keys of all models, and declares columns of
// the domains of package migrations.
func OpenArticles(url string, numbers *idtype.SnowflakeGenerator) (*gorm.DB, error) {
	db, err := gorm.Open(postgres.Open(url), &gorm.Config{TranslateError: true})
	if err != nil {
		return nil, err
	}
	keys, err := idtype.NewUUIDGenerator(idtype.UUIDConfig{})
	if err != nil {
		return nil, err
	}
	return db, errors.Join(
		db.Use(gormplugin.New(gormplugin.For(keys), gormplugin.Named("numbers", numbers))),
		db.Use(gormplugin.Domains{}),
		db.AutoMigrate(&Author{}, &Article{}),
	)
}

// CreateAgain creates an article. If another row has one of its generated IDs, it repeats the call,
// which generates others. The transaction is a savepoint in a transaction of the caller.
func CreateAgain(db *gorm.DB, article *Article) (err error) {
	for range 3 {
		err = db.Transaction(func(tx *gorm.DB) error { return tx.Create(article).Error })
		if !errors.Is(err, gorm.ErrDuplicatedKey) {
			break
		}
	}
	return err
}
