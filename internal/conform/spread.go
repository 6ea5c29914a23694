package conform

import (
	"bytes"
	"slices"

	"parley"
	"parley/broadcast/problem"
	"parley/internal/conform/form"
)

// spread is one reliable broadcast in which processes crash in the middle of
// writing. A process that is to crash does so in the first thing that it does: of
// what it would write then some arrives, and nothing else of it happens.
type spread struct {
	cast
	*scriptHost
	data    parley.Kind // of the messages that carry the broadcast
	crashes map[parley.ID]parley.Set
	sender  parley.ID
	copies  map[parley.ID]int // how often each process that does not crash was sent it
}

var payload = []byte("m")

// newSpread reads which processes each one that crashes writes to before.
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

// run lets the sender broadcast, and delivers everything that is written.
func (b *spread) run() {
	b.do(b.sender, request(problem.Request(payload)))
	b.rest()
	for id := range parley.ID(len(b.names)) {
		if b.crashes[id].Len() > 0 && !b.down.Has(id) {
			fail("crashes: %q never comes to write", b.names[id])
		}
	}
}

// rest delivers everything that is on links.
func (b *spread) rest() {
	for len(b.links) > 0 {
		m, _ := b.take(func(onLink) bool { return true })
		if _, crashes := b.crashes[m.to]; m.msg.Kind == b.data && !crashes {
			b.copies[m.to]++
		}
		b.do(m.to, receive(m.from, m.msg))
	}
}

// do runs a clause, the last one of a process that crashes.
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

// writes returns how many messages of a kind were written.
func (b *spread) writes(kind parley.Kind) (n int) {
	for _, m := range b.sent {
		if m.msg.Kind == kind {
			n++
		}
	}
	return n
}

// deliveredByCorrect returns the names of the processes that delivered the broadcast,
// sorted; one that delivered it twice is there twice. Who crashes delivers nothing.
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

// duplicates returns the names of the processes that got a copy and did not deliver
// it, once for each, sorted.
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
