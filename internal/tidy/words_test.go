package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// idiom is wording that readers stumble over, with what to write instead, and the number of matches in comments of Go
// code, which may only fall. Documentation and texts that the program prints have none. The pattern matches across line
// breaks: a space stands for any white space.
type idiom struct {
	pattern string
	allowed int
	instead string
}

// idioms is the list of all such wording.
var idioms = []idiom{
	{`(^|[.;:|*-] )Who [a-z]`, 2, "name the actor: a node that ..."},
	{`\b(is|are) (that|those) of\b`, 1, "say what it does or returns"},
	{`\b(go|goes|going|gone|went) on\b`, 0, "continue, last, or happen"},
	{`\b(come|comes|coming|came) back\b`, 0, "restart, rejoin, or return"},
	{`\b(stand|stands|standing|stood) still\b`, 0, "stall, is paused, or is unresponsive"},
	{`\btold\b`, 18, "send, notify, report, or print"},
	{`, for (it|they|he|all|no|nobody|nothing|there|who|what)\b`, 3, "because"},
	{`\banew\b`, 1, "again, or from scratch"},
	{`\bin spite of\b`, 0, "despite, or tolerating"},
}

// passage is a piece of prose of a file, and the line on which it begins. A comment is read by people who change the
// code; all other prose by people who use the program.
type passage struct {
	line    int
	text    string
	comment bool
}

// prose returns the passages of a file: the groups of comments and the texts in strings of Go files, the comments of
// proto and YAML files, and the blocks of Markdown between empty lines, without quotations. Generated code, strings of
// tests, and the changelog have none.
func prose(s *source, fset *token.FileSet) (out []passage) {
	switch ext := path.Ext(s.path); {
	case s.path == "CHANGELOG.md":
	case ext == ".md":
		for _, p := range passages(s, func(line string) (string, bool) { return line, strings.TrimSpace(line) != "" }) {
			p.text = quotation.ReplaceAllString(p.text, `""`)
			out = append(out, p)
		}
	case ext == ".proto":
		return passages(s, after("//"))
	case ext == ".yaml":
		return passages(s, after("#"))
	case s.syntax != nil && !ast.IsGenerated(s.syntax):
		for _, group := range s.syntax.Comments {
			var lines []string
			for _, c := range group.List {
				lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "))
			}
			out = append(out, passage{fset.Position(group.Pos()).Line, strings.Join(lines, "\n"), true})
		}
		if s.test() {
			break
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if b, ok := n.(*ast.BasicLit); ok && b.Kind == token.STRING {
				text, err := strconv.Unquote(b.Value)
				if err == nil && strings.Contains(text, " ") {
					out = append(out, passage{line: fset.Position(b.Pos()).Line, text: text})
				}
			}
			return true
		})
	}
	return out
}

// quotation is what a page quotes: the words of a source or of an output, and names such as values-not-told-apart.
var quotation = regexp.MustCompile("(?s)\"[^\"`]*\"|`[^`]*`|[a-z]+(-[a-z]+){2,}")

// after returns a function that takes a line's text behind a mark.
func after(mark string) func(line string) (string, bool) {
	return func(line string) (string, bool) {
		_, comment, ok := strings.Cut(line, mark)
		return strings.TrimPrefix(comment, " "), ok
	}
}

// passages returns the longest sequences of lines in which take finds prose.
func passages(s *source, take func(line string) (text string, ok bool)) (out []passage) {
	open := false
	for i, line := range strings.Split(string(s.text), "\n") {
		text, ok := take(line)
		switch {
		case ok && open:
			out[len(out)-1].text += "\n" + text
		case ok:
			out = append(out, passage{line: i + 1, text: text})
		}
		open = ok
	}
	return out
}

// found lists the places of an idiom: in comments, and in what users read.
type found struct{ comments, texts []string }

// matches returns the places of each idiom in files.
func matches(fset *token.FileSet, files []*source) map[idiom]found {
	places := make(map[idiom]found)
	expressions := make(map[idiom]*regexp.Regexp)
	for _, i := range idioms {
		expressions[i] = regexp.MustCompile(strings.ReplaceAll(i.pattern, " ", `\s+`))
	}
	for _, s := range files {
		for _, p := range prose(s, fset) {
			for i, e := range expressions {
				for _, at := range e.FindAllStringIndex(p.text, -1) {
					place, f := fmt.Sprintf("%s:%d", s.path, p.line+strings.Count(p.text[:at[1]], "\n")), places[i]
					if p.comment {
						f.comments = append(f.comments, place)
					} else {
						f.texts = append(f.texts, place)
					}
					places[i] = f
				}
			}
		}
	}
	return places
}

