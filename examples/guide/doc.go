// Package guide has the code that the pages in docs show or link, one file per page. The
// tests in integration_test/guide run it.
package guide
