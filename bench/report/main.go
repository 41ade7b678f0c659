package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	published = "docs"            // where the page of a full run goes
	scratch   = ".bin/benchmarks" // where that of a quick one does, and what is unfinished
	raw       = "benchmarks.txt"
	images    = "images" // beside the page
)

func main() {
	quick := flag.Bool("quick", false, "measure less of each, and write to "+scratch)
	from := flag.String("from", "", "render the results in this `file` again, beside it, and measure nothing")
	again := flag.String("again", "", "measure the stages whose titles match this `regexp` again, for the results in -from")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *again != "" {
		err = measureAgain(ctx, *from, *again, os.Stdout)
	} else {
		err = report(ctx, *quick, *from, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func report(ctx context.Context, quick bool, from string, log io.Writer) error {
	if flag.NArg() > 0 {
		return fmt.Errorf("expected flags alone, got %q", flag.Args())
	}
	if from != "" {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return render(text, filepath.Dir(from), log)
	}
	if _, err := os.Stat("bench/report"); err != nil {
		return errors.New("expected to be run in the root of the repository: go run ./bench/report")
	}
	folder := published
	if quick {
		folder = scratch
	}

	text, err := measure(ctx, quick, log)
	if err != nil {
		// An hour's figures are not to be lost for those of a minute.
		partial := filepath.Join(scratch, "unfinished.txt")
		if len(text) > 0 && write(partial, text) == nil {
			fmt.Fprintln(log, "what was measured before is in", partial)
		}
		return err
	}
	if err := write(filepath.Join(folder, raw), text); err != nil {
		return err
	}
	if err := render(text, folder, log); err != nil {
		return err
	}
	if quick {
		fmt.Fprintf(log, "This was a quick run: %s is as it was. make bench writes it.\n", filepath.Join(published, page))
	}
	return nil
}

// measure runs all stages and gives what they printed, up to one that failed.
func measure(ctx context.Context, quick bool, log io.Writer) ([]byte, error) {
	start := time.Now()
	server := os.Getenv("DATABASE_URL")
	header, err := environment(ctx, server, quick)
	if err != nil {
		return nil, err
	}
	text := bytes.NewBuffer(header)
	for i, s := range stages {
		fmt.Fprintf(log, "%2d/%d %-40s ", i+1, len(stages), s.title)
		if why := s.leftOut(server != ""); why != "" {
			fmt.Fprintln(log, "left out:", why)
			continue
		}
		began := time.Now()
		output, err := s.run(ctx, quick)
		if err != nil {
			fmt.Fprintf(log, "failed\n\n%s\n", output)
			return text.Bytes(), fmt.Errorf("%s: %w", s.command(quick), err)
		}
		fmt.Fprintf(text, "\n%s%s\n%s", commandMark, s.command(quick), output)
		fmt.Fprintf(log, "%6s, %6s in all\n", round(time.Since(began)), round(time.Since(start)))
	}
	return text.Bytes(), nil
}

func round(d time.Duration) string { return d.Round(time.Second).String() }

// render writes the page and the plots of some results to a folder.
func render(text []byte, folder string, log io.Writer) error {
	r, err := read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	pictures, err := r.plots()
	if err != nil {
		return err
	}
	markdown, err := r.page(pictures)
	if err != nil {
		return err
	}
	for _, p := range pictures {
		if err := write(filepath.Join(folder, images, p.name), p.svg); err != nil {
			return err
		}
	}
	path := filepath.Join(folder, page)
	if err := write(path, markdown); err != nil {
		return err
	}
	fmt.Fprintf(log, "%s, with %d plots in %s\n", path, len(pictures), filepath.Join(folder, images))
	return nil
}

// write replaces a file at once, so that none is there by half.
func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", content, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
