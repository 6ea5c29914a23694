package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// filler are words that add nothing to a name.
var filler = strings.Fields("a an and are at be for from get gets given have has in is it its of on or return returns set sets " +
	"that the their this to type value with")

// repeats reports whether a comment consists of the words of a name, in any form, and of filler.
func repeats(name, comment string) bool {
	known := append(strings.Fields(strings.ToLower(capital.ReplaceAllString(name, " $0"))), filler...)
	known = append(known, strings.ToLower(name))
	for _, word := range wordPattern.FindAllString(strings.ToLower(comment), -1) {
		found := false
		for _, k := range known {
			found = found || word == k || len(k) > 3 && strings.TrimRight(word, "s") == strings.TrimRight(k, "s")
		}
		if !found {
			return false
		}
	}
	return true
}

var (
	capital     = regexp.MustCompile(`[A-Z]+[a-z0-9]*`)
	wordPattern = regexp.MustCompile(`[a-z0-9]+`)
)

// repeatBreaches demands that a declaration's comment says more than its name.
func repeatBreaches(m *module, s *source) (out []string) {
	check := func(name string, doc *ast.CommentGroup) {
		if doc != nil && doc.Text() != "" && repeats(name, doc.Text()) {
			out = append(out, fmt.Sprintf("%s: the comment %q only repeats the name %s", m.at(doc.Pos()),
				strings.TrimSpace(doc.Text()), name))
		}
	}
	ast.Inspect(s.syntax, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			check(d.Name.Name, d.Doc)
		case *ast.TypeSpec:
			check(d.Name.Name, d.Doc)
		case *ast.GenDecl:
			if len(d.Specs) == 1 {
				switch spec := d.Specs[0].(type) {
				case *ast.TypeSpec:
					check(spec.Name.Name, d.Doc)
				case *ast.ValueSpec:
					check(spec.Names[0].Name, d.Doc)
				}
			}
		case *ast.Field:
			if len(d.Names) == 1 {
				check(d.Names[0].Name, d.Doc)
				check(d.Names[0].Name, d.Comment)
			}
		}
		return true
	})
	return out
}

func TestComments(t *testing.T) {
	m := loaded(t)
	for _, s := range m.files {
		if s.syntax != nil && !ast.IsGenerated(s.syntax) {
			report(t, repeatBreaches(m, s))
		}
	}
}

func TestCommentsCatches(t *testing.T) {
	m := loaded(t)
	code := "package x\n\n// Receive.\nfunc (r *T) receive() {}\n\n// maxFrames is the max of frames.\nconst maxFrames = 1\n\n" +
		"// T is a type.\ntype T struct {\n\tlast int // the last\n\tnext int // in ticks\n}\n\n// T2 counts lost frames.\ntype T2 int\n"
	expect(t, "comments", repeatBreaches(m, plant(t, m, "x/x.go", code).code[0]),
		`x/x.go:3: the comment "Receive." only repeats`, "x/x.go:6:", "x/x.go:9:", "x/x.go:11:")
}
