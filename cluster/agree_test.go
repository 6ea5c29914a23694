package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/stream"
	"parley/cluster"
	"parley/faulty"
)

// ledger holds the decisions of one node.
type ledger struct {
	mu   sync.Mutex
	list map[string]cluster.Decision
}

func (l *ledger) note(d cluster.Decision) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := fmt.Sprintf("%v m=%d source %d slot %d", d.Algorithm, d.M, d.Source, d.Slot)
	if before, again := l.list[key]; again {
		panic(fmt.Sprintf("%s: decided on %q and %q", key, before.Value, d.Value))
	}
	l.list[key] = d
}

// values returns the decisions, of one source or of all (parley.All).
func (l *ledger) values(source parley.ID) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]string)
	for key, d := range l.list {
		if source == parley.All || d.Source == source {
			out[key] = string(d.Value)
		}
	}
	return out
}

// ledgers collects the decisions of all nodes.
func ledgers(nodes []*cluster.Node) []*ledger {
	var all []*ledger
	for _, node := range nodes {
		l := &ledger{list: make(map[string]cluster.Decision)}
		node.Decisions(l.note)
		all = append(all, l)
	}
	return all
}

// roomy is a length of rounds that is sufficient on a busy computer.
const roomy = 600 * time.Millisecond

// With every algorithm, all nodes decide on the value of a source, in the order of its slots, and the source gets
// the answer to its own request.
func TestAgree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = roomy })
		all := ledgers(nodes)
		ctx := t.Context()
		for _, a := range []cluster.Algorithm{cluster.EIG, cluster.OM, cluster.SM, cluster.PhaseKing} {
			for source, node := range nodes[:2] {
				for k, value := range []string{"attack", "", "\x00"} {
					d, err := node.Agree(ctx, cluster.AgreeRequest{Value: []byte(value), Algorithm: a})
					if err != nil {
						t.Fatal(a, err)
					}
					want := cluster.Decision{Source: parley.ID(source), Algorithm: a, M: a.Most(4), Slot: uint64(k + 1)}
					if d.Source != want.Source || d.Algorithm != a || d.M != want.M || d.Slot != want.Slot || string(d.Value) != value {
						t.Errorf("asked for %q: %+v", value, d)
					}
				}
			}
		}
		for id, l := range all {
			within(t, 5*time.Second, "all decide", func() bool { return len(l.values(parley.All)) == 4*2*3 })
			if a, b := l.values(parley.All), all[0].values(parley.All); fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("node %d decided %v, and the first one %v", id, a, b)
			}
		}
	})
}

// A request for evidence gets what all nodes received, and what they resolved from it.
func TestEvidence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = roomy })
		all := ledgers(nodes)
		for _, a := range []cluster.Algorithm{cluster.EIG, cluster.OM, cluster.SM, cluster.PhaseKing} {
			d, err := nodes[1].Agree(t.Context(), cluster.AgreeRequest{Value: []byte("attack"), Algorithm: a, M: 1, Evidence: true})
			must(t, err)
			if len(d.Evidence) != 4 {
				t.Fatalf("%v: %d accounts", a, len(d.Evidence))
			}
			text := map[cluster.Algorithm]string{
				cluster.EIG: "{attack,node2.node3}", cluster.OM: "{attack,node2.node3}",
				cluster.SM: "attack:node2", cluster.PhaseKing: "king: attack",
			}[a]
			account := d.Evidence[3]
			if account.Node != 3 || !slices.ContainsFunc(account.Received, func(h stream.ReceivedValue) bool { return h.Text == text }) {
				t.Errorf("%v: node 3 tells of %v, not of %s", a, account.Received, text)
			}
			if tree := a == cluster.EIG || a == cluster.OM; tree != (len(account.Tree) > 0) || tree && string(account.Tree[0].Out) != "attack" {
				t.Errorf("%v: %v", a, account.Tree)
			}
			within(t, 5*time.Second, "node 3 has its own account", func() bool {
				all[3].mu.Lock()
				defer all[3].mu.Unlock()
				own := all[3].list[fmt.Sprintf("%v m=1 source 1 slot 1", a)].Evidence
				return len(own) == 1 && own[0].Node == 3
			})
		}
	})
}

// With faulty nodes of every behavior, all correct nodes decide the same in every slot, and on the value of a
// correct source.
func TestTraitors(t *testing.T) {
	for _, size := range [][2]int{{4, 1}, {7, 2}} {
		n, m := size[0], size[1]
		for _, how := range []faulty.Behavior{faulty.TwoFaced, faulty.Silent, faulty.Flip, faulty.Random} {
			t.Run(fmt.Sprintf("%d/%s", n, how.Name), func(t *testing.T) {
				bubble(t, func(t *testing.T) { betrayed(t, n, m, cluster.EIG, how, 50) })
			})
		}
	}
	for _, a := range []cluster.Algorithm{cluster.OM, cluster.SM, cluster.PhaseKing} {
		t.Run(a.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) { betrayed(t, 4, 1, a, faulty.Random, 15) })
		})
	}
}

