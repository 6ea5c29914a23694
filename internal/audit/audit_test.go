package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/catalog"
	"parley/cli"
	"parley/lockstep"
	"parley/trace"
)

// inProcess runs some services of a cluster whose nodes are all in this process, and returns
// where the traces are.
func (s spec) inProcess(dir string, services []string) (traces string, rows []row, err error) {
	parts, ports, err := prepare(dir, s.n, s.part())
	if err != nil {
		return "", nil, err
	}
	lies := traitors(s.m, s.how)
	all := make([]*running, s.n)
	errs := make([]error, s.n)
	together := func(do func(i int) error) error {
		var group sync.WaitGroup
		for i := range all {
			group.Go(func() { errs[i] = do(i) })
		}
		group.Wait()
		return errors.Join(errs...)
	}
	err = together(func(i int) (err error) {
		parts[i].Traitor = lies[parley.ID(i)]
		all[i], err = parts[i].join(context.Background(), ports[i])
		return err
	})
	if err != nil {
		return "", nil, err
	}
	for _, service := range services {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), s.within)
		var correct, liars sync.WaitGroup
		for i, r := range all {
			group := &correct
			if lies[parley.ID(i)] != "" {
				group = &liars
			}
			group.Go(func() { errs[i] = r.do(ctx, service) })
		}
		correct.Wait()
		cancel() // who lies may get no answer
		liars.Wait()
		if err := errors.Join(errs...); err != nil {
			return "", nil, err
		}
		one := row{service: service, took: time.Since(began)}
		for i, r := range all {
			if failed := int(r.failed.Swap(0)); lies[parley.ID(i)] == "" {
				one.failed += failed
			}
		}
		rows = append(rows, one)
	}
	time.Sleep(s.rest())
	err = together(func(i int) error {
		if err := all[i].node.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return parts[0].Traces, rows, err
}

// trial is a cluster that is tried, with longer rounds if need be.
type trial struct {
	spec
	left   []string // services that have not held yet
	traces string
	rows   []row
	err    error
}

// all does something with some trials, with so many nodes at a time.
func all(trials []*trial, nodes int, do func(*trial)) {
	turns := make(chan struct{}, nodes)
	var group sync.WaitGroup
	for _, one := range trials {
		for range one.n {
			turns <- struct{}{}
		}
		group.Go(func() {
			do(one)
			for range one.n {
				<-turns
			}
		})
	}
	group.Wait()
}

// Byzantine agreement, interactive consistency and Byzantine total order hold with m
// traitors of every behaviour, says the audit of what the others wrote down. A machine that
// was too slow for the rounds is given longer ones; if it is too slow for these too, what
// was not promised is no failure, but all must have run and got its answers. Nothing is
// audited while clusters run, who need the time for their rounds.
func TestHolds(t *testing.T) {
	how := behaviours()
	var trials []*trial
	add := func(s spec) {
		s.instances, s.within, s.atOnce = 50, 20*time.Second, 4
		trials = append(trials, &trial{spec: s, left: services})
	}
	for i := 0; i < len(how); i += 2 { // those that take long first
		add(spec{n: 7, m: 2, how: []string{how[i], how[(i+1)%len(how)]}, round: 150 * time.Millisecond})
	}
	for _, b := range how {
		add(spec{n: 4, m: 1, how: []string{b}, round: 100 * time.Millisecond})
	}
	dir := t.TempDir()
	for _, longer := range []time.Duration{1, 2, 3} { // in all: 1, 2 and 6 times as long
		all(trials, 14, func(one *trial) { // most of the time is waiting for those who are silent
			one.round, one.within = one.round*longer, one.within*longer
			one.traces, one.rows, one.err = one.inProcess(filepath.Join(dir, one.String()+one.round.String()), one.left)
		})
		all(trials, 14, func(one *trial) {
			if one.err == nil {
				one.rows, one.err = one.judge(one.traces, one.rows)
			}
		})
		trials = slices.DeleteFunc(trials, func(one *trial) bool { return one.holds(t) })
	}
	for _, one := range trials {
		for _, r := range one.rows {
			for _, why := range r.wrong {
				t.Errorf("%v %s, rounds of %v: %s", one, r.service, one.round, why)
			}
		}
	}
}

// holds tells whether all was promised, and held, but for what is left to be tried again. A
// violation is an error: nothing excuses it.
func (one *trial) holds(t *testing.T) bool {
	if one.err != nil {
		t.Errorf("%v: %v", one, one.err)
		return true
	}
	one.left = nil
	for _, r := range one.rows {
		t.Logf("%v %s, rounds of %v: %d judged, %d promised, %d without an answer, %v: %s", one, r.service, one.round,
			r.judged, r.promised, r.failed, r.took.Round(time.Millisecond), r.verdict())
		switch {
		case r.violated > 0:
			t.Errorf("%v %s: %s", one, r.service, r.verdict())
		case !r.holds():
			one.left = append(one.left, r.service)
		}
	}
	return len(one.left) == 0
}

// A service of which nothing was written down, or too little, or that gave no answer, does
// not hold, and nothing excuses it.
func TestSums(t *testing.T) {
	kept := found{
		Machine: "agree/eig/1/0", Complete: true, Instances: 50, Verdicts: []verdict{{Property: "agreement", Promised: 50}},
	}
	few, broken, not, part := kept, kept, kept, kept
	few.Instances = 49
	broken.Verdicts = []verdict{{Property: "agreement", Promised: 50, Violated: 1}}
	not.Verdicts = []verdict{{Property: "agreement", Because: "late"}}
	part.Complete, part.Missing = false, []string{"node2"}
	for name, c := range map[string]struct { // order: each by itself
		list              []found
		failed            int
		wrong, unpromised bool
	}{
		"all is well":    {list: []found{kept}},
		"no traces":      {wrong: true},
		"others' traces": {list: []found{{Machine: "group/order", Complete: true, Slots: 50}}, wrong: true},
		"too few":        {list: []found{few}, wrong: true},
		"no answer":      {list: []found{kept}, failed: 1, wrong: true},
		"violated":       {list: []found{broken}, wrong: true},
		"not complete":   {list: []found{part}, wrong: true},
		"not promised":   {list: []found{not}, unpromised: true},
	} {
		r := row{service: "agree", failed: c.failed}
		spec{instances: 50}.sum(&r, c.list)
		if len(r.wrong) > 0 != c.wrong || len(r.unpromised) > 0 != c.unpromised {
			t.Errorf("%s: wrong: %q, not promised: %q", name, r.wrong, r.unpromised)
		}
		if good := !c.wrong && !c.unpromised; r.holds() != good || (r.verdict() == "") != good {
			t.Errorf("%s: holds is %v, the verdict %q", name, r.holds(), r.verdict())
		}
	}
}

// corrupt changes what one correct node wrote down, consistently: hash and all. change is
// given the events of a machine, and tells whether it found what to change.
func corrupt(t *testing.T, traces, machine string, change func(e *trace.Event) bool) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(traces, "node4", machine+".*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	all, err := trace.ReadAll(files[0], bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	log := &trace.Log{Keep: true, Until: all[0].Log.Until}
	changed := false
	for _, e := range all[0].Log.Events {
		e.Msg.Body = bytes.Clone(e.Msg.Body)
		changed = !changed && change(&e) || changed
		log.Add(e)
	}
	if !changed {
		t.Fatal("nothing was changed")
	}
	f, err := os.Create(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(trace.Write(f, all[0].Header, log), f.Close()); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// An audit finds every single thing that was changed in a trace: a delivery, a decision, an
// answer, a receipt. What was changed by hand and not signed with the hash is no trace.
func TestFinds(t *testing.T) {
	s := spec{
		n: 4, m: 1, how: []string{"twofaced"}, instances: 10, atOnce: 4, round: 100 * time.Millisecond, within: time.Minute,
	}
	traces, _, err := s.inProcess(t.TempDir(), services)
	if err != nil {
		t.Fatal(err)
	}
	verdict := func() (int, string) {
		var out, complaint bytes.Buffer
		status := cli.Run(catalog.All(), []string{"audit", traces}, &out, &complaint)
		return status, out.String() + complaint.String()
	}
	if status, text := verdict(); status != 0 {
		t.Fatalf("status %d before anything is changed:\n%s", status, text)
	}
	of := func(op trace.Op, kind parley.Kind) func(e *trace.Event) bool {
		return func(e *trace.Event) bool {
			found := e.Op == op && e.Msg.Kind == kind && len(e.Msg.Body) > 0 && (op != trace.Receive || e.Peer != 0)
			if found {
				e.Msg.Body[len(e.Msg.Body)-1] ^= 1
			}
			return found
		}
	}
	for name, c := range map[string]struct {
		machine string
		change  func(e *trace.Event) bool
		want    string
	}{
		"a delivery": {"group-order", of(trace.Deliver, parley.Carried), "agreement"},
		"a decision": {"agree-eig-1-1", of(trace.Deliver, parley.Decide), "agreement"},
		"an answer":  {"agree-eig-1-all", of(trace.Deliver, parley.Decide), "agreement"},
		"a receipt":  {"group-order", of(trace.Receive, lockstep.Frame), "did not send"},
	} {
		before := corrupt(t, traces, c.machine, c.change)
		status, text := verdict()
		if status != 1 || !strings.Contains(text, "VIOLATED") || !strings.Contains(text, c.want) {
			t.Errorf("%s: status %d:\n%s", name, status, text)
		}
		files, err := filepath.Glob(filepath.Join(traces, "node4", c.machine+".*"))
		if err == nil {
			err = os.WriteFile(files[0], []byte(before), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if name != "a delivery" {
			continue
		}
		by := strings.Replace(before, `"op":"deliver"`, `"op":"receive"`, 1)
		if err := os.WriteFile(files[0], []byte(by), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, text := verdict(); status != 2 || !strings.Contains(text, "was changed") {
			t.Errorf("by hand: status %d: %s", status, text)
		}
		if err := os.WriteFile(files[0], []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
