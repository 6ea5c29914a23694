package forwarding_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/broadcast/forwarding"
	"parley/broadcast/problem"
	"parley/membership/detector"
	"parley/sim"
	"parley/trace"
)

// one is a single machine, whose refusals do not matter.
type one struct {
	parley.Machine
	parley.Host
	step parley.Step
}

func (*one) Refused(parley.ID, parley.ID, string) {}

func alone(c forwarding.Config, self parley.ID) *one {
	m := &one{Machine: forwarding.New(c).New(self)}
	m.step = parley.Step{Self: self, N: c.N, Host: m}
	m.Start(&m.step)
	return m
}

// receive passes a message to the machine and returns what it sends and delivers.
func (m *one) receive(from parley.ID, q parley.Msg) (out []string) {
	m.step.Effects = m.step.Effects[:0]
	m.Receive(&m.step, from, q)
	return m.asked()
}

func (m *one) request(payload string) []string {
	m.step.Effects = m.step.Effects[:0]
	m.Request(&m.step, problem.Request([]byte(payload)))
	return m.asked()
}

func (m *one) suspect(q parley.ID) []string {
	return m.receive(m.step.Self, parley.Msg{Kind: parley.Suspect, Origin: q})
}

func (m *one) asked() (out []string) {
	names := []string{"", "data", "ack", "done", "hello"}
	for _, e := range m.step.Effects {
		switch e.Op {
		case parley.OpSend:
			out = append(out, fmt.Sprintf("%s %d.%d#%d to %d", names[e.Msg.Kind], e.Msg.Origin, e.Msg.Value, e.Msg.Seq, e.To))
		case parley.OpDeliver:
			out = append(out, "deliver "+string(e.Msg.Body))
		}
	}
	return out
}

// sent returns the broadcasts of a root as its machine sends them.
func sent(c forwarding.Config, root parley.ID, payloads ...string) (out []parley.Msg) {
	m := alone(c, root)
	for _, payload := range payloads {
		m.request(payload)
		for _, e := range m.step.Effects {
			if e.Op == parley.OpSend {
				out = append(out, e.Msg)
				break
			}
		}
	}
	return out
}

func expect(t *testing.T, what string, have []string, want ...string) {
	t.Helper()
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("%s: %q, not %q", what, have, want)
	}
}

// Steps 2 and 3 as adopted: a process acknowledges when its children have, and not when it receives. Step 4:
// it takes over from a child that does not.
func TestAcknowledgesAfterItsSubtree(t *testing.T) {
	c := forwarding.Config{N: 5, Tree: [][]parley.ID{0: {1}, 1: {2, 3}, 2: {4}}}
	m := sent(c, 0, "m")[0]
	ack := parley.Msg{Kind: forwarding.Ack, Origin: 0, Seq: 1, Value: 1}
	p := alone(c, 1)
	expect(t, "on receipt", p.receive(0, m), "data 0.1#1 to 2", "data 0.1#1 to 3", "deliver m")
	expect(t, "one child acknowledged", p.receive(3, ack))
	expect(t, "the other crashed", p.suspect(2), "data 0.1#1 to 4")
	expect(t, "its child acknowledged", p.receive(4, ack), "ack 0.1#1 to 0")
	leaf := alone(c, 4)
	expect(t, "a leaf", leaf.receive(2, m), "deliver m", "ack 0.1#1 to 2")
	// Step 5: duplicates are dropped; but a process that took over waits for an acknowledgement.
	expect(t, "a duplicate", leaf.receive(1, m), "ack 0.1#1 to 1")
}

// A process that received a message twice acknowledges to both senders, when its subtree is served.
func TestAcknowledgesToAll(t *testing.T) {
	c := forwarding.Config{N: 4, Tree: [][]parley.ID{0: {1}, 1: {2}, 2: {3}}}
	m := sent(c, 0, "m")[0]
	p := alone(c, 2)
	expect(t, "on receipt", p.receive(1, m), "data 0.1#1 to 3", "deliver m")
	expect(t, "a duplicate", p.receive(0, m))
	expect(t, "its subtree is served", p.receive(3, parley.Msg{Kind: forwarding.Ack, Origin: 0, Seq: 1, Value: 1}),
		"ack 0.1#1 to 0", "ack 0.1#1 to 1")
}

