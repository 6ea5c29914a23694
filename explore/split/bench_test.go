package split_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/explore"
	"parley/explore/split"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// This file implements OM(2) twice more, without machines and messages, for 64 behaviors of the traitors at
// once, one in each bit of a word: as the recursion, and unrolled for seven processes of which the source
// and the last one are traitors.

// told returns the value that one process sends another along a path, which begins with the source and ends
// with the sender.
type told func(path []int, to int) uint64

// result returns the result of process i in an OM(k) whose source is the end of the path.
func (t told) result(n, k int, path []int, i int) uint64 {
	if k == 0 {
		return t(path, i)
	}
	votes := []uint64{t(path, i)}
	for j := range n {
		if j != i && !slices.Contains(path, j) {
			votes = append(votes, t.result(n, k-1, append(path[:len(path):len(path)], j), i))
		}
	}
	return majority(votes)
}

// majority returns 1 where more than half of the votes are 1, and otherwise the default 0.
func majority(votes []uint64) (out uint64) {
	for lane := range 64 {
		ones := 0
		for _, v := range votes {
			ones += int(v >> lane & 1)
		}
		if 2*ones > len(votes) {
			out |= 1 << lane
		}
	}
	return out
}

// lie returns messages in which traitors send what lie returns, and all others what they received.
func lie(value uint64, traitors []int, lie told) (t told) {
	return func(path []int, to int) uint64 {
		last := len(path) - 1
		switch {
		case slices.Contains(traitors, path[last]):
			return lie(path, to)
		case last == 0:
			return value
		}
		return t(path[:last], path[last])
	}
}

// lanes are the numbers 0 to 63, one bit of each in each of six words.
var lanes = [6]uint64{
	0xaaaaaaaaaaaaaaaa, 0xcccccccccccccccc, 0xf0f0f0f0f0f0f0f0, 0xff00ff00ff00ff00, 0xffff0000ffff0000, 0xffffffff00000000,
}

// numbered turns numbers into lies: the first message is the lowest bit, and so on. The 64 behaviors of
// word k have the numbers 64*k to 64*k+63.
func numbered(k int) told {
	known := make(map[string]uint64)
	return func(path []int, to int) uint64 {
		name := fmt.Sprint(path, to)
		said, again := known[name]
		if bit := len(known); !again && bit < len(lanes) {
			said = lanes[bit]
		} else if !again {
			said = -uint64(k >> (bit - len(lanes)) & 1)
		}
		known[name] = said
		return said
	}
}

// seven is what the source and the last of seven processes send to the five others.
type seven struct {
	source [5]uint64  // what the source sends to each
	first  [5]uint64  // what the traitor claims to each to have received from the source
	second [20]uint64 // 4*i+x: what it claims to i to have received from (i+1+x) modulo 5
}

// threeOf5 returns 1 where three of five are 1, and fourOf6 where four of six are.
func threeOf5(a, b, c, d, e uint64) uint64 {
	one := a ^ b ^ c
	x := a&b | c&(a^b)
	y := one&d | e&(one^d)
	return x&y | (x|y)&(one^d^e)
}

func fourOf6(a, b, c, d, e, f uint64) uint64 {
	x, y := a&b|c&(a^b), d&e|f&(d^e)
	return x&y | (x|y)&(a^b^c)&(d^e^f)
}

// decide returns the decisions of the five: each uses the source's value, the relayed values of the others,
// which all but the traitor sent alike to everyone, and the traitor's relayed values.
func (w *seven) decide() (out [5]uint64) {
	s, f := &w.source, &w.first
	for i := range out {
		u := w.second[4*i : 4*i+4]
		j, k, l, m := (i+1)%5, (i+2)%5, (i+3)%5, (i+4)%5
		out[i] = fourOf6(s[i],
			threeOf5(s[j], s[j], s[j], s[j], u[0]), threeOf5(s[k], s[k], s[k], s[k], u[1]),
			threeOf5(s[l], s[l], s[l], s[l], u[2]), threeOf5(s[m], s[m], s[m], s[m], u[3]),
			threeOf5(f[i], f[j], f[k], f[l], f[m]))
	}
	return out
}

// enumerate goes through the 2^20 behaviors whose messages before the last round have the given number, 64
// at once, in a Gray code order: one word changes at a time.
func enumerate(before int, see func(w *seven)) {
	var w seven
	for i := range 5 {
		w.source[i], w.first[i] = -uint64(before>>i&1), -uint64(before>>(5+i)&1)
	}
	copy(w.second[:], lanes[:])
	for k := 1; k <= 1<<14; k++ {
		see(&w)
		at := len(lanes) + bits.TrailingZeros(uint(k))
		if at < len(w.second) {
			w.second[at] = ^w.second[at]
		}
	}
}

// disagree returns 1 where two of the five decide differently.
func (w *seven) disagree() (out uint64) {
	d := w.decide()
	for _, v := range d {
		out |= d[0] ^ v
	}
	return out
}

