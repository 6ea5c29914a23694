package exploration

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"parley/catalog"
)

// Every search with default flags can be made smaller in three ways, and the command accepts all of them.
func TestExploreCanBeSmaller(t *testing.T) {
	for _, p := range catalog.All() {
		for _, step := range []string{"message", "round", "split"} {
			f := New(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
			if err := f.fs.Set("step", step); err != nil {
				t.Fatal(err)
			}
			s, err := f.Setup()
			if err != nil {
				continue // it cannot be explored, or not that way
			}
			ways := s.ways()
			want := 3
			if step == "split" && len(s.begins.liars[0]) == 0 {
				want = 1 // each initial state has one run
			}
			if len(ways) < want {
				t.Errorf("%s --step %s: %d ways, want %d: %v", p.Name, step, len(ways), want, ways)
			}
			for _, way := range ways {
				flag, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(way, "--"), "-"), " ")
				if flag = strings.TrimSuffix(flag, ","); f.fs.Lookup(flag) == nil {
					t.Errorf("%s --step %s: %s: there is no such flag", p.Name, step, way)
				}
			}
		}
	}
}
