package pglease_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/pglease"
)

// migrations.Up has run in the database. Claims use a small pool of connections of
// their own.
func ExampleNew() {
	leases, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer leases.Close()
	leases.SetMaxOpenConns(2)

	store := pglease.New(leases, pglease.Config{})
	ids, err := nodelease.NewSpread64Generator(context.Background(), store, idtype.Spread64Config{Cluster: 3}, nodelease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println("node number:", ids.Keeper().Number())
}
