package exploration

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"parley"
	"parley/broadcast/problem"
	"parley/explore"
	"parley/faulty"
	"parley/internal/draw/prose"
	"parley/internal/form"
	"parley/internal/lists"
	"parley/run"
	"parley/sim"
)

// initialStates are the initial states of a search: the faulty processes and the requests of its runs.
type initialStates struct {
	roots  []explore.Root
	liars  []coalition
	values []string      // tried for every proposer
	asked  []sim.Request // all other requests
	chosen bool          // the liars were named
	fixed  parley.Set    // processes that propose one fixed value
}

// atWill reports whether a faulty process may do anything, or anything except be silent.
func atWill(how faulty.Behavior) bool {
	return how.Name == faulty.Any.Name || how.Name == explore.NeverSilent.Name
}

// anyLie is the behavior of liars without a behavior of their own.
func (f *Flags) anyLie() faulty.Behavior {
	if f.outspoken {
		return explore.NeverSilent
	}
	return faulty.Any
}

type coalition map[parley.ID]faulty.Behavior

// mostInitialStates is the maximum number of initial states.
const mostInitialStates = 1000

// initialStates reads the flags for the initial states.
func (f *Flags) initialStates(s *Search) (b initialStates, err error) {
	if b.liars, b.chosen, err = f.coalitions(s.protocol); err != nil {
		return b, err
	}
	free := slices.ContainsFunc(b.liars, func(c coalition) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(c)), atWill)
	})
	if s.protocol = run.Lying(s.protocol); free && s.protocol.Lies == nil {
		return b, parley.FlagErrorf("faulty", "%s defines no lies: use --crashes and --losses", s.protocol.Name)
	}
	if f.outspoken && !free {
		return b, parley.FlagErrorf("outspoken", "no process may do anything: use --faulty or --liars")
	}
	if err := f.beyondModel(s.protocol, b.liars[0]); err != nil {
		return b, err
	}
	if b.asked, err = f.asked(s.protocol); err != nil {
		return b, err
	}
	for _, q := range b.asked {
		if q.Msg.Kind == parley.Propose {
			b.fixed.Add(q.At)
		}
	}
	if b.values, err = f.alphabet(s.protocol); err != nil {
		return b, err
	}
	err = b.combine(s.protocol, f.fs.Lookup("alphabet") != nil)
	return b, err
}

// beyondModel demands --beyond-bound if more processes are faulty, or in worse ways, than the protocol tolerates:
// then no promise is left to break.
func (f *Flags) beyondModel(p parley.Protocol, c coalition) error {
	if f.beyond || f.goal+f.always+f.eventually != "" {
		return nil
	}
	flag := "faulty"
	if f.fs.Changed("liars") {
		flag = "liars"
	}
	if len(c) > p.M && len(p.Graph) == 0 {
		return parley.FlagErrorf(flag, "%d processes are faulty, and %s promises nothing with more than m = %d; "+
			"--beyond-bound explores it nevertheless", len(c), p.Name, p.M)
	}
	for _, how := range c { // order: any of the errors will do
		if how.Model > p.Faults {
			return parley.FlagErrorf(flag, "%s tolerates %s faults, and promises nothing with worse ones; "+
				"--beyond-bound explores it nevertheless", p.Name, p.Faults)
		}
	}
	return nil
}

// coalitions returns the sets of processes that may be faulty together. named reports whether the flags name them.
func (f *Flags) coalitions(p parley.Protocol) (all []coalition, named bool, err error) {
	if f.fs.Changed("faulty") {
		if f.fs.Changed("liars") {
			return nil, false, parley.FlagErrorf("liars", "--faulty names the faulty processes already: omit one of the "+
				"two flags")
		}
		if f.faulty == "none" {
			return []coalition{{}}, true, nil
		}
		free := f.anyLie()
		c, err := form.ParseFaulty(f.faulty, f.Names, p, &free)
		if err != nil {
			return nil, false, parley.FlagErrorf("faulty", "%w", err)
		}
		return []coalition{c}, true, nil
	}
	liars := f.liars
	if !f.fs.Changed("liars") && p.Faults >= parley.SignedByzantineFaults && p.Lies != nil {
		liars = p.M
	}
	if liars < 0 || liars >= p.N {
		return nil, false, parley.FlagErrorf("liars", "%d of %d processes: allowed are 0 to %d", liars, p.N, p.N-1)
	}
	var place func(c []parley.ID, from parley.ID)
	place = func(c []parley.ID, from parley.ID) {
		if len(c) == liars {
			one := make(coalition)
			for _, id := range c {
				one[id] = f.anyLie()
			}
			all = append(all, one)
			return
		}
		for id := from; int(id) < p.N && len(all) <= mostInitialStates; id++ {
			place(append(slices.Clip(c), id), id+1)
		}
	}
	place(nil, 0)
	return all, false, nil
}

// asked returns the requests other than values to try, in the order of their times.
func (f *Flags) asked(p parley.Protocol) ([]sim.Request, error) {
	plan, err := f.asks.Plan(p, f.Naming, 1)
	if err != nil {
		return nil, err
	}
	out := someBroadcasts(p)
	if f.asks.Given("requests") || f.asks.Given("workload") {
		out = plan.Draw(p, f.seed).Requests
		slices.SortStableFunc(out, func(a, b sim.Request) int { return cmp.Compare(a.When, b.When) })
	}
	if !f.fs.Changed("values") || p.Proposers == (parley.Set{}) {
		return out, nil
	}
	if f.fs.Changed("try-values") {
		return nil, parley.FlagErrorf("try-values", "--values sets the initial values already: omit one of the two flags")
	}
	values, err := form.ParseValues(f.values, p.Proposers, f.Names)
	if err != nil {
		return nil, &parley.FlagError{Flag: "values", Err: err}
	}
	return append(proposals(p.Proposers, values, out), out...), nil
}

