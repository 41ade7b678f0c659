// Command hello is the program in README.md. It needs DATABASE_URL.
package main
