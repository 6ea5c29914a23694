package parleytest

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"

	"parley"
	"parley/faulty"
	"parley/trace"
)

// beyond looks for a run that breaks a property promised within the bound. If nothing breaks beyond a
// bound, the bound is either not understood or not reached.
func beyond(s suite) error {
	systems := s.o.Beyond
	if len(systems) == 0 {
		if s.o.NothingBeyond != "" {
			return skip(s.o.NothingBeyond)
		}
		if s.p.Bound == nil || s.p.Flags == nil {
			return skip("no Bound, or no Flags to remake the protocol by")
		}
		p, err := refused(s)
		if err != nil {
			return fmt.Errorf("%w: give Options.Beyond, or say why NothingBeyond", err)
		}
		systems = []Beyond{{Protocol: p, Faulty: p.M}}
	}
	within := make(map[string]bool)
	for _, promise := range promised(s.p, parley.RunConditions{N: s.p.N, M: s.p.M, Faulty: s.p.M}) {
		within[promise.Property] = promise.Holds
	}
	for _, b := range systems {
		if err := breaks(s, b, within); err != nil {
			return err
		}
	}
	return nil
}

func promised(p parley.Protocol, a parley.RunConditions) []parley.Promise {
	if p.Promises != nil {
		return p.Promises(a)
	}
	var all []parley.Promise
	for _, property := range p.Properties {
		all = append(all, parley.Promise{Property: property.Name, Holds: true})
	}
	return all
}

// breaks runs a system beyond its bound until something breaks.
func breaks(s suite, b Beyond, within map[string]bool) error {
	budget := 10 * s.o.Seeds
	if b.Sim != nil {
		other := s.o
		other.Sim = *b.Sim
		logf := s.logf
		s = newSuite(s.p, []Options{other})
		s.logf = logf
	}
	for seed := range uint64(budget) {
		r := s.draw(b.Protocol, seed, b.Faulty)
		got := r.simulate()
		for _, v := range judge(b.Protocol, got) {
			if v.Property.Mode == parley.Sometimes || v.Broken == nil || !within[v.Property.Name] ||
				b.Breaks != "" && b.Breaks != v.Property.Name {
				continue
			}
			if b.Protocol.Promises != nil && v.Promise.Holds {
				return fmt.Errorf("%s: n=%d m=%d: %s is promised even so, and does not hold: %w",
					r, b.Protocol.N, b.Protocol.M, v.Property.Name, v.Broken)
			}
			s.logf("n=%d m=%d, %s: %s breaks: %v", b.Protocol.N, b.Protocol.M, r, v.Property.Name, v.Broken)
			return nil
		}
	}
	what := "nothing"
	if b.Breaks != "" {
		what = b.Breaks + " never"
	}
	return fmt.Errorf("n=%d m=%d with %d faulty: %s broke in %d runs", b.Protocol.N, b.Protocol.M, b.Faulty, what,
		budget)
}

// refused makes the protocol again, by its flags, with the largest number of processes that its bound
// refuses for m faults.
func refused(s suite) (parley.Protocol, error) {
	m := max(1, s.p.M)
	n := s.p.N
	for n > 0 && s.p.Bound(n, m) == nil {
		n--
	}
	for n < parley.MaxProcesses && s.p.Bound(n+1, m) != nil {
		n++
	}
	fs := flag.NewFlagSet(s.p.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	remake := s.p.Flags(fs)
	if fs.Lookup("n") == nil || fs.Lookup("m") == nil {
		return parley.Protocol{}, fmt.Errorf("no flags -n and -m")
	}
	if err := fs.Parse([]string{"-n", strconv.Itoa(n), "-m", strconv.Itoa(m)}); err != nil {
		return parley.Protocol{}, err
	}
	p, err := remake(func(text string) (parley.ID, error) {
		id, err := strconv.ParseUint(text, 10, 8)
		return parley.ID(id), err
	})
	if err == nil && (p.N != n || p.M != m) {
		err = fmt.Errorf("-n %d -m %d made a protocol with n=%d m=%d", n, m, p.N, p.M)
	}
	return p, err
}

// lies answers 0 to every choice of the protocol's Lies: the run must then equal the honest one, message
// for message.
func lies(s suite) error {
	if s.p.Lies == nil {
		return skip("no Lies")
	}
	zero := faulty.Behavior{
		Name:   "zero",
		Choose: func(*parley.Step, *parley.Turn, int, int) int { return 0 },
	}
	for seed := range uint64(s.share(20)) {
		r := s.honest(s.p, seed)
		liar := parley.ID(seed) % parley.ID(s.p.N)
		r.Faulty = map[parley.ID]faulty.Behavior{liar: faulty.Honest}
		_, honest := r.traced(true)
		r.Faulty = map[parley.ID]faulty.Behavior{liar: zero}
		_, log := r.traced(true)
		if !slices.EqualFunc(received(honest), received(log), sameEvent) {
			return fmt.Errorf("%s: Lies does not tell the truth if every choice is 0", r)
		}
	}
	return nil
}

// received returns the receptions and deliveries of a run.
func received(log *trace.Log) []trace.Event {
	return slices.DeleteFunc(log.Events, func(e trace.Event) bool {
		return e.Op != trace.Receive &&
			e.Op != trace.Deliver
	})
}

func sameEvent(a, b trace.Event) bool {
	return a.Time == b.Time && a.Op == b.Op && a.At == b.At && a.Peer == b.Peer && a.Path == b.Path &&
		a.Msg.Equal(b.Msg)
}

// cost counts the messages of a run without faults and compares the number with the theorem.
func cost(s suite) error {
	if s.p.Cost == nil || s.p.Size == nil {
		return skip("no Cost, or no Size to count by")
	}
	want := s.p.Cost(s.p.N, s.p.M)
	for seed := range uint64(s.share(20)) {
		r := s.honest(s.p, seed)
		r.Measure = true
		if s.p.Serves && s.p.Proposers == (parley.Set{}) && len(r.Requests) > 0 {
			r.Requests = r.Requests[:1] // the cost of one broadcast
		}
		got := r.simulate()
		have := got.Stats.Sent
		theorem := want.PerRound
		if s.p.Timing != parley.Synchronous {
			theorem = []parley.Traffic{want.Total()}
		}
		for round := range max(len(have), len(theorem)) {
			sent, due := at(have, round), at(theorem, round)
			if sent == due || want.AtMost && sent.Messages <= due.Messages && sent.Bits <= due.Bits &&
				sent.Signatures <= due.Signatures {
				continue
			}
			return fmt.Errorf("%s: in round %d %+v was sent, and the theorem says %+v", r, round, sent, due)
		}
	}
	return nil
}

func at(list []parley.Traffic, i int) parley.Traffic {
	if i < len(list) {
		return list[i]
	}
	return parley.Traffic{}
}
