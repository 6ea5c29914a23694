package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/draw/scene"
	"parley/internal/form"
	"parley/internal/report"
)

// VoteAnswer is the answer to "vote": how a node of an information tree was resolved from its children.
type VoteAnswer struct {
	Of      string   `json:"of"`   // whose tree
	Path    string   `json:"path"` // as the article writes it
	In      string   `json:"in"`   // the value that arrived along the path
	Out     string   `json:"out"`  // what the process resolved it to; empty before that
	Counts  []Count  `json:"counts"`
	Ballots []Ballot `json:"ballots"`
	Says    string   `json:"says"` // the vote in words
}

// Count is how many children have a value.
type Count struct {
	Value  string `json:"value"`
	Votes  int    `json:"votes"`
	Faulty int    `json:"faulty"` // of these, from faulty processes
}

// Ballot is the vote of one child, or of the process itself.
type Ballot struct {
	Ref    string `json:"ref"` // of the node, or of the message that brought the process's own vote
	Path   string `json:"path"`
	By     string `json:"by"`
	Value  string `json:"value"`
	Faulty bool   `json:"faulty"`
	Own    bool   `json:"own"` // the vote of the process whose tree it is: the input of the node
}

// voteOf returns how a node of an information tree was resolved.
func voteOf(v *report.View, s form.Run, of parley.ID, path []parley.ID) VoteAnswer {
	tree, style := v.Tree(), v.Style()
	in, out, children := tree.Node(path)
	dotted := s.Protocol.N > 9
	a := VoteAnswer{
		Of: s.Names.Full(of), Path: style.Path(path, dotted), In: printed(in), Out: printed(out),
		Counts: []Count{}, Ballots: []Ballot{},
	}
	if in != nil && len(children) > 0 && !slices.Contains(path, of) && !slices.Contains(children, of) {
		// In OM(m) the vote of the process itself is what it received.
		a.add(Ballot{
			Ref: scene.Message(len(path)-1, path[len(path)-1], of), Path: style.Path(append(slices.Clone(path), of), dotted),
			By: a.Of, Value: a.In, Own: true,
		})
	}
	for _, child := range children {
		below := append(slices.Clone(path), child)
		childIn, childOut, _ := tree.Node(below)
		value := printed(childOut)
		if childOut == nil {
			value = printed(childIn)
		}
		a.add(Ballot{
			Ref: scene.Node(of, below), Path: style.Path(below, dotted), By: s.Names.Full(child), Value: value,
			Faulty: style.Faulty.Has(child),
		})
	}
	slices.SortFunc(a.Counts, func(x, y Count) int { return cmp.Compare(x.Value, y.Value) })
	a.Says = a.words()
	return a
}

// add counts a ballot.
func (a *VoteAnswer) add(b Ballot) {
	a.Ballots = append(a.Ballots, b)
	i := slices.IndexFunc(a.Counts, func(c Count) bool { return c.Value == b.Value })
	if i < 0 {
		i, a.Counts = len(a.Counts), append(a.Counts, Count{Value: b.Value})
	}
	if a.Counts[i].Votes++; b.Faulty {
		a.Counts[i].Faulty++
	}
}

// words puts the vote into words.
func (a *VoteAnswer) words() string {
	if len(a.Ballots) == 0 {
		return fmt.Sprintf("%s received %s along %s. The node has no children, so this is its value.",
			a.Of, quoted(a.In), a.Path)
	}
	parts := make([]string, len(a.Counts))
	most := 0
	for i, c := range a.Counts {
		parts[i] = fmt.Sprintf("%d × %s", c.Votes, quoted(c.Value))
		most = max(most, c.Votes)
	}
	text := strings.Join(parts, ", ") + " ⇒ " + quoted(a.Out)
	if 2*most <= len(a.Ballots) {
		text += ": no value has a strict majority, so the default counts"
	}
	return text
}

func quoted(value string) string { return cmp.Or(value, "nothing") }

// printed returns a value as text; no value is empty.
func printed(v []byte) string {
	if v == nil {
		return ""
	}
	return parley.Printable(v)
}

// nodeOf reads the reference of a node.
func nodeOf(p parley.Protocol, ref string) (of parley.ID, path []parley.ID, err error) {
	who, steps, ok := strings.Cut(ref, "/")
	wrong := fmt.Errorf("%.40q is no node of an information tree, such as P2/1.5", ref)
	if !ok || p.Tree == nil {
		return 0, nil, wrong
	}
	read := func(text string) (parley.ID, bool) {
		i, err := strconv.Atoi(text)
		return parley.ID(i - 1), err == nil && i >= 1 && i <= p.N
	}
	if of, ok = read(strings.TrimPrefix(who, "P")); !ok {
		return 0, nil, wrong
	}
	for step := range strings.SplitSeq(steps, ".") {
		id, ok := read(step)
		if !ok || len(path) > p.M+2 {
			return 0, nil, wrong
		}
		path = append(path, id)
	}
	return of, path, nil
}
