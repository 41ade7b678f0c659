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
	redrawOnly := flag.Bool("redraw", false, "measure nothing and draw the plots of the page again")
	renderOnly := flag.Bool("render", false, "measure nothing and write the page from kept output")
	flag.Parse()
	page, kept := "docs", ".bin/benchmarks/full"
	if *quick {
		page, kept = ".bin/benchmarks", ".bin/benchmarks/quick"
	}
	var err error
	if _, here := os.Stat("bench/report"); here != nil || flag.NArg() > 0 {
		err = errors.New("not in the root of the repository, or arguments other than flags; run go run ./bench/report in the root")
	} else if !*renderOnly && !*redrawOnly {
		err = measure(*quick, *again, kept)
	}
	switch {
	case err != nil:
	case *redrawOnly:
		err = redraw(page)
	default:
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

// redraw draws the plots in a folder again, with the figures in them.
func redraw(page string) error {
	for file, c := range charts {
		path := filepath.Join(page, "images", file)
		svg, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lines, err := readPlot(string(svg))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := write(path, c.draw(lines)); err != nil {
			return err
		}
	}
	return nil
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}
