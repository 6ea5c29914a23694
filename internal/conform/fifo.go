package conform

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"parley"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/internal/conform/form"
)

// fifoCase is one receiver of FIFO broadcast.
type fifoCase struct {
	head
	Arrivals []mixed `json:"arrivals"` // R-delivered: sender and sequence number
}

type fifoExpect struct {
	Delivered  []mixed           `json:"delivered"`
	Next       map[string]uint64 `json:"next"`
	Bag        []mixed           `json:"bag"`
	PerArrival [][]mixed         `json:"per_arrival"`
}

// fifoRun is a case that has been run.
type fifoRun struct {
	cast     // the senders; the receiver has the number after them
	receiver parley.Machine
	released [][][2]any // by each arrival
}

func fifoOrder(c fifoCase, want fifoExpect, report reporter) {
	r := c.run()
	delivered := append([][2]any{}, slices.Concat(r.released...)...)
	report("delivered", mixedList("expect: delivered", want.Delivered), delivered)
	if want.PerArrival != nil {
		lists := [][][2]any{}
		for _, one := range want.PerArrival {
			lists = append(lists, mixedList("expect: per_arrival", one))
		}
		report("per_arrival", lists, r.released)
	}
	r.inside(want, report)
}

// inside compares what the receiver waits for and what it holds back.
func (r *fifoRun) inside(want fifoExpect, report reporter) {
	next, bag := make(map[string]uint64), [][2]any{}
	for i, name := range r.names {
		number, early := fifo.Next(r.receiver, parley.ID(i), 1)
		next[name] = number
		for _, seq := range early {
			bag = append(bag, [2]any{name, seq})
		}
	}
	compare(r.cast, report, "next", want.Next, next)
	report("bag", byName(mixedList("expect: bag", want.Bag)), byName(bag))
}

func byName(list [][2]any) [][2]any {
	slices.SortFunc(list, func(a, b [2]any) int {
		return cmp.Or(cmp.Compare(a[0].(string), b[0].(string)), cmp.Compare(a[1].(uint64), b[1].(uint64)))
	})
	return list
}

// The largest sequence number in a case, and the most broadcasts of all senders.
const (
	maxSeq  = 10_000
	maxSent = 100_000
)

// run makes the senders broadcast as often as needed, and passes their messages to the receiver as they arrive.
func (c fifoCase) run() *fifoRun {
	checkSteps("arrivals", len(c.Arrivals))
	last, sum := make(map[string]uint64), uint64(0)
	for i, x := range c.Arrivals {
		name, seq := x.textFirst(fmt.Sprintf("arrivals: entry %d", i))
		if seq < 1 || seq > maxSeq {
			fail("arrivals: entry %d: number %d: allowed are 1 to %d", i, seq, maxSeq)
		}
		if more := max(seq, last[name]) - last[name]; more > 0 {
			last[name], sum = last[name]+more, sum+more
		}
	}
	if sum > maxSent {
		fail("arrivals: %d broadcasts in all: allowed are %d", sum, maxSent)
	}
	k := named("", form.Keys(last))
	n := parley.ID(len(k.names))
	if n == parley.MaxProcesses {
		fail("arrivals: %d senders: there is one receiver, and allowed are %d processes", n, n)
	}
	t := newHost(fifo.New(fifo.Config{N: int(n) + 1}))
	sent := make(map[string][]parley.Msg) // by sender, ordered by number
	for i, name := range k.names {
		t.broadcast = nil
		for seq := range last[name] {
			t.run(parley.ID(i), request(problem.Request(strconv.AppendUint(nil, seq+1, 10))))
		}
		for _, e := range t.broadcast {
			sent[name] = append(sent[name], e.Msg)
		}
		if uint64(len(sent[name])) != last[name] {
			fail("%d of %d broadcasts of %q go down", len(sent[name]), last[name], name)
		}
	}
	r := &fifoRun{cast: k, receiver: t.machines[n], released: [][][2]any{}}
	for _, x := range c.Arrivals {
		name, seq := x.textFirst("")
		t.above = nil
		t.run(n, carried(k.id("", name), sent[name][seq-1]))
		list := [][2]any{}
		for _, h := range t.delivered(n) {
			number, err := strconv.ParseUint(string(h.Msg.Body), 10, 64)
			check("", err)
			list = append(list, [2]any{k.names[h.From], number})
		}
		r.released = append(r.released, list)
	}
	return r
}
