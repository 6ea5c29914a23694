package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
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

// inProcess runs a cluster whose nodes are all in this process, and returns where the
// traces are.
func (s spec) inProcess(dir string) (traces string, rows []row, err error) {
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

// Byzantine agreement, interactive consistency and Byzantine total order hold with m
// traitors of every behaviour, says the audit of what the others wrote down. A machine that
// was too slow for the rounds is given longer ones; if it is too slow for these too, what
// was not promised is no failure.
func TestHolds(t *testing.T) {
	how := behaviours()
	var specs []spec
	for _, b := range how {
		specs = append(specs, spec{n: 4, m: 1, how: []string{b}, round: 100 * time.Millisecond})
	}
	for i := 0; i < len(how); i += 2 {
		pair := []string{how[i], how[(i+1)%len(how)]}
		specs = append(specs, spec{n: 7, m: 2, how: pair, round: 150 * time.Millisecond})
	}
	turns := make(chan struct{}, 6) // most of the time is waiting for those who are silent
	var all sync.WaitGroup
	for _, s := range specs {
		s.instances, s.within, s.atOnce = 50, 20*time.Second, 4
		dir := t.TempDir()
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			for _, longer := range []time.Duration{1, 4} {
				one := s
				one.round *= longer
				if one.holds(t, filepath.Join(dir, longer.String())) {
					return
				}
			}
		})
	}
	all.Wait()
}

// holds tells whether all is promised, and held.
func (s spec) holds(t *testing.T, dir string) bool {
	traces, rows, err := s.inProcess(dir)
	if err == nil {
		rows, err = s.judge(traces, rows)
	}
	if err != nil {
		t.Errorf("%v: %v", s, err)
		return true
	}
	good := true
	for _, r := range rows {
		t.Logf("%v %s, rounds of %v: %d judged, %d promised, %d without an answer, %v: %s",
			s, r.service, s.round, r.judged, r.promised, r.failed, r.took.Round(time.Millisecond), r.verdict)
		if good = good && r.verdict == ""; r.violated > 0 {
			t.Errorf("%v %s: %s", s, r.service, r.verdict)
		}
	}
	return good
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
	traces, _, err := s.inProcess(t.TempDir())
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
