package conform

import (
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/forwarding"
)

// treeCase is one reliable broadcast by forwarding along a tree.
type treeCase struct {
	head
	Tree     map[string][]string `json:"tree" empty:"allowed"` // the children of each process that has some
	Root     string              `json:"root"`
	Crashes  map[string][]string `json:"crashes" empty:"allowed"`
	Takeover []string            `json:"takeover"` // children of a root that crashes, which act for it
}

type treeExpect struct {
	Delivered  []string `json:"delivered_by_correct"`
	Data       []pair   `json:"data"` // from whom to whom, in any order
	Messages   *int     `json:"data_messages"`
	Acks       *int     `json:"acks"`
	Duplicates []string `json:"duplicates"`
}

func forward(raw []byte, report reporter) error {
	var c treeCase
	var want treeExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	b, heirs, err := c.prepare()
	if err != nil {
		return err
	}
	if err := c.run(b, heirs); err != nil {
		return err
	}
	if want.Delivered != nil {
		report("delivered_by_correct", want.Delivered, b.deliveredByCorrect())
	}
	if want.Data != nil {
		got := []pair{}
		for _, m := range b.sent {
			if m.msg.Kind == forwarding.Data {
				got = append(got, pair{b.names[m.from], b.names[m.to]})
			}
		}
		report("data", sorted(want.Data), sorted(got))
	}
	if want.Messages != nil {
		report("data_messages", *want.Messages, b.writes(forwarding.Data))
	}
	if want.Acks != nil {
		report("acks", *want.Acks, b.writes(forwarding.Ack))
	}
	if want.Duplicates != nil {
		slices.Sort(want.Duplicates)
		report("duplicates", want.Duplicates, b.duplicates())
	}
	return nil
}

// run broadcasts. When all has arrived the crashes are suspected: that of the root
// by its heirs alone, and others by all. It is then that acknowledgements are missing. Who
// crashes on what is sent for one that crashed is suspected when that has arrived.
func (c treeCase) run(b *spread, heirs parley.Set) error {
	if err := b.run(); err != nil {
		return err
	}
	var suspected parley.Set
	for {
		more := b.down.Minus(suspected)
		if more == (parley.Set{}) {
			return nil
		}
		for of := range more.All() {
			suspected.Add(of)
			for at := range parley.ID(len(b.names)) {
				if !b.down.Has(at) && (of != b.sender || heirs.Has(at)) {
					b.stage.run(at, receive(at, parley.Msg{Kind: parley.Suspect, Origin: of}))
				}
			}
		}
		if err := b.rest(); err != nil {
			return err
		}
	}
}

// prepare checks the case. Processes are numbered from the root down.
func (c treeCase) prepare() (b *spread, heirs parley.Set, err error) {
	names := []string{c.Root}
	parents := 0
	for i := 0; i < len(names) && len(names) <= parley.MaxProcesses; i++ {
		children, some := c.Tree[names[i]]
		if some {
			parents++
		}
		for _, name := range children {
			if slices.Contains(names, name) {
				return nil, heirs, fmt.Errorf("tree: %q is there twice", name)
			}
			names = append(names, name)
		}
	}
	k, err := named(names)
	if err != nil {
		return nil, heirs, fmt.Errorf("tree: %w", err)
	}
	if parents < len(c.Tree) {
		return nil, heirs, fmt.Errorf("tree: of %d processes with children %d are below the root", len(c.Tree), parents)
	}
	tree := make([][]parley.ID, len(names))
	for i, name := range names {
		tree[i], _ = k.ids(c.Tree[name]) // all of them are there
	}
	p := forwarding.New(forwarding.Config{N: len(names), Tree: tree, Root: 0})
	if b, err = newSpread(k, p, forwarding.Data, 0, c.Crashes); err != nil {
		return nil, heirs, err
	}
	for _, name := range c.Takeover {
		id, err := k.id(name)
		if err != nil {
			return nil, heirs, fmt.Errorf("takeover: %w", err)
		}
		_, down := b.crashes[id]
		_, orphans := b.crashes[0]
		if down || !orphans || !slices.Contains(tree[0], id) || !heirs.Add(id) {
			return nil, heirs, fmt.Errorf("takeover: %q is no child of a root that crashes, crashes too or is there twice", name)
		}
	}
	return b, heirs, nil
}
