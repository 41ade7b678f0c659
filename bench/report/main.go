// Command report runs the benchmarks of this module, keeps their output, and
// writes a page with tables and plots.
// Run it in the root of the repository:
//
//	go run ./bench/report                           # everything: docs/benchmarks.md, docs/images
//	go run ./bench/report -quick                    # less of each: .bin/benchmarks
//	go run ./bench/report -again '^generating|GORM' # only some stages
//	go run ./bench/report -again none               # no stage: the page from kept output
//
// The output is kept in .bin/benchmarks/full and .bin/benchmarks/quick.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	quick := flag.Bool("quick", false, "measure less of each stage and write the page to .bin/benchmarks")
	again := flag.String("again", "", "measure only the stages whose titles match this `regexp` and keep the output of the others")
	flag.Parse()
	page, kept := "docs", ".bin/benchmarks/full"
	if *quick {
		page, kept = ".bin/benchmarks", ".bin/benchmarks/quick"
	}
	var err error
	if _, here := os.Stat("bench/report"); here != nil || flag.NArg() > 0 {
		err = errors.New("not in the root of the repository, or arguments other than flags; run go run ./bench/report in the root")
	} else if err = measure(*quick, *again, kept); err == nil {
		err = render(kept, page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// measure runs the stages and writes the output of each to a file in a folder.
func measure(quick bool, again, folder string) error {
	chosen, err := regexp.Compile(again)
	if err != nil {
		return err
	}
	head, err := exec.Command("sh", "-c", environment).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", environment, err)
	}
	if again == "" {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	for i, s := range stages {
		if !chosen.MatchString(s.title) {
			continue
		}
		fmt.Printf("%2d/%d %-40s ", i+1, len(stages), s.title)
		if s.server && os.Getenv("DATABASE_URL") == "" {
			fmt.Println("skipped: DATABASE_URL is unset")
			continue
		}
		began := time.Now()
		output, err := exec.Command("sh", "-c", s.command(quick)).CombinedOutput()
		if err == nil {
			_, err = read(string(output)) // reject malformed results, whose figures would be missing
		}
		if err != nil && !errors.Is(err, errEmpty) { // all benchmarks were skipped, because the server is too old
			return fmt.Errorf("%s: %w\n%s", s.command(quick), err, output)
		}
		if err := write(filepath.Join(folder, fmt.Sprintf("%02d.txt", i+1)), fmt.Sprintf("%s# command: %s\n%s", head, s.command(quick), output)); err != nil {
			return err
		}
		fmt.Printf("%6s\n", time.Since(began).Round(time.Second))
	}
	return nil
}

// render reads the output in kept, and writes the page with its plots to
// folders.
func render(kept, page string) error {
	var text []byte
	for i := range stages { // a skipped stage has no file
		output, err := os.ReadFile(filepath.Join(kept, fmt.Sprintf("%02d.txt", i+1)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		text = append(text, output...)
	}
	r, err := read(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", kept, err)
	}
	for file, c := range charts {
		if svg := c.draw(r.lines(c)); svg != "" {
			if err := write(filepath.Join(page, "images", file), svg); err != nil {
				return err
			}
		}
	}
	markdown, err := r.markdown(pageTemplate)
	if err != nil {
		return err
	}
	for _, figure := range r.missing {
		fmt.Println("not measured:", figure)
	}
	path := filepath.Join(page, "benchmarks.md")
	fmt.Println(path)
	return write(path, markdown)
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}
