package expel

import (
	"flag"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"parley"
)

// Config must be identical on all processes.
type Config struct {
	// N is the number of processes. M is how many of them may be faulty.
	N, M int
}

// Check returns an error that names the first fault of c, or nil. It does not check whether n processes can
// tolerate m faults: see Bound.
func (c Config) Check() error {
	if err := parley.CheckN(c.N, 1); err != nil || c.M >= 0 && c.M < c.N {
		return err
	}
	return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
}

// New returns the protocol. It panics if c does not pass Check.
func New(c Config) parley.Protocol {
	if err := c.Check(); err != nil {
		panic("expel: " + err.Error())
	}
	return parley.Protocol{
		Name: "expel", Title: "expulsion of a process by the votes of m+1 others",
		Paper:  "lecture, masking of faulty processes; the protocol is Parley's own",
		Faults: parley.OralByzantineFaults, Kinds: []string{"", "VOTE", "TOLD"}, N: c.N, M: c.M,
		Proposers:  parley.Everyone(c.N),
		New:        func(self parley.ID) parley.Machine { return newProcess(c, self) },
		Properties: properties(c.M),
		Promises:   promises,
		Bound:      Bound,
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain:    explain,
		Lies:       lies,
		Flags: parley.Flags(c, func(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
			fs.IntVar(&c.N, "n", c.N, "number of `processes`")
			fs.IntVar(&c.M, "m", -1, "`faults` to tolerate (default: as many as the theorem allows)")
			return func(c *Config, _ parley.Naming) error {
				if c.M < 0 {
					c.M = max(0, (c.N-1)/2)
				}
				return c.Check()
			}
		}, New),
	}
}

func newProcess(c Config, self parley.ID) *process {
	return &process{m: c.M, self: self, peers: make([]peer, c.N)}
}

// Bound returns nil if there are m+1 correct processes that an administrator can ask, that is, if n > 2m.
func Bound(n, m int) error {
	if n > 2*m {
		return nil
	}
	return fmt.Errorf("m+1 correct processes must be there to be asked: n > 2m is necessary, and %d processes "+
		"tolerate at most m = %d, not %d", n, (n-1)/2, m)
}

// named decodes the number of a process, from 1. It returns parley.All for 0 and for the process itself,
// which both mean no process.
func (p *process) named(body []byte) (id parley.ID, ok bool) {
	number, err := strconv.ParseUint(string(body), 10, 16)
	switch {
	case err != nil || number > uint64(len(p.peers)):
		return 0, false
	case number == 0 || parley.ID(number-1) == p.self:
		return parley.All, true
	}
	return parley.ID(number - 1), true
}

func explain(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		switch m.Kind {
		case Vote:
			yield("expel " + name(m.Origin))
		case Told:
			if yield("you are expelled"); m.Seq == 1 {
				return
			}
		}
	}
}

// lies: in place of a message, a liar asks for the expulsion of any process, claims to the receiver that it
// is expelled, or stays silent.
func lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	out := t.Out[:0]
	for _, honest := range t.Honest {
		k := s.Choose(s.N + 3)
		switch said := honest; {
		case k == 0:
			out = append(out, honest)
		case k <= s.N:
			said.Msg = parley.Msg{Kind: Vote, Origin: parley.ID(k - 1)}
			out = append(out, said)
		case k == s.N+1:
			said.Msg = parley.Msg{Kind: Told, Seq: 1}
			out = append(out, said)
		}
	}
	return out
}

// The names of the properties.
const (
	Accuracy     = "accuracy"
	Completeness = "completeness"
	Notice       = "notice"
)

