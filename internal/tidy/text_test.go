package tidy

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Everything in the tree is public and must be self-contained: no paths of somebody's computer, and no words of the
// workshop in which it was made. Each line has a word in lower case that must occur, and the expression that then
// decides, in which % stands for the word. The dots in the middle are removed before use, so that this file does not
// contain what it forbids.
var privateText = [][2]string{
	{"/wo·rk/", `(?:^|[^\w.~-])%`},
	{"/ro·ot/", `(?:^|[^\w.~-])%`},
	{"/tmp/ba·sh_jobs", "%"},
	{"ho·use.md", `\b%\b`},
	{"sha·red", `\.\./%\b|(?:^|[^\w-])%/(?:seeds|vectors|bench|hooks|[A-Z]{3,})`},
	{"seed-err·ata", "(?i)%"},
	{"pit·falls", `\b[PIT·FALLS]{8}\b`},
	{"hel·per session", "(?i)%"},
	{"ag·ent", `(?i)\bsub-?%s?\b`},
	{"iss·ue", `(?i)\b% #?\d{1,2}\b`},
	{"anth·ropic", `(?i)\b%\b`},
	{"cla·ude", `(?i)\b%\b`},
	{"pro·xy.golang.org", `\b%\b`},
	{"s·um.golang.org", `\b%\b`},
	{"py·pi.org", `\b%\b`},
	{"python·hosted.org", `\b%\b`},
	{"registry.np·mjs.org", `\b%\b`},
	{"deb·.debian.org", `\b%\b`},
}

// private is a line of the table, prepared for use.
type private struct {
	word       []byte
	expression *regexp.Regexp
}

var privateWords = sync.OnceValue(func() []private {
	var out []private
	for _, line := range privateText {
		word := strings.ReplaceAll(line[0], "·", "")
		e := strings.ReplaceAll(strings.ReplaceAll(line[1], "·", ""), "%", regexp.QuoteMeta(word))
		out = append(out, private{[]byte(word), regexp.MustCompile("(?m)" + e)})
	}
	return out
})

// textBreaches finds what must not be in public text, in any file.
func textBreaches(s *source) []string {
	var out []string
	small := bytes.ToLower(s.text)
	for _, p := range privateWords() {
		if bytes.Contains(small, p.word) {
			for _, at := range p.expression.FindAllIndex(s.text, -1) {
				line := bytes.Count(s.text[:at[0]], []byte("\n")) + 1
				out = append(out, fmt.Sprintf("%s:%d: %q", s.path, line, s.text[at[0]:at[1]]))
			}
		}
		if p.expression.MatchString(s.path) {
			out = append(out, fmt.Sprintf("%s: the name of the file", s.path))
		}
	}
	return out
}

func TestText(t *testing.T) {
	for _, s := range loaded(t).files {
		report(t, textBreaches(s))
	}
}

func TestTextCatches(t *testing.T) {
	for _, forbidden := range []string{
		"/wo·rk/x", "cd /wo·rk/", "`/ro·ot/go`", "/tmp/ba·sh_jobs.0/1", "as in ho·use.md",
		"../sha·red", "see sha·red/seeds/a", "(sha·red/CORE.md)", "Seed-Err·ata", "PIT·FALLS.md",
		"a hel·per session", "sub·agents", "Sub-Ag·ent", "of issue #·12",
		"iss·ue 2", "Anth·ropic", "Cla·ude", "https://pro·xy.golang.org/x", "s·um.golang.org", "py·pi.org",
		"files.python·hosted.org", "registry.np·mjs.org", "deb·.debian.org",
	} {
		text := strings.ReplaceAll(forbidden, "·", "")
		for _, around := range []string{"%s", "first\n%s\nlast\n", "words %s, words"} {
			s := &source{path: "docs/x.md", text: []byte(strings.Replace(around, "%s", text, 1))}
			if len(textBreaches(s)) != 1 {
				t.Errorf("%q: %q", s.text, textBreaches(s))
			}
		}
	}
	for _, allowed := range []string{
		"https://example.org/work/1", "docs/work/x", "/works/", "/root", "~/root/x", "share it", "memory shared/private",
		"sub-agentless", "issues 1 to 3", "issue #77377", "claudette", "golang.org/x/tools", "pitfalls", "/tmp/x",
	} {
		expect(t, allowed, textBreaches(&source{path: "docs/x.md", text: []byte(allowed)}))
	}
	named := &source{path: strings.ReplaceAll("docs/PIT·FALLS.md", "·", "")}
	expect(t, "a file's name", textBreaches(named), "the name of the file")
}

// The test checks all files of the project: its text, its data and its scripts, and nothing that git ignores.
func TestTextSeesAllFiles(t *testing.T) {
	m := loaded(t)
	for _, want := range []string{"go.mod", "parley.go", "Makefile", ".ci/run", "internal/tidy/text_test.go"} {
		if !slices.ContainsFunc(m.files, func(s *source) bool { return s.path == want }) {
			t.Errorf("%s was not looked at", want)
		}
	}
	ignored, err := ignoredFiles(m.root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"a/b/eig.test": true, "parley": true, "cmd/parley": false, "bin": true, "a/x.go": false,
	} {
		if ignored(name) != want {
			t.Errorf("%s ignored: %t", name, !want)
		}
	}
}
