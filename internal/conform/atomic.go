package conform

import (
	"fmt"
	"slices"
	"strconv"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/internal/conform/form"
)

// scriptCase is a script of atomic broadcast with message queues.
type scriptCase struct {
	kinded
	Processes []string     `json:"processes"`
	Steps     []atomicStep `json:"steps"`
}

// atomicStep is one step: a process receives a message and proposes (recv), the sender has all proposals (decide), or
// a process receives the final priority (final).
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

// scriptRun is a script that is being run. An additional process sends all messages, so that each process of the case
// receives a message only when the script says so.
type scriptRun struct {
	cast
	*scriptHost
	sender    parley.ID
	to        map[string]parley.Set // the receivers of each message
	number    map[string]uint64     // of each message sent, from 1
	proposals map[string]map[string]uint64
	final     map[string][2]any
	decided   map[string]bool
	after     []int // the number of deliveries after each step
}

func queues(c scriptCase, want scriptExpect, report reporter) {
	r := c.run()
	for _, m := range form.Keys(want.Proposals) {
		compare(r.cast, report, "proposals."+m, want.Proposals[m], r.proposals[m])
	}
	for _, m := range form.Keys(want.Final) {
		got, known := r.final[m]
		if !known {
			got = [2]any{nil, nil}
		}
		number, by := want.Final[m].numberFirst("expect: final: " + m)
		report("final."+m, [2]any{number, by}, got)
	}
	end := r.deliveries(len(r.above))
	compare(r.cast, report, "delivered", want.Delivered, end)
	for _, step := range form.Keys(want.AfterStep) {
		i, err := strconv.Atoi(step)
		if err != nil || i < 0 || i >= len(r.after) || strconv.Itoa(i) != step {
			fail("expect: after_step: %q is no step of 0 to %d", step, len(r.after)-1)
		}
		compare(r.cast, report, "after_step."+step, want.AfterStep[step], r.deliveries(r.after[i]))
	}
	report("total_order", want.TotalOrder, totallyOrdered(end))
}

// totallyOrdered reports whether any two processes deliver the messages that both deliver in the same order.
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

// deliveries returns what each process has delivered among the first until deliveries.
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

func (c scriptCase) run() *scriptRun {
	k := named("processes", c.Processes)
	n := len(c.Processes)
	if n == parley.MaxProcesses {
		fail("%d processes: there is a sender beside them, and %d is the most", n, n)
	}
	checkSteps("steps", len(c.Steps))
	r := &scriptRun{
		cast: k, scriptHost: newHost(atomic.New(atomic.Config{N: n + 1})), sender: parley.ID(n),
		to: make(map[string]parley.Set), number: make(map[string]uint64),
		proposals: make(map[string]map[string]uint64), final: make(map[string][2]any), decided: make(map[string]bool),
	}
	for _, step := range c.Steps { // a process for which a receipt is listed is a receiver of the message
		if step.Op == "recv" && step.P != nil && slices.Contains(k.names, *step.P) {
			to := r.to[step.M]
			to.Add(k.id("", *step.P))
			r.to[step.M] = to
		}
	}
	for i, step := range c.Steps {
		within(fmt.Sprintf("steps: entry %d", i), func() { r.play(step) })
		r.after = append(r.after, len(r.above))
	}
	return r
}

// play executes one step.
func (r *scriptRun) play(step atomicStep) {
	if step.M == "" {
		fail("m: the name of a message was expected")
	}
	if step.Op == "decide" && step.P == nil {
		r.decide(step.M)
		return
	}
	if step.P == nil || step.Op != "recv" && step.Op != "final" {
		fail("op %q: allowed are recv and final with p and m, and decide with m", step.Op)
	}
	p, kind := r.id("", *step.P), atomic.Final
	if step.Op == "recv" {
		kind = atomic.Req
		r.request(step.M)
	}
	if !r.arrives(r.sender, p, kind, step.M) {
		fail("%s: %q does not get that of %q, or has got it", step.Op, *step.P, step.M)
	}
}

// request lets the sender send a message when its first receipt is due.
func (r *scriptRun) request(m string) {
	if r.number[m] == 0 {
		r.number[m] = uint64(len(r.number)) + 1
		r.proposals[m] = make(map[string]uint64)
		r.scriptHost.run(r.sender, request(problem.RequestTo(r.to[m], []byte(m))))
	}
}

// arrives delivers a message of a kind about m, and reports whether there is one.
func (r *scriptRun) arrives(from, to parley.ID, kind parley.Kind, m string) bool {
	number := r.number[m]
	got, there := r.take(func(l onLink) bool {
		return l.from == from && l.to == to && l.msg.Kind == kind && l.msg.Seq == number
	})
	if there {
		before := len(r.sent)
		r.scriptHost.run(to, receive(from, got.msg))
		r.note(m, r.sent[before:])
	}
	return there
}

// note records the priorities in sent messages.
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

// decide gives the sender all proposals for a message.
func (r *scriptRun) decide(m string) {
	to := r.to[m]
	if r.decided[m] || to.Len() == 0 {
		fail("decide: nobody receives %q, or it is decided", m)
	}
	r.decided[m] = true
	for id := range to.All() {
		if !r.arrives(id, r.sender, atomic.Prop, m) {
			fail("decide: %q has not proposed for %q", r.names[id], m)
		}
	}
}
