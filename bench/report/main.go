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
	quick := flag.Bool("quick", false, "measure less of each stage, and write the page to .bin/benchmarks")
	again := flag.String("again", "", "measure only the stages whose titles match this `regexp`, and keep the output of the others")
	renderOnly := flag.Bool("render", false, "measure nothing, and write the page of what was kept")
	flag.Parse()
	page, kept := "docs", ".bin/benchmarks/full"
	if *quick {
		page, kept = ".bin/benchmarks", ".bin/benchmarks/quick"
	}
	var err error
	if _, here := os.Stat("bench/report"); here != nil || flag.NArg() > 0 {
		err = errors.New("expected to be run in the root of the repository, with flags only: go run ./bench/report")
	} else if !*renderOnly {
		err = measure(*quick, *again, kept)
	}
	if err == nil {
		err = render(kept, page)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// measure runs the stages and keeps their output in a folder, each in a file of
// its own.
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
			fmt.Println("left out: no server")
			continue
		}
		began := time.Now()
		output, err := exec.Command("sh", "-c", s.command(quick)).CombinedOutput()
		if err == nil {
			_, err = read(string(output)) // lines that are nearly results are errors, since figures would be missing
		}
		if err != nil && !errors.Is(err, errEmpty) { // benchmarks skip what the server is too old for
			return fmt.Errorf("%s: %w\n%s", s.command(quick), err, output)
		}
		if err := write(filepath.Join(folder, fmt.Sprintf("%02d.txt", i+1)), fmt.Sprintf("%s# command: %s\n%s", head, s.command(quick), output)); err != nil {
			return err
		}
		fmt.Printf("%6s\n", time.Since(began).Round(time.Second))
	}
	return nil
}

// render writes the page and the plots of the output in a folder to another.
func render(kept, folder string) error {
	var text []byte
	for i := range stages { // one that was left out has no file
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
	for _, what := range r.missing() {
		fmt.Println("not measured:", what)
	}
	for file, c := range charts {
		if svg := r.draw(c); svg != "" {
			if err := write(filepath.Join(folder, "images", file), svg); err != nil {
				return err
			}
		}
	}
	markdown, err := r.page()
	if err != nil {
		return err
	}
	path := filepath.Join(folder, "benchmarks.md")
	fmt.Println(path)
	return write(path, markdown)
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}
