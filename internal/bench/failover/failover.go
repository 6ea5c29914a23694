// Package failover measures how the failure of one node delays the other nodes. All nodes broadcast at a steady
// rate, and one node is killed or paused. Then each other node reports the time during which it delivered nothing.
//
// Every node is a separate process, so a kill ends the whole node. [Run] makes the measurement, and [Serve] runs a
// node.
package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"parley"
	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/harness"
	"parley/internal/must"
)

// Spec specifies what to measure.
type Spec struct {
	N    int
	Stop bool // the node becomes unresponsive, like a computer without power; otherwise it is killed
	// Suspect is the silence after which a node is suspected, Every the interval between two messages of a node, and
	// Before and After how long nodes send before and after the failure.
	Suspect, Every, Before, After time.Duration
	Reps                          int // failures of each node
}

// Check returns an error if a spec is invalid.
func (s Spec) Check() error {
	switch {
	case s.N < 3 || s.N > 13:
		return parley.FlagErrorf("nodes", "%d nodes: allowed are 3 to 13", s.N)
	case s.Reps < 1 || s.Reps > 1000:
		return parley.FlagErrorf("reps", "%d times: allowed are 1 to 1000", s.Reps)
	case s.Suspect < 20*time.Millisecond || s.Suspect > time.Minute:
		return parley.FlagErrorf("suspect", "%v: allowed are 20ms to 1m", s.Suspect)
	case s.Every < 100*time.Microsecond || s.Every > time.Second:
		return parley.FlagErrorf("every", "%v: allowed are 100us to 1s", s.Every)
	case s.Before < 100*time.Millisecond || s.Before > time.Minute:
		return parley.FlagErrorf("before", "%v: allowed are 100ms to 1m", s.Before)
	case s.After < 100*time.Millisecond || s.After > time.Minute:
		return parley.FlagErrorf("after", "%v: allowed are 100ms to 1m", s.After)
	}
	return nil
}

// Result is the result of a measurement.
type Result struct {
	N        int       `json:"n"`
	How      string    `json:"how"`
	Suspect  string    `json:"suspect"`
	Failures []Failure `json:"failures"`
}

// Failure has the costs of the failures of one node. Durations are in milliseconds.
type Failure struct {
	Node string `json:"node"`
	// First is the time from the failure until the last of the other nodes delivers its first message that was sent
	// after the failure. Silent is the longest time without any delivery at one of them, from 100 ms before the
	// failure on. Both have one value for each repetition.
	First  []float64 `json:"first_ms"`
	Silent []float64 `json:"silent_ms"`
	Lost   int       `json:"lost"` // other nodes' messages that their own senders did not deliver
}

// Median returns the median of the values, or 0 if there are none.
func Median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// Worst returns the greatest value, or 0 if there are none.
func Worst(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	return slices.Max(of)
}

// Run measures. start starts the process of a node, which must call Serve. said, unless it is nil, is called after
// each failure.
func Run(ctx context.Context, s Spec, start func(ctx context.Context, id parley.ID) (*harness.Child, error),
	said func(node string, first time.Duration)) (Result, error) {
	r := Result{N: s.N, How: "kill", Suspect: s.Suspect.String()}
	if s.Stop {
		r.How = "stop"
	}
	for victim := range s.N {
		f := Failure{Node: name(victim)}
		for range s.Reps {
			told, err := s.once(ctx, victim, start)
			if err != nil {
				return r, fmt.Errorf("%s of %s: %w", r.How, f.Node, err)
			}
			var first, silent time.Duration
			for _, t := range told {
				first, silent = max(first, t.First), max(silent, t.Silent)
				f.Lost += t.Lost
			}
			f.First = append(f.First, float64(first)/1e6)
			f.Silent = append(f.Silent, float64(silent)/1e6)
			if said != nil {
				said(f.Node, first)
			}
		}
		r.Failures = append(r.Failures, f)
	}
	return r, nil
}

func name(i int) string { return fmt.Sprintf("n%d", i+1) }

// running is a child process with its input and output.
type running struct {
	*harness.Child
	to   *json.Encoder
	from *json.Decoder
}

// ask sends an order to a node and reads its answer.
func (r *running) ask(o order) (a answer, err error) {
	defer must.Return(&err)
	must.Do(r.to.Encode(o))
	if err := r.from.Decode(&a); err != nil {
		return a, fmt.Errorf("a node ended: %w", err)
	}
	if a.Failed != "" {
		return a, errors.New(a.Failed)
	}
	return a, nil
}

// once starts a cluster and makes one node of it fail.
func (s Spec) once(ctx context.Context, victim int, start func(context.Context, parley.ID) (*harness.Child, error),
) (told []answer, err error) {
	defer must.Return(&err)
	dir := must.Get(os.MkdirTemp("", "parley-failover-"))
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	whole := cert.Whole{Cluster: "bench", Hosts: []string{"127.0.0.1"}, Valid: time.Hour}
	for i := range s.N {
		whole.Nodes = append(whole.Nodes, name(i))
	}
	signers := must.Get(whole.Create(dir))
	ctx, end := context.WithCancel(ctx)
	var nodes []*running
	defer func() {
		end()
		for _, n := range nodes {
			_ = n.In.Close()
			_ = n.Kill()
			_ = n.Wait()
		}
	}()
	var members []cluster.Member
	for i := range s.N {
		c := must.Get(start(ctx, parley.ID(i)))
		n := &running{c, json.NewEncoder(c.In), json.NewDecoder(c.Out)}
		nodes = append(nodes, n)
		a := must.Get(n.ask(order{Dir: dir, Name: name(i), Suspect: s.Suspect, Every: s.Every}))
		members = append(members, cluster.Member{Name: name(i), Address: a.Listens, Signer: signers[i]})
	}
	all(nodes, order{Members: members})
	must.Do(pause(ctx, s.Before))
	fail := nodes[victim].Kill
	if s.Stop {
		fail = nodes[victim].Stop
	}
	at := time.Now()
	must.Do(fail())
	must.Do(pause(ctx, s.After))
	return all(slices.Concat(nodes[:victim], nodes[victim+1:]), order{Failed: at}), nil
}

// all sends an order to nodes concurrently. It fails by must.
func all(nodes []*running, o order) []answer {
	answers := make([]answer, len(nodes))
	must.Each(len(nodes), func(i int) (err error) {
		answers[i], err = nodes[i].ask(o)
		return err
	})
	return answers
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
