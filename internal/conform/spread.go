package conform

import (
	"bytes"
	"slices"

	"parley"
	"parley/broadcast/problem"
	"parley/internal/conform/form"
)

// spread is one reliable broadcast in which processes crash while writing. A process that crashes does so in its
// first step: some of the messages of that step arrive, and it has no other effect.
type spread struct {
	cast
	*scriptHost
	data    parley.Kind // of the messages that carry the broadcast
	crashes map[parley.ID]parley.Set
	sender  parley.ID
	copies  map[parley.ID]int // copies received by each process that does not crash
}

var payload = []byte("m")

// newSpread reads the processes that each crashing process still writes to.
func newSpread(k cast, p parley.Protocol, data parley.Kind, sender parley.ID, crashes map[string][]string) *spread {
	b := &spread{
		cast: k, scriptHost: newHost(p), data: data, sender: sender,
		crashes: make(map[parley.ID]parley.Set), copies: make(map[parley.ID]int),
	}
	for _, name := range form.Keys(crashes) {
		id, to := k.id("crashes", name), k.ids("crashes: "+name, crashes[name])
		if b.crashes[id] = parley.SetOf(to...); b.crashes[id].Len() < len(to) {
			fail("crashes: %s: a name is given twice", name)
		}
	}
	return b
}

// run makes the sender broadcast, and delivers all messages.
func (b *spread) run() {
	b.do(b.sender, request(problem.Request(payload)))
	b.rest()
	for id := range parley.ID(len(b.names)) {
		if b.crashes[id].Len() > 0 && !b.down.Has(id) {
			fail("crashes: %q never comes to write", b.names[id])
		}
	}
}

// rest delivers all messages on links.
func (b *spread) rest() {
	for len(b.links) > 0 {
		m, _ := b.take(func(onLink) bool { return true })
		if _, crashes := b.crashes[m.to]; m.msg.Kind == b.data && !crashes {
			b.copies[m.to]++
		}
		b.do(m.to, receive(m.from, m.msg))
	}
}

// do runs a clause. For a process that crashes it is the last one.
func (b *spread) do(at parley.ID, clause func(m parley.Machine, s *parley.Step)) {
	to, crashes := b.crashes[at]
	if !crashes {
		b.scriptHost.run(at, clause)
		return
	}
	if b.down.Has(at) {
		return
	}
	b.down.Add(at)
	effects := slices.DeleteFunc(b.clause(at, clause), func(e parley.Effect) bool {
		return e.Op != parley.OpSend || e.Msg.Kind != b.data || !to.Has(e.To)
	})
	if len(effects) < to.Len() {
		fail("crashes: %q does not write to all of them", b.names[at])
	}
	b.happen(effects)
}

// writes returns the number of messages of a kind.
func (b *spread) writes(kind parley.Kind) (n int) {
	for _, m := range b.sent {
		if m.msg.Kind == kind {
			n++
		}
	}
	return n
}

// deliveredByCorrect returns the sorted names of the processes that delivered the broadcast, once for each delivery.
// A process that crashes delivers nothing.
func (b *spread) deliveredByCorrect() []string {
	out := []string{}
	for _, h := range b.above {
		if h.From == b.sender && bytes.Equal(h.Msg.Body, payload) {
			out = append(out, b.names[h.At])
		}
	}
	slices.Sort(out)
	return out
}

// duplicates returns the sorted names of the processes that received a copy without delivering it, once for each such
// copy.
func (b *spread) duplicates() []string {
	left := make(map[string]int)
	// order: only the counts are used
	for id, n := range b.copies {
		left[b.names[id]] += n
	}
	for _, name := range b.deliveredByCorrect() {
		if name != b.names[b.sender] {
			left[name]--
		}
	}
	out := []string{}
	for _, name := range form.Keys(left) {
		out = append(out, slices.Repeat([]string{name}, max(left[name], 0))...)
	}
	return out
}
