package filelease_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sortkey/sortkey/idtype"
	"github.com/sortkey/sortkey/nodelease"
	"github.com/sortkey/sortkey/nodelease/filelease"
)

// Each pod of a StatefulSet has a volume of its own, mounted at /var/lib/shop.
func ExampleNew() {
	n, err := nodelease.Ordinal("POD_INDEX", 0, 1024)
	if err != nil {
		log.Fatal(err)
	}
	store := filelease.New("/var/lib/shop", filelease.Config{Numbers: []int{n}})
	ids, err := nodelease.NewSnowflakeGenerator(context.Background(), store, idtype.SnowflakeConfig{}, nodelease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close()
	fmt.Println("node number:", ids.Keeper().Number())
}
