package tidy

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Code that decides by messages must be a pure machine of the catalog, which is simulated, explored and tested like
// all others. A host contains none.

// The files in hosts with machines or message kinds; none may be added.
var (
	hostMachines = []string{}
	hostKinds    = []string{"cluster/admission.go"} // admission compares the disks of nodes
)

// uncatalogued are packages with protocols that are not in the catalog.
var uncatalogued = map[string]string{}

// machineBreaches finds types whose state a host saves, in packages that may be impure.
func machineBreaches(m *module, law []rule, f *folder) (out []string) {
	if r, known := ruleOf(law, f.path); !known || r.purity == "pure" || firstOf(f.path) == "examples" {
		return nil
	}
	for _, s := range f.code {
		for _, d := range s.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != "State" || len(fn.Type.Params.List) != 1 {
				continue
			}
			if p, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr); !ok || !isOf(p.X, "parley", "Vars") {
				continue
			}
			out = append(out, fmt.Sprintf("%s: %s.%s is a machine outside a pure folder",
				m.at(fn.Pos()), f.path, typeName(fn.Recv.List[0].Type)))
		}
	}
	return out
}

// isOf reports whether an expression is a certain name of a package.
func isOf(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := sel.X.(*ast.Ident)
	return ok && of.Name == pkg && sel.Sel.Name == name
}

// kindBreaches finds message kinds that the cluster declares.
func kindBreaches(m *module, f *folder) (out []string) {
	if f.path != "cluster" && !strings.HasPrefix(f.path, "cluster/") {
		return nil
	}
	for _, s := range f.code {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil && isOf(v.Type, "parley", "Kind") {
				out = append(out, fmt.Sprintf("%s: %s is a kind of message in a host", m.at(v.Pos()), v.Names[0].Name))
			}
			return true
		})
	}
	return out
}

// catalogBreaches finds protocol packages that the catalog does not import.
func catalogBreaches(catalog *folder, m *module, law []rule, f *folder) []string {
	if r, known := ruleOf(law, f.path); !known || r.purity != "pure" || !slices.Contains(families, firstOf(f.path)) {
		return nil
	}
	for _, s := range catalog.code {
		for _, spec := range s.syntax.Imports {
			if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == path.Join(m.path, f.path) {
				return nil
			}
		}
	}
	for _, s := range f.code {
		for _, d := range s.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || fn.Type.Results == nil {
				continue
			}
			if r := fn.Type.Results.List; len(r) == 1 && isOf(r[0].Type, "parley", "Protocol") {
				return []string{fmt.Sprintf("%s: %s makes a protocol that is not in the catalog", m.at(fn.Pos()), fn.Name.Name)}
			}
		}
	}
	return nil
}

// firstOf returns the first folder of a path.
func firstOf(p string) string {
	first, _, _ := strings.Cut(p, "/")
	return first
}

func (m *module) folder(name string) *folder {
	i := slices.IndexFunc(m.folders, func(f *folder) bool { return f.path == name })
	if i < 0 {
		return nil
	}
	return m.folders[i]
}

func TestMachines(t *testing.T) {
	m, law := loaded(t), theLaw(t)
	var machines, kinds []string
	for f := range m.own {
		machines, kinds = append(machines, machineBreaches(m, law, f)...), append(kinds, kindBreaches(m, f)...)
		breaches := catalogBreaches(m.folder("catalog"), m, law, f)
		switch why := uncatalogued[f.path]; {
		case why == "":
			report(t, breaches)
		case len(breaches) == 0:
			t.Errorf("%s is no exception any more", f.path)
		}
	}
	excepted(t, "a host holds none", machines, hostMachines)
	excepted(t, "a protocol has them", kinds, hostKinds)
}

func TestMachinesCatches(t *testing.T) {
	m, law := loaded(t), theLaw(t)
	const machine = "type x struct{}\nfunc (x *x) State(v *parley.Vars) {}\n"
	head := "import \"" + m.path + "\"\n"
	in := func(file, text string) *folder { return plant(t, m, file, "package x\n"+head+text) }
	expect(t, "a machine in a host", machineBreaches(m, law, in("cluster/x.go", machine)), "cluster.x is a machine outside a pure folder")
	expect(t, "a machine in a family", machineBreaches(m, law, in("agreement/x/x.go", machine)))
	expect(t, "another State", machineBreaches(m, law, in("cluster/x.go", "type x struct{}\nfunc (x *x) State(v int) {}\n")))
	expect(t, "a kind in a host", kindBreaches(m, in("cluster/x.go", "const a parley.Kind = 1\n")), "a is a kind of message in a host")
	expect(t, "a kind in a service", kindBreaches(m, in("cluster/x/x.go", "const (\na parley.Kind = iota\nb\n)\n")), "a is a kind")
	expect(t, "a kind in a protocol", kindBreaches(m, in("agreement/x/x.go", "const a parley.Kind = 1\n")))
	const made = "func New() parley.Protocol { return parley.Protocol{} }\n"
	catalog := plant(t, m, "catalog/x.go", "package catalog\nimport _ \""+m.path+"/agreement/y\"\n")
	expect(t, "a protocol that is not in the catalog", catalogBreaches(catalog, m, law, in("agreement/x/x.go", made)),
		"New makes a protocol that is not in the catalog")
	expect(t, "a protocol of the catalog", catalogBreaches(catalog, m, law, in("agreement/y/y.go", made)))
	expect(t, "no protocol", catalogBreaches(catalog, m, law, in("agreement/x/x.go", "func Of() int { return 0 }\n")))
}
