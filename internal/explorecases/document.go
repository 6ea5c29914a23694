package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"parley/internal/draw/prose"
	"parley/internal/must"
)

// below is the line below which the document is generated from the lists.
const below = "\n-----\n"

// write writes the tables into a document.
func write(path, list string) (err error) {
	defer must.Return(&err)
	above, _, ok := strings.Cut(string(must.Get(os.ReadFile(path))), below)
	if !ok {
		return fmt.Errorf("%s has no line -----", path)
	}
	return os.WriteFile(path, []byte(above+below+document(list)), 0o644)
}

// document returns the tables of docs/reference/explored.md: the cases of a module's list explore/testdata/cases.txt
// under their headings, and the results for the module's seeded bugs. It fails by must.
func document(list string) string {
	cases := must.Get(read(list))
	bugs := must.Get(seeded(filepath.Dir(filepath.Dir(filepath.Dir(list)))))
	var b strings.Builder
	heading, states := "", uint64(0)
	for i := range cases {
		x := &cases[i]
		if x.heading != heading {
			heading = x.heading
			fmt.Fprintf(&b, "\n### %s\n\n| case | system | asked | what may go wrong | states | depth | ends | verdict |\n"+
				"| --- | --- | --- | --- | --: | --: | --: | --- |\n", heading)
		}
		states += x.want.states
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", x.name, x.made, x.requests(), x.circumstances(),
			thousands(x.want.states), x.deep(), thousands(x.want.ends), x.proved())
	}
	head := fmt.Sprintf("\n## Cases\n\n%d cases. The searches that found no violation visited %s states.\n",
		len(cases), thousands(states))
	return head + b.String() + tabled(bugs)
}

// thousands formats a number with commas, and 0 as the empty text.
func thousands(n uint64) string {
	if n == 0 {
		return ""
	}
	return prose.Number(n)
}

// requests describes the requests of the processes.
func (x *exploredCase) requests() string {
	var list []string
	for i := range x.asked {
		a := &x.asked[i]
		what := cmp.Or(strings.Join(a.texts, " or "), a.verb)
		if a.verb == "loses" || a.verb == "regains" {
			what = a.verb + " " + what
		}
		if a.to.Len() > 0 {
			what += " to some"
		}
		list = append(list, fmt.Sprintf("P%d %s", a.at+1, what))
	}
	return strings.Join(list, ", ")
}

// deep describes the depth of the search: its limit, or the number of transitions of the longest run without a
// repeated state.
func (x *exploredCase) deep() string {
	switch {
	case x.depth > 0:
		return fmt.Sprintf("up to %d", x.depth)
	case x.want.deep > 0:
		return strconv.Itoa(x.want.deep)
	}
	return ""
}

// proved returns the verdict of the search.
func (x *exploredCase) proved() string {
	what := "holds"
	switch {
	case x.want.property == "never" && x.says != "":
		return fmt.Sprintf("**%q breaks** in %d %s", x.says, x.want.moves, x.unit())
	case x.want.property != "":
		return fmt.Sprintf("**%s breaks** in %d %s", x.want.property, x.want.moves, x.unit())
	case x.says != "":
		return x.says
	case x.want.ends == 0:
		what = "safety holds"
	}
	if len(x.only) > 0 {
		what += ": " + strings.Join(x.only, ", ")
	}
	return what
}
