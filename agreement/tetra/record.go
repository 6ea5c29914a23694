package tetra

import (
	"bytes"
	"encoding/binary"
	"slices"

	"parley"
)

// A log record begins with its type, which is the kind of the message that the process sends with it.

func valueRecord(kind parley.Kind, value []byte) []byte { return append([]byte{byte(kind)}, value...) }

func viewRecord(view uint64) []byte { return binary.AppendUvarint([]byte{byte(Enter)}, view) }

func voteRecord(phase int, x vote) []byte {
	return append(binary.AppendUvarint([]byte{byte(Vote), byte(phase)}, x.view), x.value...)
}

// Decides reports whether a log record says that the instance has decided.
func Decides(rec []byte) bool { return len(rec) > 0 && rec[0] == byte(Decided) }

// memory is what a process must not forget in a crash. Whatever changes it is appended to the log.
type memory struct {
	given, echo, ready word // the source's own value; for what this process said ECHO and READY
	view               uint64
	votes              votes
	before             votes // its votes on entering the view: what it reported once, it must not take back
	decision           word
}

// Decision returns the decided value, if there is one. nil means nothing.
func (d *memory) Decision() (value []byte, decided bool) { return d.decision.value, d.decision.said }

// View returns the current view.
func (d *memory) View() uint64 { return d.view }

// Spoke reports whether this process has said anything about a value, or has left view 0.
func (d *memory) Spoke() bool { return d.given.said || d.echo.said || d.ready.said || d.view > 0 }

// entry is the ENTER of the current view. Its report holds the votes of earlier views, and the claim about view 0,
// which the process has left.
func (d *memory) entry() parley.Msg {
	return parley.Msg{Kind: Enter, Seq: d.view, Body: appendReport(nil, d.ready.value, d.before)}
}

// begin begins a view.
func (d *memory) begin(view uint64) {
	d.view = view
	for k, list := range d.votes {
		d.before[k] = slices.Clone(list)
	}
}

// voted reports whether this process has voted in a phase of the current view.
func (d *memory) voted(phase int) bool { return latest(d.votes[phase-1]).view == d.view }

// Replay reads a record that the instance appended before a crash. Call it in the order of the log. It reports whether
// the record belongs to an instance. Restart follows the last record.
func (d *memory) Replay(rec []byte) bool {
	r := parley.Reader{Rest: rec}
	kind := parley.Kind(r.Number(uint64(Decided)))
	said := word{true, some(r.Rest)}
	switch kind {
	case Proposal:
		d.given = said
	case Echo:
		d.echo = said
	case Ready:
		d.ready = said
	case Decided:
		d.decision = said
	case Enter:
		d.begin(r.Number(maxView))
	case Vote:
		phase, view := r.Number(phases), r.Number(maxView)
		if r.Bad || phase == 0 {
			return false
		}
		d.votes[phase-1] = record(d.votes[phase-1], vote{view, some(r.Rest)})
	default:
		return false
	}
	return !r.Bad
}

// some returns b, or nil if b is empty: nothing has one form.
func some(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}

// appendReport appends the body of an ENTER: the value of the claim, which is empty if the process was ready for none,
// and for each phase the number of votes, and for each vote its view and its value, in the order of values.
func appendReport(b, claim []byte, all votes) []byte {
	b = parley.AppendBytes(b, claim)
	for _, list := range all {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, x := range list {
			b = parley.AppendBytes(binary.AppendUvarint(b, x.view), x.value)
		}
	}
	return b
}

// readReport reads the body of an ENTER of a view. A correct process votes for at most n values and for nothing.
func readReport(b []byte, view uint64, n, limit int) (claim []byte, all votes, ok bool) {
	r := parley.Reader{Rest: b}
	value := func() []byte {
		v := some(r.Bytes())
		r.Bad = r.Bad || len(v) > limit
		return v
	}
	claim = value()
	for k, list := range all {
		for range r.Number(uint64(n) + 1) {
			x := vote{r.Number(view - 1), value()}
			if r.Bad || x.view == 0 || len(list) > 0 && bytes.Compare(list[len(list)-1].value, x.value) >= 0 {
				return nil, all, false
			}
			list = append(list, x)
		}
		all[k] = list
	}
	return claim, all, r.Done()
}

