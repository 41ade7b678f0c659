// Command sortkey generates, explains and converts IDs, and installs, maintains
// and checks their SQL in a Postgres database.
//
//	go install github.com/sortkey/sortkey/cmd/sortkey@latest
//
// Its page in the documentation, docs/command.md, shows each command with its
// output.
package main
