package tetra

import (
	"bytes"
	"slices"

	"parley"
)

// word is a value that a process said, or that it said none. A value that was said may be nothing.
type word struct {
	said  bool
	value []byte
}

// set keeps the first value. It reports whether this is the first.
func (w *word) set(value []byte) bool {
	first := !w.said
	if first {
		*w = word{true, value}
	}
	return first
}

func (w word) is(value []byte) bool { return w.said && bytes.Equal(w.value, value) }

// vote is a vote for a value in a view, or a proposal of its leader. No vote has view 0.
type vote struct {
	view  uint64
	value []byte
}

// set keeps the vote of the last view.
func (x *vote) set(y vote) {
	if y.view > x.view {
		*x = y
	}
}

func (x vote) is(y vote) bool { return x.view == y.view && bytes.Equal(x.value, y.value) }

// votes has, for each phase, the last view of a vote for each value, in the order of values.
type votes [phases][]vote

// record enters a vote in the list of a phase.
func record(list []vote, x vote) []vote {
	at, found := slices.BinarySearchFunc(list, x, func(a, b vote) int { return bytes.Compare(a.value, b.value) })
	if found {
		list[at].set(x)
		return list
	}
	return slices.Insert(list, at, x)
}

// latest returns the vote of the last view.
func latest(list []vote) (last vote) {
	for _, x := range list {
		last.set(x)
	}
	return last
}

// report holds the votes that a process reports on entering a view.
type report struct {
	view  uint64
	votes votes
}

// peer is what one process said: the first word of each kind, and what it said for the greatest view.
type peer struct {
	echo, ready, decided word
	offer                vote // its proposal for the greatest view that it leads
	wish                 uint64
	claims               []word // its claim about view 0, by process that witnesses it; its own word at its index
	report               report
	votes                [phases]vote
}

// vouched is a value and the processes that sent Echo or Vouch for it.
type vouched struct {
	value []byte
	who   parley.Set
}

// hearsay is what a process heard from all processes, itself included. Correct processes never say anything for which
// there is no room here, so a faulty process fills only its own room.
type hearsay struct {
	source       parley.ID
	n, m, limit  int
	quorum, some int // more than (n+m)/2 processes; m+1 processes

	first   word // the proposal of the source in view 0
	peers   []peer
	vouched []vouched // in the order of values
}

func newHearsay(source parley.ID, n, m, limit int) hearsay {
	h := hearsay{source: source, n: n, m: m, limit: limit, quorum: (n+m)/2 + 1, some: m + 1, peers: make([]peer, n)}
	for q := range h.peers {
		h.peers[q].claims = make([]word, n)
	}
	return h
}

// leader returns the process that leads a view. The source leads view 0.
func (h *hearsay) leader(view uint64) parley.ID {
	return parley.ID((uint64(h.source) + view) % uint64(h.n))
}

// add records a message. It reports whether this is the sender's first Enter.
func (h *hearsay) add(from parley.ID, m parley.Msg) (entered bool) {
	p := &h.peers[from]
	switch m.Kind {
	case Proposal:
		if m.Seq == 0 {
			h.first.set(m.Body)
		} else {
			p.offer.set(vote{m.Seq, m.Body})
		}
	case Echo:
		if p.echo.set(m.Body) {
			h.vouch(from, m.Body)
		}
	case Vouch:
		h.vouch(from, m.Body)
	case Ready:
		p.ready.set(m.Body)
	case Decided:
		p.decided.set(m.Body)
	case Wish:
		p.wish = max(p.wish, m.Seq)
	case Witness:
		h.peers[m.Origin].claims[from].set(m.Body)
	case Vote:
		p.votes[m.Value-1].set(vote{m.Seq, m.Body})
	case Enter:
		claim, votes, _ := readReport(m.Body, m.Seq, h.n, h.limit)
		if m.Seq > p.report.view {
			p.report = report{m.Seq, votes}
		}
		entered = p.claims[from].set(claim)
	}
	return entered
}