// misfit returns what is wrong with a message, in itself or from this process, or "".
func (h *hearsay) misfit(from parley.ID, m parley.Msg) string {
	timed := m.Kind == Proposal || m.Kind == Wish || m.Kind == Enter || m.Kind == Vote
	needed := m.Kind == Echo || m.Kind == Ready || m.Kind == Vouch || m.Kind == Proposal && m.Seq == 0
	switch {
	case m.Kind == 0 || m.Kind > Decided:
		return "message of no kind"
	case m.Kind != Witness && m.Origin != 0, !timed && m.Seq != 0, m.Kind != Vote && m.Kind != Wish && m.Value != 0,
		m.Kind == Wish && len(m.Body) > 0:
		return "fields that are not used"
	case m.Seq > maxView, m.Seq == 0 && (m.Kind == Enter || m.Kind == Vote || m.Kind == Wish && m.Value == 0):
		return "no such view"
	case m.Kind == Vote && (m.Value == 0 || m.Value > phases), m.Value > 1 && m.Kind == Wish:
		return "no such phase"
	case m.Kind == Witness && (int(m.Origin) >= h.n || m.Origin == from):
		return "claim of no other process"
	case m.Kind == Proposal && from != h.leader(m.Seq):
		return "proposal of a process that does not lead"
	case m.Kind != Enter && len(m.Body) > h.limit, needed && len(m.Body) == 0:
		return "value of a wrong size"
	case m.Kind == Enter:
		if _, _, ok := readReport(m.Body, m.Seq, h.n, h.limit); !ok {
			return "report that cannot be read"
		}
	}
	return ""
}

// State visits every variable.
func (i *Instance) State(v *parley.Vars) {
	v.Durable(func() { i.memory.state(v) })
	parley.Num(v, "wished", &i.wished)
	parley.Num(v, "proposed", &i.proposed)
	i.heard.state(v)
}

var voteNames = [phases]string{"votes 1", "votes 2", "votes 3", "votes 4"}

func (d *memory) state(v *parley.Vars) {
	d.given.state(v, "given")
	d.echo.state(v, "echo")
	d.ready.state(v, "ready")
	parley.Num(v, "view", &d.view)
	d.votes.state(v)
	d.before.state(v)
	d.decision.state(v, "decision")
}

func (h *hearsay) state(v *parley.Vars) {
	h.first.state(v, "proposal of the source")
	parley.PerProcess(v, "of", h.peers, func(_ parley.ID, p *peer) {
		p.echo.state(v, "echo")
		p.ready.state(v, "ready")
		p.decided.state(v, "decided")
		p.offer.state(v, "proposal")
		parley.Num(v, "wish", &p.wish)
		parley.PerProcess(v, "claim, by", p.claims, func(_ parley.ID, w *word) { w.state(v, "ready") })
		parley.Num(v, "report of view", &p.report.view)
		p.report.votes.state(v)
		for k := range p.votes {
			p.votes[k].state(v, voteNames[k])
		}
	})
	parley.Slice(v, "vouched", &h.vouched, func(_ int, x *vouched) {
		v.Bytes("value", &x.value)
		v.Set("by", &x.who)
	})
}

func (w *word) state(v *parley.Vars, name string) {
	v.Bool(name, &w.said)
	v.Bytes(name, &w.value)
}

func (x *vote) state(v *parley.Vars, name string) {
	parley.Num(v, name, &x.view)
	v.Bytes(name, &x.value)
}

func (x *votes) state(v *parley.Vars) {
	for k := range x {
		parley.Slice(v, voteNames[k], &x[k], func(_ int, y *vote) { y.state(v, "view") })
	}
}
