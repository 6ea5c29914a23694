package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The only names of these packages that pure and seeded code may use: those that involve no clock, no random source
// of the process and no standard output. Seeded code may use all of fmt and flag.
var (
	seededNames = map[string][]string{
		"time": strings.Fields(`Duration ParseDuration
			Nanosecond Microsecond Millisecond Second Minute Hour`),
		"math/rand":    {"none: use math/rand/v2"},
		"math/rand/v2": strings.Fields(`New NewPCG NewChaCha8 NewZipf Rand PCG ChaCha8 Zipf Source`),
		"crypto/rand":  {"none: use a seed"},
		"hash/maphash": {"none: its seed is the process's own"},
	}
	pureNames = map[string][]string{
		"flag": strings.Fields(`FlagSet NewFlagSet Flag Value Getter ContinueOnError ErrHelp`),
		"fmt": strings.Fields(`Append Appendf Appendln Errorf Fprint Fprintf Fprintln Sprint Sprintf Sprintln
			Formatter GoStringer State Stringer`),
	}
)

const chance = ", whose order is chance: sort its keys, or say in an // order: comment why it has no effect"

// purityBreaches checks the code of a package, without its tests, against its line of the law. The explorer executes
// code in every order, and a seed must stand for one run: so nothing may depend on anything but arguments.
func purityBreaches(p typed, purity string) []string {
	if purity == "free" {
		return nil
	}
	var out []string
	breach := func(pos token.Pos, format string, args ...any) {
		out = append(out, p.at(pos)+": "+fmt.Sprintf(format, args...))
	}
	for _, s := range p.code {
		excused := orderComments(p.module, s)
		parents := parentsOf(s.syntax)
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if purity == "pure" {
				concurrency(p, n, breach)
			}
			switch n := n.(type) {
			case *ast.Ident:
				restricted(p, n, purity, breach)
			case *ast.RangeStmt:
				if n.Key != nil && p.overMap(n.X) && !excused(n.Pos()) {
					breach(n.Pos(), "range over a map"+chance)
				}
			case *ast.CallExpr:
				if name := unordered(p, n); name != "" && !sorted(p, parents[n]) && !excused(n.Pos()) {
					breach(n.Pos(), "%s goes through a map"+chance, name)
				}
			}
			return true
		})
	}
	return out
}

// concurrency finds code that starts or joins goroutines, and variables that all processes would share.
func concurrency(p typed, n ast.Node, breach func(token.Pos, string, ...any)) {
	switch n := n.(type) {
	case *ast.GoStmt:
		breach(n.Pos(), "a goroutine")
	case *ast.SelectStmt:
		breach(n.Pos(), "a select")
	case *ast.ChanType:
		breach(n.Pos(), "a channel")
	case *ast.SendStmt:
		breach(n.Pos(), "a send to a channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			breach(n.Pos(), "a receive from a channel")
		}
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			shared(p, left, breach)
		}
	case *ast.IncDecStmt:
		shared(p, n.X, breach)
	}
}

// shared finds assignments to package variables.
func shared(p typed, left ast.Expr, breach func(token.Pos, string, ...any)) {
	for left != nil {
		if e, ok := left.(*ast.Ident); ok {
			if v, ok := p.info.Uses[e].(*types.Var); ok && v.Parent() == p.pkg.Scope() {
				breach(e.Pos(), "%s is a variable of the package, which all processes would share", e.Name)
			}
		}
		left = within(left)
	}
}

// within returns the operand that an assignment to e modifies: m.now for m.now.got[3], and nil for a name.
func within(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return e.X
	case *ast.IndexExpr:
		return e.X
	case *ast.SliceExpr:
		return e.X
	case *ast.StarExpr:
		return e.X
	case *ast.SelectorExpr:
		return e.X
	}
	return nil
}

// restricted finds uses of names that are not allowed from their package.
func restricted(p typed, id *ast.Ident, purity string, breach func(token.Pos, string, ...any)) {
	obj := p.info.Uses[id]
	if b, ok := obj.(*types.Builtin); ok && strings.HasPrefix(b.Name(), "print") {
		breach(id.Pos(), "%s writes to the standard error", b.Name())
	}
	if obj == nil || obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
		return
	}
	from := obj.Pkg().Path()
	allowed := seededNames[from]
	if allowed == nil && purity == "pure" {
		allowed = pureNames[from]
	}
	if allowed != nil && !slices.Contains(allowed, obj.Name()) {
		breach(id.Pos(), "%s.%s may not be used; allowed are %s", from, obj.Name(), strings.Join(allowed, ", "))
	}
}

func (p typed) overMap(e ast.Expr) bool {
	t := p.info.TypeOf(e)
	if t == nil {
		return false
	}
	_, isMap := t.Underlying().(*types.Map)
	return isMap
}

// called returns the function of another package that n calls, such as "maps.Keys".
func called(p typed, n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	fun := ast.Unparen(call.Fun)
	switch e := fun.(type) {
	case *ast.IndexExpr:
		fun = e.X
	case *ast.IndexListExpr:
		fun = e.X
	}
	if sel, ok := fun.(*ast.SelectorExpr); ok {
		if f, ok := p.info.Uses[sel.Sel].(*types.Func); ok && f.Pkg() != nil {
			return f.Pkg().Path() + "." + f.Name()
		}
	}
	return ""
}