// Takeover is recursive, downward and, if all above have failed, from the root on; and it makes no difference
// whether the suspicion or the message comes first.
func TestTakesOverAllThatFailed(t *testing.T) {
	c := forwarding.Config{N: 7, Tree: [][]parley.ID{0: {1, 2}, 1: {3}, 3: {4}, 2: {5}, 5: {6}}}
	m := sent(c, 0, "m")[0]
	p := alone(c, 4)
	expect(t, "a leaf", p.receive(3, m), "deliver m", "ack 0.1#1 to 3")
	expect(t, "its parent failed", p.suspect(3))
	expect(t, "and the root: its grandparent is to do it", p.suspect(0))
	expect(t, "and its grandparent", p.suspect(1), "data 0.1#1 to 1", "data 0.1#1 to 3", "data 0.1#1 to 2")
	expect(t, "and another child of the root", p.suspect(2), "data 0.1#1 to 5")
	p = alone(c, 4)
	for _, q := range []parley.ID{0, 1, 2, 3} {
		expect(t, "nothing is held", p.suspect(q))
	}
	expect(t, "late message", p.receive(3, m), "data 0.1#1 to 1", "data 0.1#1 to 3", "data 0.1#1 to 2", "data 0.1#1 to 5",
		"deliver m", "ack 0.1#1 to 3")
	// When all are served, no process needs to hold it, and no process is sent it again.
	expect(t, "served", p.receive(5, parley.Msg{Kind: forwarding.Ack, Origin: 0, Seq: 1, Value: 1}))
	expect(t, "complete", p.suspect(5))
}

// Completion, first way: the root informs its children when all are served, and they inform theirs. A process
// that knows that does not take over from the root.
func TestCompletionNotice(t *testing.T) {
	c := forwarding.Config{N: 5, Tree: [][]parley.ID{0: {1, 2}, 1: {3, 4}}, Notice: true}
	root, child := alone(c, 0), alone(c, 1)
	expect(t, "broadcast", root.request("m"), "data 0.1#1 to 1", "data 0.1#1 to 2", "deliver m")
	m := root.step.Effects[0].Msg
	ack := parley.Msg{Kind: forwarding.Ack, Origin: 0, Seq: 1, Value: 1}
	child.receive(0, m)
	child.receive(3, ack)
	expect(t, "subtree", child.receive(4, ack), "ack 0.1#1 to 0")
	expect(t, "one child", root.receive(1, ack))
	expect(t, "both", root.receive(2, ack), "done 0.1#1 to 1", "done 0.1#1 to 2")
	unaware := alone(c, 1)
	unaware.receive(0, m)
	unaware.receive(3, ack)
	unaware.receive(4, ack)
	expect(t, "who does not know takes over", unaware.suspect(0), "data 0.1#1 to 2")
	expect(t, "notice", child.receive(0, parley.Msg{Kind: forwarding.Done, Origin: 0, Seq: 1, Value: 1}),
		"done 0.1#1 to 3", "done 0.1#1 to 4")
	expect(t, "who knows does not", child.suspect(0))
}

