package problem

import (
	"cmp"
	"slices"

	"parley"
)

// cast is one broadcast of a run.
type cast struct {
	from     parley.ID
	to       parley.Set
	payload  []byte
	order    uint64 // of the request
	invented bool   // it was delivered but not requested
	chain    int32  // the sender's incarnation
	place    int32  // in the chain, from 0
}

// delivery is one delivery of a run.
type delivery struct {
	at    parley.ID
	life  int // incarnation of the process, from 0
	order uint64
	cast  int
	again bool // more often than it was broadcast, within one incarnation
}

// run is a history with deliveries matched to broadcasts.
type run struct {
	h          *parley.History
	casts      []cast
	deliveries []delivery
	chains     [][]int    // by chain: its casts
	delivered  [][]uint64 // by process: a bit for each cast that it delivered in any incarnation
	requested  int        // number of casts that are not invented; they come first
	of         map[key][]int
}

// key is the sender and the payload.
type key struct {
	from    parley.ID
	payload string
}

// read matches the deliveries of a history to its broadcasts.
func read(h *parley.History) *run {
	r := &run{h: h, of: make(map[key][]int, len(h.Requests))}
	chainOf := make([]int32, h.N) // of the current incarnation of each process
	for id := range chainOf {
		chainOf[id] = -1
	}
	restarts := h.Restarts
	for i := range h.Requests {
		q := &h.Requests[i]
		to, payload, err := Decode(q.Msg, h.N)
		if err != nil {
			continue
		}
		for len(restarts) > 0 && restarts[0].Order < q.Order {
			chainOf[restarts[0].At] = -1
			restarts = restarts[1:]
		}
		if chainOf[q.At] < 0 {
			chainOf[q.At] = int32(len(r.chains))
			r.chains = append(r.chains, nil)
		}
		chain := chainOf[q.At]
		c := r.add(cast{from: q.At, to: to, payload: payload, order: q.Order, chain: chain,
			place: int32(len(r.chains[chain]))})
		r.chains[chain] = append(r.chains[chain], c)
	}
	r.requested = len(r.casts)
	r.match()
	return r
}

// add records a cast and returns its index.
func (r *run) add(c cast) int {
	i, k := len(r.casts), key{c.from, string(c.payload)}
	r.casts = append(r.casts, c)
	r.of[k] = append(r.of[k], i)
	return i
}

// match finds the broadcast of each delivery: the first with the same sender and payload that this
// incarnation of the process has not yet delivered. A process has several incarnations only if it restarts.
func (r *run) match() {
	restarts, lives := r.h.Restarts, make([]int, r.h.N)
	r.delivered = make([][]uint64, r.h.N)
	inLife := make([][]uint64, r.h.N) // the same for the current incarnation of each process
	r.deliveries = make([]delivery, 0, len(r.h.Deliveries))
	for i := range r.h.Deliveries {
		d := &r.h.Deliveries[i]
		from, payload, ok := Delivered(d)
		if !ok {
			continue
		}
		for len(restarts) > 0 && restarts[0].Order < d.Order {
			lives[restarts[0].At]++
			inLife[restarts[0].At] = nil
			restarts = restarts[1:]
		}
		k := key{from, string(payload)}
		if r.of[k] == nil {
			r.add(cast{from: from, to: parley.Everyone(r.h.N), payload: payload, invented: true, chain: -1})
		}
		var c int
		for _, c = range r.of[k] {
			if !bit(inLife[d.At], c) {
				break
			}
		}
		r.deliveries = append(r.deliveries, delivery{d.At, lives[d.At], d.Order, c, bit(inLife[d.At], c)})
		inLife[d.At] = withBit(inLife[d.At], c)
		r.delivered[d.At] = withBit(r.delivered[d.At], c)
	}
}

func bit(set []uint64, i int) bool { return i/64 < len(set) && set[i/64]>>(i%64)&1 == 1 }

func withBit(set []uint64, i int) []uint64 {
	if more := i/64 + 1 - len(set); more > 0 {
		set = append(set, make([]uint64, more)...)
	}
	set[i/64] |= 1 << (i % 64)
	return set
}

// has reports whether a process delivered a cast in any of its incarnations.
func (r *run) has(id parley.ID, c int) bool { return bit(r.delivered[id], c) }

// deliverer returns the first of the given processes that delivered a cast, or All.
func (r *run) deliverer(c int, of whose) parley.ID {
	for id := range parley.ID(r.h.N) {
		if of.among(r.h, id) && r.has(id, c) {
			return id
		}
	}
	return parley.All
}

// name returns the name of a cast for people.
func (r *run) name(c int) string { return Name(r.h, r.casts[c].from, r.casts[c].payload) }

// progress tracks how much of each chain each process has delivered.
type progress struct {
	r *run
	// before counts, by process and chain, the casts at the start of the chain that the process has delivered
	// or that are not addressed to it.
	before [][]int32
	done   [][]uint64 // by process: a bit for each cast delivered so far
}

func (r *run) progress() *progress {
	p := &progress{r: r, before: make([][]int32, r.h.N), done: make([][]uint64, r.h.N)}
	for id := range p.before {
		p.before[id] = make([]int32, len(r.chains))
	}
	return p
}

func (p *progress) deliver(id parley.ID, c int) { p.done[id] = withBit(p.done[id], c) }

// missing returns the first of the given number of casts at the start of a chain that is addressed to the
// process and not yet delivered by it, or -1.
func (p *progress) missing(id parley.ID, chain, length int32) int {
	at := &p.before[id][chain]
	for ; *at < length; *at++ {
		c := p.r.chains[chain][*at]
		if p.r.casts[c].to.Has(id) && !bit(p.done[id], c) {
			return c
		}
	}
	return -1
}

// event is a delivery, a request, or a restart (negative cast).
type event struct {
	delivery bool
	at       parley.ID
	order    uint64
	cast     int
	again    bool
}

// inTime returns all events in time order.
func (r *run) inTime() []event {
	out := make([]event, 0, len(r.casts)+len(r.deliveries)+len(r.h.Restarts))
	for c := range r.casts[:r.requested] {
		out = append(out, event{at: r.casts[c].from, order: r.casts[c].order, cast: c})
	}
	for _, e := range r.h.Restarts {
		out = append(out, event{at: e.At, order: e.Order, cast: -1})
	}
	for _, d := range r.deliveries {
		out = append(out, event{delivery: true, at: d.at, order: d.order, cast: d.cast, again: d.again})
	}
	slices.SortStableFunc(out, func(a, b event) int { return cmp.Compare(a.order, b.order) })
	return out
}
