package pglease_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
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
	ids, err := nodelease.NewSpread64Generator(context.Background(), store, 3, nodelease.Options{Reacquire: true})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println("minting with number", ids.Keeper().Number())
}
