// Command snowflake is the second program in README.md: hello with keys of 8 bytes. It needs
// DATABASE_URL.
package main
