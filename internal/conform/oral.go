package conform

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/lockstep"
	"parley/trace"
)

// oralCase is one Byzantine agreement with oral messages.
type oralCase struct {
	head
	N           int        `json:"n"`
	M           int        `json:"m"`
	Processes   []string   `json:"processes"`
	Source      string     `json:"source"`
	SourceValue string     `json:"source_value"`
	Default     string     `json:"default"`
	Faulty      []string   `json:"faulty"`
	Algorithm   string     `json:"algorithm"`
	Sends       []oralSend `json:"sends"`
}

// oralSend is what a faulty process says in one message; without a value it
// says nothing.
type oralSend struct {
	Path  string  `json:"path"`
	To    string  `json:"to"`
	Value *string `json:"value"`
}

type oralExpect struct {
	MessagesPerRound []uint64                     `json:"messages_per_round"`
	RoundMessages    map[string]map[string][]pair `json:"round_messages"`
	Trees            map[string]map[string]pair   `json:"trees"`
	TreeOutputs      map[string]map[string]string `json:"tree_outputs"`
	Leaves           map[string]map[string]string `json:"leaves"`
	Votes            map[string]map[string]string `json:"votes"`
	Decisions        map[string]string            `json:"decisions"`
	Agreement        *bool                        `json:"agreement"`
	Validity         json.RawMessage              `json:"validity"`
	DeceptiveLeaves  *int                         `json:"deceptive_leaves"`
	AccurateLeaves   *int                         `json:"accurate_leaves"`
}

// pair is a list of two texts, a value and a path or an input and an output.
type pair [2]string

// UnmarshalJSON refuses lists of another length.
func (p *pair) UnmarshalJSON(b []byte) error {
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	if len(list) != len(p) {
		return fmt.Errorf("%s: a list of two texts was expected", b)
	}
	copy(p[:], list)
	return nil
}

// oralRun is a case that has been run.
type oralRun struct {
	cast
	c        problem.Instance
	protocol parley.Protocol
	items    func(e parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte]
	log      *trace.Log
	trees    map[parley.ID]parley.Tree // of the correct lieutenants
}

func oral(raw []byte, report func(key string, want, got any)) error {
	var c oralCase
	if err := strict(raw, &c); err != nil {
		return err
	}
	var want oralExpect
	if err := strict(c.Expect, &want); err != nil {
		return fmt.Errorf("expect: %w", err)
	}
	r, err := c.prepare()
	if err != nil {
		return err
	}
	s, log := r.run(r.protocol, map[parley.ID]string{r.c.Source: c.SourceValue})
	r.log, r.trees = log, make(map[parley.ID]parley.Tree)
	for _, id := range r.correct(r.c.Source) {
		r.trees[id] = r.protocol.Tree(s.Machine(id))
	}
	decisions := r.decisions(s, r.c.Source)

	if want.MessagesPerRound != nil {
		given := map[parley.ID]string{r.c.Source: c.SourceValue}
		report("messages_per_round", want.MessagesPerRound, honest(r.protocol, given))
	}
	if want.Decisions != nil {
		report("decisions", want.Decisions, decisions)
	}
	if want.Agreement != nil {
		report("agreement", *want.Agreement, alike(decisions))
	}
	if want.Validity != nil {
		report("validity", want.Validity, r.validity(r.c.Source, c.SourceValue, decisions))
	}
	return r.inside(want, report)
}

// validity is null if the source is faulty, else whether all decided its value.
func (c cast) validity(source parley.ID, value string, decisions map[string]string) *bool {
	if _, bad := c.faulty[source]; bad {
		return nil
	}
	valid := true
	for _, v := range decisions {
		valid = valid && v == value
	}
	return &valid
}

// maxCase is the largest case that is run, in messages.
const maxCase = 20_000_000

// prepare checks the case and makes its protocol.
func (c oralCase) prepare() (oralRun, error) {
	var r oralRun
	var err error
	if r.cast, err = newCast(c.N, c.Processes, c.Faulty); err != nil {
		return r, err
	}
	source, err := r.id(c.Source)
	if err != nil {
		return r, fmt.Errorf("source: %w", err)
	}
	r.c = problem.Instance{N: c.N, M: c.M, Source: source, Default: []byte(c.Default)}
	for _, v := range []string{c.SourceValue, c.Default} {
		if err := checkWord(v); err != nil {
			return r, err
		}
	}
	say, err := c.script(r)
	if err != nil {
		return r, err
	}
	var p lockstep.Protocol
	p, err = oralProtocol(c.Algorithm, r.c, say)
	if err != nil {
		return r, err
	}
	r.protocol = lockstep.Of(p, lockstep.Simulated)
	r.items = func(e parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte] { return eig.Items(r.c, e, m) }
	if c.Algorithm == "om" {
		r.items = func(_ parley.Env, m parley.Msg) iter.Seq2[[]parley.ID, []byte] { return om.Items(r.c, m) }
	}
	return r, nil
}

