package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// selfExplaining are methods whose meaning is that of an interface everybody knows.
var selfExplaining = []string{"String", "Error", "Unwrap", "Len", "Less", "Swap", "Push", "Pop"}

// docBreaches demands a comment on every package and on every name that it
// exports. What lies under internal needs only the former.
func docBreaches(m *module, f *folder) []string {
	out := packageComment(f)
	if slices.Contains(strings.Split(f.path, "/"), "internal") {
		return out
	}
	for _, s := range f.code {
		for _, d := range s.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if visible(d) && d.Doc == nil {
					out = append(out, fmt.Sprintf("%s: %s has no comment", m.at(d.Pos()), d.Name.Name))
				}
			case *ast.GenDecl:
				for _, id := range undocumented(d) {
					out = append(out, fmt.Sprintf("%s: %s has no comment", m.at(id.Pos()), id.Name))
				}
			}
		}
	}
	return out
}

// packageComment demands one comment that introduces the package by its name.
func packageComment(f *folder) []string {
	files := f.code
	if len(files) == 0 {
		files = f.tests
	}
	var found []*source
	for _, s := range files {
		if s.syntax.Doc != nil {
			found = append(found, s)
		}
	}
	switch {
	case len(found) == 0:
		return []string{f.path + ": the package has no comment"}
	case len(found) > 1:
		return []string{fmt.Sprintf("%s: the package has comments in %s and in %s", f.path, found[0].path, found[1].path)}
	}
	name := found[0].syntax.Name.Name
	want := "Package " + strings.TrimSuffix(name, "_test") + " "
	if name == "main" {
		want = "Command " + path.Base(f.path) + " "
	}
	if text := strings.Join(strings.Fields(found[0].syntax.Doc.Text()), " "); !strings.HasPrefix(text+" ", want) {
		return []string{fmt.Sprintf("%s: the package's comment does not begin with %q", found[0].path, want)}
	}
	return nil
}

// visible tells whether a function or method can be seen outside and is not
// explained by its name.
func visible(d *ast.FuncDecl) bool {
	if !d.Name.IsExported() || d.Recv == nil {
		return d.Name.IsExported()
	}
	return exportedType(d.Recv.List[0].Type) && !slices.Contains(selfExplaining, d.Name.Name)
}

func exportedType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.StarExpr:
		return exportedType(e.X)
	case *ast.IndexExpr:
		return exportedType(e.X)
	case *ast.IndexListExpr:
		return exportedType(e.X)
	case *ast.Ident:
		return e.IsExported()
	}
	return false
}

// undocumented returns the exported names of a declaration without a comment:
// their own, at the end of their line, or that of the group they stand in.
func undocumented(d *ast.GenDecl) []*ast.Ident {
	var out []*ast.Ident
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				out = append(out, spec.Name)
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok && spec.Name.IsExported() {
				out = append(out, undocumentedMethods(i)...)
			}
		case *ast.ValueSpec:
			if d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				hidden := func(id *ast.Ident) bool { return !id.IsExported() }
				out = append(out, slices.DeleteFunc(slices.Clone(spec.Names), hidden)...)
			}
		}
	}
	return out
}

func undocumentedMethods(i *ast.InterfaceType) []*ast.Ident {
	var out []*ast.Ident
	for _, f := range i.Methods.List {
		for _, id := range f.Names {
			if id.IsExported() && f.Doc == nil && f.Comment == nil {
				out = append(out, id)
			}
		}
	}
	return out
}

func TestDoc(t *testing.T) {
	m := loaded(t)
	for _, f := range m.folders {
		report(t, docBreaches(m, f))
	}
}

func TestDocCatches(t *testing.T) {
	m := loaded(t)
	const head = "// Package x is planted.\npackage x\n"
	for _, c := range []struct {
		file, text string
		want       []string
	}{
		{"x/x.go", head, nil},
		{"x/x.go", "package x", []string{"x: the package has no comment"}},
		{"x/x.go", "// Other words.\npackage x", []string{`does not begin with "Package x "`}},
		{"x/x_test.go", "// Package x is only tests.\npackage x_test", nil},
		{"x/x_test.go", "package x_test", []string{"x: the package has no comment"}},
		{"cmd/x/x.go", "// Command x does it.\npackage main", nil},
		{"cmd/x/x.go", "// Package main does it.\npackage main", []string{`does not begin with "Command x "`}},
		{"x/x.go", head + "func F() {}", []string{"x/x.go:3: F has no comment"}},
		{"internal/x/x.go", head + "func F() {}", nil},
		{"x/x.go", head + "// F does.\nfunc F() {}", nil},
		{"x/x.go", head + "func f() {}", nil},
		{"x/x.go", head + "type T int", []string{"T has no comment"}},
		{"x/x.go", head + "// T is.\ntype T int\nfunc (t *T) M() {}", []string{"M has no comment"}},
		{"x/x.go", head + "// T is.\ntype T int\nfunc (t T) String() string", nil},
		{"x/x.go", head + "type t int\nfunc (t *t) M() {}", nil},
		{"x/x.go", head + "// T is.\ntype T[K any] struct{}\nfunc (t *T[K]) M() {}", []string{"M has no comment"}},
		{"x/x.go", head + "// T is.\ntype T interface { M(); m() }", []string{"M has no comment"}},
		{"x/x.go", head + "// T is.\ntype T interface { M() // does.\n }", nil},
		{"x/x.go", head + "var A, b = 1, 2", []string{"A has no comment"}},
		{"x/x.go", head + "// Both.\nvar (\nA = 1\nB = 2\n)", nil},
		{"x/x.go", head + "const (\nA = 1\n// B is two.\nB = 2\nC = 3 // three\nd = 4)", []string{"A has no comment"}},
	} {
		expect(t, c.text, docBreaches(m, plant(t, m, c.file, c.text)), c.want...)
	}
	two := plant(t, m, "x/x.go", head)
	two.code = append(two.code, plant(t, m, "x/y.go", head).code...)
	expect(t, "two comments", docBreaches(m, two), "has comments in x/x.go and in x/y.go")
}