// With one faulty node more than the bound, a correct source's value is not decided.
func TestTooManyTraitors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			if c.Round = roomy; i >= 2 {
				c.FaultInjection = &cluster.FaultInjection{Traitor: faulty.Flip}
			}
		})
		all := ledgers(nodes)
		must(t, second(nodes[0].Agree(t.Context(), cluster.AgreeRequest{Value: []byte("1")})))
		within(t, 5*time.Second, "the other correct node decides", func() bool { return len(all[1].values(0)) == 1 })
		if got := all[1].values(0); got["eig m=1 source 0 slot 1"] != "0" {
			t.Errorf("node 2 decided %v in spite of two liars", got)
		}
	})
}

// betrayed makes the last m of n nodes faulty while all nodes request count agreements.
func betrayed(t *testing.T, n, m int, a cluster.Algorithm, how faulty.Behavior, count int) {
	nodes := joined(t, n, func(i int, c *cluster.Config) {
		if c.Round = roomy; i >= n-m {
			c.FaultInjection = &cluster.FaultInjection{Traitor: how}
		}
	})
	all := ledgers(nodes)
	var asked sync.WaitGroup
	for k := range count {
		asked.Go(func() {
			value := fmt.Sprint(k % 2)
			d, err := nodes[k%n].Agree(t.Context(), cluster.AgreeRequest{Value: []byte(value), Algorithm: a, M: m})
			if k%n < n-m && (err != nil || string(d.Value) != value) {
				t.Errorf("node %d asked for %s: %q, %v", k%n, value, d.Value, err)
			}
		})
	}
	asked.Wait()
	within(t, 10*time.Second, "correct nodes decide the same, on all that was asked for", func() bool {
		for i := range n - m {
			for source := range n - m {
				if len(all[i].values(parley.ID(source))) != (count-source+n-1)/n {
					return false
				}
			}
			if fmt.Sprint(all[i].values(parley.All)) != fmt.Sprint(all[0].values(parley.All)) {
				return false
			}
		}
		return true
	})
}

// An invalid request is refused with a reason, and begins nothing.
func TestRefusedQuestions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = roomy })
		for _, c := range []struct {
			q    cluster.AgreeRequest
			want string
			is   error
		}{
			{cluster.AgreeRequest{Value: make([]byte, 1025)}, "at most 1024", cluster.ErrTooLarge},
			{cluster.AgreeRequest{M: 2}, "at most 1 liars with eig", cluster.ErrRefused},
			{cluster.AgreeRequest{M: -1}, "at least 1", cluster.ErrRefused},
			{cluster.AgreeRequest{M: 3, Algorithm: cluster.SM}, "at most 2 liars with sm", cluster.ErrRefused},
			{cluster.AgreeRequest{Algorithm: 9}, "there is no algorithm 9", cluster.ErrRefused},
			{cluster.AgreeRequest{Value: []byte("\x00nothing\x00")}, cluster.ErrReserved.Error(), cluster.ErrReserved},
		} {
			_, err := nodes[0].Agree(t.Context(), c.q)
			if !errors.Is(err, c.is) || errors.Is(err, cluster.ErrUnknown) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, not %q", c.q, err, c.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := nodes[0].Agree(ctx, cluster.AgreeRequest{})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknown) {
			t.Error(err)
		}
		if err := nodes[3].Close(); err != nil {
			t.Error(err)
		}
		_, err = nodes[3].Agree(t.Context(), cluster.AgreeRequest{})
		if !errors.Is(err, cluster.ErrClosed) && !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknown) {
			t.Errorf("a closed node: %v", err)
		}
	})
}

// With rounds too short for the links, agreements are refused, with the measured delay and a sufficient round.
func TestRoundTooShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = 500 * time.Microsecond }) // messages take 100 us
		var err error
		within(t, 10*time.Second, "delays are measured", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // before that, an agreement may begin
			defer cancel()
			_, err = nodes[0].Agree(ctx, cluster.AgreeRequest{})
			return err != nil && strings.Contains(err.Error(), "set round to at least")
		})
		var short *cluster.RoundError
		if !errors.Is(err, cluster.ErrRefused) || !errors.As(err, &short) || len(short.Slow) < 2 || short.Needs != time.Millisecond {
			t.Errorf("%v: %+v", err, short)
		}
	})
}

// With more than m nodes down, no agreement begins.
func TestAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = roomy })
		for _, node := range nodes[2:] {
			if err := node.Close(); err != nil {
				t.Error(err)
			}
		}
		within(t, 5*time.Second, "they are missed", func() bool {
			ctx := soon(t, time.Second)
			_, err := nodes[0].Agree(ctx, cluster.AgreeRequest{})
			return err != nil && strings.Contains(err.Error(), "node3, node4 are not connected, and an agreement with m = 1")
		})
	})
}

