package forwarding_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/forwarding"
	"parley/broadcast/problem"
)

// vector is a worked case of the lecture: a tree, crashes in the middle of
// forwarding, and what comes of it.
type vector struct {
	ID       string              `json:"id"`
	Root     string              `json:"root"`
	Tree     map[string][]string `json:"tree"`
	Crashes  map[string][]string `json:"crashes"`  // whom it had written to
	Takeover []string            `json:"takeover"` // who hears of the root's crash
	Expect   struct {
		Delivered  []string    `json:"delivered_by_correct"`
		Data       int         `json:"data_messages"`
		Acks       *int        `json:"acks"`
		Duplicates []string    `json:"duplicates"`
		Edges      [][2]string `json:"data"`
	} `json:"expect"`
}

// script runs machines by hand: messages arrive in the order sent, and a process
// that is to crash does so as soon as it does anything but write to those whom it
// is to have written to.
type script struct {
	names    []string
	machines []parley.Machine
	step     parley.Step
	crashes  map[parley.ID]parley.Set
	down     parley.Set
	wire     []parley.Effect
	has      parley.Set

	delivered, duplicates []string
	edges                 [][2]string
	acks                  int
}

func (x *script) id(name string) parley.ID { return parley.ID(slices.Index(x.names, name)) }

func (x *script) set(names []string) (out parley.Set) {
	for _, name := range names {
		out.Add(x.id(name))
	}
	return out
}

// do runs a clause of a process and carries out what it asks for, up to its crash.
func (x *script) do(id parley.ID, clause func(m parley.Machine, s *parley.Step)) {
	if x.down.Has(id) {
		return
	}
	x.step.Self, x.step.Effects = id, x.step.Effects[:0]
	clause(x.machines[id], &x.step)
	writes, crashes := x.crashes[id]
	for _, e := range x.step.Effects {
		data := e.Op == parley.OpSend && e.Msg.Kind == forwarding.Data
		if crashes && e.Op != parley.OpAppend && (!data || !writes.Has(e.To)) {
			x.down.Add(id)
			return
		}
		switch {
		case data:
			x.edges = append(x.edges, [2]string{x.names[id], x.names[e.To]})
			x.wire = append(x.wire, e)
		case e.Op == parley.OpSend:
			x.acks++
			x.wire = append(x.wire, e)
		case e.Op == parley.OpDeliver:
			x.delivered = append(x.delivered, x.names[id])
			x.has.Add(id)
		}
	}
}

// settle lets all messages arrive.
func (x *script) settle() {
	for ; len(x.wire) > 0; x.wire = x.wire[1:] {
		e := x.wire[0]
		if e.Msg.Kind == forwarding.Data && !x.down.Has(e.To) && x.has.Has(e.To) {
			x.duplicates = append(x.duplicates, x.names[e.To])
		}
		x.do(e.To, func(m parley.Machine, s *parley.Step) { m.Receive(s, e.From, e.Msg) })
	}
}

// suspect tells some processes at a time that another one has failed.
func (x *script) suspect(who parley.Set, of parley.ID) {
	for id := range who.All() {
		x.do(id, func(m parley.Machine, s *parley.Step) {
			m.Receive(s, id, parley.Msg{Kind: parley.Suspect, Origin: of})
		})
	}
	x.settle()
}

// Refused and the others make the script a host.
func (x *script) Refused(parley.ID, parley.ID, string)  {}
func (x *script) Choose(int) int                        { panic("no choice here") }
func (x *script) Sign(parley.ID, []byte) []byte         { panic("no signature here") }
func (x *script) Verify(parley.ID, []byte, []byte) bool { panic("no signature here") }

func newScript(v vector) *script {
	x := &script{names: []string{v.Root}, crashes: make(map[parley.ID]parley.Set)}
	for i := 0; i < len(x.names); i++ {
		x.names = append(x.names, v.Tree[x.names[i]]...)
	}
	c := forwarding.Config{N: len(x.names), Tree: make([][]parley.ID, len(x.names))}
	for parent, children := range v.Tree {
		for _, child := range children {
			c.Tree[x.id(parent)] = append(c.Tree[x.id(parent)], x.id(child))
		}
	}
	for name, writes := range v.Crashes {
		x.crashes[x.id(name)] = x.set(writes)
	}
	p := forwarding.New(c)
	x.step = parley.Step{N: c.N, Host: x}
	for id := range parley.ID(c.N) {
		x.machines = append(x.machines, p.New(id))
		x.do(id, func(m parley.Machine, s *parley.Step) { m.Start(s) })
	}
	return x
}

// parent returns the parent of a process in the tree.
func (v vector) parent(name string) string {
	for parent, children := range v.Tree {
		if slices.Contains(children, name) {
			return parent
		}
	}
	return ""
}

// The lecture's tree, its failure of a child and its three cases of a failed root.
func TestVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/tree.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []vector }
	if err := json.Unmarshal(text, &file); err != nil || len(file.Cases) != 7 {
		t.Fatal(err, len(file.Cases))
	}
	for _, v := range file.Cases {
		t.Run(v.ID, func(t *testing.T) {
			x := newScript(v)
			x.do(0, func(m parley.Machine, s *parley.Step) { m.Request(s, problem.Request([]byte("m"))) })
			x.settle()
			// Who gets no acknowledgement is the parent of whoever crashed, and of the root
			// those who are named.
			for id := range parley.ID(len(x.names)) {
				if !x.down.Has(id) {
					continue
				}
				tell := x.set(v.Takeover)
				if id != 0 {
					tell = parley.SetOf(x.id(v.parent(x.names[id])))
				}
				x.suspect(tell, id)
			}
			if x.down.Len() != len(v.Crashes) {
				t.Errorf("%d processes crashed, not %d", x.down.Len(), len(v.Crashes))
			}
			var delivered []string
			for _, name := range x.delivered {
				if !x.down.Has(x.id(name)) {
					delivered = append(delivered, name)
				}
			}
			same(t, "delivered", delivered, v.Expect.Delivered)
			same(t, "duplicates", x.duplicates, v.Expect.Duplicates)
			if len(x.edges) != v.Expect.Data {
				t.Errorf("%d data messages %v, not %d", len(x.edges), x.edges, v.Expect.Data)
			}
			if v.Expect.Acks != nil && x.acks != *v.Expect.Acks {
				t.Errorf("%d acknowledgements, not %d", x.acks, *v.Expect.Acks)
			}
			if v.Expect.Edges != nil {
				same(t, "data", text2(x.edges), text2(v.Expect.Edges))
			}
		})
	}
}

func text2(edges [][2]string) (out []string) {
	for _, e := range edges {
		out = append(out, fmt.Sprint(e))
	}
	return out
}

// same compares lists without regard to order.
func same(t *testing.T, what string, have, want []string) {
	t.Helper()
	slices.Sort(have)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(have, want) {
		t.Errorf("%s: %v, not %v", what, have, want)
	}
}