// vouch records that a process sent Echo or Vouch for a value. A correct process does this for at most n values,
// because one of the first m+1 of these processes is correct and sent Echo, which each process sends once.
func (h *hearsay) vouch(from parley.ID, value []byte) {
	at, found := slices.BinarySearchFunc(h.vouched, value, func(x vouched, v []byte) int {
		return bytes.Compare(x.value, v)
	})
	if found {
		h.vouched[at].who.Add(from)
	} else if count(h.vouched, func(x *vouched) bool { return x.who.Has(from) }) < h.n {
		h.vouched = slices.Insert(h.vouched, at, vouched{value, parley.SetOf(from)})
	}
}

// who returns the processes that sent Echo or Vouch for a value.
func (h *hearsay) who(value []byte) parley.Set {
	for _, x := range h.vouched {
		if bytes.Equal(x.value, value) {
			return x.who
		}
	}
	return parley.Set{}
}

// count returns how many items of a list fit.
func count[T any](list []T, fits func(*T) bool) (n int) {
	for k := range list {
		if fits(&list[k]) {
			n++
		}
	}
	return n
}

func echoes(p *peer) *word    { return &p.echo }
func readies(p *peer) *word   { return &p.ready }
func decisions(p *peer) *word { return &p.decided }

// common returns a value that at least so many processes said.
func (h *hearsay) common(kind func(*peer) *word, least int) word {
	for q := range h.peers {
		w := kind(&h.peers[q])
		if w.said && count(h.peers, func(p *peer) bool { return kind(p).is(w.value) }) >= least {
			return *w
		}
	}
	return word{}
}

// elected returns the vote of a quorum, for one value in one view, in a phase.
func (h *hearsay) elected(phase int) vote {
	for q := range h.peers {
		x := h.peers[q].votes[phase-1]
		if x.view > 0 && count(h.peers, func(p *peer) bool { return p.votes[phase-1].is(x) }) >= h.quorum {
			return x
		}
	}
	return vote{}
}

// greatest returns the greatest view such that at least so many processes have this view or a later one.
func (h *hearsay) greatest(least int, view func(*peer) uint64) (greatest uint64) {
	for q := range h.peers {
		x := view(&h.peers[q])
		if x > greatest && count(h.peers, func(p *peer) bool { return view(p) >= x }) >= least {
			greatest = x
		}
	}
	return greatest
}

// wished returns the greatest view such that so many processes wish for this view or a later one.
func (h *hearsay) wished(least int) uint64 {
	return h.greatest(least, func(p *peer) uint64 { return p.wish })
}

// safe reports whether the reports of exactly this view show that no value except v was decided in an earlier view, or
// ever will be. Votes of phase a and claims of view 0 show what was decided. Votes of phase b, of m+1 processes, show
// that v was safe in a view. A claim of view 0 counts if so many processes witness it.
func (h *hearsay) safe(view uint64, v []byte, a, b, witnesses int) bool {
	entered := func(p *peer) bool { return p.report.view == view }
	none := func(p *peer) bool { return entered(p) && len(p.report.votes[a-1]) == 0 }
	// Q in R have no vote of phase a: safe0(v)
	if count(h.peers, none) >= h.quorum {
		return h.safeFirst(v, witnesses)
	}
	// r2 := the (m+1)-st greatest, over R, of the last view voted for v in phase b
	r2 := h.greatest(h.some, func(p *peer) uint64 {
		at := slices.IndexFunc(p.report.votes[b-1], func(x vote) bool { return bytes.Equal(x.value, v) })
		if !entered(p) || at < 0 {
			return 0
		}
		return p.report.votes[b-1][at].view
	})
	// Q in R whose last vote of phase a is none, or in a view < r2, or in r2 for v
	fit := func(p *peer) bool {
		x := latest(p.report.votes[a-1])
		return entered(p) && (x.view < r2 || x.is(vote{r2, v}))
	}
	return r2 > 0 && count(h.peers, fit) >= h.quorum
}

// safeFirst reports whether a quorum claims that it was ready in view 0 for v or for no value. If m+1 witnesses are
// enough, the word of the claiming process itself is enough, too.
func (h *hearsay) safeFirst(v []byte, witnesses int) bool {
	fit := 0
	for q := range h.peers {
		claims := h.peers[q].claims
		claimed := func(value []byte) bool {
			said := func(w *word) bool { return w.is(value) }
			return count(claims, said) >= witnesses || witnesses == h.some && said(&claims[q])
		}
		if claimed(nil) || claimed(v) {
			fit++
		}
	}
	return fit >= h.quorum
}