// All nodes submit values under a name, one of them later and one not at all.
func TestConsensus(t *testing.T) {
	each(t, func(t *testing.T, a cluster.Algorithm) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = roomy })
		var asked sync.WaitGroup
		for i, node := range nodes[:3] {
			asked.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				p := cluster.VectorRequest{
					Name: "temperature", Value: fmt.Appendf(nil, "%d", 20+i), Algorithm: a, M: 1, Gather: 500 * time.Millisecond,
				}
				value, v, err := node.Consensus(t.Context(), p, consensus.Median, []byte("0"))
				if err != nil {
					t.Error(err)
					return
				}
				if got := fmt.Sprintf("%s %q", value, v.Values); got != `20 ["20" "21" "22" ""]` || v.Values[3] != nil {
					t.Errorf("node %d: %s", i, got)
				}
			})
		}
		asked.Wait()
		// A late call gets the decided vector.
		v, err := nodes[3].AgreeVector(t.Context(), cluster.VectorRequest{Name: "temperature", Value: []byte("99"), Algorithm: a, M: 1})
		if err != nil || string(v.Values[2]) != "22" || v.Values[3] != nil {
			t.Errorf("%+v, %v", v, err)
		}
	}, cluster.EIG, cluster.OM, cluster.SM, cluster.PhaseKing)
}

// Faulty nodes cannot use up a name: what they request and send early decides nothing, and later values of
// correct nodes are in the vector, whatever the faulty nodes do then.
func TestNameIsNotUsedUp(t *testing.T) {
	for _, how := range []faulty.Behavior{faulty.Honest, faulty.TwoFaced, faulty.Random, faulty.Silent} {
		t.Run(how.Name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := joined(t, 4, func(i int, c *cluster.Config) {
					if c.Round = roomy; i == 3 {
						c.FaultInjection = &cluster.FaultInjection{Traitor: how}
					}
				})
				early, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, err := nodes[3].AgreeVector(early, cluster.VectorRequest{Name: "x", Value: []byte("mine"), Gather: time.Millisecond})
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, cluster.ErrUnknown) {
					t.Errorf("a lone node agrees: %v", err)
				}
				vectors := make([]cluster.Vector, 3)
				var asked sync.WaitGroup
				for i, node := range nodes[:3] {
					asked.Go(func() {
						var err error
						vectors[i], err = node.AgreeVector(t.Context(), cluster.VectorRequest{
							Name: "x", Value: fmt.Append(nil, i), Gather: 300 * time.Millisecond,
						})
						if err != nil {
							t.Error(err)
						}
					})
				}
				asked.Wait()
				for i, v := range vectors {
					if fmt.Sprintf("%+v", v) != fmt.Sprintf("%+v", vectors[0]) {
						t.Errorf("node %d has %+v, and the first one %+v", i, v, vectors[0])
					}
					for j := range 3 {
						if len(v.Values) <= j || string(v.Values[j]) != fmt.Sprint(j) {
							t.Errorf("node %d has %q of node %d", i, v.Values, j)
						}
					}
				}
			})
		})
	}
}

// Invalid proposals are refused.
func TestRefusedProposals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = roomy })
		for _, c := range []struct {
			p    cluster.VectorRequest
			want string
			is   error
		}{
			{cluster.VectorRequest{}, "the name has 0 bytes", cluster.ErrRefused},
			{cluster.VectorRequest{Name: strings.Repeat("x", 65)}, "the name has 65 bytes", cluster.ErrRefused},
			{cluster.VectorRequest{Name: "x", Value: make([]byte, cluster.MaxProposal+1)}, "at most 956", cluster.ErrTooLarge},
			{cluster.VectorRequest{Name: "x", Gather: -1}, "gathering", cluster.ErrRefused},
			{cluster.VectorRequest{Name: "x", M: 2}, "at most 1 liars", cluster.ErrRefused},
			{cluster.VectorRequest{Name: "x", M: 2, Algorithm: cluster.SM}, "n > 2m", cluster.ErrRefused},
		} {
			_, _, err := nodes[0].Consensus(t.Context(), c.p, consensus.Rule{}, nil)
			if !errors.Is(err, c.is) || errors.Is(err, cluster.ErrUnknown) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, not %q", c.p, err, c.want)
			}
		}
	})
}

// The caller owns a vector: a later caller gets it unmodified.
func TestVectorIsTheCallers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes := joined(t, 4, func(_ int, c *cluster.Config) { c.Round = roomy })
		p := cluster.VectorRequest{Name: "x", Value: []byte("mine"), Gather: time.Millisecond}
		var other sync.WaitGroup
		other.Go(func() {
			if _, err := nodes[1].AgreeVector(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
		defer other.Wait()
		for range 2 {
			v, err := nodes[0].AgreeVector(t.Context(), p)
			if err != nil || len(v.Values) != 4 || string(v.Values[0]) != "mine" && v.Values[0] != nil {
				t.Fatalf("%q, %v", v.Values, err)
			}
			for _, value := range v.Values {
				copy(value, "????")
			}
		}
	})
}
