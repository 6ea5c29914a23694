package conform

import (
	"errors"
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/problem"
	"parley/internal/conform/form"
)

// causalCase is a script of causal broadcast, in the form that piggybacks, on top of
// a FIFO broadcast of which the script says what it delivers.
type causalCase struct {
	head
	Processes []string     `json:"processes"`
	Steps     []causalStep `json:"steps"`
}

// causalStep is a broadcast, or the delivery of one by the layer beneath.
type causalStep struct {
	Op   string  `json:"op"` // broadcast or fdeliver
	P    string  `json:"p"`
	M    *string `json:"m"`    // broadcast: the message
	From *string `json:"from"` // fdeliver: whose broadcast
	Seq  *int    `json:"seq"`  // fdeliver: its number among that sender's, from 1
}

type causalExpect struct {
	Wire      map[string][]string `json:"wire"`      // by message: the sequence that travels
	Delivered map[string][]string `json:"delivered"` // by process
	Prev      map[string][]string `json:"prev"`      // by process: prevDlvs as it is left
	Before    []pair              `json:"before"`    // where the second is delivered the first was before
}

// causalRun is a script that is being run.
type causalRun struct {
	cast
	*stage
	travels map[parley.ID][]parley.Msg // by sender, in the order of its broadcasts
	wire    map[string][]string
	next    map[[2]parley.ID]int // by receiver and sender: how many came
}

func causalOrder(raw []byte, report reporter) error {
	var c causalCase
	var want causalExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	r, err := c.run()
	if err != nil {
		return err
	}
	if want.Wire != nil {
		report("wire", want.Wire, among(want.Wire, r.wire))
	}
	delivered, prev := make(map[string][]string), make(map[string][]string)
	for i, name := range r.names {
		delivered[name], prev[name] = r.texts(parley.ID(i)), []string{}
		for _, m := range causal.Previous(r.machines[i]) {
			prev[name] = append(prev[name], string(m.Body))
		}
	}
	for _, x := range []struct {
		key       string
		want, got map[string][]string
	}{{"delivered", want.Delivered, delivered}, {"prev", want.Prev, prev}} {
		if x.want == nil {
			continue
		}
		if _, err := r.ids(form.Keys(x.want)); err != nil {
			return fmt.Errorf("expect: %s: %w", x.key, err)
		}
		report(x.key, x.want, among(x.want, x.got))
	}
	return before(want.Before, delivered, report)
}

// before compares the pairs of which the first is to be delivered before the second.
func before(want []pair, delivered map[string][]string, report reporter) error {
	switch {
	case want == nil:
		return nil
	case len(want) == 0:
		return errors.New("expect: before: an empty list says nothing")
	}
	holds := []pair{}
	for _, p := range want {
		somewhere, everywhere := false, true
		for _, name := range form.Keys(delivered) {
			second := slices.Index(delivered[name], p[1])
			if second < 0 {
				continue
			}
			first := slices.Index(delivered[name], p[0])
			somewhere, everywhere = true, everywhere && first >= 0 && first < second
		}
		if !somewhere {
			return fmt.Errorf("expect: before: %q is delivered nowhere", p[1])
		}
		if everywhere {
			holds = append(holds, p)
		}
	}
	report("before", want, holds)
	return nil
}

// texts returns what a process has delivered.
func (t *stage) texts(at parley.ID) []string {
	out := []string{}
	for _, h := range t.delivered(at) {
		out = append(out, string(h.Msg.Body))
	}
	return out
}

func (c causalCase) run() (*causalRun, error) {
	k, err := named(c.Processes)
	switch {
	case err != nil:
		return nil, fmt.Errorf("processes: %w", err)
	case len(c.Steps) > maxSteps:
		return nil, fmt.Errorf("%d steps: allowed are %d", len(c.Steps), maxSteps)
	}
	r := &causalRun{
		cast: k, stage: newStage(causal.New(causal.Config{N: len(k.names), Most: -1})),
		travels: make(map[parley.ID][]parley.Msg), wire: make(map[string][]string), next: make(map[[2]parley.ID]int),
	}
	for i, step := range c.Steps {
		p, err := k.id(step.P)
		switch {
		case err != nil:
		case step.Op == "broadcast" && step.M != nil && step.From == nil && step.Seq == nil:
			err = r.send(p, *step.M)
		case step.Op == "fdeliver" && step.M == nil && step.From != nil && step.Seq != nil:
			err = r.fdeliver(p, *step.From, *step.Seq)
		default:
			err = fmt.Errorf("op %q: allowed are broadcast with p and m, and fdeliver with p, from and seq", step.Op)
		}
		if err != nil {
			return nil, fmt.Errorf("steps: entry %d: %w", i, err)
		}
	}
	return r, nil
}

// maxName is how long the name of a message may be.
const maxName = 100

// send lets a process broadcast a message.
func (r *causalRun) send(p parley.ID, m string) error {
	if _, twice := r.wire[m]; twice || m == "" || len(m) > maxName {
		return fmt.Errorf("message %q: names are different, not empty and at most %d bytes long", m, maxName)
	}
	r.broadcast, r.wire[m] = nil, []string{}
	r.stage.run(p, request(problem.Request([]byte(m))))
	for _, e := range r.broadcast {
		r.travels[p] = append(r.travels[p], e.Msg)
		all, err := causal.Unpack(e.Msg.Body, len(r.names))
		if err != nil {
			return err
		}
		for _, one := range all {
			r.wire[m] = append(r.wire[m], string(one.Body))
		}
	}
	return nil
}

// fdeliver lets the layer beneath deliver a broadcast.
func (r *causalRun) fdeliver(p parley.ID, sender string, seq int) error {
	from, err := r.id(sender)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	came := [2]parley.ID{p, from}
	r.next[came]++
	switch {
	case seq != r.next[came]:
		return fmt.Errorf("seq %d: in FIFO order it is the turn of %d", seq, r.next[came])
	case seq > len(r.travels[from]):
		return fmt.Errorf("seq %d: %q has broadcast %d", seq, sender, len(r.travels[from]))
	}
	r.stage.run(p, carried(from, r.travels[from][seq-1]))
	return nil
}
