package form

import (
	"errors"
	"fmt"
	"strings"

	"parley"
	"parley/faulty"
	"parley/internal/naming"
	"parley/run"
	"parley/sim"
)

// Setup is a complete run with what was filled in.
type Setup struct {
	Run
	Open run.Plan // the plan before anything was drawn
	At   Host
}

// Setup checks the flags and makes a run from them.
func (f *Flags) Setup() (Setup, error) {
	s := Setup{Run: Run{Spec: run.Spec{Seed: f.seed, Name: f.Names.Full}, Names: f.Names}}
	p, err := f.Protocol()
	if err != nil {
		return s, err
	}
	if p, err = f.foreign(p, &s.Run); err != nil {
		return s, err
	}
	p = run.Lying(p)
	s.Protocol = p
	if p.Bound != nil && !f.beyond {
		if err := p.Bound(p.N, p.M); err != nil {
			return s, parley.FlagErrorf("m", "%w; --beyond-bound runs it nevertheless", err)
		}
	}
	if err := Fits(memory(p), f.memory, p.N, p.M, "of memory"); err != nil {
		return s, err
	}
	if s.Faulty, err = ParseFaulty(f.faulty, f.Names, p, nil); err != nil {
		return s, &parley.FlagError{Flag: "faulty", Err: err}
	}
	if s.Values, err = ParseValues(f.values, p.Proposers, f.Names); err != nil {
		return s, &parley.FlagError{Flag: "values", Err: err}
	}
	switch f.signatures {
	case "ideal":
	case "ed25519":
		s.Sign = func(seed uint64) sim.Signer { return sim.Ed25519(seed, p.N) }
	default:
		return s, parley.FlagErrorf("signatures", "unknown kind %q: allowed are ideal and ed25519", f.signatures)
	}
	if err := f.host.check(p); err != nil {
		return s, err
	}
	if s.Plan, err = f.Plan.Plan(p, f.Naming, f.host.Tick(p)); err != nil {
		return s, err
	}
	f.host.suit(&s)
	if err := s.spare(f); err != nil {
		return s, err
	}
	s.Open, s.Spec = s.Plan, s.Draw()
	s.Args = f.args()
	return s, nil
}

// spare keeps planned and drawn crashes away from processes that are faulty already.
func (s *Setup) spare(f *Flags) error {
	for i, c := range s.Plan.Crashes {
		if _, bad := s.Faulty[c.At]; bad {
			return f.Plan.Entry("crashes", i, fmt.Errorf("%s is faulty already: choose another process", s.Names.Full(c.At)))
		}
	}
	for id := range s.Liars().All() {
		s.Plan.Random.Spared.Add(id)
	}
	draw, n := s.Plan.Random, s.Protocol.N
	left := parley.Everyone(n).Minus(draw.Spared).Len()
	if crashes := draw.Crashes + draw.Restarts + draw.LostDisks; crashes > left {
		return parley.FlagErrorf("random", "%d processes crash, with restarts and lost disks: "+
			"allowed are %d, the number of processes that are neither spared nor faulty", crashes, left)
	}
	return nil
}

// noFaulty is the value of --faulty for no faulty process. It is the default of a run, but not of an exploration.
const noFaulty = "none"

// ParseFaulty reads the faulty processes and their behaviors, as in 1=twofaced,5=flip, or none. free is the behavior of
// a process that is named alone; if it is nil, each process needs a behavior.
func ParseFaulty(text string, k naming.Names, p parley.Protocol, free *faulty.Behavior,
) (map[parley.ID]faulty.Behavior, error) {
	out := make(map[parley.ID]faulty.Behavior)
	if text == "" || text == noFaulty {
		return out, nil
	}
	for _, part := range strings.Split(text, ",") {
		who, how, given := strings.Cut(part, "=")
		if !given && free == nil {
			return nil, fmt.Errorf("%q is not PROCESS=BEHAVIOR: write 1=twofaced", part)
		}
		id, err := k.Parse(who, p.N)
		if err != nil {
			return nil, err
		}
		if _, twice := out[id]; twice {
			return nil, fmt.Errorf("%s is named twice: give it one behavior", k.Full(id))
		}
		if free != nil && (!given || how == faulty.Any.Name) {
			out[id] = *free
			continue
		}
		if out[id], err = faulty.Parse(how); err != nil && free != nil {
			err = fmt.Errorf("%w; %s is allowed too", err, faulty.Any.Name)
		}
		if err == nil {
			err = out[id].Suits(p)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out) == p.N {
		return nil, errors.New("all processes are faulty, and nothing is promised of any: leave at least one correct")
	}
	return out, nil
}

// ParseValues assigns every proposer its initial value: one for all, or one for each of them.
func ParseValues(text string, proposers parley.Set, k naming.Names) (map[parley.ID][]byte, error) {
	const longest = 1024
	parts := strings.Split(text, ",")
	switch n := proposers.Len(); {
	case len(parts) == 1 || len(parts) == n:
	case n == 0:
		return nil, fmt.Errorf("got %d values, but no process proposes one: omit the flag", len(parts))
	case n == 1:
		return nil, fmt.Errorf("got %d values, but only %s proposes: give one", len(parts), k.List(proposers)[0])
	default:
		return nil, fmt.Errorf("got %d values, but %d processes propose: give one for all, or %d", len(parts), n, n)
	}
	out := make(map[parley.ID][]byte)
	i := 0
	for id := range proposers.All() {
		v := parts[min(i, len(parts)-1)]
		if len(v) > longest {
			return nil, fmt.Errorf("a value of %d bytes: allowed are at most %d", len(v), longest)
		}
		out[id] = []byte(v)
		i++
	}
	return out, nil
}
