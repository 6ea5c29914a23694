package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// A machine's State must visit every variable that changes after the construction of the machine: otherwise a copy of
// the machine is another machine. stateBreaches finds the fields of a type with a State method that are assigned
// outside its constructors (functions whose names begin with new) and that State, with the functions of the package
// that it calls, does not mention. Machines within a machine must always be mentioned. The same applies to structs of
// the package in such fields.
//
// A field whose line says "// scratch" has no meaning from one clause to the next and is exempt.
func stateBreaches(p typed) []string {
	s := stateLaw{
		typed: p, written: make(map[*types.Var]token.Pos), scratch: make(map[*types.Var]bool),
		decls: make(map[types.Object]*ast.FuncDecl),
	}
	for _, file := range p.code {
		s.read(file.syntax)
	}
	var out []string
	for _, name := range p.pkg.Scope().Names() {
		named, ok := p.pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok || named.IsAlias() {
			continue
		}
		method := s.stateOf(named.Type())
		if method == nil || s.decls[method] == nil {
			continue
		}
		seen := s.mentioned(s.decls[method])
		s.visit(named.Type(), seen, make(map[types.Type]bool), func(f *types.Var, why string) {
			out = append(out, p.at(f.Pos())+": "+name+"."+f.Name()+" "+why+
				", but State does not visit it; visit it, or mark its line // scratch")
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// stateLaw is what stateBreaches knows about a package.
type stateLaw struct {
	typed
	written map[*types.Var]token.Pos // fields that change after construction, and where
	scratch map[*types.Var]bool
	decls   map[types.Object]*ast.FuncDecl
}

// isVars reports whether t is *parley.Vars.
func (s *stateLaw) isVars(t types.Type) bool {
	ptr, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := types.Unalias(ptr.Elem()).(*types.Named)
	return ok && named.Obj().Name() == "Vars" && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == s.path
}

// stateOf returns the method State(*parley.Vars) of a type, if it has one.
func (s *stateLaw) stateOf(t types.Type) *types.Func {
	obj, _, _ := types.LookupFieldOrMethod(t, true, s.pkg, "State")
	f, ok := obj.(*types.Func)
	if !ok {
		return nil
	}
	params := f.Signature().Params()
	if params.Len() != 1 || !s.isVars(params.At(0).Type()) {
		return nil
	}
	return f
}

// read collects the declarations and assignments of a file.
func (s *stateLaw) read(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && f.Comment != nil && strings.Contains(f.Comment.Text(), "scratch") {
			for _, id := range f.Names {
				if v, ok := s.info.Defs[id].(*types.Var); ok {
					s.scratch[v] = true
				}
			}
		}
		return true
	})
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		s.decls[s.info.Defs[f.Name]] = f
		if constructs(f.Name.Name) || s.takesVars(f) {
			continue // constructors, State and its helpers
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			s.writes(n)
			return true
		})
	}
}

// constructs reports whether a function with this name makes new machines.
func constructs(name string) bool { return strings.HasPrefix(strings.ToLower(name), "new") }

func (s *stateLaw) takesVars(f *ast.FuncDecl) bool {
	params := s.info.Defs[f.Name].(*types.Func).Signature().Params()
	for v := range params.Variables() {
		if s.isVars(v.Type()) {
			return true
		}
	}
	return false
}

// writes records the fields that a statement or expression changes.
func (s *stateLaw) writes(n ast.Node) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			for _, left := range n.Lhs {
				s.write(left)
			}
		}
	case *ast.IncDecStmt:
		s.write(n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			s.write(n.Key)
			s.write(n.Value)
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			s.write(n.X)
		}
	case *ast.CompositeLit:
		s.literal(n)
	case *ast.CallExpr:
		s.call(n)
	}
}

// write records every field that an assignment to e reaches: now and got for m.now.got[3].
func (s *stateLaw) write(e ast.Expr) {
	for ; e != nil; e = within(e) {
		if x, ok := e.(*ast.SelectorExpr); ok {
			if f, ok := s.info.Uses[x.Sel].(*types.Var); ok && f.IsField() {
				s.note(f, x.Pos())
			}
		}
	}
}

func (s *stateLaw) note(f *types.Var, pos token.Pos) {
	f = f.Origin()
	if _, known := s.written[f]; !known {
		s.written[f] = pos
	}
}

