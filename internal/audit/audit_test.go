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
	"testing/synctest"
	"time"

	"parley"
	"parley/broadcast/byzantine"
	"parley/catalog"
	"parley/cli"
	"parley/cluster"
	"parley/cluster/link/memory"
	"parley/internal/must"
	"parley/trace"
)

// inProcess runs the services of a cluster whose nodes are all in this process, on a network in memory and in a
// bubble of synctest. It returns the folder of the traces.
func (s spec) inProcess(t *testing.T, dir string) (traces string, rows []row) {
	t.Helper()
	var err error
	synctest.Test(t, func(*testing.T) { traces, rows, err = s.inBubble(dir) })
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	return traces, rows
}

func (s spec) inBubble(dir string) (traces string, rows []row, err error) {
	defer must.Return(&err)
	parts, ports := prepare(dir, s.n, s.part)
	network := memory.New(memory.Options{})
	var members []cluster.Member
	for i, m := range parts[0].Members {
		_ = ports[i].Close()
		members = append(members, cluster.Member{Name: m.Name, Address: network.Host(m.Name).Addr(7000), Signer: m.Signer})
	}
	lies := traitors(s.M, s.how)
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
	must.Do(together(func(i int) (err error) {
		parts[i].Traitor, parts[i].Members = lies[parley.ID(i)], members
		parts[i].network = network.Host(members[i].Name)
		all[i], err = parts[i].join(context.Background(), nil)
		return err
	}))
	for _, service := range s.services() {
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
		cancel() // a traitor's calls may get no answer
		liars.Wait()
		must.Do(errors.Join(errs...))
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

// According to the audit of the correct nodes' traces, Byzantine agreement, interactive consistency and Byzantine
// total order hold with m traitors of every behavior. Everything is promised, because in virtual time no computer is
// too slow for the rounds.
func TestHolds(t *testing.T) {
	how := behaviors()
	var trials []spec
	for i := 0; i < len(how); i += 2 {
		trials = append(trials, spec{part: part{M: 2}, n: 7, how: []string{how[i], how[(i+1)%len(how)]}})
	}
	for _, b := range how {
		trials = append(trials, spec{part: part{M: 1}, n: 4, how: []string{b}})
	}
	for _, s := range trials {
		s.Instances, s.within, s.AtOnce, s.Round = 50, time.Minute, 1, 100*time.Millisecond
		dir := filepath.Join(t.TempDir(), "cluster")
		traces, rows := s.inProcess(t, dir)
		if err := s.judge(traces, rows); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		for _, r := range rows {
			t.Logf("%v %s: %d judged, %d promised, %d without an answer, %v: %s", s, r.service,
				r.judged, r.promised, r.failed, r.took.Round(time.Millisecond), r.verdict())
			if !r.holds() || r.violated > 0 {
				t.Errorf("%v %s: %s", s, r.service, r.verdict())
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// A service does not hold if its traces are missing or incomplete, or if it gave no answer; nothing excuses that.
func TestSums(t *testing.T) {
	kept := found{
		Machine: "agree/eig/1/0", Complete: true, Instances: 50, Verdicts: []verdict{{Property: "agreement", Promised: 50}},
	}
	few, broken, not, lacking := kept, kept, kept, kept
	few.Instances = 49
	broken.Verdicts = []verdict{{Property: "agreement", Promised: 50, Violated: 1}}
	not.Verdicts = []verdict{{Property: "agreement", Because: "late"}}
	lacking.Complete, lacking.Missing = false, []string{"node2"}
	for name, c := range map[string]struct { // order: the iterations are independent
		list              []found
		failed            int
		wrong, unpromised bool
	}{
		"all is well":    {list: []found{kept}},
		"no traces":      {wrong: true},
		"others' traces": {list: []found{{Machine: "group/order", Complete: true, Deliveries: 50}}, wrong: true},
		"too few":        {list: []found{few}, wrong: true},
		"no answer":      {list: []found{kept}, failed: 1, wrong: true},
		"violated":       {list: []found{broken}, wrong: true},
		"not complete":   {list: []found{lacking}, wrong: true},
		"not promised":   {list: []found{not}, unpromised: true},
	} {
		r := row{service: "agree", failed: c.failed}
		spec{part: part{Instances: 50}}.sum(&r, c.list)
		if len(r.wrong) > 0 != c.wrong || len(r.unpromised) > 0 != c.unpromised {
			t.Errorf("%s: wrong: %q, not promised: %q", name, r.wrong, r.unpromised)
		}
		if good := !c.wrong && !c.unpromised; r.holds() != good || (r.verdict() == "") != good {
			t.Errorf("%s: holds is %v, the verdict %q", name, r.holds(), r.verdict())
		}
	}
}

// If the computer is too slow for the rounds, the services in rounds are repeated until they hold. The order is not
// repeated, so nothing hides its failure. A violation is never repeated.
func TestOnlyRoundsAreRepeated(t *testing.T) {
	held, late := func(s string) row { return row{service: s} }, func(s string) row {
		return row{service: s, unpromised: []string{"late"}}
	}
	broken := row{service: "agree", violated: 1, wrong: []string{"agreement"}}
	for name, c := range map[string]struct { // order: the iterations are independent
		runs  [][]row // what each run finds
		holds bool
		last  time.Duration // the length of rounds in the last run of agreements
	}{
		"all hold":    {[][]row{{held("agree"), held("propose"), held(order)}}, true, 1},
		"one is late": {[][]row{{late("agree"), held("propose"), held(order)}, {late("agree")}, {held("agree")}}, true, 2},
		"order fails": {[][]row{{late("agree"), held("propose"), late(order)}, {held("agree")}}, false, 1},
		"is violated": {[][]row{{broken, late("propose"), held(order)}, {held("propose")}}, false, 1},
		"stays late": {
			append([][]row{{late("agree"), held("propose"), held(order)}}, slices.Repeat([][]row{{late("agree")}}, 5)...), false, 4,
		},
	} {
		runs := c.runs
		rows, err := patiently(spec{part: part{Round: 1}}, func(s spec) ([]row, error) {
			var asked []string
			for _, r := range runs[0] {
				asked = append(asked, r.service)
			}
			if !slices.Equal(s.services(), asked) {
				t.Errorf("%s: %q are run, not %q", name, s.services(), asked)
			}
			runs = runs[1:]
			return slices.Clone(c.runs[len(c.runs)-len(runs)-1]), nil
		})
		holds := true
		for i, r := range rows {
			holds = holds && r.holds()
			if r.service != services[i] {
				t.Errorf("%s: result %d is of %s", name, i, r.service)
			}
		}
		if err != nil || len(rows) != 3 || holds != c.holds || len(runs) > 0 || rows[0].round != c.last {
			t.Errorf("%s: %d runs not made, %+v, %v", name, len(runs), rows, err)
		}
	}
}

// corrupt changes the trace of one correct node consistently, including its hash. change gets the events of a
// machine, and reports whether it found what to change.
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

// An audit finds every single change in a trace: of a delivery, a decision, an answer, or a receipt. A trace that was
// changed without updating its hash is refused.
func TestFinds(t *testing.T) {
	s := spec{
		part: part{M: 1, Instances: 10, AtOnce: 4, Round: 100 * time.Millisecond},
		n:    4, how: []string{"twofaced"}, within: time.Minute,
	}
	traces, _ := s.inProcess(t, t.TempDir())
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
		"a receipt":  {"group-order", of(trace.Receive, byzantine.Batch), "did not send"},
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
