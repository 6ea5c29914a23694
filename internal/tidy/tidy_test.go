// Package tidy enforces the rules of the project as tests over the source of the whole module. The rules are about
// imports, forbidden code in protocols, State (which must visit every variable), sizes, comments, and words that
// must not be in public text.
//
// Each file has one rule. A rule is a function that returns the breaches in a folder or in a file. A test shows
// that the function finds a breach that the test has planted.
package tidy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/internal/must"
)

// module is the source of the module in the file system.
type module struct {
	root     string // the folder of go.mod
	path     string // the module path in go.mod
	fset     *token.FileSet
	files    []*source // all, sorted by path
	folders  []*folder // those with Go files
	importer func() (types.Importer, error)
}

// source is one file. Paths are relative to the root, with slashes.
type source struct {
	path   string
	text   []byte
	syntax *ast.File // of Go files outside testdata
}

func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// folder is a folder with Go files: a package and its tests.
type folder struct {
	path        string // "." for the root
	outside     bool   // it belongs to another module inside this one
	code, tests []*source
}

func (f *folder) all() []*source { return slices.Concat(f.code, f.tests) }

// theModule is loaded once for all tests.
var theModule = sync.OnceValues(func() (*module, error) { return load("../..") })

func loaded(t *testing.T) *module {
	t.Helper()
	m, err := theModule()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.folders) < 5 {
		t.Fatalf("only %d folders with Go files: this is not the module", len(m.folders))
	}
	return m
}

// load reads and parses the module at root, except files that .gitignore excludes.
func load(root string) (m *module, err error) {
	defer must.Return(&err)
	root = must.Get(filepath.Abs(root))
	m = &module{root: root, fset: token.NewFileSet(), path: must.Get(modulePath(filepath.Join(root, "go.mod")))}
	ignored := must.Get(ignoredFiles(root))
	must.Do(filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		must.Do(err)
		rel := filepath.ToSlash(must.Get(filepath.Rel(root, name)))
		switch {
		case d.IsDir() && (d.Name() == ".git" || ignored(rel)):
			return filepath.SkipDir
		case d.Name() == ".git": // a worktree's file that names its repository
			return nil
		case d.IsDir() || ignored(rel):
			return nil
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed since the folder was read
		}
		m.files = append(m.files, &source{path: rel, text: text})
		return err
	}))
	must.Do(m.parse())
	m.importer = sync.OnceValues(m.exports)
	return m, nil
}

// own yields the folders that belong to this module and not to another one inside it.
func (m *module) own(yield func(f *folder) bool) {
	for _, f := range m.folders {
		if !f.outside && !yield(f) {
			return
		}
	}
}

// parse parses the Go files and collects them into folders.
func (m *module) parse() error {
	var nested []string
	for _, s := range m.files {
		if path.Base(s.path) == "go.mod" && s.path != "go.mod" {
			nested = append(nested, path.Dir(s.path)+"/")
		}
	}
	byPath := make(map[string]*folder)
	for _, s := range m.files {
		if path.Ext(s.path) != ".go" || strings.Contains("/"+s.path, "/testdata/") {
			continue
		}
		var err error
		if s.syntax, err = parser.ParseFile(m.fset, s.path, s.text, parser.ParseComments); err != nil {
			return err
		}
		dir := path.Dir(s.path)
		f := byPath[dir]
		if f == nil {
			f = &folder{path: dir}
			f.outside = slices.ContainsFunc(nested, func(n string) bool { return strings.HasPrefix(dir+"/", n) })
			byPath[dir] = f
			m.folders = append(m.folders, f)
		}
		if s.test() {
			f.tests = append(f.tests, s)
		} else {
			f.code = append(f.code, s)
		}
	}
	return nil
}

// modulePath reads the module's path from a go.mod.
func modulePath(name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if p, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(p), nil
		}
	}
	return "", fmt.Errorf("%s: no module line", name)
}

// ignoredFiles returns a function that reports whether .gitignore excludes a path. It supports only the patterns that
// this module uses: names with stars, and a slash at either end.
func ignoredFiles(root string) (func(rel string) bool, error) {
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var patterns []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, strings.TrimSuffix(line, "/"))
		}
	}
	return func(rel string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			name := path.Base(rel)
			if rooted, ok := strings.CutPrefix(p, "/"); ok || strings.Contains(p, "/") {
				name, p = rel, rooted
			}
			ok, err := path.Match(p, name)
			return ok && err == nil
		})
	}, nil
}

// exports returns an importer that reads the compiler's export data of all packages that the module needs, including
// its own.
func (m *module) exports() (types.Importer, error) {
	cmd := exec.Command("go", "list", "-e", "-export", "-deps", "-json=ImportPath,Export", "./...")
	cmd.Dir = m.root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	files := make(map[string]string)
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) {
		if files[path] == "" {
			return nil, fmt.Errorf("%s does not compile", path)
		}
		return os.Open(files[path])
	}), nil
}

// typed is a folder's package with the types of its expressions.
type typed struct {
	*module
	code []*source // the files that the current system compiles
	pkg  *types.Package
	info *types.Info
}

// typeCheck checks the package of a folder, without its tests.
func (m *module) typeCheck(f *folder) (typed, error) {
	t := typed{module: m, info: &types.Info{
		Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object),
		Defs: make(map[*ast.Ident]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection),
	}}
	var files []*ast.File
	for _, s := range f.code {
		fits, err := build.Default.MatchFile(filepath.Join(m.root, f.path), path.Base(s.path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, err
		}
		if fits || err != nil { // planted files are not on the disk
			t.code, files = append(t.code, s), append(files, s.syntax)
		}
	}
	exports, err := m.importer()
	if err != nil {
		return t, err
	}
	conf := types.Config{Importer: exports}
	pkg, err := conf.Check(path.Join(m.path, f.path), m.fset, files, t.info)
	t.pkg = pkg
	return t, err
}

// at returns the file and line of a position, for messages.
func (m *module) at(pos token.Pos) string {
	p := m.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// plant returns a folder of the module that holds one file with the given text.
func plant(t *testing.T, m *module, name, text string) *folder {
	t.Helper()
	syntax, err := parser.ParseFile(m.fset, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	s := &source{path: name, text: []byte(text), syntax: syntax}
	f := &folder{path: path.Dir(name), code: []*source{s}}
	if s.test() {
		f.code, f.tests = nil, f.code
	}
	return f
}

// expect demands exactly the wanted breaches, in order; each is given by a part of its message.
func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	fits := len(got) == len(want)
	for i := range want {
		fits = fits && strings.Contains(got[i], want[i])
	}
	if !fits {
		t.Errorf("%s: breaches\n%s\nexpected\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// report makes every breach an error of the test.
func report(t *testing.T, breaches []string) {
	t.Helper()
	for _, b := range breaches {
		t.Error(b)
	}
}