// lies returns the value that w assigns to a message.
func (w *seven) lies(path []int, to int) uint64 {
	switch len(path) {
	case 1:
		return w.source[to-1]
	case 2:
		return w.first[to-1]
	}
	return w.second[4*(to-1)+(path[1]-to+4)%5]
}

// TestRaw goes through parts of the enumeration: every behavior occurs once, and nothing breaks. It
// compares the unrolled form with the recursion, and both with the machines.
func TestRaw(t *testing.T) {
	seen := make(map[[20]uint64]bool)
	enumerate(613, func(w *seven) {
		seen[w.second] = true
		if w.disagree() != 0 {
			t.Errorf("%+v breaks agreement", w)
		}
	})
	if len(seen) != 1<<14 {
		t.Errorf("%d words", len(seen))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var w seven
		for i := range w.second {
			w.source[i%5], w.first[i%5], w.second[i] = random.Uint64(), random.Uint64(), random.Uint64()
		}
		d, lane := w.decide(), random.IntN(64)
		ran := machines(7, []int{0, 6}, w.lies, lane)
		for i := range d {
			if want := lie(0, []int{0, 6}, w.lies).result(7, 2, []int{0}, i+1); d[i] != want {
				t.Errorf("%+v: %x is decided, by the recursion %x", w, d[i], want)
			}
			if uint64(ran[i+1]-'0') != d[i]>>lane&1 {
				t.Errorf("%+v, behavior %d: the machines decide %s", w, lane, ran)
			}
		}
	}
}

// TestSplitCounts counts the adversaries that break a property beyond the bound, with five processes of
// which two lieutenants lie: as many as in the recursion.
func TestSplitCounts(t *testing.T) {
	r := splitLast(t, explore.Options{
		Protocol: om.New(oral(5, 2), lockstep.Simulated), Roots: pair(explore.NeverSilent, 3, 4), Beyond: true, All: true,
	})
	broken := 0
	for value := range uint64(2) {
		for k := range 1 << 6 {
			t := lie(-value, []int{3, 4}, numbered(k))
			first, second := t.result(5, 2, []int{0}, 1), t.result(5, 2, []int{0}, 2)
			broken += bits.OnesCount64((first ^ second) | (first ^ -value))
		}
	}
	if r.Runs != 1<<13 || r.Broken != uint64(broken) || broken == 0 {
		t.Errorf("%d of %d adversaries break something, and %d by the recursion", r.Broken, r.Runs, broken)
	}
}

// machines runs the machines and returns the decisions of all processes, one character each.
func machines(n int, traitors []int, lies told, lane int) string {
	c := oral(n, 2)
	p := om.Rounds(c)
	p.Lies = om.Tell(c, func(path []parley.ID, to parley.ID, _ []byte) []byte {
		var numbers []int
		for _, id := range path {
			numbers = append(numbers, int(id))
		}
		return []byte{'0' + byte(lies(numbers, int(to))>>lane&1)}
	})
	o := sim.Options{Protocol: lockstep.Of(p, lockstep.Simulated), Faulty: make(map[parley.ID]faulty.Behavior)}
	o.Requests = []sim.Request{{Msg: parley.Msg{Kind: parley.Propose, Body: []byte("0")}}}
	for _, id := range traitors {
		o.Faulty[parley.ID(id)] = faulty.Script
	}
	out := make([]byte, n)
	for _, d := range sim.Run(o).History.Deliveries {
		out[d.At] = d.Msg.Body[0]
	}
	return string(out)
}

// BenchmarkRaw enumerates all 2^30 behaviors of the source and a lieutenant among seven.
func BenchmarkRaw(b *testing.B) {
	before := processor()
	for b.Loop() {
		broken := 0
		for said := range 1 << 10 {
			enumerate(said, func(w *seven) { broken += bits.OnesCount64(w.disagree()) })
		}
		if broken != 0 {
			b.Fatal(broken, "behaviors break agreement")
		}
	}
	b.ReportMetric(float64(b.N)*(1<<30)/b.Elapsed().Seconds(), "behaviors/s")
	b.ReportMetric((processor()-before).Seconds()/float64(b.N), "cpu-s/op")
}

// BenchmarkSplitSeven exhausts both placements of the two traitors among seven.
func BenchmarkSplitSeven(b *testing.B) {
	p := om.New(oral(7, 2), lockstep.Simulated)
	evaluations, before := uint64(0), processor()
	for b.Loop() {
		for _, roots := range [][]explore.Root{pair(explore.NeverSilent, 0, 6), pair(explore.NeverSilent, 5, 6)} {
			r, err := split.Search(b.Context(), explore.Options{Protocol: p, Roots: roots})
			if err != nil || r.Outcome != explore.Exhausted {
				b.Fatal(r.Outcome, err)
			}
			evaluations += r.Evaluations
		}
	}
	b.ReportMetric(float64(evaluations)/b.Elapsed().Seconds(), "evaluations/s")
	b.ReportMetric((processor()-before).Seconds()/float64(b.N), "cpu-s/op")
}
