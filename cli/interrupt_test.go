package cli

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/catalog"
	"parley/explore"
)

// interruption interrupts a command at a step of a machine, and counts the steps after it.
type interruption struct {
	at, steps atomic.Int64
	interrupt context.CancelFunc
}

func (i *interruption) step() {
	if i.steps.Add(1) == i.at.Load() {
		i.interrupt()
	}
}

// late is how many steps were made after the interruption; negative if there was none.
func (i *interruption) late() int64 { return i.steps.Load() - i.at.Load() }

// stepping is a machine whose steps are counted.
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

// in has the steps of a protocol's machines, and of its liars, counted.
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
		p.Lies = func(s *parley.Step, t *parley.Turn) []parley.Sent {
			i.step()
			return lies(s, t)
		}
	}
	return p
}

// An interrupted search makes next to no step after that, whatever it does when the signal
// comes: in every protocol, message by message, by rounds, split and in search of pairs; while
// one step is gone through that may be answered in a million ways, and while the run that was
// found is made again or made shorter.
func TestExploreInterruptedEverywhere(t *testing.T) {
	ways := []string{"", "--order depth", "--order random --walks 200", "--beyond-bound --order depth --all", "--step round", "--step split",
		"--indistinguishable --beyond-bound"}
	for _, p := range catalog.All() {
		for _, way := range ways {
			interruptedAt(t, p, way, 10_000)
		}
	}
}

// interruptedAt explores a protocol and interrupts it at a step.
func interruptedAt(t *testing.T, p parley.Protocol, way string, at int64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	i := &interruption{interrupt: cancel}
	i.at.Store(at)
	args := append([]string{"explore", p.Name, "--workers", "2", "--states", "20000", "--for", "0"}, strings.Fields(way)...)
	if strings.Contains(way, "split") {
		args = append(args[:4], args[6:]...)
	}
	var out, stderr bytes.Buffer
	status := runContext(ctx, []parley.Protocol{i.in(p)}, args, &out, &stderr)
	const few = 10_000 // a step takes microseconds
	switch late := i.late(); {
	case status == usage: // it cannot be explored that way
	case late > few:
		t.Errorf("%s %s: interrupted at step %d: %d steps after it, want at most %d", p.Name, way, at, late, few)
	case late >= 0 && status == fine, late < 0 && status == interrupted:
		t.Errorf("%s %s: step %d, %d late: status %d\n%s%s", p.Name, way, at, late, status, &out, &stderr)
	case status == interrupted && !strings.Contains(out.String(), "interrupted: not proven"):
		t.Errorf("%s %s: interrupted at step %d: it does not say so:\n%s", p.Name, way, at, &out)
	}
}

// A search whose time is up says what was covered, at what rate, and three flags that make it
// smaller; its status is 3.
func TestExploreTimeIsUp(t *testing.T) {
	for _, way := range []string{"bracha", "om -n 7 -m 2 --step split", "eig -n 7 -m 2 --step round"} {
		var out, stderr bytes.Buffer
		status := Run(catalog.All(), append([]string{"explore", "--for", "1ms"}, strings.Fields(way)...), &out, &stderr)
		text := strings.ReplaceAll(out.String(), "\n", " ")
		_, less, _ := strings.Cut(text, "to visit less: ")
		if status != unfinished || !strings.Contains(text, "budget hit (--for): not proven") ||
			!strings.Contains(text, "covered: ") || !strings.Contains(text, " a second") ||
			strings.Count(less, "--")+strings.Count(less, "-n ") < 4 || !strings.HasSuffix(less, "; --for 0 has no limit ") {
			t.Errorf("%s: status %d\n%s%s", way, status, &out, &stderr)
		}
	}
}

// Every search with default flags can be made smaller in three ways, and none of them is a
// flag that the command refuses.
func TestExploreCanBeSmaller(t *testing.T) {
	for _, p := range catalog.All() {
		for _, step := range []string{"message", "round", "split"} {
			f := newExploreFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
			if err := f.fs.Set("step", step); err != nil {
				t.Fatal(err)
			}
			s, err := f.setup()
			if err != nil {
				continue // it is not explored, or not that way
			}
			ways := s.ways(f)
			want := 3
			if step == "split" && len(s.begins.liars[0]) == 0 {
				want = 1 // there is one run for each way to begin
			}
			if len(ways) < want {
				t.Errorf("%s --step %s: %d ways, want %d: %v", p.Name, step, len(ways), want, ways)
			}
			for _, way := range ways {
				flag, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(way, "--"), "-"), " ")
				if flag = strings.TrimSuffix(flag, ","); f.fs.Lookup(flag) == nil {
					t.Errorf("%s --step %s: %s: there is no such flag", p.Name, step, way)
				}
			}
		}
	}
}

// How far a search has come is told to a pipe too, at once, and then ever less often.
func TestExploreProgressToPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	a := &app{err: w}
	show, clear := a.searchProgress(new(exploreFlags))
	for half := range 120 {
		show(explore.Progress{States: 4, Outcomes: 98_304, Took: time.Duration(half+1) * time.Second / 2})
	}
	clear()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[0], "4 states, 98,304 outcomes of steps, 8 a second, ") {
		t.Errorf("got %d lines, want 7 with what was computed:\n%s", len(lines), text)
	}
}
