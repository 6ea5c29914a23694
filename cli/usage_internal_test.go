package cli

import (
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"parley/catalog"
	"parley/cli/console"
)

// vague are words that help texts avoid: they name no actor, number, or unit.
var vague = regexp.MustCompile(`(?i)\b(so many|go on|goes on|bears?|told|mind|who is|behaviour|in the midst|all the same)\b`)

// docsPage is the path of a page.
var docsPage = regexp.MustCompile(`docs/[A-Za-z/-]+\.md`)

// The help of each command is short and plain: a verb phrase of at most 60 characters, except the titles of protocols,
// and flags that are phrases. The pages that it names exist.
func TestHelpIsPlain(t *testing.T) {
	a := &console.App{Protocols: catalog.All(), Out: &console.Output{To: io.Discard}, Err: io.Discard}
	seen := 0
	for _, cmd := range commands(rootCommand(a)) {
		seen++
		for _, page := range docsPage.FindAllString(cmd.Long, -1) {
			if _, err := os.Stat("../" + page); err != nil {
				t.Errorf("%s: the help names a page that does not exist: %v", cmd.CommandPath(), err)
			}
		}
		_, err := a.Find(cmd.Name())
		if err != nil && cmd.HasParent() && (len(cmd.Short) > 60 || strings.HasSuffix(cmd.Short, ".")) {
			t.Errorf("%s: %q has %d characters: want a phrase of at most 60", cmd.CommandPath(), cmd.Short, len(cmd.Short))
		}
		if err != nil && vague.MatchString(cmd.Short+cmd.Long) {
			t.Errorf("%s: the help has %q", cmd.CommandPath(), vague.FindString(cmd.Short+cmd.Long))
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if vague.MatchString(f.Usage) || f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: %q is no plain phrase", cmd.CommandPath(), f.Name, f.Usage)
			}
		})
	}
	if seen < 80 {
		t.Errorf("only %d commands", seen)
	}
}

// A set of values that is wider than its column continues on the next line.
func TestFoldSets(t *testing.T) {
	const text = "  --level level  level:\n                 one|two|three (default one)\n  --a|b|c|d|e|f|g|h|i|j|k"
	want := "  --level level  level:\n                 one|\n                 two|\n                 three (default one)\n" +
		"  --a|b|c|d|e|f|g|h|i|j|k"
	if got := foldSets(24, text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Help folds its paragraphs and the second column of its tables, and leaves other lines that begin with a space.
func TestFoldText(t *testing.T) {
	const text = "One paragraph\nof two lines.\n\n  3  a long second column\n  parley run eig -n 4 -m 1 --json"
	want := "One paragraph of two\nlines.\n\n  3  a long second\n     column\n  parley run eig -n 4 -m 1 --json"
	if got := foldText(text, 20); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
