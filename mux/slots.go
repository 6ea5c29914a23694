package mux

import (
	"fmt"
	"iter"

	"parley"
	"parley/lockstep"
)

// Opened is indicated when a slot begins for which this process has given no value.
// Seq: the slot.
const Opened parley.Kind = parley.Indication + 0x3C

// Slots runs consecutive instances of a protocol in rounds, numbered from 1, each on
// call and many of them at a time. A Request gives this process's value for the slot in
// its Seq and calls it; with Seq 0, for the next slot that has neither begun nor been
// given a value here. A Call, [lockstep.Call], does so without a value. Calling a slot
// calls all before it. The first frame of round 0 from whomever calls too. What slots
// deliver is delivered in their order, with the slot for its Seq.
//
// A slot may begin when so much time has passed since the one that is window slots
// before it began that this one is over at every correct process: one round more than
// it has. So at most window slots are unfinished at a time, whoever calls, and at most
// as many begin in that time. The rule goes by time, and not by what this process has
// finished, for the same reason that deadlines do: all correct processes begin a slot
// within one delay, so that by the clock all of them may begin the next one within one
// delay too, while one that a liar says less to may finish slots long after others. A
// frame that comes before its slot may begin is kept, at most window slots ahead; past
// that it comes from a liar, and is refused.
//
// Why processes stay together: say that a slot's beginnings are at most one delay apart
// (and twice the slack, see lockstep). If the first correct process begins slot k at a
// time, all others have its frame one delay later; and by then they may begin slot k
// too, for they began slot k-window at most so much later than it did.
//
// A process that abstains in a slot takes part in later ones and delivers none from that
// on. One that comes back after a crash takes no part in any: it cannot know which have
// begun; see [Returns] for how a machine may have it find out. Signed protocols are
// refused, for what is signed in one instance would count in all.
func Slots(p lockstep.Protocol, when lockstep.Schedule, window int) parley.Protocol {
	NewPipeline(p, when, window, 0, nil) // panics if it cannot be
	out := lockstep.Of(p, when)
	f := framed{out}
	out.Name = "slots-" + p.Name
	out.Title = "consecutive instances, on call, of: " + p.Title
	out.New = func(self parley.ID) parley.Machine {
		m := &slots{}
		m.line = NewPipeline(p, when, window, self, m)
		return m
	}
	out.Properties = nil
	for _, one := range p.Properties {
		out.Properties = append(out.Properties, ofEach(one))
	}
	out.Explain = f.explain
	if out.Lies != nil {
		out.Lies = f.lies
	}
	out.Cost, out.Memory, out.Tree, out.Flags = nil, nil, nil, nil
	return out
}

// slots is one process.
type slots struct {
	line *Pipeline
}

func (m *slots) Start(s *parley.Step) {
	if s.Restart {
		m.line.Mute()
	}
}

func (m *slots) Request(s *parley.Step, q parley.Msg) {
	slot := q.Seq
	if q.Seq = 0; q.Kind == lockstep.Call {
		m.line.Call(s, slot)
		return
	}
	m.line.Give(s, slot, q)
}

func (m *slots) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind < parley.Local {
		m.line.Receive(s, from, q)
	}
}

func (m *slots) Timeout(s *parley.Step, _ parley.Timer) { m.line.Timeout(s) }

func (m *slots) Fill(s *parley.Step, slot uint64) (parley.Msg, bool) {
	s.Indicate(parley.Msg{Kind: Opened, Seq: slot})
	return parley.Msg{}, false
}

func (m *slots) Over(s *parley.Step, slot uint64, delivered []parley.Effect) {
	for _, e := range delivered {
		e.Msg.Seq = slot
		s.Effects = append(s.Effects, e)
	}
}

func (m *slots) State(v *parley.Vars) { v.Machine("slots", m.line) }

// framed looks into the frames of slots: p is the protocol of one of them.
type framed struct{ p parley.Protocol }

func (f framed) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for row := range f.p.Explain(e, m, name) {
			if e.From != e.To { // what a process keeps is in no frame
				row = fmt.Sprintf("#%d: %s", m.Value, row)
			}
			if !yield(row) {
				return
			}
		}
	}
}

// lies lets the protocol lie in every slot by itself, frame by frame.
func (f framed) lies(s *parley.Step, t *parley.Turn) []parley.Sent {
	var out []parley.Sent
	for i := range t.Honest {
		turn, k := *t, t.Honest[i].Msg.Value
		turn.Memo, turn.Out, turn.Honest = nil, nil, t.Honest[i:i+1]
		turn.Seen = func(yield func(parley.Got) bool) {
			for got := range t.Seen {
				if got.Msg.Value == k && !yield(got) {
					return
				}
			}
		}
		out = append(out, f.p.Lies(s, &turn)...)
	}
	return out
}
