package tidy

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A room is a package that can be read in an afternoon, and a type is one idea in one place. Types are limited too,
// because otherwise the limit on files could be met by cutting a type into slices.
const (
	roomLines   = 3000 // of code: no blank lines, comments, tests or generated files
	typeMethods = 25
	typeFiles   = 3
)

// The remaining exceptions and their maximum sizes. These numbers may only fall, and none may be added.
var (
	largeRooms = map[string]int{}
	largeTypes = map[string][2]int{} // methods and files
)

// codeLines counts the lines of a file that contain code.
func codeLines(s *source) int {
	var sc scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile(s.path, -1, len(s.text))
	sc.Init(file, s.text, nil, 0)
	lines := make(map[int]bool)
	for {
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		for i := range 1 + strings.Count(lit, "\n") {
			lines[file.Line(pos)+i] = true
		}
	}
}

// roomBreaches checks a package against the limit.
func roomBreaches(f *folder, large map[string]int) []string {
	n := 0
	for _, s := range f.code {
		if !ast.IsGenerated(s.syntax) {
			n += codeLines(s)
		}
	}
	most, named := large[f.path]
	switch {
	case named && n <= roomLines:
		return []string{fmt.Sprintf("%s: %d lines of code: it is no exception any more", f.path, n)}
	case n > max(most, roomLines):
		return []string{fmt.Sprintf("%s: %d lines of code: at most %d", f.path, n, max(most, roomLines))}
	}
	return nil
}

// typeBreaches checks the types of a package against the limits. A function whose first parameter points to a type of
// another file counts as a method of that type.
func typeBreaches(f *folder, large map[string][2]int) []string {
	declared := make(map[string]string) // type: file
	for _, s := range f.code {
		for _, d := range s.syntax.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, spec := range g.Specs {
					declared[spec.(*ast.TypeSpec).Name.Name] = s.path
				}
			}
		}
	}
	methods, files := make(map[string]int), make(map[string]map[string]bool)
	for _, s := range f.code {
		if ast.IsGenerated(s.syntax) {
			continue
		}
		for _, d := range s.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			var name string
			if fn.Recv != nil {
				name = typeName(fn.Recv.List[0].Type)
			} else if p := fn.Type.Params.List; len(p) > 0 {
				if of, ok := p[0].Type.(*ast.StarExpr); ok && declared[typeName(of)] != s.path {
					name = typeName(of)
				}
			}
			if declared[name] == "" {
				continue
			}
			if methods[name]++; files[name] == nil {
				files[name] = map[string]bool{declared[name]: true}
			}
			files[name][s.path] = true
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		most, named := large[f.path+"."+name]
		m, n := methods[name], len(files[name])
		if named && m <= typeMethods && n <= typeFiles {
			out = append(out, fmt.Sprintf("%s.%s: %d methods in %d files: it is no exception any more", f.path, name, m, n))
		}
		if m > max(most[0], typeMethods) || n > max(most[1], typeFiles) {
			out = append(out, fmt.Sprintf("%s.%s: %d methods in %d files: at most %d in %d",
				f.path, name, m, n, max(most[0], typeMethods), max(most[1], typeFiles)))
		}
	}
	return out
}

// typeName returns the name of a type of the same package, or "" for any other.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func TestRooms(t *testing.T) {
	for f := range loaded(t).own {
		report(t, roomBreaches(f, largeRooms))
		report(t, typeBreaches(f, largeTypes))
	}
}

func TestRoomsCatches(t *testing.T) {
	m := loaded(t)
	long := strings.Repeat("\nvar _ = 1 // one\n// no code\n", roomLines)
	full, over := plant(t, m, "x/x.go", "package x\n"+long[:len(long)-len("\nvar _ = 1 // one\n// no code\n")]),
		plant(t, m, "x/x.go", "package x\n"+long)
	expect(t, "a room as large as allowed", roomBreaches(full, nil))
	expect(t, "a room too large", roomBreaches(over, nil), "x: 3001 lines of code: at most 3000")
	expect(t, "an exception", roomBreaches(over, map[string]int{"x": 3001}))
	expect(t, "an exception that has grown", roomBreaches(over, map[string]int{"x": 3000}), "at most 3000")
	expect(t, "an exception that is none", roomBreaches(full, map[string]int{"x": 4000}), "no exception any more")

	methods := func(n int) (out string) {
		for i := range n {
			out += fmt.Sprintf("func (t *t) m%d() {}\n", i)
		}
		return out
	}
	small, large := plant(t, m, "x/x.go", "package x\ntype t struct{}\n"+methods(25)),
		plant(t, m, "x/x.go", "package x\ntype t struct{}\n"+methods(26))
	expect(t, "a type as large as allowed", typeBreaches(small, nil))
	expect(t, "a type too large", typeBreaches(large, nil), "x.t: 26 methods in 1 files: at most 25 in 3")
	expect(t, "an exception", typeBreaches(large, map[string][2]int{"x.t": {26, 1}}))
	expect(t, "an exception that is none", typeBreaches(small, map[string][2]int{"x.t": {30, 1}}), "no exception any more")
	cut := small
	for _, text := range []string{"func (t *t) a() {}", "func b(t *t) {}", "func c(p t) {}", "func (t *t) d() {}"} {
		cut.code = append(cut.code, plant(t, m, fmt.Sprintf("x/%d.go", len(cut.code)), "package x\n"+text+"\n").code...)
	}
	expect(t, "a type in four files", typeBreaches(cut, nil), "x.t: 28 methods in 4 files: at most 25 in 3")
}
