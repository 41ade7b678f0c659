package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// againFact says which stages were measured after the others, and when.
const againFact = "measured again"

// measureAgain measures the stages whose titles a pattern matches, has the results
// in a file say that instead of what they say of these stages, and renders them.
// It is for stages that something disturbed.
func measureAgain(ctx context.Context, from, pattern string, log io.Writer) error {
	if from == "" {
		return errors.New("expected -from with -again: the results in which stages are to be replaced")
	}
	titles, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	r, err := read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	quick := r.facts["command"] == quickCommand
	var measured []string
	for _, s := range stages {
		if !titles.MatchString(s.title) {
			continue
		}
		if why := s.leftOut(os.Getenv("DATABASE_URL") != ""); why != "" {
			return fmt.Errorf("%s: left out: %s", s.title, why)
		}
		begin, end, ok := section(text, s.command(quick))
		if !ok {
			return fmt.Errorf("expected %s to have the output of %s, got none", from, s.command(quick))
		}
		fmt.Fprintf(log, "%s\n", s.title)
		output, err := s.run(ctx, quick)
		if err != nil {
			fmt.Fprintf(log, "failed\n\n%s\n", output)
			return fmt.Errorf("%s: %w", s.command(quick), err)
		}
		text = slices.Concat(text[:begin], output, text[end:])
		measured = append(measured, s.title)
	}
	if len(measured) == 0 {
		return fmt.Errorf("expected a pattern of titles of stages, got %q, which matches none", pattern)
	}
	said := fmt.Sprintf("%s: %s, of commit %s", strings.Join(measured, ", "), time.Now().UTC().Format(time.DateOnly), commit(ctx))
	line := factMark + againFact + ": "
	if before := r.facts[againFact]; before != "" {
		text = bytes.Replace(text, []byte(line+before+"\n"), []byte(line+before+"; "+said+"\n"), 1)
	} else {
		text = append([]byte(line+said+"\n"), text...)
	}
	if err := write(from, text); err != nil {
		return err
	}
	return render(text, filepath.Dir(from), log)
}

// section is where the output of a command is: up to the next one's.
func section(text []byte, command string) (begin, end int, ok bool) {
	head := []byte("\n" + commandMark + command + "\n")
	begin = bytes.Index(text, head)
	if begin < 0 {
		return 0, 0, false
	}
	begin += len(head)
	end = len(text)
	if n := bytes.Index(text[begin:], []byte("\n"+commandMark)); n >= 0 {
		end = begin + n
	}
	return begin, end, true
}
