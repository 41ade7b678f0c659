// Generate writes package query to the folder that -out names.
package main

import (
	"flag"

	"gorm.io/gen"

	"github.com/sortkey/sortkey/integration_test/gormgen/model"
)

func main() {
	out := flag.String("out", "query", "the output folder")
	flag.Parse()
	g := gen.NewGenerator(gen.Config{OutPath: *out, Mode: gen.WithDefaultQuery | gen.WithQueryInterface})
	g.ApplyBasic(model.Customer{}, model.Order{}, model.Line{})
	g.Execute()
}