// Completion, second way: the next broadcast reports it.
func TestNextBroadcast(t *testing.T) {
	c := forwarding.Config{N: 4, Tree: [][]parley.ID{0: {1, 2}, 1: {3}}, Window: 1}
	root, child := alone(c, 0), alone(c, 1)
	root.request("m1")
	m1 := root.step.Effects[0].Msg
	expect(t, "the second one waits", root.request("m2"))
	ack := parley.Msg{Kind: forwarding.Ack, Origin: 0, Seq: 1, Value: 1}
	root.receive(1, ack)
	expect(t, "the first is complete", root.receive(2, ack), "data 0.1#2 to 1", "data 0.1#2 to 2", "deliver m2")
	m2 := root.step.Effects[0].Msg
	child.receive(0, m1)
	child.receive(3, ack)
	expect(t, "the second", child.receive(0, m2), "data 0.1#2 to 3", "deliver m2")
	expect(t, "the root failed", child.suspect(0), "data 0.1#2 to 2")
	before := alone(c, 1)
	before.receive(0, m1)
	expect(t, "without the second", before.suspect(0), "data 0.1#1 to 2")
}

// At most a window of broadcasts is in flight, and the next ones report which are complete: all before the
// first that is not.
func TestWindow(t *testing.T) {
	c := forwarding.Config{N: 2, Window: 3}
	root, child := alone(c, 0), alone(c, 1)
	for i := range 3 {
		expect(t, "within", root.request("m"), fmt.Sprintf("data 0.1#%d to 1", i+1), "deliver m")
		child.receive(0, root.step.Effects[0].Msg)
	}
	ack := func(seq uint64) parley.Msg { return parley.Msg{Kind: forwarding.Ack, Origin: 0, Seq: seq, Value: 1} }
	expect(t, "beyond", root.request("m"))
	expect(t, "the second is acknowledged", root.receive(1, ack(2)))
	expect(t, "the first", root.receive(1, ack(1)), "data 0.1#4 to 1", "deliver m")
	child.receive(0, root.step.Effects[0].Msg)
	have := held(child)
	if have != 2 {
		t.Errorf("the child holds %d broadcasts, and knows that 2 of 4 are complete", have)
	}
}

// held counts the broadcasts that a process holds.
func held(m *one) (n int) {
	for _, v := range parley.Show(m.Machine, 0) {
		if len(v.Name) > 7 && v.Name[len(v.Name)-7:] == ".served" {
			n++
		}
	}
	return n
}

// A suspicion that the detector revokes still applies to broadcasts in flight, but not to later ones.
func TestTrust(t *testing.T) {
	c := forwarding.Config{N: 3, Tree: [][]parley.ID{0: {1}, 1: {2}}}
	p := alone(c, 0)
	expect(t, "first", p.request("m"), "data 0.1#1 to 1", "deliver m")
	expect(t, "suspicion", p.suspect(1), "data 0.1#1 to 2")
	expect(t, "meanwhile", p.request("n"), "data 0.1#2 to 1", "data 0.1#2 to 2", "deliver n")
	p.receive(0, parley.Msg{Kind: detector.Trust, Origin: 1})
	expect(t, "later", p.request("o"), "data 0.1#3 to 1", "deliver o")
}

// The configured tree is for broadcasts of its root. For another sender, the root and the sender change places.
func TestAnyInitiator(t *testing.T) {
	c := forwarding.Config{N: 6, Tree: [][]parley.ID{0: {1, 2}, 1: {3, 4}, 2: {5}}}
	for initiator, want := range map[parley.ID][][2]parley.ID{
		0: {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 5}},
		4: {{4, 1}, {4, 2}, {1, 3}, {1, 0}, {2, 5}},
		2: {{2, 1}, {2, 0}, {1, 3}, {1, 4}, {0, 5}},
	} {
		log := &trace.Log{Keep: true}
		sim.Run(sim.Options{Protocol: forwarding.New(c), Log: log,
			Requests: []sim.Request{{At: initiator, Msg: problem.Request([]byte("m"))}}})
		edges := make(map[[2]parley.ID]bool)
		for _, e := range log.Events {
			if e.Op == trace.Send && e.Msg.Kind == forwarding.Data {
				edges[[2]parley.ID{e.At, e.Peer}] = true
			}
		}
		for _, e := range want {
			if !edges[e] || len(edges) != len(want) {
				t.Errorf("root %d: edges %v, not %v", initiator, edges, want)
			}
		}
	}
}
