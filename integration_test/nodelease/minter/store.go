package main

import (
	"database/sql"
	"errors"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
	"github.com/sortkey/sortkey/nodelease/zklease"
)

// storeFlags are the flags that select the store.
type storeFlags struct{ postgres, zookeeper, root string }

// open returns the store and a function that closes it.
func (f storeFlags) open(ttl time.Duration) (nodelease.Store, func(), error) {
	switch {
	case f.postgres != "":
		db, err := sql.Open("pgx", f.postgres)
		if err != nil {
			return nil, nil, err
		}
		return pglease.New(db, pglease.Config{}), func() { _ = db.Close() }, nil
	case f.zookeeper != "":
		store, err := zklease.Connect(strings.Split(f.zookeeper, ","), zklease.Config{Root: f.root, SessionTimeout: ttl})
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	return nil, nil, errors.New("no store: set -postgres or -zookeeper")
}
