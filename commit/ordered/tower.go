package ordered

import (
	"flag"
	"fmt"

	"parley"
	agreement "parley/agreement/problem"
	"parley/broadcast/byzantine"
	"parley/commit/problem"
	"parley/commit/service"
	"parley/stack"
)

// towerConfig holds what Tower and the flags set.
type towerConfig struct {
	Config
	given bool
}

// broadcastDelays is how many message delays a broadcast takes at most, if no process fails.
const broadcastDelays = 10

// Tower puts the protocol above the order of package byzantine. On top it puts slow participants (see
// [service.NewParticipant]). c.Delta is the longest time that a broadcast takes: 10 times as long as a message.
func Tower(c Config) parley.Protocol { return towerConfig{Config: c.withDefaults()}.protocol() }

// GivenTower does what Tower does, but process 0 makes the order (see the type given). The flag --given selects this,
// for explorations.
func GivenTower(c Config) parley.Protocol { return towerConfig{c.withDefaults(), true}.protocol() }

func (t towerConfig) protocol() parley.Protocol {
	if err := t.check(); err != nil {
		panic("ordered: " + err.Error())
	}
	beneath := newGiven(t.N, t.M)
	if !t.given {
		beneath = byzantine.New(byzantine.Config{N: t.N, M: t.M, Durable: true})
	}
	return t.above(beneath)
}

// above returns the tower above an order.
func (t towerConfig) above(beneath parley.Protocol) parley.Protocol {
	layer := New(t.Config)
	p := stack.New(withPositions(beneath), layer, service.NewParticipant(t.N, true))
	p.Name, p.Title, p.Paper, p.M, p.Serves = layer.Name, layer.Title, layer.Paper, t.M, false
	p.Relies.Delay = t.Delta
	if !t.given {
		p.Relies.Delay = max(1, t.Delta/broadcastDelays)
	}
	p.Proposers = parley.SetOf(0) // it also makes the given order
	p.Rejoins, p.OnDemand = true, !t.given
	p.Span = max(p.Span, 60*t.Delta) // a process that gets no answer asks forever
	p.Properties = service.Judging{Of: problem.AmongCorrect, ByName: true}.Properties()
	if t.given {
		p.Properties = spared(p.Properties)
	}
	p.Promises, p.Bound = t.promises, t.bound
	p.Progress = service.NewParticipant(t.N, true).Progress
	p.Flags = parley.Flags(t, flags, towerConfig.protocol)
	return p
}

func flags(fs *flag.FlagSet, t *towerConfig) func(*towerConfig, parley.Naming) error {
	fs.IntVar(&t.N, "n", t.N, "number of `processes`")
	fs.IntVar(&t.M, "m", -1, "`faults` to tolerate (default: as many as the theorem allows)")
	fs.BoolVar(&t.given, "given", t.given, "use a simple order, in which P1 numbers all messages, in "+
		"place of the order that tolerates liars; a search then covers only the transactions. With or without "+
		"this flag, --values holds the name of the transaction and the votes of all processes, as in 'pay yyny'")
	return func(t *towerConfig, _ parley.Naming) error {
		if t.M < 0 {
			t.M = agreement.MostOral(t.N)
		}
		return t.check()
	}
}

// check returns what is wrong with t, or nil. Whether n processes can tolerate m faults is for bound to check.
func (t towerConfig) check() error {
	switch err := parley.CheckN(t.N, 2); {
	case err != nil:
		return err
	case t.M < 0 || t.M > t.N-2:
		return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-2 = %d", t.M, t.N, t.N-2)
	}
	return nil
}

// bound returns the bound of the order, or what is necessary to get outcomes from m+1 correct processes.
func (t towerConfig) bound(n, m int) error {
	switch {
	case !t.given:
		return agreement.OralBound(n, m)
	case n <= 2*m:
		return fmt.Errorf("m+1 correct processes must tell an outcome: n > 2m is necessary, and %d processes "+
			"tolerate at most m = %d, not %d", n, (n-1)/2, m)
	}
	return nil
}

// promises returns the promises for a run. A process that was down for a time and lost its disk counts as one of the m
// that may be faulty.
func (t towerConfig) promises(a parley.RunConditions) []parley.Promise {
	safe, failed, bound := "", a.Faulty, t.bound(a.N, a.M)
	if a.Processes.LostDisk {
		failed += a.Away
	}
	switch {
	case !t.given && bound != nil:
		safe = bound.Error()
	case failed > a.M:
		safe = a.ExcessOf(failed, "is faulty or lost its disk", "are faulty or lost their disks")
	case t.given && a.Network.Doubled:
		safe = "a link doubled a payload for broadcast"
	case t.given && a.SourceFaulty && a.Worst > parley.CrashFaults:
		safe = "the process that makes the order lies"
	}
	live := safe
	switch {
	case live != "":
	case bound != nil:
		live = bound.Error()
	case t.given && a.SourceFaulty:
		live = "the process that makes the order is faulty"
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		live = "links lost messages of the order"
	case !t.given && a.Processes.Paused:
		live = "a process was paused, so no agreement of the order is certain to end in a known time"
	case a.Processes.LostDisk:
		live = "a process that lost its disk has forgotten its votes"
	}
	trivial := live
	switch {
	case trivial != "":
	case a.Faulty+a.Away > 0:
		trivial = "a process failed: its vote may count as a no"
	case a.Network.Late || a.Processes.Paused:
		trivial = "a vote may have come too late"
	}
	say := parley.Promised
	return []parley.Promise{
		say(problem.Atomicity, "all processes find the outcome in the same order, and of m+1 processes "+
			"that report it at least one is correct", safe),
		say(problem.Validity, "a yes counts only for the process that broadcast it", safe),
		say(problem.NonTriviality, "all votes arrive before any process has waited too long", trivial),
		say(problem.Stability, "the order ends each transaction once, and only processes that do not "+
			"know its outcome ask others", safe),
		say(problem.Termination, "m+1 correct processes report that they have waited too long, and report outcomes", live),
		say(problem.NonBlocking, "no process waits for a particular other process", ""),
		say(service.Names, "all processes know the same transaction under a name", safe),
		say(service.Answers, "every broadcast is delivered, and every transaction ends", live),
	}
}
