package catalog_test

import (
	"testing"

	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/catalog"
	"parley/lockstep"
	"parley/parleytest"
)

// Every protocol of the catalog keeps what it promises, as any protocol must,
// and has a name of its own.
func TestSuite(t *testing.T) {
	names := make(map[string]bool)
	for _, p := range catalog.All() {
		if names[p.Name] || p.Name == "" || p.Title == "" || p.Paper == "" {
			t.Errorf("%q, %q, %q: a protocol needs a name of its own, a title and a source", p.Name, p.Title, p.Paper)
		}
		names[p.Name] = true
		o := parleytest.Options{Seeds: 100}
		if p.Name == "sm" {
			// One liar more than m, for within n >= m+2 nothing breaks.
			in := problem.Instance{N: 5, M: 1, Default: []byte("0")}
			o.Seeds, o.Beyond = 300, []parleytest.Beyond{{Protocol: sm.New(sm.Config{Instance: in}, lockstep.Simulated), Faulty: 2}}
		}
		t.Run(p.Name, func(t *testing.T) { parleytest.Suite(t, p, o) })
	}
}
