package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// execute runs a command line with the given standard input and returns its
// output and exit code.
func execute(t *testing.T, in string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(in), &o, &e)
	return o.String(), e.String(), code
}

// A usageTest has wrong arguments of a command, and a part of the error.
type usageTest struct{ args, want string }

// checkUsage runs tests of a command, or of its commands, without a database.
func checkUsage(t *testing.T, command string, tests []usageTest) {
	t.Helper()
	t.Setenv("DATABASE_URL", "")
	t.Setenv("PGHOST", "")
	hint := regexp.MustCompile(strings.TrimSpace("Run sortkey "+command) + ".* --help for the usage")
	for _, tt := range tests {
		out, errs, code := execute(t, "", strings.Fields(command+" "+tt.args)...)
		if code != exitError || out != "" || !strings.Contains(errs, tt.want) || !hint.MatchString(errs) {
			t.Errorf("sortkey %s %s: code %d, output %q, errors %q; want code 2 and %q", command, tt.args, code, out, errs, tt.want)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	checkUsage(t, "", []usageTest{
		{"inspekt", `unknown command "inspekt" for "sortkey"`},
		{"rekey expand", "accepts 1 arg(s), received 0"},
		{"rekey expand --colour x", "unknown flag: --colour"},
		{"help bogus", `unknown command "bogus" for "sortkey"`},
		{"help new bogus", `unknown command "bogus" for "sortkey"`},
		{"completion bogus", `unknown command "bogus" for "sortkey completion"`},
		{"new -n 99999999999999999999", `invalid argument "99999999999999999999" for "-n, --count" flag: value out of range` + "\n"},
		{"new sno --meta 256", `invalid argument "256" for "--meta" flag: value out of range` + "\n"},
		{"new -n many", `invalid argument "many" for "-n, --count" flag: invalid syntax` + "\n"},
		{"migrate print --bits 0/0/0", `--bits "0/0/0": want at least one field with bits`},
		{"migrate print --si-bits 0/0 --si-epoch 2026-01-01", `--si-bits "0/0": want at least one field with bits`},
		{"new --bits 0/0/0", "want at least one field"},
		{"rekey expand x --output yaml", `--output "yaml": want table or json`},
	})
}

// TestCompletion parses the completion script in bash and completes a flag's value.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, errs, code := execute(t, "", "completion", shell); code != exitOK || out == "" {
			t.Errorf("completion %s: code %d, %d bytes, errors %q", shell, code, len(out), errs)
		}
	}
	script, _, _ := execute(t, "", "completion", "bash")
	bash := exec.Command("bash", "-n")
	bash.Stdin = strings.NewReader(script)
	if out, err := bash.CombinedOutput(); err != nil {
		t.Errorf("bash -n: %v\n%s", err, out)
	}
	if out, _, _ := execute(t, "", "__complete", "new", "--output", ""); !strings.HasPrefix(out, "table\njson\n") {
		t.Errorf("complete --output: got %q, want table and json", out)
	}
}

// TestHelp prints the help of every command in both ways. The texts of the commands for
// IDs fit 80 columns.
func TestHelp(t *testing.T) {
	var check func(*cobra.Command)
	check = func(command *cobra.Command) {
		path := strings.Fields(command.CommandPath())[1:]
		out, errs, code := execute(t, "", append(path, "--help")...)
		same, _, _ := execute(t, "", append([]string{"help"}, path...)...)
		if code != exitOK || errs != "" || out == "" || same != out {
			t.Errorf("%s --help: code %d, errors %q, output\n%s\nhelp prints\n%s", command.CommandPath(), code, errs, out, same)
		}
		for line := range strings.Lines(command.Long + "\n" + command.Example) {
			if command.GroupID == "database" || command.HasParent() && command.Parent().HasParent() {
				break
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: a line of %d columns: %s", command.CommandPath(), n, line)
			}
		}
		for _, sub := range command.Commands() {
			if command.Name() != "completion" { // cobra's own texts
				check(sub)
			}
		}
	}
	check(newApp(nil, nil, nil).rootCommand())
}

// TestInstallable checks that go install accepts the module, which must not replace
// any dependency.
func TestInstallable(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mod)) {
		if strings.HasPrefix(line, "replace") || strings.HasPrefix(line, "exclude") {
			t.Errorf("go.mod: %q: go install …@version rejects this directive", strings.TrimSpace(line))
		}
	}
}

// Completion scripts and help texts pass unchanged.
func TestVisibleScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script, _, _ := execute(t, "", "completion", shell); strings.Contains(script, `\u00`) {
			t.Errorf("completion %s has escapes", shell)
		}
	}
}

// An error can't begin a line of its own.
func TestErrorLines(t *testing.T) {
	_, errs, code := execute(t, "", "inspect", "x\nok: forged\x1b[2J")
	if code == exitOK || strings.Contains(errs, "\nok") || strings.Contains(errs, "\x1b") {
		t.Errorf("got code %d and %q", code, errs)
	}
}
