package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docs is what pages may refer to.
type docs struct {
	root     string
	pages    map[string]string // the text of each page, by its path below the root
	commands *cobra.Command
	targets  []string        // of make
	mutants  map[string]bool // PACKAGE/NAME
	flags    map[string]bool // of any command
	files    []string        // all paths
}

// readDocs reads all pages of the module but the changelog, which is about the past.
func readDocs(t *testing.T) *docs {
	t.Helper()
	d := &docs{
		root: "../..", pages: make(map[string]string), commands: newReference("../..").commands,
		mutants: make(map[string]bool), flags: make(map[string]bool),
	}
	err := filepath.WalkDir(d.root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(d.root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() && slices.Contains([]string{".git", "bin", "man"}, rel) {
			return fs.SkipDir
		}
		d.files = append(d.files, rel)
		switch {
		case e.IsDir() || rel == "CHANGELOG.md":
		case path.Base(rel) == "mutants.txt":
			b, err := os.ReadFile(name)
			for line := range strings.Lines(string(b)) {
				if mutant, ok := strings.CutPrefix(line, "name: "); ok {
					d.mutants[path.Join(strings.TrimSuffix(path.Dir(rel), "testdata"), strings.TrimSpace(mutant))] = true
				}
			}
			return err
		case path.Ext(rel) == ".md" && !strings.Contains(rel, "testdata/"):
			b, err := os.ReadFile(name)
			d.pages[rel] = string(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(d.root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(b), -1) {
		d.targets = append(d.targets, m[1])
	}
	for _, cmd := range everyCommand(d.commands) {
		visitFlags(cmd, func(f *pflag.Flag) { d.flags["--"+f.Name] = true })
	}
	return d
}

// visitFlags visits all flags that a command takes, and those of all protocols if an argument names one.
func visitFlags(cmd *cobra.Command, visit func(*pflag.Flag)) {
	cmd.InitDefaultHelpFlag()
	cmd.Flags().VisitAll(visit)
	cmd.InheritedFlags().VisitAll(visit)
	switch cmd.CommandPath() {
	case "parley":
		cmd.InitDefaultVersionFlag()
		cmd.Flags().VisitAll(visit)
	case "parley run", "parley explore":
		visit(&pflag.Flag{Name: "replay"})
		for _, sub := range cmd.Commands() {
			sub.Flags().VisitAll(visit)
		}
	case "parley sweep":
		run, _, err := cmd.Root().Find([]string{"run"})
		if err == nil {
			visitFlags(run, visit)
		}
	}
}

var (
	fenced     = regexp.MustCompile("(?ms)^ *```(.*?)^ *```[ \t]*$")
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	shellWord  = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s]+`)
	commandRun = regexp.MustCompile(`(?:^|\s)(?:parley|go run \./cmd/parley|bin/parley)((?:\s.*)?)$`)
	flagWord   = regexp.MustCompile(`^--?[a-z][a-z-]*`)
	fileName   = regexp.MustCompile(`\.[a-z]+$`)
	repoPath   = regexp.MustCompile(`^(?:\.\./)*[\w.-]+(?:/[\w.*-]+)+/?$`)
)

// codeOf returns the commands in a page: the lines of its blocks, with continued lines joined, and its code spans. prose
// is the page without both.
func codeOf(text string) (blocks, spans []string, prose string) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		first, rest, _ := strings.Cut(m[1], "\n")
		if slices.Contains([]string{"", "sh", "bash", "console"}, strings.TrimSpace(first)) {
			blocks = append(blocks, strings.Split(strings.ReplaceAll(rest, "\\\n", " "), "\n")...)
		}
	}
	text = fenced.ReplaceAllString(text, "")
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		spans = append(spans, strings.Join(strings.Fields(m[1]), " "))
	}
	return blocks, spans, codeSpan.ReplaceAllString(text, "code")
}

// anchors returns the fragments of a page's headings.
func anchors(text string) map[string]bool {
	out := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
		for i := 1; out[slug]; i++ {
			slug = fmt.Sprintf("%s-%d", strings.TrimSuffix(slug, fmt.Sprintf("-%d", i-1)), i)
		}
		out[slug] = true
	}
	return out
}

// breaches returns what is wrong with the references of a page.
func (d *docs) breaches(page string) (out []string) {
	report := func(form string, args ...any) { out = append(out, page+": "+fmt.Sprintf(form, args...)) }
	blocks, spans, prose := codeOf(d.pages[page])
	for _, m := range link.FindAllStringSubmatch(prose, -1) {
		if why := d.linkBreach(page, m[1]); why != "" {
			report("the link %s: %s", m[1], why)
		}
	}
	for _, line := range slices.Concat(blocks, spans) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if target, ok := strings.CutPrefix(line, "make "); ok {
			name, _, _ := strings.Cut(target, " ")
			if regexp.MustCompile(`^[a-z-]+$`).MatchString(name) && !slices.Contains(d.targets, name) {
				report("%q: the Makefile has no target %s", line, name)
			}
		}
		if why := d.commandBreach(line); why != "" {
			report("%q: %s", line, why)
		}
	}
	for _, span := range spans {
		if name := flagWord.FindString(span); strings.HasPrefix(name, "--") && !d.flags[name] {
			report("%q: no command has the flag %s", span, name)
		}
		if why := d.pathBreach(page, span); why != "" {
			report("%q: %s", span, why)
		}
	}
	return out
}

// linkBreach returns why a link is wrong, or "".
func (d *docs) linkBreach(page, to string) string {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return ""
	}
	name, fragment, _ := strings.Cut(to, "#")
	target := page
	if name != "" {
		target = path.Join(path.Dir(page), name)
	}
	if _, err := os.Stat(filepath.Join(d.root, filepath.FromSlash(target))); err != nil && d.pages[target] == "" {
		return "there is no such file"
	}
	if fragment != "" && !anchors(d.pages[target])[fragment] {
		return "the page has no such heading"
	}
	return ""
}

// commandBreach returns why a call of the command line in a line is wrong, or "".
func (d *docs) commandBreach(line string) string {
	m := commandRun.FindStringSubmatch(line)
	if m == nil || !strings.HasPrefix(line, "parley") && !strings.HasPrefix(line, "go run") && !strings.HasPrefix(line, "bin/") {
		return ""
	}
	cmd := d.commands
	for _, word := range shellWord.FindAllString(m[1], -1) {
		if slices.Contains([]string{"|", "||", "&&", ";", "&", ">", "<", "#", "--", "..."}, word) || strings.HasPrefix(word, ">") {
			break
		}
		if name := flagWord.FindString(word); name != "" {
			if !d.takes(cmd, name) {
				return fmt.Sprintf("%s has no flag %s", cmd.CommandPath(), name)
			}
			continue
		}
		if !cmd.HasSubCommands() || !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(word) {
			continue
		}
		sub, _, err := cmd.Find([]string{word})
		switch {
		case err == nil && sub != cmd:
			cmd = sub
		case cmd == d.commands:
			return fmt.Sprintf("there is no command %s", word)
		}
	}
	return ""
}

// takes reports whether a command takes a flag, given with its dashes.
func (d *docs) takes(cmd *cobra.Command, name string) bool {
	found := false
	visitFlags(cmd, func(f *pflag.Flag) {
		found = found || name == "--"+f.Name || name == "-"+f.Shorthand
	})
	return found
}

// pathBreach returns why a path in a code span is wrong, or "". What has no extension may be the name of a mutant, of a
// machine or of a metric as well: it must exist only if its first folder does and it ends with a slash.
func (d *docs) pathBreach(page, span string) string {
	if !repoPath.MatchString(span) || d.mutants[span] {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimLeft(span, "./"), "/")
	if _, err := os.Stat(filepath.Join(d.root, first)); err != nil {
		return "" // not of this module
	}
	if !fileName.MatchString(span) && !strings.HasSuffix(span, "/") {
		return ""
	}
	if slices.ContainsFunc(d.files, func(name string) bool { return strings.HasSuffix(name, "/"+span) }) {
		return "" // of any package, such as testdata/mutants.txt
	}
	for _, from := range []string{"", path.Dir(page)} {
		if found, err := filepath.Glob(filepath.Join(d.root, from, filepath.FromSlash(span))); err == nil && len(found) > 0 {
			return ""
		}
	}
	return "there is no such file"
}

// Every page refers only to what is there: pages, headings, commands, flags, make targets and files.
func TestPagesRefer(t *testing.T) {
	d := readDocs(t)
	if len(d.pages) < 20 {
		t.Errorf("only %d pages", len(d.pages))
	}
	commands := 0
	for _, page := range slices.Sorted(maps.Keys(d.pages)) {
		for _, breach := range d.breaches(page) {
			t.Error(breach)
		}
		blocks, spans, _ := codeOf(d.pages[page])
		for _, line := range slices.Concat(blocks, spans) {
			if commandRun.MatchString(line) {
				commands++
			}
		}
	}
	if commands < 300 {
		t.Errorf("only %d commands", commands)
	}
}

// docs/index.md links every page under docs.
func TestIndexIsComplete(t *testing.T) {
	d := readDocs(t)
	_, _, index := codeOf(d.pages["docs/index.md"])
	linked := map[string]bool{"docs/index.md": true}
	for _, m := range link.FindAllStringSubmatch(index, -1) {
		name, _, _ := strings.Cut(m[1], "#")
		linked[path.Join("docs", name)] = true
	}
	for page := range d.pages {
		if strings.HasPrefix(page, "docs/") && !linked[page] {
			t.Errorf("docs/index.md does not link %s", page)
		}
	}
}

// The checks find what is wrong, and nothing else.
func TestPagesReferCatches(t *testing.T) {
	d := readDocs(t)
	d.pages["docs/other.md"] = "# One thing, `two`\n\n## Same\n\n## Same\n"
	for text, want := range map[string]string{
		"[a](index.md) [b](../README.md) [c](https://example.org/x)": "",
		"[a](nowhere.md)": "there is no such file",
		"[a](other.md#one-thing-two) [b](other.md#same-1) [c](#here)\n\n# Here": "",
		"[a](other.md#three)":                             "the page has no such heading",
		"`[a](nowhere.md)`":                               "",
		"`parley run eig --seed 4`":                       "",
		"`parley run PROTOCOL --edges 1-2 -n 3`":          "",
		"`parley run eig --edges 1-2`":                    "parley run eig has no flag --edges",
		"`parley runn eig`":                               "there is no command runn",
		"`parley sweep FILE --seeds 1..2 --beyond-bound`": "",
		"```\n$ parley status \\\n  --dri bank\n```":      "parley status has no flag --dri",
		"```text\nparley status --dri bank\n```":          "",
		"```\nparley list | grep --color x\n```":          "",
		"`--jsn`":                                         "no command has the flag --jsn",
		"`make test` and `make MODULE=x`":                 "",
		"`make tests`":                                    "the Makefile has no target tests",
		"`cli/cli.go`, `docs/scenarios/*.yaml`, `a/b.go`": "",
		"`cli/clo.go`":                                    "there is no such file",
		"`cli/nothing/`":                                  "there is no such file",
	} {
		d.pages["docs/x.md"] = text
		got := d.breaches("docs/x.md")
		if (want == "") != (len(got) == 0) || len(got) > 1 || want != "" && !strings.HasSuffix(got[0], want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
