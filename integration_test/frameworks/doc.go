// Package frameworks runs the recipes of docs/using-with.md, which are in examples/frameworks.
//
// # What it shows
//
//   - queries_test.go: sqlx inserts rows, and reads them by keys
//   - bun_test.go: models of bun, the columns that bun creates, and nullable keys
//   - binding_test.go: oapi-codegen, gorilla/schema, go-querystring, mapstructure and swag read
//     and write IDs in parameters and documents
//   - converters_test.go: jinzhu/copier, go-playground/form and hertz need functions, which the page shows
//   - schema_test.go: the schemas of invopop/jsonschema and google/jsonschema-go accept the JSON of IDs
//   - typeid_test.go: a UUIDOf has the same text as in the reference implementation of TypeID
//
// The packages ent, graph and proto below test ent, gqlgen and protocol buffers. They generate
// code from a schema into a temporary directory, and run the tests in their testdata with it.
// Packages gorm and gormgen test GORM.
//
// # Fixtures
//
// The recipes have their own tables. They share the key types and generators of
// examples/frameworks/key.
//
// # Running
//
//	go test ./frameworks -run TestQueries                # on a container of Postgres 17
//	go test ./frameworks -run TestSwag                   # without Postgres
//	go test ./frameworks/ent                             # generates and runs
//	DATABASE_URL=postgres://me@localhost/db go test ./frameworks -run TestBun
//
// No test needs a container.
//
// # Cost
//
// Seconds per package, on one server of the last requested version. The first run takes minutes,
// because it compiles the frameworks. Nothing runs with -short.
package frameworks
