package tidy

import (
	"fmt"
	"go/ast"
	"go/types"
	"testing"
)

// A goroutine must have an owner that waits for its end: the Go method of a sync.WaitGroup must start it. If the
// WaitGroup is a variable, its function must wait; if it is a field, its package, or any package if its name is
// exported. A go statement reports no end.

// goStatements are the files with go statements, their number, and what ends the goroutines. None may be added.
var goStatements = map[string]exception{
	"cli/node/node.go":                       {2, "the command ends with it: it reads standard input, or has joined too late"},
	"cli/node/serve.go":                      {1, "a server that is closed with the node"},
	"cli/demo/order.go":                      {1, "a subscription: its context ends it"},
	"cli/demo/demo.go":                       {1, "nodes close what it waits for"},
	"cli/local/control.go":                   {1, "a channel that is closed"},
	"cli/local/node.go":                      {2, "channels that are closed when the process ends"},
	"cluster/api/participant/participant.go": {1, "a channel that is closed when the answer is there"},
	"cluster/harness/run.go":                 {1, "a channel that is closed when the process ends"},
	"cluster/harness/crash.go":               {1, "the process, which crashes in it"},
	"cluster/link/session.go":                {1, "the session's written, which it waits for"},
	"cluster/store/store.go":                 {3, "a call of a disk that may hang in the kernel: nobody can wait for it"},
	"cluster/store/merge.go":                 {1, "files.merging, which is closed"},
	"cluster/admission.go":                   {1, "a channel that is closed, which the node waits for"},
	"cluster/folder.go":                      {1, "a call of a disk that may hang in the kernel: nobody can wait for it"},
	"cluster/node.go":                        {1, "a channel that is closed, which Close waits for"},
	"cluster/host/inbox.go":                  {1, "the inbox, which is empty when it ends"},
	"cluster/host/timerfd_linux.go":          {1, "the file of the timer, whose close ends it"},
	"cluster/host/process.go":                {1, "the node, which it tells that a machine broke"},
	"internal/chaos/chaos.go":                {1, "its context"},
	"internal/chaos/faults_disk.go":          {1, "its context"},
	"internal/chaos/net_linux.go":            {3, "namespaces, which live as long as the program; and a channel that is closed"},
	"internal/chaos/node.go":                 {1, "a channel that is closed when the process ends"},
	"internal/faultgrid/main.go":             {1, "the program, which ends after the last cell"},
	"trace/stream.go":                        {1, "a channel that is closed, which Close waits for"},
}

// exception is the allowed number of breaches in a place, with the reason.
type exception struct {
	most int
	why  string
}

// goroutineBreaches returns, by file, the go statements, and the calls of Go on an operand for which the package does
// not Wait.
func goroutineBreaches(m *module, f *folder) (statements map[string][]string, unawaited []string) {
	statements = make(map[string][]string)
	waits := make(map[operand]bool)
	each := func(f *folder, visit func(s *source, in ast.Decl, n ast.Node)) {
		for _, s := range f.code {
			for _, in := range s.syntax.Decls {
				ast.Inspect(in, func(n ast.Node) bool {
					visit(s, in, n)
					return true
				})
			}
		}
	}
	for _, other := range m.folders {
		each(other, func(_ *source, in ast.Decl, n ast.Node) {
			if of := operandOf(in, n, "Wait", 0); of.in == nil && ast.IsExported(of.name) {
				waits[of] = true
			}
		})
	}
	each(f, func(s *source, in ast.Decl, n ast.Node) {
		if g, ok := n.(*ast.GoStmt); ok {
			statements[s.path] = append(statements[s.path], m.at(g.Pos())+": a goroutine for which nobody waits")
		}
		waits[operandOf(in, n, "Wait", 0)] = true
	})
	each(f, func(_ *source, in ast.Decl, n ast.Node) {
		if of := operandOf(in, n, "Go", 1); !waits[of] {
			unawaited = append(unawaited, fmt.Sprintf("%s: the package never waits for %s", m.at(n.Pos()), of.name))
		}
	})
	return statements, unawaited
}

// operand is the operand of a method call: a variable in a declaration, or a field.
type operand struct {
	in   ast.Decl
	name string
}

// operandOf returns the operand of a call of the method, and nothing for other nodes. An operand that is neither a
// variable nor a field is named with the method, so that no other call has that name.
func operandOf(in ast.Decl, n ast.Node, method string, args int) operand {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != args {
		return operand{}
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != method {
		return operand{}
	}
	switch x := sel.X.(type) {
	case *ast.Ident:
		return operand{in, x.Name}
	case *ast.SelectorExpr:
		return operand{nil, x.Sel.Name}
	}
	return operand{in, types.ExprString(sel)}
}

func TestGoroutines(t *testing.T) {
	m := loaded(t)
	found := make(map[string]int)
	for f := range m.own {
		statements, unawaited := goroutineBreaches(m, f)
		report(t, unawaited)
		for file, list := range statements {
			if found[file] = len(list); len(list) > goStatements[file].most {
				report(t, list)
			}
		}
	}
	for file, e := range goStatements {
		if found[file] < e.most {
			t.Errorf("%s: %d go statements, and %d are allowed: lower that", file, found[file], e.most)
		}
	}
}

func TestGoroutinesCatches(t *testing.T) {
	m := loaded(t)
	for _, c := range []struct {
		code       string
		statements int
		unawaited  []string
	}{
		{"func f() { go f() }", 1, nil},
		{"func f() { go func() { go f() }() }", 2, nil},
		{"func f() { w.Go(f); w.Wait() }", 0, nil},
		{"func f(x *T) { x.work.Go(f) }; func (x *T) Close() { x.work.Wait() }", 0, nil},
		{"func f(x *T) { x.work.Go(f); x.play.Wait() }", 0, []string{"never waits for work"}},
		{"func f() { w.Go(f) }", 0, []string{"x/x.go:2: the package never waits for w"}},
		{"func f() { w.Go() }", 0, nil},
		{"func f() { w[0].Go(f); w[0].Wait() }", 0, []string{"never waits for w[0].Go"}},
		{"func f() { g().Go(f); g().Wait() }", 0, []string{"never waits for g().Go"}},
		{"func f() { (w).Go(f); w.Wait() }", 0, []string{"never waits for (w).Go"}},
		{"func f() { w.Go(f) }; func g(w *exec.Cmd) { w.Wait() }", 0, []string{"never waits for w"}},
		{"func f(x *T) { w.Go(f); x.w.Wait() }", 0, []string{"never waits for w"}},
	} {
		statements, unawaited := goroutineBreaches(m, plant(t, m, "x/x.go", "package x\n"+c.code))
		expect(t, c.code, unawaited, c.unawaited...)
		if n := len(statements["x/x.go"]); n != c.statements {
			t.Errorf("%s: got %d go statements, want %d", c.code, n, c.statements)
		}
	}
}
