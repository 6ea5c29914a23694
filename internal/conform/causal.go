package conform

import (
	"fmt"
	"slices"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/problem"
)

// causalCase is a script of causal broadcast in the piggybacking form, on top of a FIFO broadcast whose deliveries
// the script gives.
type causalCase struct {
	head
	Processes []string     `json:"processes"`
	Steps     []causalStep `json:"steps"`
}

// causalStep is a broadcast, or a delivery by the layer below.
type causalStep struct {
	Op   string  `json:"op"` // broadcast or fdeliver
	P    string  `json:"p"`
	M    *string `json:"m"`    // broadcast: the message
	From *string `json:"from"` // fdeliver: the sender
	Seq  *int    `json:"seq"`  // fdeliver: the number of the sender's broadcast, from 1
}

type causalExpect struct {
	Wire      map[string][]string `json:"wire"`      // by message: the sequence that is sent
	Delivered map[string][]string `json:"delivered"` // by process
	Prev      map[string][]string `json:"prev"`      // by process: the final prevDlvs
	Before    []pair              `json:"before"`    // wherever the second is delivered, the first is delivered before
}

// causalRun is a script that is being run.
type causalRun struct {
	cast
	*scriptHost
	travels map[parley.ID][]parley.Msg // by sender, in the order of its broadcasts
	wire    map[string][]string
	next    map[[2]parley.ID]int // by receiver and sender: the number of arrivals
}

func causalOrder(c causalCase, want causalExpect, report reporter) {
	r := c.run()
	report("wire", want.Wire, among(want.Wire, r.wire))
	delivered, prev := make(map[string][]string), make(map[string][]string)
	for i, name := range r.names {
		delivered[name], prev[name] = r.texts(parley.ID(i)), []string{}
		for _, m := range causal.Previous(r.machines[i]) {
			prev[name] = append(prev[name], string(m.Body))
		}
	}
	compare(r.cast, report, "delivered", want.Delivered, delivered)
	compare(r.cast, report, "prev", want.Prev, prev)
	if want.Before != nil {
		before(want.Before, delivered, report)
	}
}

// before compares the pairs of which the first must be delivered before the second.
func before(want []pair, delivered map[string][]string, report reporter) {
	if len(want) == 0 {
		fail("expect: before: an empty list says nothing")
	}
	holds := []pair{}
	for _, p := range want {
		somewhere, everywhere := false, true
		for _, list := range delivered { // order: any of them, or all
			if second := slices.Index(list, p[1]); second >= 0 {
				somewhere, everywhere = true, everywhere && slices.Contains(list[:second], p[0])
			}
		}
		if !somewhere {
			fail("expect: before: %q is delivered nowhere", p[1])
		}
		if everywhere {
			holds = append(holds, p)
		}
	}
	report("before", want, holds)
}

// texts returns the texts that a process has delivered.
func (t *scriptHost) texts(at parley.ID) []string {
	out := []string{}
	for _, h := range t.delivered(at) {
		out = append(out, string(h.Msg.Body))
	}
	return out
}

func (c causalCase) run() *causalRun {
	k := named("processes", c.Processes)
	checkSteps("steps", len(c.Steps))
	r := &causalRun{
		cast: k, scriptHost: newHost(causal.New(causal.Config{N: len(k.names), Most: -1})),
		travels: make(map[parley.ID][]parley.Msg), wire: make(map[string][]string), next: make(map[[2]parley.ID]int),
	}
	for i, step := range c.Steps {
		within(fmt.Sprintf("steps: entry %d", i), func() { r.play(step) })
	}
	return r
}

// play executes one step.
func (r *causalRun) play(step causalStep) {
	p := r.id("", step.P)
	switch {
	case step.Op == "broadcast" && step.M != nil && step.From == nil && step.Seq == nil:
		r.send(p, *step.M)
	case step.Op == "fdeliver" && step.M == nil && step.From != nil && step.Seq != nil:
		r.fdeliver(p, *step.From, *step.Seq)
	default:
		fail("op %q: allowed are broadcast with p and m, and fdeliver with p, from and seq", step.Op)
	}
}

// maxName is the maximum length of the name of a message, in bytes.
const maxName = 100

// send makes a process broadcast a message.
func (r *causalRun) send(p parley.ID, m string) {
	if _, twice := r.wire[m]; twice || m == "" || len(m) > maxName {
		fail("message %q: names are different, not empty and at most %d bytes long", m, maxName)
	}
	r.broadcast, r.wire[m] = nil, []string{}
	r.scriptHost.run(p, request(problem.Request([]byte(m))))
	for _, e := range r.broadcast {
		r.travels[p] = append(r.travels[p], e.Msg)
		all, err := causal.Unpack(e.Msg.Body, len(r.names))
		check("", err)
		for _, one := range all {
			r.wire[m] = append(r.wire[m], string(one.Body))
		}
	}
}

// fdeliver makes the layer below deliver a broadcast.
func (r *causalRun) fdeliver(p parley.ID, sender string, seq int) {
	from := r.id("from", sender)
	came := [2]parley.ID{p, from}
	r.next[came]++
	switch {
	case seq != r.next[came]:
		fail("seq %d: in FIFO order it is the turn of %d", seq, r.next[came])
	case seq > len(r.travels[from]):
		fail("seq %d: %q has broadcast %d", seq, sender, len(r.travels[from]))
	}
	r.scriptHost.run(p, carried(from, r.travels[from][seq-1]))
}
