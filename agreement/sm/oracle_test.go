package sm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/sim"
)

// oracle is SM(m) with a view of the whole system, with source 0. A message is its text,
// "v:0:2:1", and what a correct process signs goes into one list for all: a
// signature is valid if it is in that list, or if its owner is faulty.
type oracle struct {
	n, m   int
	liars  []int
	rng    *rand.Rand
	signed map[string]bool
	v      []map[string]bool
	sent   []uint64

	refused, accepted, late int      // chains of faulty processes count in accepted; in a round r > 0 in late too
	leaked                  []string // what correct processes sent to faulty ones in the round before
	script                  []sm.Forged
}

type letter struct {
	from, to int
	text     string
	spoilt   bool
}

func (o *oracle) faulty(id int) bool { return slices.Contains(o.liars, id) }

func text(value string, chain ...int) string {
	for _, id := range chain {
		value += ":" + strconv.Itoa(id)
	}
	return value
}

func parts(text string) (value string, chain []int) {
	fields := strings.Split(text, ":")
	for _, f := range fields[1:] {
		id, _ := strconv.Atoi(f)
		chain = append(chain, id)
	}
	return fields[0], chain
}

// wellFormed: r+1 distinct processes, the source first, the sender last, the
// receiver not among them.
func (o *oracle) wellFormed(l letter, r int) bool {
	_, chain := parts(l.text)
	if len(chain) != r+1 || chain[0] != 0 || chain[r] != l.from || slices.Contains(chain, l.to) {
		return false
	}
	slices.Sort(chain)
	return len(slices.Compact(chain)) == r+1 && chain[r] < o.n
}

// genuine: every correct process on the chain signed exactly that.
func (o *oracle) genuine(l letter) bool {
	value, chain := parts(l.text)
	for i, id := range chain {
		if !o.faulty(id) && !o.signed[text(value, chain[:i+1]...)] {
			return false
		}
	}
	return !l.spoilt
}

func (o *oracle) run(sourceValue string) {
	o.signed, o.v, o.sent = map[string]bool{}, make([]map[string]bool, o.n), make([]uint64, o.m+1)
	var next []letter
	for id := range o.n {
		o.v[id] = map[string]bool{}
		if id > 0 && !o.faulty(0) {
			o.signed[text(sourceValue, 0)] = true
			next = append(next, letter{from: 0, to: id, text: text(sourceValue, 0)})
		}
	}
	for r := range o.m + 1 {
		now := next
		next = nil
		o.sent[r] = uint64(len(now))
		now = append(now, o.lies(r)...)
		slices.SortStableFunc(now, func(a, b letter) int { return a.from - b.from })
		o.leaked = nil
		for _, l := range now {
			if o.faulty(l.to) {
				o.leaked = append(o.leaked, l.text)
				continue
			}
			value, chain := parts(l.text)
			if !o.wellFormed(l, r) || !o.genuine(l) || o.v[l.to][value] {
				o.refused++
				continue
			}
			if o.faulty(l.from) {
				o.accepted++
				o.late += min(r, 1)
			}
			o.v[l.to][value] = true
			if r == o.m {
				continue
			}
			signed := text(value, append(chain, l.to)...)
			o.signed[signed] = true
			for to := range o.n {
				if to != l.to && !slices.Contains(chain, to) {
					next = append(next, letter{from: l.to, to: to, text: signed})
				}
			}
		}
	}
}

// lies draws what faulty processes send in a round, and writes it into the script.
func (o *oracle) lies(r int) []letter {
	var out []letter
	for _, from := range o.liars {
		for range o.rng.IntN(4) {
			l := o.lie(r, from)
			// The coalition may have forgotten an old signature: an old chain is shown as it was
			// received, or it is invalid anyway.
			fresh := slices.ContainsFunc(o.leaked, func(old string) bool { return strings.HasPrefix(l.text, old+":") })
			if !fresh && o.mixed(l) && o.wellFormed(l, r) && o.genuine(l) {
				continue
			}
			out = append(out, l)
			value, chain := parts(l.text)
			f := sm.Forged{Round: r, From: parley.ID(from), To: parley.ID(l.to), Value: []byte(value), BadSig: -1}
			for _, id := range chain {
				f.Chain = append(f.Chain, parley.ID(id))
			}
			if l.spoilt {
				f.BadSig = o.rng.IntN(len(chain))
			}
			o.script = append(o.script, f)
		}
	}
	return out
}

