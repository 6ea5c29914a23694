package conform

import (
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/conform/form"
	"parley/lockstep"
	"parley/trace"
)

// oralInternals are the expectations of an oral agreement other than its decisions: what processes send and what
// their trees hold. Trees, and the maps of the same form derived from them, are compared only for the listed entries.
type oralInternals struct {
	RoundMessages   map[string]map[string][]pair `json:"round_messages"`
	Trees           map[string]map[string]pair   `json:"trees"`
	TreeOutputs     map[string]map[string]string `json:"tree_outputs"`
	Leaves          map[string]map[string]string `json:"leaves"`
	Votes           map[string]map[string]string `json:"votes"`
	DeceptiveLeaves *int                         `json:"deceptive_leaves"`
	AccurateLeaves  *int                         `json:"accurate_leaves"`
}

// pair is a list of two texts: a value and a path, or an input and an output.
type pair [2]string

// compare compares the expectations with a run.
func (want oralInternals) compare(r oralRun, report reporter) {
	names := form.Keys(want.RoundMessages)
	for i, id := range r.asCorrect("round_messages", names, parley.All) {
		for _, round := range form.Keys(want.RoundMessages[names[i]]) {
			n, err := strconv.Atoi(round)
			if err != nil || n < 0 || n > r.c.M || strconv.Itoa(n) != round {
				fail("expect: round_messages: %q is no round of 0 to %d", round, r.c.M)
			}
			report("round_messages."+names[i]+"."+round, sorted(want.RoundMessages[names[i]][round]), r.said(id, n))
		}
	}
	compareTrees(r, report, "trees", want.Trees, r.nodes)
	compareTrees(r, report, "tree_outputs", want.TreeOutputs, r.outputs)
	compareTrees(r, report, "leaves", want.Leaves, r.leaves)
	compareTrees(r, report, "votes", want.Votes, r.votes)
	want.countLeaves(r, report)
}

// compareTrees compares what is derived from the trees of lieutenants.
func compareTrees[T any](r oralRun, report reporter, key string, want map[string]map[string]T,
	taken func(name string, t parley.Tree) map[string]T,
) {
	names := form.Keys(want)
	for i, id := range r.asCorrect(key, names, r.c.Source) {
		report(key+"."+names[i], want[names[i]], among(want[names[i]], taken(names[i], r.trees[id])))
	}
}

func sorted(list []pair) []pair {
	slices.SortFunc(list, func(a, b pair) int { return strings.Compare(a[1]+" "+a[0], b[1]+" "+b[0]) })
	return list
}

// said returns what a process sends in a round: values and paths, each once.
func (r oralRun) said(id parley.ID, round int) []pair {
	out, seen := []pair{}, make(map[pair]bool)
	for _, e := range r.log.Events {
		if e.Op != trace.Send || e.At != id || e.Msg.Seq != uint64(round) {
			continue
		}
		for _, sent := range lockstep.Open(e.Msg) {
			for path, value := range r.items(parley.Env{From: id, Round: round}, sent.Msg) {
				if one := (pair{string(value), r.path(path)}); !seen[one] {
					seen[one], out = true, append(out, one)
				}
			}
		}
	}
	return sorted(out)
}

// walk visits all nodes of a tree.
func walk(t parley.Tree, path []parley.ID, visit func(path []parley.ID, in, out []byte)) {
	in, out, children := t.Node(path)
	visit(path, in, out)
	for _, q := range children {
		walk(t, append(slices.Clone(path), q), visit)
	}
}

// nodes returns input and output of every node.
func (r oralRun) nodes(_ string, t parley.Tree) map[string]pair {
	all := make(map[string]pair)
	walk(t, t.Root(), func(path []parley.ID, in, out []byte) {
		all[r.path(path)] = pair{string(in), string(out)}
	})
	return all
}

// outputs returns the output of every node.
func (r oralRun) outputs(name string, t parley.Tree) map[string]string {
	all := make(map[string]string)
	for path, node := range r.nodes(name, t) {
		all[path] = node[1]
	}
	return all
}

// leaves returns the values of the paths of rank m that do not contain the
// process itself.
func (r oralRun) leaves(name string, t parley.Tree) map[string]string {
	self := r.id("", name)
	all := make(map[string]string)
	walk(t, t.Root(), func(path []parley.ID, in, _ []byte) {
		if len(path) == r.c.M+1 && !slices.Contains(path, self) {
			all[r.path(path)] = string(in)
		}
	})
	return all
}

// countLeaves counts the leaves with and without a faulty process on the path. The counts are the same for every
// correct lieutenant.
func (want oralInternals) countLeaves(r oralRun, report reporter) {
	if want.DeceptiveLeaves == nil && want.AccurateLeaves == nil {
		return
	}
	who := r.correct(r.c.Source)
	if len(who) == 0 {
		fail("expect: leaves are counted, and no lieutenant is correct")
	}
	deceptive, accurate := 0, 0
	for path := range r.leaves(r.names[who[0]], r.trees[who[0]]) {
		if slices.ContainsFunc(strings.Split(path, "."), func(name string) bool { return r.bad(r.id("", name)) }) {
			deceptive++
		} else {
			accurate++
		}
	}
	report("deceptive_leaves", want.DeceptiveLeaves, deceptive)
	report("accurate_leaves", want.AccurateLeaves, accurate)
}

// votes returns the values whose majority a lieutenant finally takes: one for every lieutenant, including its own.
func (r oralRun) votes(name string, t parley.Tree) map[string]string {
	self := r.id("", name)
	root := t.Root()
	in, _, children := t.Node(root)
	all := make(map[string]string)
	if !slices.Contains(children, self) {
		all[name] = string(in) // used directly, not relayed to itself
	}
	for _, q := range children {
		_, out, _ := t.Node(append(slices.Clone(root), q))
		all[r.names[q]] = string(out)
	}
	return all
}