func properties(m int) []parley.Property {
	return []parley.Property{{
		Name: Accuracy, Mode: parley.Always,
		Says: "a correct process fully expels another process, or considers itself fully expelled, only if " +
			"a correct process was asked to expel this process",
		Check: func(h *parley.History) error {
			for _, i := range h.Indications {
				of := i.Msg.Origin
				if i.Msg.Kind == Expelled {
					of = i.At
				} else if i.Msg.Kind != Shut {
					continue
				}
				if i.Msg.Seq == All && h.Correct(i.At) && askers(h, of, i.Order) == (parley.Set{}) {
					return fmt.Errorf("%s treats %s as expelled, but no correct process was asked to expel it", h.Name(i.At),
						h.Name(of))
				}
			}
			return nil
		},
	}, {
		Name: Completeness, Mode: parley.Eventually,
		Says: "if m+1 correct processes that are not expelled are asked to expel a process, every " +
			"correct process expels this process",
		Check: demanded(m, func(h *parley.History, at, of parley.ID) error {
			if at == of || indicated(h, at, Shut, of) {
				return nil
			}
			return fmt.Errorf("%s does not expel %s", h.Name(at), h.Name(of))
		}),
		Vacuous: func(h *parley.History) string { return calm(h, m) },
	}, {
		Name: Notice, Mode: parley.Eventually,
		Says: "a correct process learns that it is expelled",
		Check: demanded(m, func(h *parley.History, at, of parley.ID) error {
			if at != of || indicated(h, at, Expelled, 0) {
				return nil
			}
			return fmt.Errorf("%s does not learn that it is expelled", h.Name(of))
		}),
		Vacuous: func(h *parley.History) string { return calm(h, m) },
	}}
}

// askers returns the correct processes that were asked, before a time, to expel a process.
func askers(h *parley.History, of parley.ID, before uint64) parley.Set {
	var all parley.Set
	for _, q := range h.Requests {
		if q.Msg.Kind != parley.Propose || q.Order >= before || !h.Correct(q.At) {
			continue
		}
		p := process{self: q.At, peers: make([]peer, h.N)}
		if id, ok := p.named(q.Msg.Body); ok && id == of {
			all.Add(q.At)
		}
	}
	return all
}

// demanded calls each, at the end of a run, for each correct process and each process that it must take for
// expelled.
func demanded(m int, each func(h *parley.History, at, of parley.ID) error) func(h *parley.History) error {
	return func(h *parley.History) error {
		for of := range parley.ID(h.N) {
			if !h.Over || !expellable(h, m, of) {
				continue
			}
			for at := range parley.Everyone(h.N).Minus(h.Faulty).All() {
				if err := each(h, at, of); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// expellable reports whether more than m correct processes, which none was asked to expel, were asked to
// expel one.
func expellable(h *parley.History, m int, of parley.ID) bool {
	all := askers(h, of, ^uint64(0))
	for id := range all.All() {
		if askers(h, id, ^uint64(0)) != (parley.Set{}) {
			all.Remove(id)
		}
	}
	return all.Len() > m
}

func indicated(h *parley.History, at parley.ID, kind parley.Kind, of parley.ID) bool {
	return slices.ContainsFunc(h.Indications, func(i parley.ExternalEvent) bool {
		return i.At == at && i.Msg.Kind == kind && i.Msg.Origin == of && i.Msg.Seq == All
	})
}

func calm(h *parley.History, m int) string {
	for of := range parley.ID(h.N) {
		if expellable(h, m, of) {
			return ""
		}
	}
	return "too few correct processes are asked to expel the same process"
}

func promises(a parley.RunConditions) []parley.Promise {
	safe := ""
	if a.Faulty > a.M {
		safe = a.Excess()
	}
	live := safe
	switch err := Bound(a.N, a.M); {
	case safe != "":
	case err != nil:
		live = err.Error()
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		live = "links lost messages, which are sent again only over a new link"
	case a.Processes.Restarted || a.Processes.LostDisk:
		live = "a process loses its requests in a crash, and after a restart it is no longer expelled"
	}
	return []parley.Promise{
		parley.Promised(Accuracy, "at least one of m+1 processes that ask or report is correct", safe),
		parley.Promised(Completeness, "every correct process receives m+1 requests to expel", live),
		parley.Promised(Notice, "m+1 correct processes were asked to expel it, so all correct processes "+
			"report the expulsion to it", live),
	}
}