// unordered returns the name of a function that iterates over a map, if n calls one.
func unordered(p typed, n ast.Node) string {
	name := called(p, n)
	if slices.Contains([]string{"maps.All", "maps.Keys", "maps.Values"}, name) {
		return name
	}
	return ""
}

// sorted reports whether the node around a call makes its order immaterial.
func sorted(p typed, outer ast.Node) bool {
	immaterial := []string{"slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc", "maps.Collect"}
	return slices.Contains(immaterial, called(p, outer))
}

// orderComments returns a function that reports whether a place has a comment "order: reason", on its line or
// directly above.
func orderComments(m *module, s *source) func(token.Pos) bool {
	lines := make(map[int]bool)
	for _, group := range s.syntax.Comments {
		for _, c := range group.List {
			reason, ok := strings.CutPrefix(c.Text, "// order:")
			if ok && strings.TrimSpace(reason) != "" {
				lines[m.fset.Position(c.Pos()).Line] = true
				lines[m.fset.Position(group.End()).Line+1] = true
			}
		}
	}
	return func(pos token.Pos) bool { return lines[m.fset.Position(pos).Line] }
}

// parentsOf returns the parent of each node.
func parentsOf(root ast.Node) map[ast.Node]ast.Node {
	parents := make(map[ast.Node]ast.Node)
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			parents[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		return true
	})
	return parents
}

func TestPurity(t *testing.T) {
	m, law := loaded(t), theLaw(t)
	for f := range m.own {
		r, known := ruleOf(law, f.path)
		if len(f.code) == 0 || !known || r.purity == "free" {
			continue
		}
		p, err := m.typeCheck(f)
		if err != nil {
			t.Errorf("%s: its law cannot be checked: %v", f.path, err)
			continue
		}
		report(t, purityBreaches(p, r.purity))
	}
}

func TestPurityCatches(t *testing.T) {
	m := loaded(t)
	overMap, keys := []string{"range over a map"}, []string{"maps.Keys"}
	for i, c := range []struct {
		imports, code string
		pure, seeded  []string
	}{
		{"", "func f() { go f() }", []string{"goroutine"}, nil},
		{"", "var c chan int", []string{"channel"}, nil},
		{"", "func f(c <-chan int) { select {}; <-c }", []string{"channel", "select", "receive"}, nil},
		{"", "var n int; func f() { n++ }", []string{"variable of the package"}, nil},
		{"", "var n [2]struct{ a []int }; func f() { n[1].a[2] = 3 }", []string{"variable of the package"}, nil},
		{"", "func f() { var n int; n = 1; _ = n }", nil, nil},
		{"", "func f() { println(1) }", []string{"println"}, []string{"println"}},
		{"fmt", "func f() { fmt.Println(1) }", []string{"fmt.Println"}, nil},
		{"fmt", "func f() string { return fmt.Sprint(fmt.Errorf(`x`)) }", nil, nil},
		{"flag", "var f = flag.Int(`n`, 1, ``)", []string{"flag.Int"}, nil},
		{"flag", "func f(fs *flag.FlagSet) { fs.Int(`n`, 1, ``) }", nil, nil},
		{"time", "var f = time.Now()", []string{"time.Now"}, []string{"time.Now"}},
		{"time", "var f = time.Duration(2).Seconds()", nil, nil},
		{"math/rand/v2", "var f = rand.IntN(3)", []string{"rand/v2.IntN"}, []string{"rand/v2.IntN"}},
		{"math/rand/v2", "var f = rand.New(rand.NewPCG(1, 2)).IntN(3)", nil, nil},
		{"", "func f(m map[int]int) { for range m {} }", nil, nil},
		{"", "func f(m map[int]int) { for k := range m { _ = k } }", overMap, overMap},
		{"", "type t map[int]int; func f(m t) { for k := range m { _ = k } }", overMap, overMap},
		{"", "func f(m map[int]int) { for k := range m { // order: a sum\n_ = k } }", nil, nil},
		{"", "func f(m map[int]int) {\n// order: a sum,\n// and a sum has none\nfor k := range m { _ = k } }", nil, nil},
		{"", "func f(m map[int]int) {\n// order:\nfor k := range m { _ = k } }", overMap, overMap},
		{"", "func f(m map[int]int) {\n// order: of another line\n\nfor k := range m { _ = k } }", overMap, overMap},
		{"", "func f(m []int) { for k := range m { _ = k } }", nil, nil},
		{"maps", "func f(m map[int]int) { for k := range maps.Keys(m) { _ = k } }", keys, keys},
		{"maps", "func f(m map[int]int) { _ = maps.Collect(maps.All(m)) }", nil, nil},
		{"maps\";\"slices", "func f(m map[int]int) { _ = slices.Sorted(maps.Keys(m)) }", nil, nil},
		{"maps\";\"slices", "func f(m map[int]int) { _ = slices.Collect(maps.Keys(m)) }", keys, keys},
	} {
		text := "package x\n" + c.code
		if c.imports != "" {
			text = "package x\nimport (\"" + c.imports + "\")\n" + c.code
		}
		p, err := m.typeCheck(plant(t, m, "agreement/x"+strconv.Itoa(i)+"/x.go", text))
		if err != nil {
			t.Fatalf("%s: %v", c.code, err)
		}
		expect(t, "pure: "+c.code, purityBreaches(p, "pure"), c.pure...)
		expect(t, "seeded: "+c.code, purityBreaches(p, "seeded"), c.seeded...)
		expect(t, "free: "+c.code, purityBreaches(p, "free"))
	}
}
