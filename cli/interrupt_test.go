package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"strings"
	"sync/atomic"
	"testing"

	"parley"
	"parley/catalog"
	"parley/cli/console"
)

// interruption interrupts a command at a certain step of its machines, and counts the steps after it.
type interruption struct {
	at, steps atomic.Int64
	interrupt context.CancelFunc
}

func (i *interruption) step() {
	if i.steps.Add(1) == i.at.Load() {
		i.interrupt()
	}
}

// late returns the number of steps since the interruption, which is negative if there was none.
func (i *interruption) late() int64 { return i.steps.Load() - i.at.Load() }

// stepping is a machine that counts its steps.
type stepping struct {
	parley.Machine
	count func()
}

func (m stepping) Start(s *parley.Step) { m.count(); m.Machine.Start(s) }
func (m stepping) Request(s *parley.Step, q parley.Msg) {
	m.count()
	m.Machine.Request(s, q)
}
func (m stepping) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	m.count()
	m.Machine.Receive(s, from, q)
}
func (m stepping) Timeout(s *parley.Step, t parley.Timer) {
	m.count()
	m.Machine.Timeout(s, t)
}

// in returns the protocol with the steps of its machines and its lies counted.
func (i *interruption) in(p parley.Protocol) parley.Protocol {
	if p.Bare != nil {
		bare := i.in(*p.Bare)
		p.Bare = &bare
	}
	if flags := p.Flags; flags != nil {
		p.Flags = func(fs *flag.FlagSet) func(parley.Naming) (parley.Protocol, error) {
			build := flags(fs)
			return func(n parley.Naming) (parley.Protocol, error) {
				made, err := build(n)
				return i.in(made), err
			}
		}
	}
	if fresh := p.New; fresh != nil {
		p.New = func(id parley.ID) parley.Machine { return stepping{fresh(id), i.step} }
	}
	if lies := p.Lies; lies != nil {
		p.Lies = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
			i.step()
			return lies(s, t)
		}
	}
	return p
}

// An interrupted search makes at most few further steps, whatever it is doing when the signal comes: for every
// protocol, by message, by round, split, and in search of indistinguishable runs; while it enumerates a step with a
// million possible answers, and while it replays or shrinks the run that it found.
func TestExploreInterruptedEverywhere(t *testing.T) {
	ways := []string{"", "--order depth", "--order random --walks 200", "--beyond-bound --order depth --all", "--step round", "--step split",
		"--indistinguishable --beyond-bound"}
	for _, p := range catalog.All() {
		for _, way := range ways {
			interruptedAt(t, p, way, 3_000)
		}
	}
}

// interruptedAt explores a protocol and interrupts it at a step.
func interruptedAt(t *testing.T, p parley.Protocol, way string, at int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	i := &interruption{interrupt: cancel}
	i.at.Store(at)
	args := append([]string{"explore", p.Name, "--workers", "2", "--states", "6000", "--for", "0"}, strings.Fields(way)...)
	if strings.Contains(way, "split") {
		args = append(args[:4], args[6:]...)
	}
	var out, stderr bytes.Buffer
	status := runContext(ctx, []parley.Protocol{i.in(p)}, args, &out, &stderr)
	const few = 10_000 // a step takes microseconds
	switch late := i.late(); {
	case status == console.Usage: // it cannot be explored that way
	case late > few:
		t.Errorf("%s %s: interrupted at step %d: %d steps after it, want at most %d", p.Name, way, at, late, few)
	case late >= 0 && status == console.Fine, late < 0 && status == console.Interrupted:
		t.Errorf("%s %s: step %d, %d late: status %d\n%s%s", p.Name, way, at, late, status, &out, &stderr)
	case status == console.Interrupted && !strings.Contains(out.String(), "interrupted: not proven"):
		t.Errorf("%s %s: interrupted at step %d: it does not say so:\n%s", p.Name, way, at, &out)
	}
}

// When the time of a search is up, the report says what was covered and at what rate, and names three flags that make
// the search smaller. The exit status is 3.
func TestExploreTimeIsUp(t *testing.T) {
	for _, way := range []string{"bracha", "om -n 7 -m 2 --step split", "eig -n 7 -m 2 --step round"} {
		var out, stderr bytes.Buffer
		status := Run(catalog.All(), append([]string{"explore", "--for", "1ms"}, strings.Fields(way)...), &out, &stderr)
		text := strings.ReplaceAll(out.String(), "\n", " ")
		_, less, _ := strings.Cut(text, "to visit fewer states: ")
		if status != console.Unfinished || !strings.Contains(text, "budget hit (--for): not proven") ||
			!strings.Contains(text, "covered: ") || !strings.Contains(text, " per second") ||
			strings.Count(less, "--")+strings.Count(less, "-n ") < 4 || !strings.HasSuffix(less, "; to search longer: --for 0, which sets no limit ") {
			t.Errorf("%s: status %d\n%s%s", way, status, &out, &stderr)
		}
	}
}

// An interrupted sweep prints its counts so far, as text and as JSON. A sweep that is interrupted while it shrinks a
// failure prints that failure.
func TestSweepInterrupted(t *testing.T) {
	sweep := func(at int64, args ...string) (string, int) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		i := &interruption{interrupt: cancel}
		i.at.Store(at)
		var all []parley.Protocol
		for _, p := range catalog.All() {
			all = append(all, i.in(p))
		}
		var out, stderr bytes.Buffer
		status := runContext(ctx, all, append([]string{"sweep", "om", "--seeds", "1..100000000"}, args...), &out, &stderr)
		const few = 50_000 // runs that have begun are finished
		if late := i.late(); late < 0 || late > few || stderr.Len() > 0 {
			t.Errorf("%v: %d steps after the interruption, want at most %d\n%s", args, late, few, &stderr)
		}
		return out.String(), status
	}
	out, status := sweep(20_000, "-n", "4", "-m", "1", "--faulty", "2=random")
	if status != console.Interrupted || !strings.Contains(out, "\ninterrupted after ") ||
		!strings.Contains(out, " of 100,000,000 seeds\n") || !strings.Contains(out, "\nno promise was broken so far\n") {
		t.Errorf("status %d\n%s", status, out)
	}
	out, status = sweep(20_000, "-n", "4", "-m", "1", "--faulty", "2=random", "--json")
	var summary struct {
		Runs        uint64
		Interrupted bool
	}
	if err := json.Unmarshal([]byte(out), &summary); err != nil || status != console.Interrupted || !summary.Interrupted || summary.Runs == 0 {
		t.Errorf("status %d, %v\n%s", status, err, out)
	}
}

// The demonstration describes the cluster before it starts the nodes: a reader sees something at once.
func TestDemoDescribesClusterFirst(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var out, stderr bytes.Buffer
	status := runContext(ctx, catalog.All(), []string{"demo", "--once"}, &out, &stderr)
	if status != console.Interrupted || !strings.HasPrefix(out.String(), "Four processes, one cluster\n") {
		t.Errorf("status %d, stderr %q, got:\n%s", status, &stderr, &out)
	}
}