// literal records the fields that a struct literal sets. Machines are made in constructors, but what they contain is
// often made later.
func (s *stateLaw) literal(n *ast.CompositeLit) {
	t, ok := s.info.TypeOf(n).Underlying().(*types.Struct)
	if !ok || s.stateOf(s.info.TypeOf(n)) != nil {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if f, ok := s.info.Uses[kv.Key.(*ast.Ident)].(*types.Var); ok {
				s.note(f, kv.Pos())
			}
		} else {
			s.note(t.Field(i), e.Pos())
		}
	}
}

// changers are functions that change what their first argument refers to.
var changers = []string{
	"slices.Sort", "slices.SortFunc", "slices.SortStableFunc", "slices.Reverse",
	"maps.Copy", "maps.Insert", "maps.DeleteFunc", "container/heap.Push", "container/heap.Pop",
}

// call records what a call changes: the operand of a method with a pointer receiver, and the first argument of copy,
// clear, delete and the changers.
func (s *stateLaw) call(n *ast.CallExpr) {
	switch fun := ast.Unparen(n.Fun).(type) {
	case *ast.Ident:
		b, ok := s.info.Uses[fun].(*types.Builtin)
		if ok && slices.Contains([]string{"copy", "clear", "delete"}, b.Name()) {
			s.write(n.Args[0])
		}
	case *ast.SelectorExpr:
		sel := s.info.Selections[fun]
		switch {
		case sel != nil && sel.Kind() == types.MethodVal:
			f, ok := sel.Obj().(*types.Func)
			if _, byPointer := types.Unalias(f.Signature().Recv().Type()).(*types.Pointer); ok && byPointer {
				if _, held := types.Unalias(sel.Recv()).(*types.Pointer); !held {
					s.write(fun.X)
				}
			}
		case len(n.Args) > 0 && slices.Contains(changers, called(s.typed, n)):
			s.write(n.Args[0])
		}
	}
}

// mentioned returns the fields that State and the functions it calls mention.
func (s *stateLaw) mentioned(state *ast.FuncDecl) map[*types.Var]bool {
	seen := make(map[*types.Var]bool)
	done := make(map[*ast.FuncDecl]bool)
	var read func(f *ast.FuncDecl)
	read = func(f *ast.FuncDecl) {
		if f == nil || done[f] {
			return
		}
		done[f] = true
		ast.Inspect(f.Body, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			switch obj := s.info.Uses[id].(type) {
			case *types.Var:
				seen[obj.Origin()] = seen[obj.Origin()] || obj.IsField()
			case *types.Func:
				read(s.decls[obj.Origin()])
			}
			return true
		})
	}
	read(state)
	return seen
}

// visit visits the fields of a struct, and of the structs in it, and calls missing for those not in seen.
func (s *stateLaw) visit(
	t types.Type, seen map[*types.Var]bool, done map[types.Type]bool, missing func(f *types.Var, why string),
) {
	st, ok := t.Underlying().(*types.Struct)
	if !ok || done[t] {
		return
	}
	done[t] = true
	for f := range st.Fields() {
		f = f.Origin()
		pos, changes := s.written[f]
		inner := element(f.Type())
		machine := s.stateOf(inner) != nil
		switch {
		case s.scratch[f] || f.Embedded() && !machine:
		case !seen[f] && machine:
			missing(f, "is a machine")
		case !seen[f] && changes:
			missing(f, "is changed in "+s.at(pos))
		case changes && !machine:
			if named, ok := inner.(*types.Named); ok && named.Obj().Pkg() == s.pkg {
				s.visit(named, seen, done, missing)
			}
		}
	}
}

// element returns the type of a field without pointers, slices and the like.
func element(t types.Type) types.Type {
	for {
		t = types.Unalias(t)
		if _, ok := t.(*types.Named); ok {
			if _, isStruct := t.Underlying().(*types.Struct); isStruct {
				return t
			}
			if _, isInterface := t.Underlying().(*types.Interface); isInterface {
				return t
			}
		}
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		case *types.Map:
			t = u.Elem()
		default:
			return t
		}
	}
}

func TestState(t *testing.T) {
	m := loaded(t)
	machines := 0
	for f := range m.own {
		if len(f.code) == 0 {
			continue
		}
		p, err := m.typeCheck(f)
		if err != nil {
			t.Errorf("%s: its law cannot be checked: %v", f.path, err)
			continue
		}
		report(t, stateBreaches(p))
		machines += strings.Count(string(slices.Concat(texts(f.code)...)), ") State(v *")
	}
	if machines < 5 {
		t.Errorf("only %d State methods in the module", machines)
	}
}