// breach compares the number of matches with the allowed one: a lower number must be entered in the list.
func (i idiom) breach(places found) (out []string) {
	if n := len(places.texts); n > 0 {
		out = append(out, fmt.Sprintf("%s: %d matches in texts for users: write %q instead in\n%s",
			i.pattern, n, i.instead, strings.Join(places.texts, "\n")))
	}
	switch n := len(places.comments); {
	case n > i.allowed:
		out = append(out, fmt.Sprintf("%s: %d matches, and %d are allowed: write %q instead in\n%s",
			i.pattern, n, i.allowed, i.instead, strings.Join(places.comments, "\n")))
	case n < i.allowed:
		out = append(out, fmt.Sprintf("%s: %d matches, and %d are allowed: change the line in words_test.go to\n\t{`%[1]s`, %[2]d, %[4]q},",
			i.pattern, n, i.allowed, i.instead))
	}
	return out
}

func TestWords(t *testing.T) {
	m := loaded(t)
	places := matches(m.fset, m.files)
	for _, i := range idioms {
		report(t, i.breach(places[i]))
	}
}

func TestWordsCatches(t *testing.T) {
	m := loaded(t)
	code := "package x\n\n// f is a function. Who\n// calls it goes\n// on.\nfunc f() string { return \"do it anew\" } // told\n"
	sources := []*source{
		plant(t, m, "x/x.go", code).code[0],
		plant(t, m, "x/x_test.go", "package x\n\nvar x = \"made anew\"\n").tests[0],
		plant(t, m, "x/made.go", "// Code generated by hand. DO NOT EDIT.\n\npackage x\n\n// told\n").code[0],
		{path: "x.proto", text: []byte("message M {\n  // told\n  string told = 1; // in spite\n  // of\n}\n")},
		{path: "x.yaml", text: []byte("# told\ntold: 1\n")},
		{path: "x.md", text: []byte("# Who is it\n\nWho reads is\nthose of X; told \"told\", `told`.\n\n- Who comes\n  back\n")},
		{path: "CHANGELOG.md", text: []byte("told\n")},
		{path: "x.txt", text: []byte("told\n")},
	}
	got := matches(m.fset, sources)
	for at, want := range map[string]found{
		"Who [a-z]":       {[]string{"x/x.go:4"}, []string{"x.md:3", "x.md:6"}},
		"(that|those) of": {nil, []string{"x.md:4"}},
		"went":            {[]string{"x/x.go:5"}, nil},
		"came":            {nil, []string{"x.md:7"}},
		"told":            {[]string{"x/x.go:6"}, []string{"x.proto:2", "x.yaml:1", "x.md:4"}},
		"anew":            {nil, []string{"x/x.go:6"}},
		"in spite of":     {nil, []string{"x.proto:4"}},
		"stood":           {},
		", for ":          {},
	} {
		in := 0
		for _, i := range idioms {
			if !strings.Contains(i.pattern, at) {
				continue
			}
			in++
			expect(t, i.pattern+" in comments", got[i].comments, want.comments...)
			expect(t, i.pattern+" in texts", got[i].texts, want.texts...)
		}
		if in != 1 {
			t.Errorf("%q is in %d patterns", at, in)
		}
	}
	one := idiom{`\btold\b`, 1, "send"}
	expect(t, "as many as allowed", one.breach(found{comments: []string{"x.go:1"}}))
	expect(t, "one more", one.breach(found{comments: []string{"x.go:1", "x.go:7"}}),
		"2 matches, and 1 are allowed: write \"send\" instead in\nx.go:1\nx.go:7")
	expect(t, "one less", one.breach(found{}), "words_test.go to\n\t{`\\btold\\b`, 0, \"send\"},")
	expect(t, "in a text", one.breach(found{[]string{"x.go:1"}, []string{"x.md:3"}}), "1 matches in texts for users: write \"send\"")
}
