package conform

import (
	"slices"

	"parley"
	"parley/broadcast/forwarding"
)

// treeCase is one reliable broadcast by forwarding along a tree.
type treeCase struct {
	head
	Tree     map[string][]string `json:"tree" empty:"allowed"` // the children of each inner process
	Root     string              `json:"root"`
	Crashes  map[string][]string `json:"crashes" empty:"allowed"`
	Takeover []string            `json:"takeover"` // children of a crashing root that take over from it
}

type treeExpect struct {
	Delivered  []string `json:"delivered_by_correct"`
	Data       []pair   `json:"data"` // sender and receiver, in any order
	Messages   *int     `json:"data_messages"`
	Acks       *int     `json:"acks"`
	Duplicates []string `json:"duplicates"`
}

func forward(c treeCase, want treeExpect, report reporter) {
	b, heirs := c.prepare()
	c.run(b, heirs)
	report("delivered_by_correct", want.Delivered, b.deliveredByCorrect())
	got := []pair{}
	for _, m := range b.sent {
		if m.msg.Kind == forwarding.Data {
			got = append(got, pair{b.names[m.from], b.names[m.to]})
		}
	}
	report("data", sorted(want.Data), sorted(got))
	report("data_messages", want.Messages, b.writes(forwarding.Data))
	report("acks", want.Acks, b.writes(forwarding.Ack))
	slices.Sort(want.Duplicates)
	report("duplicates", want.Duplicates, b.duplicates())
}

// run broadcasts. After everything has arrived, the crashes are suspected: that of the root only by its heirs, and
// others by all. Only then are acknowledgments missing. A process that crashes while handling a replacement message
// is suspected after those messages have arrived.
func (c treeCase) run(b *spread, heirs parley.Set) {
	b.run()
	var suspected parley.Set
	for {
		more := b.down.Minus(suspected)
		if more == (parley.Set{}) {
			return
		}
		for of := range more.All() {
			suspected.Add(of)
			for at := range parley.ID(len(b.names)) {
				if !b.down.Has(at) && (of != b.sender || heirs.Has(at)) {
					b.scriptHost.run(at, receive(at, parley.Msg{Kind: parley.Suspect, Origin: of}))
				}
			}
		}
		b.rest()
	}
}

// prepare checks the case. Processes are numbered from the root down.
func (c treeCase) prepare() (b *spread, heirs parley.Set) {
	names := []string{c.Root}
	parents := 0
	for i := 0; i < len(names) && len(names) <= parley.MaxProcesses; i++ {
		children, some := c.Tree[names[i]]
		if some {
			parents++
		}
		for _, name := range children {
			if slices.Contains(names, name) {
				fail("tree: %q is there twice", name)
			}
			names = append(names, name)
		}
	}
	k := named("tree", names)
	if parents < len(c.Tree) {
		fail("tree: of %d processes with children %d are below the root", len(c.Tree), parents)
	}
	tree := make([][]parley.ID, len(names))
	for i, name := range names {
		tree[i] = k.ids("", c.Tree[name])
	}
	p := forwarding.New(forwarding.Config{N: len(names), Tree: tree, Root: 0})
	b = newSpread(k, p, forwarding.Data, 0, c.Crashes)
	for _, name := range c.Takeover {
		id := k.id("takeover", name)
		_, down := b.crashes[id]
		_, orphans := b.crashes[0]
		if down || !orphans || !slices.Contains(tree[0], id) || !heirs.Add(id) {
			fail("takeover: %q is no child of a root that crashes, crashes too or is there twice", name)
		}
	}
	return b, heirs
}
