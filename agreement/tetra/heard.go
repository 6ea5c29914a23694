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

// record enters a vote in a list in the order of values, which has the last view for each value.
func record(list []vote, x vote) []vote {
	at, found := slices.BinarySearchFunc(list, x, func(a, b vote) int { return bytes.Compare(a.value, b.value) })
	if found {
		list[at].view = max(list[at].view, x.view)
		return list
	}
	return slices.Insert(list, at, x)
}

// latest returns the vote of the last view.
func latest(list []vote) (last vote) {
	for _, x := range list {
		if x.view > last.view {
			last = x
		}
	}
	return last
}

// report holds the votes that a process reports on entering a view.
type report struct {
	view  uint64
	votes [phases][]vote
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

// add records a message. It reports whether this is the sender's first word of this kind, for kinds with first words.
func (h *hearsay) add(from parley.ID, m parley.Msg) (first bool) {
	p := &h.peers[from]
	switch m.Kind {
	case Proposal:
		if m.Seq == 0 {
			return h.first.set(m.Body)
		}
		if m.Seq > p.offer.view {
			p.offer = vote{m.Seq, m.Body}
		}
	case Echo:
		if first = p.echo.set(m.Body); first {
			h.vouch(from, m.Body)
		}
	case Vouch:
		h.vouch(from, m.Body)
	case Ready:
		return p.ready.set(m.Body)
	case Decided:
		return p.decided.set(m.Body)
	case Wish:
		p.wish = max(p.wish, m.Seq)
	case Witness:
		return h.peers[m.Origin].claims[from].set(m.Body)
	case Vote:
		if x := &p.votes[m.Value-1]; m.Seq > x.view {
			*x = vote{m.Seq, m.Body}
		}
	case Enter:
		claim, votes, _ := readReport(m.Body, m.Seq, h.n, h.limit)
		if m.Seq > p.report.view {
			p.report = report{m.Seq, votes}
		}
		return p.claims[from].set(claim)
	}
	return first
}

// vouch records that a process sent Echo or Vouch for a value. A correct process does this for at most n values,
// because one of the first m+1 of these processes is correct and sent Echo, which each process sends once.
func (h *hearsay) vouch(from parley.ID, value []byte) {
	at, found := slices.BinarySearchFunc(h.vouched, value, func(x vouched, v []byte) int {
		return bytes.Compare(x.value, v)
	})
	if found {
		h.vouched[at].who.Add(from)
		return
	}
	mine := 0
	for _, x := range h.vouched {
		if x.who.Has(from) {
			mine++
		}
	}
	if mine < h.n {
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

func echoes(p *peer) *word    { return &p.echo }
func readies(p *peer) *word   { return &p.ready }
func decisions(p *peer) *word { return &p.decided }

// common returns a value that at least so many processes said.
func (h *hearsay) common(kind func(*peer) *word, least int) word {
	for q := range h.peers {
		w := *kind(&h.peers[q])
		if !w.said {
			continue
		}
		count := 0
		for other := range h.peers {
			if kind(&h.peers[other]).is(w.value) {
				count++
			}
		}
		if count >= least {
			return w
		}
	}
	return word{}
}

// elected returns the value for which a quorum voted in a phase of one view: of the given view, or of any view if that
// is 0.
func (h *hearsay) elected(phase int, view uint64) word {
	for q := range h.peers {
		x := h.peers[q].votes[phase-1]
		if x.view == 0 || view > 0 && x.view != view {
			continue
		}
		count := 0
		for other := range h.peers {
			if y := &h.peers[other].votes[phase-1]; y.view == x.view && bytes.Equal(y.value, x.value) {
				count++
			}
		}
		if count >= h.quorum {
			return word{true, x.value}
		}
	}
	return word{}
}

// wished returns the greatest view above a view such that so many processes wish for this view or a greater one, or 0.
func (h *hearsay) wished(least int, above uint64) (greatest uint64) {
	for q := range h.peers {
		x := h.peers[q].wish
		if x <= max(above, greatest) {
			continue
		}
		count := 0
		for other := range h.peers {
			if h.peers[other].wish >= x {
				count++
			}
		}
		if count >= least {
			greatest = x
		}
	}
	return greatest
}

// safe reports whether the reports of exactly this view show that no value except v was decided in an earlier view, or
// ever will be. Votes of phase a and claims of view 0 show what was decided. Votes of phase b, of m+1 processes, show
// that v was safe in a view. A claim of view 0 counts if so many processes witness it.
func (h *hearsay) safe(view uint64, v []byte, a, b, witnesses int) bool {
	none := 0
	for q := range h.peers {
		if r := &h.peers[q].report; r.view == view && len(r.votes[a-1]) == 0 {
			none++
		}
	}
	// Q in R have no vote of phase a: safe0(v)
	if none >= h.quorum {
		return h.safeFirst(v, witnesses)
	}
	// r2 := the (m+1)-st greatest, over R, of the last view voted for v in phase b
	r2 := h.backed(view, v, b)
	if r2 == 0 {
		return false
	}
	// Q in R whose last vote of phase a is none, or in a view < r2, or in r2 for v
	fit := 0
	for q := range h.peers {
		if r := &h.peers[q].report; r.view == view {
			if x := latest(r.votes[a-1]); x.view < r2 || x.view == r2 && bytes.Equal(x.value, v) {
				fit++
			}
		}
	}
	return fit >= h.quorum
}

// backed returns the greatest view such that m+1 reports have a vote for v in a phase in this view or a later one, or
// 0.
func (h *hearsay) backed(view uint64, v []byte, phase int) (greatest uint64) {
	voted := func(q int) uint64 {
		r := &h.peers[q].report
		for _, x := range r.votes[phase-1] {
			if r.view == view && bytes.Equal(x.value, v) {
				return x.view
			}
		}
		return 0
	}
	for q := range h.peers {
		x := voted(q)
		if x <= greatest {
			continue
		}
		count := 0
		for other := range h.peers {
			if voted(other) >= x {
				count++
			}
		}
		if count >= h.some {
			greatest = x
		}
	}
	return greatest
}

// safeFirst reports whether a quorum claims that it was ready in view 0 for v or for no value. If m+1 witnesses are
// enough, the word of the claiming process itself is enough, too.
func (h *hearsay) safeFirst(v []byte, witnesses int) bool {
	fit := 0
	for q := range h.peers {
		claims := h.peers[q].claims
		own := claims[q]
		none, same := 0, 0
		for _, w := range claims {
			switch {
			case !w.said:
			case len(w.value) == 0:
				none++
			case bytes.Equal(w.value, v):
				same++
			}
		}
		if none >= witnesses || same >= witnesses ||
			witnesses == h.some && own.said && (len(own.value) == 0 || bytes.Equal(own.value, v)) {
			fit++
		}
	}
	return fit >= h.quorum
}