// proposals returns the requests to propose values, except at processes that other requests have propose.
func proposals(proposers parley.Set, values map[parley.ID][]byte, other []sim.Request) (out []sim.Request) {
	for id := range proposers.All() {
		if !slices.ContainsFunc(other, func(q sim.Request) bool { return q.At == id && q.Msg.Kind == parley.Propose }) {
			out = append(out, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: values[id]}})
		}
	}
	return out
}

// someBroadcasts returns the default requests of a broadcast protocol: one broadcast from each of two processes, or
// from one if liars broadcast as well, and a second one from the first process if the protocol has FIFO order.
func someBroadcasts(p parley.Protocol) (out []sim.Request) {
	many := min(2, p.N)
	if p.Faults >= parley.SignedByzantineFaults {
		many = 1
	}
	at := []parley.ID{0, 1}[:many]
	if slices.ContainsFunc(p.Properties, func(q parley.Property) bool { return q.Name == problem.FIFOOrder }) {
		at = append(at, 0)
	}
	for i, id := range at {
		if !p.Serves {
			break
		}
		body := fmt.Sprintf("m%d", i+1)
		if len(p.Samples) > 0 {
			body = p.Samples[i%len(p.Samples)]
		}
		out = append(out, sim.Request{At: id, Msg: problem.Request([]byte(body))})
	}
	return out
}

// alphabet returns the initial values to try.
func (f *Flags) alphabet(p parley.Protocol) ([]string, error) {
	if p.Proposers == (parley.Set{}) {
		for _, flag := range []string{"values", "try-values"} {
			if f.fs.Changed(flag) {
				return nil, parley.FlagErrorf(flag, "no process proposes a value to %s: omit the flag", p.Name)
			}
		}
		return nil, nil
	}
	text, flag := "0,1", "try-values"
	if g := f.fs.Lookup("alphabet"); g != nil && g.Value.String() != "" {
		text, flag = g.Value.String(), "alphabet"
	}
	if f.fs.Changed("try-values") {
		text, flag = f.tryValues, "try-values"
	}
	var out []string
	for _, v := range strings.Split(text, ",") {
		const longest = 1024
		switch {
		case len(v) > longest:
			return nil, parley.FlagErrorf(flag, "a value of %d bytes: allowed are at most %d", len(v), longest)
		case slices.Contains(out, v):
			return nil, parley.FlagErrorf(flag, "%q is given twice: name each value once", v)
		}
		out = append(out, v)
	}
	return out, nil
}

// combine makes an initial state from each coalition and each assignment of values. It does not vary the initial
// value of a liar that may send any value of an alphabet, because that makes no difference.
func (b *initialStates) combine(p parley.Protocol, alphabet bool) error {
	open := func(c coalition) (out []parley.ID) {
		for id := range p.Proposers.Minus(b.fixed).All() {
			if how, lies := c[id]; !alphabet || !lies || !atWill(how) {
				out = append(out, id)
			}
		}
		return out
	}
	ways := new(big.Int)
	for _, c := range b.liars {
		some := new(big.Int).Exp(big.NewInt(int64(max(len(b.values), 1))), big.NewInt(int64(len(open(c)))), nil)
		ways.Add(ways, some)
	}
	if ways.Cmp(big.NewInt(mostInitialStates)) > 0 {
		return b.tooMany(ways)
	}
	for _, c := range b.liars {
		who := open(c)
		count := 1
		for range who {
			count *= len(b.values)
		}
		for k := range count {
			at := make([]int, len(who)) // the index of each one's value: the digits of k
			for i := range slices.Backward(at) {
				at[i], k = k%len(b.values), k/len(b.values)
			}
			b.roots = append(b.roots, explore.Root{Faulty: c, Requests: b.requests(p, who, at)})
		}
	}
	return nil
}

func (b *initialStates) tooMany(ways *big.Int) error {
	if len(b.liars) > mostInitialStates {
		return parley.FlagErrorf("liars", "there are more than %s choices of liars: name them with --faulty",
			prose.Number(mostInitialStates))
	}
	return parley.FlagErrorf("try-values", "%s for every process that proposes, with %s of liars, make %s "+
		"initial states: at most %s are allowed; --values sets one value for each process",
		prose.Count(uint64(len(b.values)), "value", "values"), prose.Count(uint64(len(b.liars)), "choice", "choices"),
		great(ways), prose.Number(mostInitialStates))
}

// requests returns the requests of an initial state in which the open proposers have the given values. All other
// proposers have the first value.
func (b *initialStates) requests(p parley.Protocol, open []parley.ID, at []int) (out []explore.Request) {
	for id := range p.Proposers.Minus(b.fixed).All() {
		value := b.values[0]
		if i := slices.Index(open, id); i >= 0 {
			value = b.values[at[i]]
		}
		out = append(out, explore.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(value)}})
	}
	return append(out, lists.Of(b.asked, func(q sim.Request) explore.Request {
		return explore.Request{At: q.At, Msg: q.Msg}
	})...)
}