// oralProtocol makes an oral protocol whose liars say what say says.
func oralProtocol(algorithm string, c problem.Instance, say eig.Say) (lockstep.Protocol, error) {
	if c.M < 0 || c.M > c.N-2 {
		return lockstep.Protocol{}, errFaults
	}
	var p lockstep.Protocol
	switch algorithm {
	case "eig":
		p = eig.Rounds(c)
		p.Lies = eig.Tell(c, say)
	case "om":
		p = om.Rounds(c)
		p.Lies = om.Tell(c, say)
	default:
		return p, fmt.Errorf("algorithm %q: allowed are eig and om", algorithm)
	}
	if total := p.Cost(c.N, c.M).Total().Messages; total > maxCase {
		return p, fmt.Errorf("a case of %d messages: allowed are %d", total, maxCase)
	}
	return p, nil
}

// script makes of the sends what each liar says.
func (c oralCase) script(r oralRun) (eig.Say, error) {
	return script(c.Sends, r.cast, c.M, func(path []parley.ID, to parley.ID) bool {
		if path[0] != r.c.Source {
			return false
		}
		return to != r.c.Source && (c.Algorithm != "om" || !within(path, to))
	})
}

// script reads sends: for every message its path, its receiver and its value.
// due tells whether the algorithm knows such a message.
func script(sends []oralSend, k cast, m int, due func(path []parley.ID, to parley.ID) bool) (eig.Say, error) {
	said := make(map[string][]byte)
	for _, send := range sends {
		path, err := k.ids(strings.Split(send.Path, "."))
		if err != nil {
			return nil, fmt.Errorf("sends: path %q: %w", send.Path, err)
		}
		to, err := k.id(send.To)
		if err != nil {
			return nil, fmt.Errorf("sends: to: %w", err)
		}
		_, bad := k.faulty[path[len(path)-1]]
		key := send.Path + ">" + send.To
		_, twice := said[key]
		switch {
		case !bad:
			return nil, fmt.Errorf("sends: path %q ends in a correct process, which follows the algorithm", send.Path)
		case twice || len(path) > m+1 || cyclic(path) || !due(path, to):
			return nil, fmt.Errorf("sends: path %q to %q is no message of this algorithm, or is given twice", send.Path, send.To)
		}
		said[key] = nil
		if send.Value != nil {
			if err := checkWord(*send.Value); err != nil {
				return nil, err
			}
			said[key] = append([]byte{}, *send.Value...)
		}
	}
	return func(path []parley.ID, to parley.ID, _ []byte) []byte {
		return said[k.path(path)+">"+k.names[to]]
	}, nil
}

func within(path []parley.ID, id parley.ID) bool { return slices.Contains(path, id) }

func cyclic(path []parley.ID) bool {
	for i, id := range path {
		if slices.Contains(path[:i], id) {
			return true
		}
	}
	return false
}

// inside checks what is expected of messages and trees.
func (r oralRun) inside(want oralExpect, report func(key string, want, got any)) error {
	for name, rounds := range want.RoundMessages {
		id, err := r.asCorrect(name)
		if err != nil {
			return fmt.Errorf("expect: round_messages: %w", err)
		}
		for round, list := range rounds {
			n, err := strconv.Atoi(round)
			if err != nil || n < 0 || n > r.c.M {
				return fmt.Errorf("expect: round_messages: %q is no round of 0 to %d", round, r.c.M)
			}
			report("round_messages."+name+"."+round, sorted(list), r.said(id, n))
		}
	}
	for _, part := range []struct {
		key   string
		names []string
		check func(name string, t parley.Tree)
	}{
		{"trees", keys(want.Trees), func(name string, t parley.Tree) {
			report("trees."+name, want.Trees[name], among(want.Trees[name], r.nodes(t)))
		}},
		{"tree_outputs", keys(want.TreeOutputs), func(name string, t parley.Tree) {
			outs := make(map[string]string)
			for path, node := range r.nodes(t) {
				outs[path] = node[1]
			}
			report("tree_outputs."+name, want.TreeOutputs[name], among(want.TreeOutputs[name], outs))
		}},
		{"leaves", keys(want.Leaves), func(name string, t parley.Tree) {
			report("leaves."+name, want.Leaves[name], r.leaves(name, t))
		}},
		{"votes", keys(want.Votes), func(name string, t parley.Tree) {
			report("votes."+name, want.Votes[name], r.votes(name, t))
		}},
	} {
		for _, name := range part.names {
			id, err := r.asCorrect(name)
			if err == nil && r.trees[id] == nil {
				err = fmt.Errorf("%q is the source and has no tree", name)
			}
			if err != nil {
				return fmt.Errorf("expect: %s: %w", part.key, err)
			}
			part.check(name, r.trees[id])
		}
	}
	return r.countLeaves(want, report)
}

