// Command hello is the first program in README.md. It needs DATABASE_URL.
package main
