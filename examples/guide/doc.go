// Package guide is the code of the pages in docs, a file for each page. The
// tests in integration_test/guide run it.
package guide
