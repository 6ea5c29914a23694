package atomic_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/membership/group"
)

// clone returns a copy of the hall. The layers are those of the hall until one of them
// is to run a clause.
func (h *hall) clone() *hall {
	c := *h
	c.shared, c.members = parley.Everyone(len(h.members)), slices.Clone(h.members)
	for id := range c.members {
		c.members[id].done = slices.Clip(c.members[id].done)
	}
	c.links = slices.Clone(h.links)
	for id := range c.links {
		c.links[id] = slices.Clone(h.links[id])
		for to := range c.links[id] {
			c.links[id][to] = slices.Clip(c.links[id][to])
		}
	}
	c.decided, c.accounts = slices.Clip(h.decided), slices.Clip(h.accounts)
	c.step.Effects = nil
	c.history.Deliveries = slices.Clip(h.history.Deliveries)
	return &c
}

// key stands for all that can make a difference from now on.
func (h *hall) key() string {
	b := []byte{byte(len(h.history.Requests))}
	for _, d := range h.decided[1:] {
		b = append(problem.AppendSet(b, d.next.Members), d.cut...)
	}
	for id, m := range h.members {
		b = append(b, 0xff, byte(m.view.Number), byte(m.base))
		if m.gone {
			b = append(b, 0xfe)
		}
		b = append(append(b, m.report...), 0xff)
		b = append(parley.Save(stated{l: m.layer}, 0, b), byte(len(m.done)))
		for _, done := range m.done {
			b = append(b, done...)
		}
		for _, link := range h.links[id] {
			b = binary.AppendUvarint(b, uint64(len(link)))
			for _, m := range link {
				b = parley.AppendMsg(append(b, byte(m.view)), 0, m.msg)
			}
		}
	}
	return string(b)
}

// prune takes off the links what would be ignored when it came.
func (h *hall) prune() {
	for from := range h.links {
		for to, link := range h.links[from] {
			m := &h.members[to]
			for len(link) > 0 && (m.gone || link[0].view < m.view.Number ||
				link[0].view == m.view.Number && m.report != nil) {
				link = link[1:]
			}
			h.links[from][to] = link
		}
	}
}

// moves are all that can happen next: a message comes, a member reports, a majority of
// the reporters becomes the next view, a member hears of that. Who stops for ever needs
// no move, nor does what a link loses at its end: that is as if it came too late.
func (h *hall) moves(views int) (out []func(*hall)) {
	for at := range parley.ID(len(h.members)) {
		m := &h.members[at]
		for to := range h.links[at] {
			if len(h.links[at][to]) > 0 {
				out = append(out, func(h *hall) { h.receive(at, parley.ID(to)) })
			}
		}
		if m.gone {
			continue
		}
		if int(m.view.Number) < len(h.decided) {
			out = append(out, func(h *hall) { h.install(at) })
		}
		if m.report == nil && len(h.decided) <= views {
			out = append(out, func(h *hall) { h.freeze(at) })
		}
	}
	number := uint64(len(h.decided))
	now := group.View{Number: 1, Members: parley.Everyone(len(h.members))}
	if number > 1 {
		now = h.decided[number-1].next
	}
	for bits := 1; bits < 1<<len(h.members) && len(h.decided) <= views; bits++ {
		next, ready := parley.Set{}, true
		for id := range parley.ID(len(h.members)) {
			if bits>>id&1 == 1 {
				m := &h.members[id]
				next.Add(id)
				ready = ready && now.Members.Has(id) && m.report != nil && m.view.Number == number
			}
		}
		if ready && next.Len() >= now.Majority() {
			out = append(out, func(h *hall) { h.agree(next) })
		}
	}
	return out
}

// hallExplorer goes through all that can happen from a hall on.
type hallExplorer struct {
	views       int
	seen        map[string]bool
	split, most int
}

// explore demands at each point what holds always.
func (x *hallExplorer) explore(h *hall) {
	k := h.key()
	if x.seen[k] {
		return
	}
	x.seen[k] = true
	x.most = max(x.most, len(h.history.Deliveries))
	for _, m := range h.members {
		if m.gone && len(m.done) > 0 {
			x.split++
		}
	}
	for _, move := range h.moves(x.views) {
		next := h.clone()
		move(next)
		next.prune()
		if len(next.history.Deliveries) > len(h.history.Deliveries) || len(next.accounts) > len(h.accounts) {
			if err := next.check(problem.Integrity, problem.UniformTotalOrder, problem.UniformPrefix); err != nil {
				h.t.Fatal(err)
			}
		}
		x.explore(next)
	}
}

// All runs of three members with a view that changes at any time, by false suspicion or
// not: uniform order and prefix, and view synchrony. (Overlapping sets and two changes:
// 82,637 states. Two messages to all and one change: 256,803. They hold as well.)
func TestExhaustiveInViews(t *testing.T) {
	all := func(h *hall) { h.castTo(0, "a", 0, 1, 2) }
	for name, c := range map[string]struct {
		casts        func(h *hall)
		views        int
		states, most int
	}{
		"two changes":                 {all, 2, 5261, 3},
		"sender outside, two changes": {func(h *hall) { h.castTo(0, "a", 1, 2) }, 2, 3393, 2},
		"a chain":                     {func(h *hall) { h.castTo(0, "a", 0, 1); h.castTo(2, "b", 1, 2) }, 1, 4346, 4},
		"overlapping sets":            {func(h *hall) { all(h); h.castTo(1, "b", 1, 2) }, 1, 50_721, 5},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHall(t, 3)
			c.casts(h)
			x := hallExplorer{views: c.views, seen: make(map[string]bool)}
			x.explore(h)
			if len(x.seen) != c.states || x.most != c.most || c.views > 0 && x.split == 0 {
				t.Errorf("%d states, up to %d deliveries, %d with somebody left out", len(x.seen), x.most, x.split)
			}
		})
	}
}
