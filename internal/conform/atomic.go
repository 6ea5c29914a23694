package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/internal/conform/form"
)

// byKind runs a case of a family of which there are several kinds.
func byKind(kinds map[string]func(raw []byte, report reporter) error) func(raw []byte, report reporter) error {
	return func(raw []byte, report reporter) error {
		var c struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return form.Decode(raw, &c)
		}
		run, known := kinds[c.Kind]
		if !known {
			return fmt.Errorf("kind %q: allowed are %s", c.Kind, form.Listed(form.Keys(kinds)))
		}
		return run(raw, report)
	}
}

// kinded is the head of such a case.
type kinded struct {
	head
	Kind string `json:"kind"`
}

// scriptCase is a script of atomic broadcast with message queues.
type scriptCase struct {
	kinded
	Processes []string     `json:"processes"`
	Steps     []atomicStep `json:"steps"`
}

// atomicStep is: a process receives a message and proposes (recv), the sender has
// all proposals (decide), or a process receives the final priority (final).
type atomicStep struct {
	Op string  `json:"op"`
	P  *string `json:"p"`
	M  string  `json:"m"`
}

type scriptExpect struct {
	Proposals  map[string]map[string]uint64   `json:"proposals"`
	Final      map[string]mixed               `json:"final"`
	Delivered  map[string][]string            `json:"delivered"`
	AfterStep  map[string]map[string][]string `json:"after_step"`
	TotalOrder *bool                          `json:"total_order"`
}

// scriptRun is a script that is being run. A process beyond those of the case is the
// sender of all messages, so that each of them receives a message when it is said to.
type scriptRun struct {
	cast
	*stage
	sender    parley.ID
	to        map[string]parley.Set // the receivers of each message
	number    map[string]uint64     // of the messages that were sent, from 1
	proposals map[string]map[string]uint64
	final     map[string][2]any
	decided   map[string]bool
	after     []int // how much was delivered after each step
}

func queues(raw []byte, report reporter) error {
	var c scriptCase
	var want scriptExpect
	if err := read(raw, &c, &want); err != nil {
		return err
	}
	r, err := c.run()
	if err != nil {
		return err
	}
	for _, m := range form.Keys(want.Proposals) {
		if _, err := r.ids(form.Keys(want.Proposals[m])); err != nil {
			return fmt.Errorf("expect: proposals: %s: %w", m, err)
		}
		report("proposals."+m, want.Proposals[m], among(want.Proposals[m], r.proposals[m]))
	}
	for _, m := range form.Keys(want.Final) {
		number, by, err := want.Final[m].numberFirst()
		if err != nil {
			return fmt.Errorf("expect: final: %s: %w", m, err)
		}
		got, known := r.final[m]
		if !known {
			got = [2]any{nil, nil}
		}
		report("final."+m, [2]any{number, by}, got)
	}
	return r.order(want, report)
}

// order compares what was delivered.
func (r *scriptRun) order(want scriptExpect, report reporter) error {
	end := r.deliveries(len(r.above))
	if want.Delivered != nil {
		if _, err := r.ids(form.Keys(want.Delivered)); err != nil {
			return fmt.Errorf("expect: delivered: %w", err)
		}
		report("delivered", want.Delivered, among(want.Delivered, end))
	}
	for _, step := range form.Keys(want.AfterStep) {
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(r.after) || strconv.Itoa(i) != step {
			return fmt.Errorf("expect: after_step: %q is no step of 0 to %d", step, len(r.after)-1)
		}
		of := want.AfterStep[step]
		if _, err := r.ids(form.Keys(of)); err != nil {
			return fmt.Errorf("expect: after_step: %s: %w", step, err)
		}
		report("after_step."+step, of, among(of, r.deliveries(r.after[i])))
	}
	if want.TotalOrder != nil {
		report("total_order", *want.TotalOrder, totallyOrdered(end))
	}
	return nil
}

// totallyOrdered tells whether any two processes deliver what both do in one order.
func totallyOrdered(delivered map[string][]string) bool {
	names := form.Keys(delivered)
	for i, a := range names {
		for _, b := range names[:i] {
			shared := func(in []string, of []string) []string {
				return slices.DeleteFunc(slices.Clone(of), func(m string) bool { return !slices.Contains(in, m) })
			}
			if !slices.Equal(shared(delivered[a], delivered[b]), shared(delivered[b], delivered[a])) {
				return false
			}
		}
	}
	return true
}

