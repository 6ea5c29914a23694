package sm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// sizes are systems within the bound, from one correct lieutenant to several.
var sizes = []struct{ n, m int }{{4, 1}, {4, 2}, {5, 2}, {5, 3}, {6, 3}, {7, 5}}

// draw returns a coalition of up to m processes of mixed behavior. If collude is
// true, the source is one of m that all lie at random.
func draw(rng *rand.Rand, c sm.Config, collude bool) map[parley.ID]faulty.Behavior {
	who := rng.Perm(c.N)
	how := append(faulty.Named(), faulty.Crash(rng.IntN(c.M+1), rng.IntN(c.N)))
	out := make(map[parley.ID]faulty.Behavior)
	if collude {
		out[c.Source] = faulty.Random
		for _, id := range who {
			if len(out) < c.M {
				out[parley.ID(id)] = faulty.Random
			}
		}
		return out
	}
	for _, id := range who[:rng.IntN(c.M+1)] {
		out[parley.ID(id)] = how[rng.IntN(len(how))]
	}
	return out
}

// TestTheorem: with at most m faulty processes, of any behavior and colluding
// or not, SM(m) breaks none of its promises (Lamport, Shostak, Pease, theorem 2).
func TestTheorem(t *testing.T) {
	for _, size := range sizes {
		t.Run(fmt.Sprintf("n=%d,m=%d", size.n, size.m), func(t *testing.T) {
			t.Parallel()
			var lied, split, sourceFaulty int
			for seed := range uint64(800) {
				rng := rand.New(rand.NewPCG(seed, 7))
				c := config(size.n, size.m, []string{"0", "1", "2"}[:2+rng.IntN(2)]...)
				c.Source = parley.ID(rng.IntN(c.N))
				c.Relay = sm.Relay(rng.IntN(2))
				if c.Relay == sm.RelayAll {
					c.Choice = sm.Choice(rng.IntN(2))
				}
				if err := c.Check(); err != nil {
					t.Fatal(err)
				}
				when := lockstep.Simulated
				when.Early = rng.IntN(2) == 0
				p := sm.New(c, when)
				s := sim.Run(sim.Options{
					Protocol: p, Faulty: draw(rng, c, rng.IntN(2) == 0), Seed: seed,
					Requests: propose(c, []string{"0", "1"}[rng.IntN(2)]),
				})
				if err := violated(p, s); err != nil {
					t.Fatalf("seed %d, faulty %v: %v", seed, s.History.Faulty, err)
				}
				if s.History.Faulty.Has(c.Source) {
					sourceFaulty++
				}
				for id := range s.Correct().All() {
					if len(set(s, id)) > 1 {
						split++
						break
					}
				}
				if s.Stats.FromFaulty > s.Stats.RefusedFaulty {
					lied++
				}
			}
			// Guards against runs in which nothing was tried.
			if sourceFaulty < 200 || split < 60 || lied < 200 {
				t.Errorf("source faulty in %d runs, two values in %d, liars heard in %d", sourceFaulty, split, lied)
			}
		})
	}
}

// TestLiesAloneKeepValidity: with a correct source no number of faulty processes makes a
// correct lieutenant decide on another value, because they cannot sign for the source.
func TestLiesAloneKeepValidity(t *testing.T) {
	c := config(7, 1)
	p := sm.New(c, lockstep.Simulated)
	for seed := range uint64(200) {
		s := sim.Run(sim.Options{
			Protocol: p, Faulty: the(faulty.Random, 1, 2, 3, 4, 5), Seed: seed, Requests: propose(c, "1"),
		})
		if broken(p, s, problem.Validity) || broken(p, s, problem.Agreement) {
			t.Fatalf("seed %d: %v", seed, decisions(c, s))
		}
	}
}

// forgeries draws what a coalition that includes the source sends with only its own
// signatures: in each round up to three values, each with a valid chain.
func forgeries(rng *rand.Rand, c sm.Config, liars []parley.ID) []sm.Forged {
	var out []sm.Forged
	var correct []parley.ID
	for id := range parley.ID(c.N) {
		if !slices.Contains(liars, id) {
			correct = append(correct, id)
		}
	}
	for r := range c.M + 1 {
		for range rng.IntN(4) {
			others := slices.Clone(liars[1:])
			rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
			if r > len(others) {
				continue
			}
			chain := append(ids(c.Source), others[:r]...)
			out = append(out, sm.Forged{
				Round: r, From: chain[r], To: correct[rng.IntN(len(correct))], BadSig: -1,
				Value: c.Values()[rng.IntN(len(c.Values()))], Chain: chain,
			})
		}
	}
	return out
}

// TestRelayTwo: keeping two values decides the same as keeping all, if the decision
// is the only value (Dolev and Strong 1983).
func TestRelayTwo(t *testing.T) {
	capped := 0
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 11))
		size := sizes[rng.IntN(len(sizes))]
		c := config(size.n, size.m, "0", "1", "2", "3")
		liars := ids(0)
		for _, id := range rng.Perm(c.N - 1)[:c.M-1] {
			liars = append(liars, parley.ID(1+id))
		}
		sends := forgeries(rng, c, liars)
		all := play(c, liars, sends...)
		c.Relay = sm.RelayTwo
		two := play(c, liars, sends...)
		a, b := decisions(c, all), decisions(c, two)
		for id := range a {
			if a[id] != b[id] {
				t.Fatalf("seed %d: %v with all, %v with two: %v", seed, a, b, sends)
			}
			if len(set(two, id)) > 2 {
				t.Fatalf("seed %d: process %d keeps %v", seed, id, set(two, id))
			}
			if len(set(all, id)) > 2 {
				capped++
			}
		}
		if !agree(a) {
			t.Fatalf("seed %d: %v", seed, a)
		}
	}
	if capped < 400 {
		t.Errorf("only %d processes had more than two values to choose from", capped)
	}
}

