package tidy

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The import law. Each line has folders, their purity, and their allowed imports from this module ("." is the root).
// The first line that matches a folder applies. A word defined above the lines stands for its definition. Imports
// point downward: to folders of the same line or of a line above.
//
// One host may use another: cluster/harness uses the network, clocks and faults of sim, so that a run means the same
// on both.
//
// Hosts never import a protocol. Only the catalog, the commands, and packages that test or measure the protocols
// import both. agreement/problem is no protocol: it states the properties of agreement.
//
// pure: no clock, randomness, network, file, lock, goroutine or channel, and no map order that can reach an effect.
// See pureImports and pureNames. seeded: the same seed gives the same run, but time, files and goroutines are
// allowed. free: anything.
const importLaw = `
core      = . internal/lists
adapters  = lockstep stack mux seq
agreement = agreement/problem agreement/*
upto-membership = agreement/problem agreement/* broadcast/problem membership/*
upto-broadcast  = agreement/problem agreement/* broadcast/problem membership/* broadcast/*
problems  = agreement/problem broadcast/problem commit/problem
protocols = agreement/problem agreement/* broadcast/problem membership/* broadcast/* clock/* commit/problem commit/* replica/*
hosts     = sim explore run cluster cluster/* cluster/api/*
beneath   = cluster/cert cluster/link cluster/disk cluster/store cluster/host cluster/kernel
parts     = cluster/lives cluster/members cluster/measure cluster/mesh cluster/traces
services  = cluster/agree cluster/clocks cluster/commits cluster/groups cluster/tables
drawing   = internal/draw internal/draw/*
inputs    = internal/nearest internal/naming internal/input
forms     = internal/nearest internal/naming internal/input internal/form internal/report
exercising = exercises exercises/model
judging   = broadcast/timestamp cluster cluster/audit cluster/disk
labs      = internal/lab/cost internal/lab/traitor internal/lab/likeness internal/lab/link
tools     = internal/draw internal/draw/* internal/scenario internal/conform internal/bench internal/bench/order internal/bench/failover

.                      pure    :
internal/lists         pure    :
internal/nearest       pure    :
lockstep               pure    : core
stack mux seq          pure    : core adapters
faulty                 pure    : core adapters internal/nearest
agreement/problem      pure    : core
agreement/*            pure    : core adapters agreement
agreement/eig/sliced   seeded  : core agreement/problem agreement/eig
broadcast/problem      pure    : core
membership/*           pure    : core adapters upto-membership
broadcast/*            pure    : core adapters upto-broadcast
clock/*                pure    : core adapters upto-broadcast clock/*
commit/problem         pure    : core
commit/* replica/*     pure    : core adapters protocols
trace                  free    : core
sim                    seeded  : core adapters faulty trace
internal/must          free    :
internal/made          free    :
explore/internal/budget free   :
explore/internal/timer pure    : core
explore                free    : core adapters faulty trace sim explore/internal/*
explore/goal           free    : core explore internal/nearest
explore/split          free    : core faulty trace sim explore explore/internal/*
run                    seeded  : core adapters faulty trace problems sim explore
cluster/cert           free    :
cluster/api/parleyv1   free    :
cluster/link/memory    free    :
cluster/link           free    : core cluster/cert cluster/api/parleyv1
cluster/disk           free    :
cluster/store          free    : core cluster/disk
cluster/host           free    : core adapters faulty trace cluster/cert cluster/link cluster/store
cluster/protocols      seeded  : core lockstep trace agreement/stream broadcast/* membership/group
cluster/kernel         free    : core mux faulty cluster/link cluster/host cluster/protocols cluster/store membership/*
cluster/kernel/kerneltest free : core cluster/host cluster/link cluster/kernel membership/group
cluster/agree          free    : core trace agreement/* cluster/protocols cluster/host cluster/link cluster/kernel
cluster/clocks         free    : core cluster/host cluster/link cluster/kernel clock/*
cluster/groups         free    : core trace broadcast/* membership/group cluster/protocols cluster/host cluster/link cluster/kernel
cluster/commits        free    : core cluster/host cluster/link cluster/kernel commit/*
cluster/tables         free    : core stack broadcast/timestamp membership/group replica/* cluster/host cluster/link cluster/kernel
cluster/lives          free    : cluster/link cluster/store
cluster/members        free    : core broadcast/problem membership/* cluster/host cluster/link cluster/kernel
cluster/measure        free    : cluster/agree cluster/clocks cluster/link
cluster/mesh           free    : core cluster/cert cluster/link cluster/kernel
cluster/traces         free    : core trace cluster/disk cluster/host
cluster/harness            free    : core sim trace cluster/cert cluster/link cluster/store cluster/host
cluster                free    : core trace faulty agreement/* clock/* membership/* cluster/protocols beneath parts services
cluster/api            free    : core cluster cluster/cert cluster/link cluster/api/parleyv1 agreement/consensus agreement/stream replica/*
cluster/api/client     free    : internal/lists cluster/cert cluster/api/*
cluster/api/participant free   : cluster cluster/api/parleyv1
cluster/audit          free    : core adapters trace problems agreement/interactive agreement/stream cluster/protocols
cluster/clustertest    free    : cluster cluster/cert cluster/disk cluster/link/memory
cluster/*              free    : core faulty cluster cluster/* cluster/api/* replica/* internal/nearest
exercises              pure    : core adapters protocols
exercises/model        free    :
exercises/model/*      pure    : core adapters problems
parleytest             seeded  : core adapters faulty trace hosts problems
internal/committest    free    : core sim parleytest commit/problem
internal/viewtest      free    : core sim parleytest problems membership/group
catalog                pure    : core adapters protocols
internal/draw/prose    seeded  : core
internal/draw/reading  seeded  : core adapters trace broadcast/problem internal/draw/prose
internal/draw/scale    seeded  : core
internal/draw/term     seeded  : core trace internal/draw/prose internal/draw/reading
internal/draw/scene    seeded  : core internal/draw/prose
internal/draw/queues   seeded  : core internal/draw/prose internal/draw/reading internal/draw/scale internal/draw/scene
internal/draw/chart    seeded  : internal/draw/prose internal/draw/scene
internal/draw/live     seeded  : core trace internal/draw/prose internal/draw/reading internal/draw/scene
internal/draw/svg      seeded  : internal/draw/scene
internal/draw          seeded  : core trace internal/draw/prose internal/draw/reading internal/draw/scale internal/draw/scene
internal/scenario      free    : core adapters faulty trace hosts problems membership/group replica/rsm internal/nearest
internal/conform/form  free    :
internal/conform       free    : core adapters faulty trace hosts protocols agreement/eig/sliced internal/conform/form
internal/bench         free    : core adapters faulty trace hosts protocols agreement/eig/sliced
internal/naming        pure    : core
internal/input         free    : core internal/nearest
internal/costs         pure    : core
internal/envelope      seeded  : core problems
internal/form          free    : core faulty trace sim run broadcast/problem internal/draw/reading internal/scenario internal/bench internal/envelope inputs
internal/report        free    : core trace sim agreement/problem drawing forms
internal/merged        free    : core lockstep faulty trace run cluster/audit forms
internal/exploration   free    : core faulty trace sim explore explore/* run problems drawing internal/scenario forms
internal/bench/order   free    : core faulty cluster cluster/cert cluster/link internal/must
internal/bench/failover free   : core cluster cluster/cert cluster/harness cluster/link internal/must
cli/console            free    : core trace internal/nearest internal/draw/prose internal/input
cli/child              free    : core cluster/harness
cli/foreign            free    : core internal/envelope internal/input cli/child
cli/cert               free    : core cluster/cert cli/console
cli/client             free    : core cluster cluster/cert cluster/nodefile cluster/api/* cli/console internal/draw/prose
cli/node               free    : core cluster cluster/* cluster/api/* cli/client cli/console
cli/local              free    : core faulty cluster/cert cluster/nodefile cluster/api/* cli/child cli/client cli/console
docs/scenarios         free    :
docs/tutorials/learn   free    :
internal/lab/cost      free    : core run internal/costs drawing forms
internal/lab/traitor   free    : core faulty trace sim explore explore/split run forms
internal/lab/likeness  free    : core faulty trace drawing forms
internal/lab/link      free    :
internal/lab/likeness  free    : core faulty trace drawing forms
internal/lab/engine    free    : core faulty trace sim explore run docs/tutorials/learn tools internal/exploration internal/merged labs forms
internal/lab/page      free    : catalog internal/draw/svg
internal/lab/server    free    : internal/draw/svg internal/lab/engine
internal/lab/live      free    : core lockstep trace judging membership/group cluster/api/parleyv1 internal/draw/* cli/child cli/client cli/local
cli/lab                free    : core trace docs/scenarios internal/lab/* cli/client cli/console
cli/show               free    : core trace internal/nearest internal/report cli/console cli/lab
cli/run                free    : core faulty trace sim run broadcast/problem cluster/harness tools forms cli/child cli/console cli/foreign cli/lab cli/show
cli/explore            free    : core explore explore/goal drawing internal/exploration forms cli/console cli/lab
cli/bench              free    : core cluster cluster/harness tools forms cli/child cli/console
cli/traces             free    : core trace cluster/audit internal/merged drawing forms cli/console cli/lab cli/run cli/show
cli/create             free    : core cli/console
cli/exercise           free    : core trace sim run explore internal/draw/prose internal/exploration forms exercising cli/child cli/console cli/create cli/lab
cli/demo               free    : core faulty lockstep trace run internal/merged cluster cluster/api/* drawing forms cli/*
cli                    free    : core faulty internal/conform drawing forms cli/*
cmd/labwasm            free    : catalog docs/scenarios internal/lab/engine
cmd/*                  free    : core adapters faulty trace hosts protocols catalog cli
examples/nodes         free    : cluster cluster/cert
examples/*             free    : core adapters faulty trace protocols hosts examples/nodes
internal/tidy          free    :
internal/faultgrid          free    : core adapters faulty trace hosts protocols problems internal/scenario drawing catalog cli internal/made
internal/explorecases         free    : core adapters faulty trace hosts protocols problems catalog explore/goal internal/draw/prose internal/must internal/made
internal/mutants       free    : internal/must internal/made
internal/reference     free    : core trace explore run cluster/nodefile tools internal/exploration catalog forms cli cli/* internal/must internal/made
internal/performance   free    : internal/must internal/made
internal/lab/site      free    : catalog docs/scenarios internal/draw internal/draw/svg internal/lab/* internal/must
internal/steady        free    : internal/must internal/made
internal/audit         free    : core adapters faulty trace hosts catalog cli internal/must
internal/chaos/judge   free    : replica/keyvalue
internal/chaos         free    : cluster/cert cluster/api/client cluster/api/parleyv1 replica/keyvalue catalog cli internal/chaos/judge internal/must
internal/golden        free    : catalog cli
`