// deliveries returns what each process delivered up to some moment.
func (r *scriptRun) deliveries(until int) map[string][]string {
	out := make(map[string][]string)
	for _, name := range r.names {
		out[name] = []string{}
	}
	for _, h := range r.above[:until] {
		name := r.name(h.At)
		out[name] = append(out[name], string(h.Msg.Body))
	}
	return out
}

func (c scriptCase) run() (*scriptRun, error) {
	k, err := named(c.Processes)
	switch n := len(c.Processes); {
	case err != nil:
		return nil, fmt.Errorf("processes: %w", err)
	case n == parley.MaxProcesses:
		return nil, fmt.Errorf("%d processes: there is a sender beside them, and %d is the most", n, n)
	case len(c.Steps) > maxSteps:
		return nil, fmt.Errorf("%d steps: allowed are %d", len(c.Steps), maxSteps)
	}
	n := len(k.names) + 1
	r := &scriptRun{
		cast: k, stage: newStage(atomic.New(atomic.Config{N: n})), sender: parley.ID(n - 1),
		to: make(map[string]parley.Set), number: make(map[string]uint64),
		proposals: make(map[string]map[string]uint64), final: make(map[string][2]any), decided: make(map[string]bool),
	}
	for _, step := range c.Steps { // whoever receives a message is one of its receivers
		if step.Op == "recv" && step.P != nil {
			if id, err := k.id(*step.P); err == nil {
				to := r.to[step.M]
				to.Add(id)
				r.to[step.M] = to
			}
		}
	}
	for i, step := range c.Steps {
		if err := r.play(step); err != nil {
			return nil, fmt.Errorf("steps: entry %d: %w", i, err)
		}
		r.after = append(r.after, len(r.above))
	}
	return r, nil
}

var errStep = errors.New("allowed are recv and final with p and m, and decide with m")

// play carries out one step.
func (r *scriptRun) play(step atomicStep) error {
	if step.M == "" {
		return errors.New("m: the name of a message was expected")
	}
	if step.Op == "decide" && step.P == nil {
		return r.decide(step.M)
	}
	if step.P == nil || step.Op != "recv" && step.Op != "final" {
		return fmt.Errorf("op %q: %w", step.Op, errStep)
	}
	p, err := r.id(*step.P)
	if err != nil {
		return err
	}
	kind := atomic.Final
	if step.Op == "recv" {
		kind = atomic.Req
		r.request(step.M)
	}
	if !r.arrives(r.sender, p, kind, step.M) {
		return fmt.Errorf("%s: %q does not get that of %q, or has got it", step.Op, *step.P, step.M)
	}
	return nil
}

// request lets the sender send a message, when the first one is to receive it.
func (r *scriptRun) request(m string) {
	if r.number[m] == 0 {
		r.number[m] = uint64(len(r.number)) + 1
		r.proposals[m] = make(map[string]uint64)
		r.stage.run(r.sender, request(problem.RequestTo(r.to[m], []byte(m))))
	}
}

// arrives lets a message of a kind about m arrive, and tells whether there is one.
func (r *scriptRun) arrives(from, to parley.ID, kind parley.Kind, m string) bool {
	number := r.number[m]
	got, there := r.take(func(l onLink) bool {
		return l.from == from && l.to == to && l.msg.Kind == kind && l.msg.Seq == number
	})
	if there {
		before := len(r.sent)
		r.stage.run(to, receive(from, got.msg))
		r.note(m, r.sent[before:])
	}
	return there
}

// note takes down the priorities that processes tell of.
func (r *scriptRun) note(m string, sent []onLink) {
	for _, l := range sent {
		switch p, _ := atomic.PriorityOf(l.msg, l.from, r.protocol.N); l.msg.Kind {
		case atomic.Prop:
			r.proposals[m][r.names[l.from]] = p.Number
		case atomic.Final:
			r.final[m] = [2]any{p.Number, r.names[p.By]}
		}
	}
}

// decide lets the sender have all proposals for a message.
func (r *scriptRun) decide(m string) error {
	to := r.to[m]
	if r.decided[m] || to.Len() == 0 {
		return fmt.Errorf("decide: nobody receives %q, or it is decided", m)
	}
	r.decided[m] = true
	for id := range to.All() {
		if !r.arrives(id, r.sender, atomic.Prop, m) {
			return fmt.Errorf("decide: %q has not proposed for %q", r.names[id], m)
		}
	}
	return nil
}
