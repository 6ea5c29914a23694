// Command reference generates documentation from the program: the JSON Schemas, parts of the pages in
// docs/reference, and manual pages.
//
//	go run ./internal/reference
//	go run ./internal/reference -man man
//
// The documentation of package internal/made says how a page marks its generated parts.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"parley/catalog"
	"parley/cli"
	"parley/internal/made"
	"parley/internal/must"
)

func main() {
	root := flag.String("root", ".", "the `folder` of the module")
	man := flag.String("man", "", "write manual pages to this `folder`, and nothing else")
	flag.Parse()
	if err := write(*root, *man); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// write writes the files that differ from what they must be.
func write(root, man string) (err error) {
	defer must.Return(&err)
	r := newReference(root)
	files := r.files()
	if man != "" {
		root, files = man, manualPages(r.commands)
	}
	for name, b := range files { // order: each file is written by itself
		path := filepath.Join(root, filepath.FromSlash(name))
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
			continue
		}
		must.Do(os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(os.WriteFile(path, b, 0o644))
	}
	return nil
}

// reference makes the files.
type reference struct {
	maker
	commands *cobra.Command
	protos   []*protoFile
}

// newReference reads what the reference is made from. It fails by must.
func newReference(root string) *reference {
	r := &reference{
		maker:    maker{root, make(map[string]string), make(map[string]map[string]string), make(map[string]bool)},
		commands: cli.Commands(catalog.All()),
	}
	names := must.Get(filepath.Glob(filepath.Join(root, "cluster/api/parley/v1/*.proto")))
	slices.Sort(names)
	for _, name := range names {
		f := readProto(filepath.Base(name), string(must.Get(os.ReadFile(name))))
		r.protos = append(r.protos, f)
		for _, m := range f.types {
			for _, field := range m.fields {
				r.protoComments["parley.v1."+m.name+"."+field.name] = field.comment
			}
		}
	}
	return r
}

// files returns all files, by their paths below the root. It fails by must.
func (r *reference) files() map[string][]byte {
	files := make(map[string][]byte)
	for name, b := range r.schemas() { // order: a map is made of a map
		files["docs/reference/schema/"+name+".json"] = b
	}
	for name, parts := range r.pages() { // order: a map is made of a map
		old := must.Get(os.ReadFile(filepath.Join(r.root, "docs/reference", name)))
		for part, text := range parts { // order: the parts of a page do not overlap
			old = must.Get(made.Part{Name: part, Command: "make reference"}.Fill(old, text))
		}
		files["docs/reference/"+name] = old
	}
	return files
}