// TestCapWithMinimum: with the least value as the choice, keeping two breaks
// agreement, which is why Check refuses it and nothing is promised.
func TestCapWithMinimum(t *testing.T) {
	c := config(5, 2, "1", "2", "3")
	c.Choice = sm.Minimum
	split := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 13))
		liars := ids(0, parley.ID(1+rng.IntN(c.N-1)))
		sends := forgeries(rng, c, liars)
		c.Relay = sm.RelayAll
		if s := play(c, liars, sends...); !agree(decisions(c, s)) {
			t.Fatalf("seed %d: split without the cap", seed)
		}
		c.Relay = sm.RelayTwo
		s := play(c, liars, sends...)
		if !agree(decisions(c, s)) {
			split++
		}
		if err := violated(scripted(c, sends), s); err != nil {
			t.Fatalf("promised: %v", err)
		}
	}
	t.Logf("cap with minimum: %d of 300 runs split", split)
	if split == 0 {
		t.Error("no run was split")
	}
	if c.Check() == nil {
		t.Error("Check lets it pass")
	}
}

// TestThirdValue: with RelayTwo a third value of the source is not even verified.
func TestThirdValue(t *testing.T) {
	c := config(3, 1)
	c.Relay = sm.RelayTwo
	s := play(c, ids(0), send(0, 0, 1, "c", 0), send(0, 0, 1, "b", 0), send(0, 0, 1, "a", 0))
	same(t, "refused", s.Stats.Refused["third-value"], 1)
	same(t, "V of 1", fmt.Sprint(set(s, 1)), "[b c]")
	same(t, "V of 2", fmt.Sprint(set(s, 2)), "[b c]")
	// Two signatures at process 1, and two chains of two links at process 2.
	same(t, "verified", s.Stats.Verifies, 2+2*2)
}

// TestOneBadSignatureIsEnough: with RelayTwo the chains of a sender of a bad signature are
// ignored for the rest of the round, and count again in the next.
func TestOneBadSignatureIsEnough(t *testing.T) {
	c := config(5, 3)
	c.Relay = sm.RelayTwo
	bad := sm.Forged{Round: 1, From: 1, To: 2, Value: []byte("x"), Chain: ids(0, 1), BadSig: 1}
	s := play(c, ids(0, 1, 4), bad, bad, bad, send(1, 1, 2, "y", 0, 1), send(2, 1, 2, "z", 0, 4, 1))
	same(t, "bad", s.Stats.Refused["bad-signature"], 1)
	same(t, "not looked at", s.Stats.Refused["after-bad-signature"], 3)
	same(t, "V", fmt.Sprint(set(s, 2)), "[z]")
	c.Relay = sm.RelayAll
	s = play(c, ids(0, 1, 4), bad, bad, bad, send(1, 1, 2, "y", 0, 1))
	same(t, "bad", s.Stats.Refused["bad-signature"], 3)
	same(t, "V", fmt.Sprint(set(s, 2)), "[y]")
}

// TestSigners: real signatures and ideal ones lead to the same decisions.
func TestSigners(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 17))
		c := config(5, 3)
		how := draw(rng, c, seed%2 == 0)
		run := func(signer sim.Signer) *sim.Sim {
			return sim.Run(sim.Options{
				Protocol: sm.New(c, lockstep.Simulated), Faulty: how, Seed: seed,
				Requests: propose(c, "1"), Signer: signer,
			})
		}
		real, ideal := run(sim.Ed25519(seed, c.N)), run(sim.Ideal(seed))
		same(t, "decisions", fmt.Sprint(decisions(c, real)), fmt.Sprint(decisions(c, ideal)))
		same(t, "refused", fmt.Sprint(real.Stats.Refused), fmt.Sprint(ideal.Stats.Refused))
		same(t, "verified", real.Stats.Verifies, ideal.Stats.Verifies)
	}
}

// TestCost: correct processes send, round by round, what the theorem
// says: n-1 messages, (n-1)(n-2), and no more.
func TestCost(t *testing.T) {
	for n := 2; n <= 9; n++ {
		for m := 0; m <= n-2; m++ {
			c := config(n, m)
			c.Relay = sm.Relay(n % 2)
			s := play(c, nil)
			cost := sm.Cost(n, m)
			same(t, "rounds", cost.Rounds, m+1)
			for r, want := range cost.PerRound {
				same(t, fmt.Sprintf("n=%d, m=%d, round %d", n, m, r), s.Stats.Sent[r], want)
			}
			same(t, "rounds measured", len(s.Stats.Sent), m+1)
			// Each of the n-1 verifies the source's signature; relayed values are
			// not new.
			same(t, "verified", s.Stats.Verifies, uint64(n-1))
		}
	}
	c := sm.Cost(4, 1).PerRound
	same(t, "n=4, round 0", c[0], parley.Traffic{Messages: 3, Bits: 3 * 3, Signatures: 3})
	same(t, "n=4, round 1", c[1], parley.Traffic{Messages: 6, Bits: 6 * 5, Signatures: 12})
}
