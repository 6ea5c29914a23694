package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"parley"
	"parley/internal/must"
)

// modulePath is the path of this module.
var modulePath = reflect.TypeFor[parley.ID]().PkgPath()

// comment returns what the source says of a field of a struct of this module, behind it or above it.
func (m *maker) comment(t reflect.Type, field string) string {
	if dir, own := strings.CutPrefix(t.PkgPath(), modulePath); own {
		return m.commentsOf(strings.TrimPrefix(dir, "/"))[t.Name()+"."+field]
	}
	return ""
}

// commentsOf returns the comments on the fields of all structs of a package, as TYPE.FIELD. It fails by must.
func (m *maker) commentsOf(dir string) map[string]string {
	if known, ok := m.comments[dir]; ok {
		return known
	}
	found := make(map[string]string)
	for _, e := range must.Get(os.ReadDir(filepath.Join(m.root, dir))) {
		if filepath.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		name := filepath.Join(m.root, dir, e.Name())
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments))
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					for _, name := range f.Names {
						found[spec.Name.Name+"."+name.Name] = said(f)
					}
				}
			}
			return true
		})
	}
	m.comments[dir] = found
	return found
}

// said returns the comment on a field on one line. A comment above several fields is about all of them.
func said(f *ast.Field) string {
	text := f.Comment.Text()
	if text == "" {
		text = f.Doc.Text()
	}
	return strings.Join(strings.Fields(text), " ")
}
