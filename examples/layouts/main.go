// Command layouts draws the layouts of the five formats, into docs/images:
//
//	go run ./examples/layouts
//
// Where a field lies is found by composing IDs with package idtype, a bit at a
// time, so a drawing has what the code does.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	folder := flag.String("folder", filepath.Join("docs", "images"), "where the drawings go; it has to be there")
	flag.Parse()
	if err := write(*folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes all drawings.
func write(folder string) error {
	formats, err := formats()
	if err != nil {
		return err
	}
	for _, f := range formats {
		if err := os.WriteFile(filepath.Join(folder, f.file()), f.draw(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