// Family folders hold packages and are none themselves.
var families = []string{"agreement", "broadcast", "membership", "clock", "commit", "replica", "internal", "cmd", "docs", "examples"}

// pureImports are the packages of the standard library that pure packages may import. pureExtra are additional ones
// for single packages.
var (
	pureImports = strings.Fields(`bytes cmp container/heap container/list container/ring crypto/sha256 crypto/sha512
		encoding/base64 encoding/binary encoding/hex errors flag fmt hash hash/adler32 hash/crc32 hash/crc64 hash/fnv
		iter maps math math/bits slices sort strconv strings unicode unicode/utf8`)
	pureExtra = map[string][]string{
		"faulty": {"time"}, // to read a duration
	}
)

// rule is one line of the law.
type rule struct {
	folders []string
	purity  string
	imports []string
}

// parseLaw reads the law.
func parseLaw(text string) ([]rule, error) {
	words := make(map[string][]string)
	spell := func(list string) []string {
		var out []string
		for _, w := range strings.Fields(list) {
			if words[w] != nil {
				out = append(out, words[w]...)
			} else {
				out = append(out, w)
			}
		}
		return out
	}
	var law []rule
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if word, list, ok := strings.Cut(line, "="); ok {
			words[strings.TrimSpace(word)] = strings.Fields(list)
			continue
		}
		subject, imports, ok := strings.Cut(line, ":")
		fields := strings.Fields(subject)
		if len(fields) == 0 {
			continue
		}
		r := rule{fields[:len(fields)-1], fields[len(fields)-1], spell(imports)}
		if !ok || !slices.Contains([]string{"pure", "seeded", "free"}, r.purity) || len(r.folders) == 0 {
			return nil, fmt.Errorf("not a line of the law: %q", line)
		}
		law = append(law, r)
	}
	return law, nil
}

