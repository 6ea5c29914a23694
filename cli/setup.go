package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/show"
	"parley/faulty"
	"parley/internal/bench"
	"parley/internal/draw"
	"parley/run"
	"parley/sim"
	"parley/trace"
)

// setup is a run that can be made.
type setup struct {
	show.Run
	open run.Plan // as it was given
	host hostFlags
}

// naming reads process names for the n that the flags say.
func (f *runFlags) naming(text string) (parley.ID, error) {
	n := parley.MaxProcesses
	if given := f.fs.Lookup("n"); given != nil {
		if _, err := fmt.Sscan(given.Value.String(), &n); err != nil {
			return 0, err
		}
	}
	return f.names.Parse(text, n)
}

// setup checks the flags and makes a run of them.
func (f *runFlags) setup() (setup, error) {
	s := setup{Run: show.Run{Spec: run.Spec{Seed: f.seed, Name: f.names.Full}, Names: f.names}}
	if err := f.view.Check(); err != nil {
		return s, err
	}
	p, err := f.build(f.naming)
	if err != nil {
		return s, err
	}
	p = run.Lying(p)
	s.Protocol = p
	if p.Bound != nil && !f.beyond {
		if err := p.Bound(p.N, p.M); err != nil {
			return s, parley.FlagErrorf("m", "%w; --beyond-bound runs it all the same", err)
		}
	}
	if need := memory(p); need > f.memory<<30 {
		return s, parley.FlagErrorf("n", "%d processes with m = %d need about %s of memory, "+
			"more than --memory %d GiB; %s", p.N, p.M, gigabytes(need), f.memory, smaller(p.N, p.M))
	}
	if s.Faulty, err = parseFaulty(f.faulty, f.names, p); err != nil {
		return s, &parley.FlagError{Flag: "faulty", Err: err}
	}
	if s.Values, err = parseValues(f.values, p.Proposers); err != nil {
		return s, &parley.FlagError{Flag: "values", Err: err}
	}
	switch f.signatures {
	case "ideal":
	case "ed25519":
		s.Sign = func(seed uint64) sim.Signer { return sim.Ed25519(seed, p.N) }
	default:
		return s, parley.FlagErrorf("signatures", "%q: allowed are ideal and ed25519", f.signatures)
	}
	if err := f.host.check(p); err != nil {
		return s, err
	}
	if s.Plan, err = f.plan.plan(p, f.naming, f.host.lasts(p)); err != nil {
		return s, err
	}
	if err := f.host.suit(&s, &f.plan); err != nil {
		return s, err
	}
	if err := s.spare(f); err != nil {
		return s, err
	}
	s.open, s.Spec = s.Plan, s.Draw()
	s.Args = f.args()
	return s, nil
}

// spare keeps crashes away from those who are faulty already.
func (s *setup) spare(f *runFlags) error {
	for i, c := range s.Plan.Crashes {
		if _, bad := s.Faulty[c.At]; bad {
			return f.plan.entry("crashes", i, fmt.Errorf("%s is faulty already", s.Names.Full(c.At)))
		}
	}
	// order: a set has none
	for id := range s.Faulty {
		s.Plan.Random.Spared.Add(id)
	}
	draw, n := s.Plan.Random, s.Protocol.N
	left := parley.Everyone(n).Minus(draw.Spared).Len()
	if crashes := draw.Crashes + draw.Restarts + draw.LostDisks; crashes > left {
		return parley.FlagErrorf("random", "%d are to crash, with restarts and lost disks, each once: "+
			"allowed are %d, as many as are neither spared nor faulty", crashes, left)
	}
	return nil
}

// memory is about what a run holds: what the protocol says, and the log with an
// event for each frame that is sent and each that arrives.
func memory(p parley.Protocol) uint64 {
	const event = 128
	var need parley.Traffic
	if p.Cost != nil {
		frames := uint64(p.Cost(p.N, p.M).Rounds * p.N * p.N)
		need = parley.Traffic{Messages: 2 * event}.Times(frames)
	}
	if p.Memory != nil {
		need = need.Plus(parley.Traffic{Messages: p.Memory()})
	}
	return need.Messages
}

// smaller says what fits where a machine a process does not.
func smaller(n, m int) string {
	fits := bench.Spec{Protocol: "eig", Engine: "depthfirst", N: n, M: m, Workers: 1, Signatures: "ideal"}
	if fits.Check() == nil {
		return fmt.Sprintf("\"parley bench eig -n %d -m %d --engine depthfirst\" runs the whole system in 32 MiB", n, m)
	}
	return "phaseking agrees with few messages, and \"parley bench phaseking\" keeps no log"
}

func gigabytes(b uint64) string {
	if b == math.MaxUint64 {
		return "countless GiB"
	}
	return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
}

// args returns the protocol and the flags that were set, without those of the
// output: what makes the same run again.
func (f *runFlags) args() []string {
	args := []string{f.name}
	f.fs.Visit(func(g *pflag.Flag) {
		if !slices.Contains(f.viewOnly, g.Name) {
			args = append(args, "--"+g.Name+"="+g.Value.String())
		}
	})
	return args
}

// parseFaulty reads 1=twofaced,5=flip.
func parseFaulty(text string, k console.Names, p parley.Protocol) (map[parley.ID]faulty.Behaviour, error) {
	out := make(map[parley.ID]faulty.Behaviour)
	if text == "" {
		return out, nil
	}
	for _, part := range strings.Split(text, ",") {
		who, how, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%q: PROCESS=BEHAVIOUR was expected, as in 1=twofaced", part)
		}
		id, err := k.Parse(who, p.N)
		if err != nil {
			return nil, err
		}
		if _, twice := out[id]; twice {
			return nil, fmt.Errorf("%s is named twice", k.Full(id))
		}
		if out[id], err = behaviourOf(how, p); err != nil {
			return nil, err
		}
	}
	if len(out) == p.N {
		return nil, errors.New("all processes are faulty: nothing is asked of any")
	}
	return out, nil
}

// behaviourOf reads a behavior that means something in p.
func behaviourOf(text string, p parley.Protocol) (faulty.Behaviour, error) {
	b, err := faulty.Parse(text)
	if err == nil {
		err = b.Suits(p)
	}
	return b, err
}

// parseValues gives every proposer its initial value.
func parseValues(text string, proposers parley.Set) (map[parley.ID][]byte, error) {
	const longest = 1024
	parts := strings.Split(text, ",")
	if len(parts) != 1 && len(parts) != proposers.Len() {
		return nil, fmt.Errorf("%s: allowed are 1, or %d for the processes that propose",
			draw.Count(uint64(len(parts)), "value", "values"), proposers.Len())
	}
	out := make(map[parley.ID][]byte)
	i := 0
	for id := range proposers.All() {
		v := parts[min(i, len(parts)-1)]
		if len(v) > longest {
			return nil, fmt.Errorf("a value of %d bytes: allowed are %d", len(v), longest)
		}
		out[id] = []byte(v)
		i++
	}
	return out, nil
}

// run makes the run, on its host. tree makes the tree of one process; nil: as the log has it.
func (s setup) run() (log *trace.Log, facts trace.Facts, tree func(parley.ID) parley.Tree, err error) {
	if s.Host != "" {
		log, facts, err = s.processes(context.Background())
		return log, facts, nil, err
	}
	done, err := s.Simulate()
	if err != nil {
		return nil, facts, nil, err
	}
	return done.Log, done.Facts, done.Tree, nil
}
