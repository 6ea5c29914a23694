package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/internal/must"
)

// needed is the line of a method's comment that names the right of its callers.
var needed = regexp.MustCompile(`\bRight: (\w+)\.$`)

// servicesPart describes the services of the API and their methods.
func servicesPart(protos []*protoFile) string {
	var b strings.Builder
	for _, f := range protos {
		for _, s := range f.services {
			fmt.Fprintf(&b, "### %s\n\n%s\n\n", s.name, paragraphs(s.comment))
			for _, m := range s.fields {
				fmt.Fprintf(&b, "**%s** takes [%s](#%s) and returns %s[%s](#%s). %s\n\n", m.name, m.takes, strings.ToLower(m.takes),
					map[bool]string{true: "a stream of "}[strings.HasPrefix(m.gives, "stream ")],
					strings.TrimPrefix(m.gives, "stream "), strings.ToLower(strings.TrimPrefix(m.gives, "stream ")),
					needed.ReplaceAllString(paragraphs(m.comment), "The client needs the right `$1`."))
			}
		}
	}
	return b.String()
}

// paragraphs puts each paragraph of a comment on one line. It drops the indentation of lists.
func paragraphs(comment string) string {
	var out []string
	for _, p := range strings.Split(comment, "\n\n") {
		out = append(out, joined(p))
	}
	return strings.Join(out, "\n\n")
}

// messagesPart describes the messages and enumerations of the API.
func messagesPart(protos []*protoFile) string {
	known := make(map[string]bool)
	for _, f := range protos {
		for _, m := range f.types {
			known[m.name] = true
		}
	}
	word := regexp.MustCompile(`\w+`)
	var b strings.Builder
	for _, f := range protos {
		for _, m := range f.types {
			fmt.Fprintf(&b, "### %s\n\n%s\n\n", m.name, paragraphs(m.comment))
			var rows [][]string
			for _, field := range m.fields {
				if m.kind == "enum" {
					rows = append(rows, []string{code(field.name), joined(field.comment)})
					continue
				}
				kind := word.ReplaceAllStringFunc(field.gives, func(w string) string {
					if known[w] {
						return fmt.Sprintf("[%s](#%s)", w, strings.ToLower(w))
					}
					return w
				})
				kind = strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(kind)
				rows = append(rows, []string{code(field.name), kind, field.comment})
			}
			switch {
			case len(rows) == 0:
			case m.kind == "enum":
				b.WriteString(table([]string{"value", "meaning"}, rows) + "\n")
			default:
				b.WriteString(table([]string{"field", "type", "meaning"}, rows) + "\n")
			}
		}
	}
	return b.String()
}

// metric is a metric of a node.
type metric struct{ name, kind, help, labels string }

// metricsPart is the table of a node's metrics, which it reads from the source of the package that makes them. It fails
// by must.
func metricsPart(root string) string {
	var all []metric
	meanings := make(map[string]string)
	for _, name := range must.Get(filepath.Glob(filepath.Join(root, "cluster/api/*.go"))) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				all = append(all, metricsIn(d)...)
			case *ast.GenDecl:
				readMeanings(d, meanings)
			}
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	all = slices.CompactFunc(all, func(a, b metric) bool { return a.name == b.name })
	var rows [][]string
	for _, m := range all {
		help := cmp.Or(m.help, meanings[m.name])
		if help == "" {
			must.Failf("the metric %s has no meaning", m.name)
		}
		rows = append(rows, []string{code(m.name), m.kind, help, m.labels})
	}
	return table([]string{"metric", "type", "meaning", "labels"}, rows)
}

// readMeanings adds the help texts of a declaration of the variable meanings, by metric.
func readMeanings(d *ast.GenDecl, meanings map[string]string) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "meanings" {
			continue
		}
		for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
			pair := e.(*ast.KeyValueExpr)
			meanings["parley_"+textOf(pair.Key, nil)] = textOf(pair.Value, nil)
		}
	}
}

// metricsIn finds the metrics that a function sends by gauge and count, or declares for the registry.
func metricsIn(fn *ast.FuncDecl) (all []metric) {
	texts := make(map[string]ast.Expr) // the values of names within the function
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					texts[name.Name] = n.Values[i]
				}
			}
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && len(n.Lhs) == 1 {
				texts[name.Name] = n.Rhs[0]
			}
		case *ast.CallExpr:
			if m, ok := metricOf(n, texts); ok {
				all = append(all, m)
			}
		}
		return true
	})
	return all
}

// metricOf returns the metric that a call sends or declares.
func metricOf(call *ast.CallExpr, texts map[string]ast.Expr) (m metric, ok bool) {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return m, false
	}
	switch kind := of.Sel.Name; {
	case (kind == "gauge" || kind == "count") && len(call.Args) >= 2:
		m.name = "parley_" + textOf(call.Args[0], texts)
		m.kind = map[string]string{"gauge": "gauge", "count": "counter"}[kind]
		labels := call.Args[2:]
		if len(labels) == 1 { // a list of its own
			if list, ok := texts[labels[0].(*ast.Ident).Name].(*ast.CompositeLit); ok {
				labels = list.Elts
			}
		}
		var names []string
		for i := 0; i < len(labels); i += 2 {
			names = append(names, textOf(labels[i], texts))
		}
		m.labels = code(names...)
		return m, m.name != "parley_"
	case strings.HasPrefix(kind, "New") && strings.HasSuffix(kind, "Vec") && len(call.Args) == 2:
		m.kind = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(kind, "New"), "Vec"))
		for _, e := range call.Args[0].(*ast.CompositeLit).Elts {
			pair := e.(*ast.KeyValueExpr)
			switch pair.Key.(*ast.Ident).Name {
			case "Name":
				m.name = textOf(pair.Value, texts)
			case "Help":
				m.help = textOf(pair.Value, texts)
			}
		}
		var names []string
		for _, e := range call.Args[1].(*ast.CompositeLit).Elts {
			names = append(names, textOf(e, texts))
		}
		m.labels = code(names...)
		return m, true
	}
	return m, false
}

// textOf returns the text of a literal or of a name for one.
func textOf(e ast.Expr, texts map[string]ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value) // other literals are no texts
		return text
	case *ast.Ident:
		if texts[e.Name] != nil {
			return textOf(texts[e.Name], nil)
		}
	case *ast.BinaryExpr: // a text in parts
		return textOf(e.X, texts) + textOf(e.Y, texts)
	}
	return ""
}
