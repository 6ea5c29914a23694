// Command rename gives the module another path. It changes the path in the go.mod files, in imports, and in text,
// data and seeded bugs that name packages of the module.
//
//	go run ./rename -root DIR MODULE
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func main() {
	root := flag.String("root", ".", "the `folder` of the module's go.mod")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "rename: one argument was expected: the new path of the module, as in example.org/parley")
		os.Exit(2)
	}
	n, err := rename(*root, flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "rename:", err)
		os.Exit(1)
	}
	fmt.Printf("%d files changed\n", n)
}

// modulePath matches the allowed module paths; more is allowed than is wise.
var modulePath = regexp.MustCompile(`^[A-Za-z0-9][\w.~-]*(/[A-Za-z0-9][\w.~-]*)*$`)

// rename changes the files under root and returns how many.
func rename(root, to string) (int, error) {
	if !modulePath.MatchString(to) {
		return 0, fmt.Errorf("%q is no path of a module: expected is one as in example.org/parley", to)
	}
	goMod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return 0, err
	}
	line := regexp.MustCompile(`(?m)^module (\S+)`).FindSubmatch(goMod)
	if line == nil {
		return 0, errors.New("go.mod has no module line")
	}
	r := renamer{from: string(line[1]), to: to}
	if r.from == to {
		return 0, nil
	}
	if err := r.findFolders(root); err != nil {
		return 0, err
	}
	r.compile()
	changed := 0
	err = walk(root, func(path string, d fs.DirEntry) error {
		text, err := os.ReadFile(path)
		if err != nil || !utf8.Valid(text) {
			return err
		}
		out, err := r.file(path, string(text))
		if err != nil || out == string(text) {
			return err
		}
		changed++
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(path, []byte(out), info.Mode().Perm())
	})
	return changed, err
}

// walk visits the files under root except those of git.
func walk(root string, visit func(path string, d fs.DirEntry) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return visit(path, d)
	})
}

// renamer replaces the old path by the new one.
type renamer struct {
	from, to string
	folders  []string // folders with Go files, and go.mod files, relative to the root
	packages *regexp.Regexp
	lines    *regexp.Regexp
	modules  *regexp.Regexp
}

// findFolders lists the folders that an import path can name.
func (r *renamer) findFolders(root string) error {
	err := walk(root, func(path string, _ fs.DirEntry) error {
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err == nil && rel != "." && (filepath.Ext(path) == ".go" || filepath.Base(path) == "go.mod") {
			r.folders = append(r.folders, regexp.QuoteMeta(filepath.ToSlash(rel)))
		}
		return err
	})
	slices.Sort(r.folders)
	r.folders = slices.Compact(r.folders)
	slices.Reverse(r.folders) // longer ones first
	return err
}

// compile compiles the expressions.
func (r *renamer) compile() {
	from := regexp.QuoteMeta(r.from)
	// The path of an existing package, or of all: parley/agreement/eig, parley/...
	packages := append(slices.Clone(r.folders), `\.\.\.`)
	r.packages = regexp.MustCompile(`(^|[^\w./~-])` + from + `(/(?:` + strings.Join(packages, "|") + `))($|[^\w-])`)
	// An import of the root in text that contains Go: the path alone on its line, after a sign in a seeded
	// bug.
	r.lines = regexp.MustCompile(`(?m)^([+ -]?[ \t]*(?:import[ \t]+)?(?:[\w.]+[ \t]+)?")` + from + `("[ \t]*(?://.*)?)$`)
	// The lines of a go.mod, also in text.
	r.modules = regexp.MustCompile(`((?:\b|\\n)(?:module|require|replace)[ \t]+)` + from + `([ \t\n\\]|$)`)
}

// file returns the text of a file with the module renamed.
func (r *renamer) file(path, text string) (string, error) {
	if filepath.Ext(path) != ".go" || strings.Contains(filepath.ToSlash(path), "/testdata/") {
		return r.text(text), nil
	}
	text, err := r.source(text)
	if err != nil {
		return "", err
	}
	formatted, err := format.Source([]byte(r.packages.ReplaceAllString(text, "${1}"+r.to+"${2}${3}")))
	return string(formatted), err
}

// text renames in text that is not Go, or is Go within other text.
func (r *renamer) text(text string) string {
	text = r.lines.ReplaceAllString(text, "${1}"+r.to+"${2}")
	text = r.modules.ReplaceAllString(text, "${1}"+r.to+"${2}")
	return r.packages.ReplaceAllString(text, "${1}"+r.to+"${2}${3}")
}

// source renames the imports of a Go file, and the contents of its strings. Elsewhere the bare word may be
// the name of the command or of the package.
func (r *renamer) source(text string) (string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments)
	if err != nil {
		return "", err
	}
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	replace := func(n ast.Node, with string) {
		edits = append(edits, edit{fset.Position(n.Pos()).Offset, fset.Position(n.End()).Offset, with})
	}
	imports := make(map[ast.Node]bool)
	for _, spec := range file.Imports {
		imports[spec.Path] = true
		if spec.Path.Value == strconv.Quote(r.from) {
			replace(spec.Path, strconv.Quote(r.to))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING && !imports[s] {
			if strings.HasPrefix(s.Value, "`") {
				replace(s, r.text(s.Value))
			} else {
				replace(s, r.modules.ReplaceAllString(s.Value, "${1}"+r.to+"${2}"))
			}
		}
		return true
	})
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text, nil
}