func (o *oracle) mixed(l letter) bool {
	_, chain := parts(l.text)
	return slices.ContainsFunc(chain, func(id int) bool { return !o.faulty(id) })
}

func (o *oracle) lie(r, from int) letter {
	l := letter{from: from, spoilt: o.rng.IntN(10) == 0}
	for l.to = o.rng.IntN(o.n); o.faulty(l.to); {
		l.to = o.rng.IntN(o.n)
	}
	value := strconv.Itoa(o.rng.IntN(4))
	last := from
	if o.rng.IntN(10) == 0 {
		last = o.liars[o.rng.IntN(len(o.liars))]
	}
	switch k := o.rng.IntN(10); {
	case k < 3 && len(o.leaked) > 0: // what a correct process sent, with one more name
		l.text = o.leaked[o.rng.IntN(len(o.leaked))] + ":" + strconv.Itoa(last)
	case k < 8: // signed by the coalition only
		chain := []int{0}
		for _, id := range o.rng.Perm(len(o.liars)) {
			if who := o.liars[id]; len(chain) < r && who != 0 && who != last {
				chain = append(chain, who)
			}
		}
		if r > 0 {
			chain = append(chain, last)
		}
		l.text = text(value, chain...)
	default: // anything
		chain := make([]int, 1+o.rng.IntN(r+2))
		for i := range chain {
			chain[i] = o.rng.IntN(o.n + 1)
		}
		l.text = text(value, chain...)
	}
	return l
}

// TestOracle compares the algorithm with the oracle: V, decisions, messages and
// refusals, with random adversaries that collude and forge.
func TestOracle(t *testing.T) {
	var accepted, late int
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 19))
		n := 3 + rng.IntN(5)
		o := &oracle{n: n, m: rng.IntN(n - 1), rng: rng}
		o.liars = rng.Perm(n)[:1+rng.IntN(n-2)] // possibly more than m
		if rng.IntN(2) == 0 && !o.faulty(0) {
			o.liars[0] = 0
		}
		slices.Sort(o.liars)
		o.run("1")

		c := config(n, o.m)
		var liars []parley.ID
		for _, id := range o.liars {
			liars = append(liars, parley.ID(id))
		}
		s := sim.Run(sim.Options{
			Protocol: scripted(c, o.script), Faulty: the(faulty.Script, liars...), Seed: seed,
			Requests: propose(c, "1"), Measure: true,
		})
		d := decisions(c, s)
		for id := range s.Correct().All() {
			want, decision := []string{}, "0"
			for v := range o.v[id] {
				want, decision = append(want, v), v
			}
			if slices.Sort(want); len(want) != 1 {
				decision = "0"
			}
			if got := set(s, id); !slices.Equal(got, want) || id > 0 && d[id] != decision {
				t.Fatalf("seed %d, n=%d, m=%d, faulty %v: V of %d is %v, decides %s; the oracle has %v, %s\n%v",
					seed, n, o.m, o.liars, id, got, d[id], want, decision, o.script)
			}
		}
		var refused uint64
		for _, k := range s.Stats.Refused {
			refused += k
		}
		same(t, fmt.Sprint("seed ", seed, ": refused"), refused, uint64(o.refused))
		for r, want := range o.sent {
			var got uint64
			if r < len(s.Stats.Sent) {
				got = s.Stats.Sent[r].Messages
			}
			same(t, fmt.Sprint("seed ", seed, ": messages of round ", r), got, want)
		}
		if t.Failed() {
			t.Fatalf("n=%d, m=%d, faulty %v: %v", n, o.m, o.liars, o.script)
		}
		accepted += o.accepted
		late += o.late
	}
	if accepted < 2000 || late < 600 {
		t.Errorf("only %d forgeries were accepted, %d of them late", accepted, late)
	}
}
