// Package bench times whole systems in which m processes lie actively, and checks their decisions. In eig the liars
// send a different value to every receiver. In om and phaseking they send random messages. In sm they reveal one
// new value in each round (the behavior staircase).
package bench

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/eig/sliced"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// Spec specifies what to time.
type Spec struct {
	Protocol   string // eig, om, sm, phaseking
	Engine     string // machine; for eig also levels and depthfirst
	N, M       int
	Seed       uint64
	Workers    int
	Signatures string // ideal, ed25519
}

// Result is one timed run.
type Result struct {
	Protocol string `json:"protocol"`
	Engine   string `json:"engine"`
	N        int    `json:"n"`
	M        int    `json:"m"`
	Seed     uint64 `json:"seed"`

	WallSeconds          float64 `json:"wall_seconds"`
	PeakRSS              uint64  `json:"peak_rss_bytes"`
	Nodes                uint64  `json:"nodes"`
	NodesPerSecond       float64 `json:"nodes_per_second"`
	EquivalentDeliveries uint64  `json:"equivalent_deliveries"`
	Agreement            bool    `json:"agreement"` // includes validity: a correct source's or a common value
	Decision             string  `json:"decision"`
}

// Engines are the engines of each protocol.
var Engines = map[string][]string{
	"eig":       {"machine", "levels", "depthfirst"},
	"om":        {"machine"},
	"sm":        {"machine"},
	"phaseking": {"machine"},
}

// value is the initial value of the correct source, or of every correct process.
var value = []byte("1")

// Check returns an error if a spec is invalid.
func (s Spec) Check() error {
	engines, known := Engines[s.Protocol]
	if !known {
		return fmt.Errorf("unknown protocol %q: allowed are eig, om, sm, and phaseking", s.Protocol)
	}
	if !slices.Contains(engines, s.Engine) {
		return parley.FlagErrorf("engine", "unknown engine %q: allowed with %s are %s",
			s.Engine, s.Protocol, strings.Join(engines, ", "))
	}
	if s.Signatures != "ideal" && s.Signatures != "ed25519" {
		return parley.FlagErrorf("signatures", "unknown kind %q: allowed are ideal and ed25519", s.Signatures)
	}
	if s.Workers < 1 || s.Workers > 256 {
		return parley.FlagErrorf("workers", "%d threads: allowed are 1 to 256", s.Workers)
	}
	in := s.instance()
	if err := in.Check(); err != nil {
		return err
	}
	bound := problem.OralBound
	if s.Protocol == "sm" {
		bound = problem.SignedBound
	}
	if err := bound(s.N, s.M); err != nil {
		return &parley.FlagError{Flag: "m", Err: err}
	}
	if s.Engine == "levels" || s.Engine == "depthfirst" {
		if err := s.system().Validate(); err != nil {
			flag := "n"
			if s.M > 8 {
				flag = "m"
			}
			return &parley.FlagError{Flag: flag, Err: err}
		}
	}
	return nil
}

// Memory returns the approximate peak memory of the run, in bytes.
func (s Spec) Memory() uint64 {
	switch s.Engine {
	case "levels":
		return s.system().Memory()
	case "machine":
		if p := s.protocol(); p.Memory != nil {
			return p.Memory()
		}
	}
	return 0
}

func (s Spec) instance() problem.Instance {
	return problem.Instance{N: s.N, M: s.M, Default: []byte("0")}
}

// liars returns m evenly spread lieutenants.
func (s Spec) liars() []parley.ID {
	var out []parley.ID
	for i := range s.M {
		out = append(out, parley.ID(1+i*(s.N-1)/s.M))
	}
	return out
}

// Run times one run. The spec must have passed Check.
func (s Spec) Run() Result {
	r := Result{Protocol: s.Protocol, Engine: s.Engine, N: s.N, M: s.M, Seed: s.Seed}
	if size, ok := sliced.Count(s.N, s.M); ok && s.Protocol == "eig" {
		r.Nodes, r.EquivalentDeliveries = size.Nodes*uint64(s.N-1), size.Deliveries
	}
	if s.Protocol == "om" {
		r.Nodes = om.Cost(s.N, s.M).Total().Messages // each message is a node of its receiver's tree
	}
	start := time.Now()
	switch s.Engine {
	case "levels":
		s.whole(&r, func(sys sliced.System, l sliced.Liar) uint64 { return sys.Levels(l).Decisions() })
	case "depthfirst":
		s.whole(&r, func(sys sliced.System, l sliced.Liar) uint64 { return sys.DepthFirst(l, s.Workers) })
	default:
		s.machines(&r)
	}
	r.WallSeconds = time.Since(start).Seconds()
	r.NodesPerSecond = float64(r.Nodes) / r.WallSeconds
	r.PeakRSS = peakRSS()
	return r
}