func oneOf(globs []string, folder string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		ok, err := path.Match(glob, folder)
		return ok && err == nil
	})
}

// ruleOf returns the line that applies to a folder.
func ruleOf(law []rule, folder string) (rule, bool) {
	i := slices.IndexFunc(law, func(r rule) bool { return oneOf(r.folders, folder) })
	if i < 0 {
		return rule{}, false
	}
	return law[i], true
}

// importBreaches checks a folder's imports against the law. Tests may import anything.
func importBreaches(m *module, law []rule, f *folder) []string {
	var out []string
	if slices.Contains(families, f.path) {
		return []string{f.path + ": a family folder holds packages and no Go files"}
	}
	if len(f.code) == 0 {
		return nil
	}
	r, known := ruleOf(law, f.path)
	if !known {
		return []string{f.path + ": the law of imports has no line for it; it needs one, in internal/tidy"}
	}
	for _, s := range f.code {
		for _, spec := range s.syntax.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			inner, own := strings.CutPrefix(p, m.path+"/")
			if p == m.path {
				inner, own = ".", true
			}
			switch {
			case own && !oneOf(r.imports, inner):
				out = append(out, fmt.Sprintf("%s: %s may not import %s", m.at(spec.Pos()), f.path, p))
			case !own && r.purity == "pure" && !slices.Contains(pureImports, p) && !slices.Contains(pureExtra[f.path], p):
				out = append(out, fmt.Sprintf("%s: %s is pure and may not import %s", m.at(spec.Pos()), f.path, p))
			}
		}
	}
	return out
}

