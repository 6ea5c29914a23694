package tidy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// The name of a file is the noun that it holds. Files whose names share a prefix have one subject: three of them must
// become a package.

const sharedPrefix = 3 // this many files with one prefix are too many

// nounless are names that do not say what is in a file. systems are suffixes that the go command knows, or that this
// module uses with them.
var (
	nounless = strings.Fields("common help helper helpers misc more other shared stuff support tool tools util utils various")
	systems  = strings.Fields("bsd darwin linux other unix windows js wasm amd64 arm64")
)

// The remaining exceptions; none may be added.
var (
	prefixed      = []string{"internal/chaos: faults"}
	namelessFiles = []string{"agreement/sm/help_test.go", "clock/convergence/help_test.go", "cluster/link/help_test.go"}
)

// prefixBreaches returns the prefixes that too many files of a folder share.
func prefixBreaches(f *folder) (out []string) {
	count := make(map[string]int)
	for _, s := range f.code {
		words := strings.Split(strings.TrimSuffix(path.Base(s.path), ".go"), "_")
		if len(words) == 1 || !slices.Contains(systems, words[len(words)-1]) {
			count[words[0]]++
		}
		if count[words[0]] == sharedPrefix {
			out = append(out, f.path+": "+words[0])
		}
	}
	return out
}

// nounBreaches returns the files of a folder whose names say nothing.
func nounBreaches(f *folder) (out []string) {
	for _, s := range f.all() {
		if name := strings.TrimSuffix(strings.TrimSuffix(path.Base(s.path), ".go"), "_test"); slices.Contains(nounless, name) {
			out = append(out, s.path)
		}
	}
	return out
}

func TestFiles(t *testing.T) {
	var prefixes, names []string
	for f := range loaded(t).own {
		prefixes = append(prefixes, prefixBreaches(f)...)
		names = append(names, nounBreaches(f)...)
	}
	excepted(t, "three files share their beginning", prefixes, prefixed)
	excepted(t, "a file without a noun", names, namelessFiles)
}

// excepted demands that the breaches are exactly those in a list, given as breaches or as files.
func excepted(t *testing.T, what string, breaches, list []string) {
	t.Helper()
	is := func(b, e string) bool { return b == e || strings.HasPrefix(b, e+":") }
	for _, b := range breaches {
		if !slices.ContainsFunc(list, func(e string) bool { return is(b, e) }) {
			t.Errorf("%s: %s", b, what)
		}
	}
	for _, e := range list {
		if !slices.ContainsFunc(breaches, func(b string) bool { return is(b, e) }) {
			t.Errorf("%s is no exception any more", e)
		}
	}
}

func TestFilesCatches(t *testing.T) {
	m := loaded(t)
	folder := func(names ...string) *folder {
		f := plant(t, m, "x/"+names[0], "package x\n")
		for _, name := range names[1:] {
			more := plant(t, m, "x/"+name, "package x\n")
			f.code, f.tests = append(f.code, more.code...), append(f.tests, more.tests...)
		}
		return f
	}
	expect(t, "two files", prefixBreaches(folder("a.go", "a_b.go", "b.go")))
	expect(t, "three files", prefixBreaches(folder("a.go", "a_b.go", "a_c.go")), "x: a")
	expect(t, "three and a test", prefixBreaches(folder("a_b.go", "a_c.go", "a_d_test.go")))
	expect(t, "files of systems", prefixBreaches(folder("a.go", "a_linux.go", "a_other.go", "a_b_unix.go")))
	expect(t, "files without a noun", nounBreaches(folder("util.go", "utility.go", "help_test.go", "a_help_test.go")),
		"x/util.go", "x/help_test.go")
}

// ceilings are the numbers of exceptions of each kind. They may only fall.
var ceilings = []struct {
	list string
	have func() int
	most int
}{
	{"hostMachines", func() int { return len(hostMachines) }, 0},
	{"hostKinds", func() int { return len(hostKinds) }, 1},
	{"uncatalogued", func() int { return len(uncatalogued) }, 0},
	{"largeRooms", func() int { return len(largeRooms) }, 0},
	{"largeTypes", func() int { return len(largeTypes) }, 0},
	{"pureExtra", func() int { return len(pureExtra) }, 1},
	{"prefixed", func() int { return len(prefixed) }, 1},
	{"namelessFiles", func() int { return len(namelessFiles) }, 3},
	{"goStatements", func() int {
		sum := 0
		for _, e := range goStatements { // order: a sum has none
			sum += e.most
		}
		return sum
	}, 29},
}

func ceilingBreach(list string, have, most int) []string {
	if have == most {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d exceptions: the ceiling is %d, and only falls", list, have, most)}
}

func TestCeilings(t *testing.T) {
	for _, c := range ceilings {
		report(t, ceilingBreach(c.list, c.have(), c.most))
	}
}

func TestCeilingsCatches(t *testing.T) {
	expect(t, "as many as allowed", ceilingBreach("x", 2, 2))
	expect(t, "one more", ceilingBreach("x", 3, 2), "x: 3 exceptions: the ceiling is 2")
	expect(t, "one less", ceilingBreach("x", 1, 2), "the ceiling is 2, and only falls")
}