func texts(list []*source) [][]byte {
	var out [][]byte
	for _, s := range list {
		out = append(out, s.text)
	}
	return out
}

// planted is a machine to which the cases of the test add code.
const planted = `package x
import ("%s"; "slices")
var _ = slices.Sort[[]int]
type inner struct{ parley.Base; n int }
func (i *inner) State(v *parley.Vars) { parley.Num(v, "n", &i.n) }
func (i *inner) step() { i.n++ }
type setup struct{ a int }
func (c setup) twice() int { return 2 * c.a }
func (c *setup) add() { c.a++ }
type part struct{ a, b int }
type process struct {
	config setup
	seen int
	set parley.Set
	list []int
	parts []part
	by map[int]*part
	%s
}
func newProcess() *process { return &process{} }
func (p *process) State(v *parley.Vars) {
	parley.Num(v, "seen", &p.seen)
	p.rest(v)
	%s
}
func (p *process) rest(v *parley.Vars) { v.Set("set", &p.set) }
func (p *process) Clause() {
	p.seen = p.config.twice()
	%s
}
`

func TestStateCatches(t *testing.T) {
	m := loaded(t)
	const visitA = "parley.Slice(v, `parts`, &p.parts, func(_ int, q *part) { parley.Num(v, `a`, &q.a) })"
	for _, c := range []struct {
		field, state, clause string
		want                 []string
	}{
		{"", "", "p.set.Add(1)", nil},
		{"x int", "", "", nil},
		{"x int", "", "p.x = 1", []string{"process.x is changed"}},
		{"x int", "", "p.x += 1", []string{"process.x"}},
		{"x int", "", "p.x++", []string{"process.x"}},
		{"x int // scratch", "", "p.x++", nil},
		{"x, y int // scratch: of one clause", "", "p.x, p.y = 1, 2", nil},
		{"x int", "parley.Num(v, `x`, &p.x)", "p.x++", nil},
		{"x int", "", "q := &p.x; *q = 1", []string{"process.x"}},
		{"x int", "", "for p.x = range 3 {}", []string{"process.x"}},
		{"x int", "", "func() { p.x = 1 }()", []string{"process.x"}},
		{"x, y int", "parley.Num(v, `x`, &p.x)", "p.x, p.y = 1, 2", []string{"process.y"}},
		{"x parley.Set", "", "p.x.Add(1)", []string{"process.x"}},
		{"x parley.Set", "", "p.x.Remove(1)", []string{"process.x"}},
		{"x parley.Set", "", "_ = p.x.Has(1)", nil},
		{"", "", "p.list[0] = 1", []string{"process.list"}},
		{"", "", "p.list = append(p.list, 1)", []string{"process.list"}},
		{"", "", "copy(p.list, []int{1})", []string{"process.list"}},
		{"", "", "clear(p.list[:1])", []string{"process.list"}},
		{"", "", "slices.Sort(p.list)", []string{"process.list"}},
		{"", "", "_ = append(p.list, 1)", nil},
		{"", "", "delete(p.by, 1)", []string{"process.by"}},
		{"", "", "p.parts[0].a = 1", []string{"process.parts"}},
		{"", "", "p.by[1].a = 1", []string{"process.by"}},
		{"", "", "p.config.add()", []string{"process.config"}},
		{"", "", "_ = p.config.twice()", nil},
		// Variables of structs within a machine count too.
		{"", visitA, "p.parts[0].a = 1", nil},
		{
			"", visitA,
			"p.parts[0].a = 1; p.parts[1].b = 2",
			[]string{"process.b is changed"},
		},
		{
			"", visitA,
			"p.parts = append(p.parts, part{1, 2})",
			[]string{"process.b is changed"},
		},
		{
			"", visitA,
			"p.parts = append(p.parts, part{a: 1})", nil,
		},
		// A machine inside a machine.
		{"in inner", "", "", []string{"process.in is a machine"}},
		{"in *inner", "", "p.in.step()", []string{"process.in is a machine"}},
		{"in []parley.Machine", "", "", []string{"process.in is a machine"}},
		{"in map[int]*inner", "", "", []string{"process.in is a machine"}},
		{"in inner", "v.Machine(`in`, &p.in)", "p.in.step()", nil},
	} {
		text := fmt.Sprintf(planted, m.path, c.field, c.state, c.clause)
		what := c.field + " | " + c.state + " | " + c.clause
		p, err := m.typeCheck(plant(t, m, "agreement/x/x.go", text))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		expect(t, what, stateBreaches(p), c.want...)
	}
}