func keys[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func sorted(list []pair) []pair {
	out := append([]pair{}, list...)
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a[1]+" "+a[0], b[1]+" "+b[0]) })
	return out
}

// said returns what a process sends in a round: values and paths, each once.
func (r oralRun) said(id parley.ID, round int) []pair {
	out := []pair{}
	for _, e := range r.log.Events {
		if e.Op != trace.Send || e.At != id || e.Msg.Seq != uint64(round) {
			continue
		}
		for _, sent := range lockstep.Open(e.Msg) {
			for path, value := range r.items(parley.Env{From: id, Round: round}, sent.Msg) {
				if one := (pair{string(value), r.path(path)}); !slices.Contains(out, one) {
					out = append(out, one)
				}
			}
		}
	}
	return sorted(out)
}

// walk visits all nodes of a tree.
func walk(t parley.Tree, path []parley.ID, visit func(path []parley.ID, in, out []byte, leaf bool)) {
	in, out, children := t.Node(path)
	visit(path, in, out, len(children) == 0)
	for _, q := range children {
		walk(t, append(slices.Clone(path), q), visit)
	}
}

// nodes returns input and output of every node.
func (r oralRun) nodes(t parley.Tree) map[string]pair {
	all := make(map[string]pair)
	walk(t, t.Root(), func(path []parley.ID, in, out []byte, _ bool) {
		all[r.path(path)] = pair{word(in), word(out)}
	})
	return all
}

// leaves returns the values of the paths of rank m that do not contain the
// process itself.
func (r oralRun) leaves(name string, t parley.Tree) map[string]string {
	self, _ := r.id(name)
	all := make(map[string]string)
	walk(t, t.Root(), func(path []parley.ID, in, _ []byte, _ bool) {
		if len(path) == r.c.M+1 && !slices.Contains(path, self) {
			all[r.path(path)] = word(in)
		}
	})
	return all
}

// countLeaves counts the leaves with and without a faulty process on the path;
// the count is the same for every correct lieutenant.
func (r oralRun) countLeaves(want oralExpect, report func(key string, want, got any)) error {
	if want.DeceptiveLeaves == nil && want.AccurateLeaves == nil {
		return nil
	}
	who := r.correct(r.c.Source)
	if len(who) == 0 {
		return fmt.Errorf("expect: leaves are counted, and no lieutenant is correct")
	}
	deceptive, accurate := 0, 0
	for path := range r.leaves(r.names[who[0]], r.trees[who[0]]) {
		bad := false
		for _, name := range strings.Split(path, ".") {
			id, _ := r.id(name)
			_, one := r.faulty[id]
			bad = bad || one
		}
		if bad {
			deceptive++
		} else {
			accurate++
		}
	}
	if want.DeceptiveLeaves != nil {
		report("deceptive_leaves", *want.DeceptiveLeaves, deceptive)
	}
	if want.AccurateLeaves != nil {
		report("accurate_leaves", *want.AccurateLeaves, accurate)
	}
	return nil
}

// votes returns what a lieutenant's final majority is taken over: a value for
// every lieutenant, its own included.
func (r oralRun) votes(name string, t parley.Tree) map[string]string {
	self, _ := r.id(name)
	root := t.Root()
	in, _, children := t.Node(root)
	all := make(map[string]string)
	if !slices.Contains(children, self) {
		all[name] = word(in) // used directly, not relayed to oneself
	}
	for _, q := range children {
		_, out, _ := t.Node(append(slices.Clone(root), q))
		all[r.names[q]] = word(out)
	}
	return all
}