func theLaw(t *testing.T) []rule {
	t.Helper()
	law, err := parseLaw(importLaw)
	if err != nil {
		t.Fatal(err)
	}
	return law
}

func TestImportLaw(t *testing.T) {
	m, law := loaded(t), theLaw(t)
	for f := range m.own {
		report(t, importBreaches(m, law, f))
	}
}

func TestImportLawCatches(t *testing.T) {
	m, law := loaded(t), theLaw(t)
	own := func(p string) string { return strconv.Quote(path.Join(m.path, p)) }
	for _, c := range []struct {
		file, imports string
		want          []string
	}{
		{"agreement/x/x.go", own(".") + ";" + own("lockstep") + ";" + own("agreement/eig") + `; "slices"`, nil},
		{"agreement/x/x.go", own("faulty"), []string{"agreement/x may not import"}},
		{"agreement/x/x.go", own("sim") + ";" + own("trace"), []string{"sim", "trace"}},
		{"agreement/x/x.go", own("broadcast/fifo"), []string{"broadcast/fifo"}},
		{"agreement/x/x.go", own("agreement/eig/sliced"), []string{"agreement/eig/sliced"}},
		{"agreement/x/x.go", own("catalog"), []string{"catalog"}},
		{"broadcast/x/x.go", own("agreement/ballot") + ";" + own("stack"), nil},
		{"broadcast/x/x.go", own("membership/group"), nil},
		{"membership/x/x.go", own("broadcast/fifo"), []string{"broadcast/fifo"}},
		{"replica/x/x.go", own("clock/convergence") + ";" + own("commit/twophase"), nil},
		{
			"agreement/x/x.go", `"time"; "os"; "sync"; "math/rand/v2"; "log"; "net"; "io"; "unsafe"; "github.com/spf13/cobra"`,
			[]string{"time", "os", "sync", "math/rand/v2", "log", "net", "io", "unsafe", "cobra"},
		},
		{"faulty/x.go", `"time"`, nil},
		{"faulty/x.go", `"os"`, []string{"os"}},
		{"x.go", own("lockstep"), []string{"may not import"}},
		{"x.go", `"os"`, []string{"os"}},
		{"lockstep/x.go", own("mux"), []string{"mux"}},
		{"sim/x.go", own("agreement/eig"), []string{"sim may not import"}},
		{"sim/x.go", own("agreement/problem"), []string{"sim may not import"}},
		{"explore/x.go", own("catalog"), []string{"explore may not import"}},
		{"cluster/x.go", own("faulty") + `; "net"`, nil},
		{"catalog/x.go", own("agreement/eig") + ";" + own("replica/bank"), nil},
		{"catalog/x.go", own("sim"), []string{"sim"}},
		{"cli/x.go", own("agreement/eig"), []string{"agreement/eig"}},
		{"cli/x.go", own("catalog"), []string{"catalog"}},
		{"cmd/x/x.go", own("cli") + ";" + own("catalog"), nil},
		{"newfolder/x.go", "", []string{"no line for it"}},
		{"agreement/x.go", "", []string{"family folder"}},
	} {
		f := plant(t, m, c.file, "package x\nimport ("+c.imports+")\n")
		expect(t, c.file+" importing "+c.imports, importBreaches(m, law, f), c.want...)
	}
	f := plant(t, m, "agreement/x/x_test.go", "package x_test\nimport ("+own("sim")+`; "time")`)
	expect(t, "a test that imports a host", importBreaches(m, law, f))
	if _, err := parseLaw("nonsense"); err == nil {
		t.Error("a line that is no rule was accepted")
	}
}

