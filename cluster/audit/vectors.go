package audit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"parley"
	"parley/agreement/interactive"
	"parley/agreement/stream"
)

// named are the requests and answers for one name.
type named struct {
	requests []parley.ExternalEvent // the Body is the proposed value
	gather   []parley.Tick          // how long each request waits for others
	answers  []parley.ExternalEvent // the first of each node, as a vector
	slots    []uint64
	back     parley.Set // nodes that withdrew their request: no caller waits there
	differs  error      // a node got two different answers
}

// nameJudge judges a stream in which all nodes propose, name by name. It requires nothing of nodes without a
// request, and nothing of a name with requests of fewer than m+1 correct nodes. A value that may have come too
// late for the vector may be missing from it.
type nameJudge struct {
	*evidence
	slots
}

func (j nameJudge) judge(c *Channel) {
	c.Kind = "names"
	j.slots = j.frames()
	all := j.named()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := all[name]
		h := parley.History{N: j.h.N, Over: true, Naming: j.h.Naming}
		failed, asked := j.failed(n)
		if j.unsettled(n) || asked.Minus(failed).Minus(n.back).Len() <= j.p.M && len(n.answers) == 0 {
			c.Unjudged++
			continue
		}
		h.Requests, h.Deliveries = j.inTime(n), n.answers
		facts := j.facts
		facts.Network, facts.Processes = parley.NetworkFaults{}, parley.ProcessFaults{}
		for _, s := range j.slots {
			if slices.Contains(n.slots, s.number) {
				facts.Network.Lost = facts.Network.Lost || s.network.Lost
				facts.Network.Late = facts.Network.Late || s.network.Late
			}
		}
		h.Faulty = union(union(failed, j.unknown), parley.Everyone(j.h.N).Minus(asked))
		h.Faulty = union(h.Faulty, n.back.Minus(n.answered()))
		c.Instances++
		a := j.assumptions(failed, facts)
		where := fmt.Sprintf("name %q", name)
		judged := parley.Judge(j.p, a, &h)
		c.Verdicts = tally(c.Verdicts, append(judged, oneSlot(judged, n)), where)
	}
}

// oneSlot is promised where agreement is: the first slot in which a name is ripe is determined by the vectors of
// slots.
func oneSlot(judged []parley.Verdict, n *named) parley.Verdict {
	v := parley.Verdict{
		Property: parley.Property{Name: "one slot", Says: "all correct processes name the same slot for a vector"},
		Promise:  parley.Promise{Property: "one slot", Because: "vectors may differ", Holds: true},
		Broken:   n.differs,
	}
	for _, one := range judged {
		v.Promise.Holds = v.Promise.Holds && (one.Promise.Holds || one.Property.Name != "agreement")
	}
	if v.Promise.Holds {
		v.Promise.Because = "it is the first one in which the name is ripe"
	}
	return v
}

// answered returns the nodes with an answer.
func (n *named) answered() parley.Set { return whose(n.answers) }

// named groups requests and answers by name.
func (j nameJudge) named() map[string]*named {
	all := make(map[string]*named)
	names := make(map[[2]uint64]string) // of requests, by node and number
	for _, q := range j.h.Requests {
		if q.Msg.Kind == stream.Withdrawn {
			if name, known := names[[2]uint64{uint64(q.At), q.Msg.Value}]; known {
				all[name].back.Add(q.At)
			}
			continue
		}
		if q.Msg.Kind != parley.Propose {
			continue
		}
		name, value := stream.RequestedValue(q.Msg)
		n := all[name]
		if n == nil {
			n = &named{}
			all[name] = n
		}
		names[[2]uint64{uint64(q.At), q.Msg.Value}] = name
		n.gather = append(n.gather, parley.Tick(q.Msg.Seq))
		q.Msg.Body = value
		n.requests = append(n.requests, q)
	}
	for _, d := range j.h.Deliveries {
		name, known := names[[2]uint64{uint64(d.At), d.Msg.Value}]
		if d.Msg.Kind == parley.Decide && known {
			all[name].answer(d, j.h)
		}
	}
	return all
}

// answer records an answer.
func (n *named) answer(d parley.ExternalEvent, h *parley.History) {
	values, ok := stream.AgreedVector(d.Msg, h.N)
	if !ok {
		n.differs = fmt.Errorf("%s got an answer that is no vector", h.Name(d.At))
		return
	}
	for i, v := range values {
		if v == nil {
			values[i] = stream.NoValue()
		}
	}
	slot := d.Msg.Seq
	d.Msg.Seq, d.Msg.Value, d.Msg.Body = 0, 0, interactive.EncodeVector(values)
	for i, before := range n.answers {
		if n.slots[i] != slot {
			n.differs = fmt.Errorf("%s delivered slot %d and %s slot %d", h.Name(before.At), n.slots[i], h.Name(d.At), slot)
		}
		if before.At == d.At {
			if !bytes.Equal(before.Msg.Body, d.Msg.Body) {
				n.differs = fmt.Errorf("%s delivered two vectors", h.Name(d.At))
			}
			return
		}
	}
	n.answers, n.slots = append(n.answers, d), append(n.slots, slot)
}

// failed returns the nodes that failed with respect to a name, and those that requested it.
func (j nameJudge) failed(n *named) (failed, asked parley.Set) {
	failed = union(j.w.Liars, j.crashed)
	var from, to parley.Tick
	for i, q := range n.requests {
		asked.Add(q.At)
		if i == 0 || q.When < from {
			from = q.When
		}
		to = max(to, q.When)
	}
	for _, d := range n.answers {
		to = max(to, d.When)
	}
	answered := n.answered()
	failed = union(failed, j.mute).Minus(answered.Minus(j.w.Liars)) // a node with an answer did not fail before it
	for _, slot := range n.slots {
		if s := j.slots[slot]; s != nil {
			failed = union(failed, s.held.Minus(answered))
		}
	}
	if asked.Minus(failed).Minus(answered) != (parley.Set{}) {
		to = forever
	}
	// A node that was absent meanwhile may have missed the slot in which the name was ripe first.
	return union(failed, j.absences.between(from, to)), asked
}

// unsettled reports whether a name was requested so late that it need not be decided.
func (j nameJudge) unsettled(n *named) bool {
	latest := parley.Tick(0)
	for i, q := range n.requests {
		latest = max(latest, q.When+n.gather[i])
	}
	return latest+parley.Tick(2*j.last+6)*j.round+j.settle > j.end
}

// inTime returns the requests whose values must be in the vector: those made at least one message delay before
// the first node had finished waiting, and those that are in it anyway. A node's first value counts.
func (j nameJudge) inTime(n *named) (out []parley.ExternalEvent) {
	var ripe parley.Tick
	for i, q := range n.requests {
		if when := q.When + n.gather[i]; i == 0 || when < ripe {
			ripe = when
		}
	}
	var first parley.Set
	for _, q := range n.requests {
		if !first.Add(q.At) {
			continue
		}
		if q.When+j.round/5 < ripe || !n.lacks(q.At) {
			q.Msg.Value, q.Msg.Seq = 0, 0
			out = append(out, q)
		}
	}
	return out
}

// lacks reports whether a node has no value in the vectors.
func (n *named) lacks(id parley.ID) bool {
	return !slices.ContainsFunc(n.answers, func(a parley.ExternalEvent) bool {
		vector, err := interactive.DecodeVector(a.Msg.Body)
		return err != nil || !bytes.Equal(vector[id], stream.NoValue())
	})
}