func (s Spec) system() sliced.System {
	sys := sliced.System{N: s.N, M: s.M, Value: 1}
	for _, id := range s.liars() {
		sys.Faulty |= 1 << (id - 1)
	}
	return sys
}

// whole runs an engine that simulates the whole system at once.
func (s Spec) whole(r *Result, run func(sliced.System, sliced.Liar) uint64) {
	sys := s.system()
	correct := sys.Correct()
	ones := run(sys, sliced.TwoFaced(s.Seed)) & correct
	r.Agreement = ones == correct // the source is correct and sends 1
	r.Decision = "0"
	if ones != 0 {
		r.Decision = "1"
	}
}

// protocol returns the protocol with its adversary.
func (s Spec) protocol() parley.Protocol {
	in := s.instance()
	switch s.Protocol {
	case "eig":
		p := eig.Rounds(in)
		p.Lies = TwoFaced(in, s.Seed)
		return lockstep.Of(p, lockstep.Simulated)
	case "om":
		return om.New(in, lockstep.Simulated)
	case "sm":
		c := sm.Config{Instance: in, Relay: sm.RelayTwo}
		p := sm.Rounds(c)
		p.Lies = sm.Staircase(c)
		return lockstep.Of(p, lockstep.Simulated)
	}
	return phaseking.New(phaseking.Config{Instance: in}, lockstep.Simulated)
}

// machines runs one machine for each process in the simulator.
func (s Spec) machines(r *Result) {
	p := s.protocol()
	how := map[string]faulty.Behavior{
		"eig": faulty.Script, "om": faulty.Random, "sm": faulty.Script, "phaseking": faulty.Random,
	}[s.Protocol]
	opt := sim.Options{
		Protocol: p, Seed: s.Seed, Delay: sim.Delay{Least: 1, Most: 1}, Faulty: make(map[parley.ID]faulty.Behavior),
	}
	if s.Signatures == "ed25519" {
		opt.Signer = sim.Ed25519(s.Seed, s.N)
	}
	for _, id := range s.liars() {
		opt.Faulty[id] = how
	}
	if s.Protocol == "sm" && s.M > 0 {
		// The staircase needs the source.
		delete(opt.Faulty, s.liars()[s.M-1])
		opt.Faulty[0] = how
	}
	for id := range p.Proposers.All() {
		opt.Requests = append(opt.Requests, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: value}})
	}
	run := sim.Run(opt)
	r.EquivalentDeliveries = run.Stats.Deliveries
	if s.Protocol == "eig" || s.Protocol == "om" {
		// The messages of the paper, including those that a liar did not send.
		r.EquivalentDeliveries = p.Cost(s.N, s.M).Total().Messages
	}
	r.Agreement = true
	var first []byte
	for id, v := range problem.Decisions(&run.History) {
		if s.Protocol != "phaseking" && id == 0 {
			continue // the source knows its value
		}
		if first == nil {
			first = v
		}
		r.Agreement = r.Agreement && bytes.Equal(v, first)
	}
	r.Decision = string(first)
	if s.Protocol != "sm" {
		r.Agreement = r.Agreement && bytes.Equal(first, value)
	}
}

// TwoFaced is the liar of the sliced engines for machines: every message has a separate bit for every receiver.
func TwoFaced(in problem.Instance, seed uint64) func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	liar := sliced.TwoFaced(seed)
	words := [][]byte{[]byte("0"), []byte("1")}
	type turn struct {
		self  parley.ID
		round int
	}
	told := make(map[turn][]uint64) // for each path, one bit for each receiver
	sys := sliced.System{N: in.N, M: in.M, Source: int(in.Source)}
	return func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		to := sys.Lieutenant(int(t.To))
		if t.Round == 0 || to < 0 {
			return t.Honest
		}
		now := turn{t.Self, t.Round}
		bits, known := told[now]
		if !known {
			for path := range eig.Relayed(in, t.Self, t.Round) {
				var p sliced.Path
				for _, id := range path[1:] {
					p = p.Append(sys.Lieutenant(int(id)))
				}
				bits = append(bits, liar(p, 0))
			}
			clear(told)
			told[now] = bits
		}
		codes := make([]byte, len(bits))
		for i, b := range bits {
			codes[i] = byte(b >> to & 1)
		}
		return []parley.Outgoing{{Msg: eig.Coded(t.Round, words, codes)}}
	}
}