// Imports point downward: no line allows a folder of a later line.
func TestImportLawPointsDownward(t *testing.T) {
	law := theLaw(t)
	for i, r := range law {
		for _, later := range law[i+1:] {
			for _, glob := range r.imports {
				if slices.Contains(later.folders, glob) && !slices.Contains(r.folders, glob) {
					t.Errorf("%v may import %s, which stands further down", r.folders, glob)
				}
			}
		}
	}
}

// unheardOf returns the patterns of the law that match no folder of the module.
func unheardOf(m *module, law []rule) (out []string) {
	for _, r := range law {
		for _, glob := range slices.Concat(r.folders, r.imports) {
			if !slices.ContainsFunc(m.folders, func(f *folder) bool { return oneOf([]string{glob}, f.path) }) &&
				!slices.Contains(out, glob) {
				out = append(out, glob)
			}
		}
	}
	return out
}

// Every line of the law names existing folders.
func TestImportLawNamesFolders(t *testing.T) {
	m := loaded(t)
	report(t, unheardOf(m, theLaw(t)))
	law, err := parseLaw("sim free : core/nothing sim\nnowhere/* pure : trace\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := unheardOf(m, law); !slices.Equal(got, []string{"core/nothing", "nowhere/*"}) {
		t.Errorf("got %q, want core/nothing and nowhere/*", got)
	}
}
