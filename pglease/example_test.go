package pglease_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/pglease"
)

// The database has had migrations.Up. Its claims have a small pool of
// connections for themselves.
func ExampleNew() {
	leases, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer leases.Close()
	leases.SetMaxOpenConns(2)

	store := pglease.New(leases, pglease.Config{})
	keeper, err := nodelease.Acquire(context.Background(), store, nodelease.ForSno(), nodelease.Options{
		OnLost: func(err error) { log.Print("no IDs any more: ", err) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer keeper.Close()
	// It is the Lease of a generator: idtype.Options{Lease: keeper}.
	fmt.Println("minting with number", keeper.Number())
}
