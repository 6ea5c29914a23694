package ballot

import (
	"encoding/binary"

	"parley"
)

// The body of a promise: the length of the accepted value, the value, the report.

func promiseBody(value, report []byte) []byte {
	if len(value) == 0 && len(report) == 0 {
		return nil
	}
	return append(parley.AppendBytes(nil, value), report...)
}

func readPromise(b []byte) (value, report []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, true
	}
	r := parley.Reader{Rest: b}
	value = r.Bytes()
	if r.Bad || len(value) == 0 && len(r.Rest) == 0 {
		return nil, nil, false
	}
	return value, r.Rest, true
}

// Value returns the value that a message contains, if there is one: a value that is proposed, decided or, in a
// promise, accepted. If an owner cannot handle every value, it checks the value before the instance receives the
// message.
func Value(m parley.Msg) (value []byte, brings bool) {
	switch {
	case m.Kind == Accept || m.Kind == Decision:
		return m.Body, true
	case m.Kind == Promise && m.Value > 0:
		value, _, brings = readPromise(m.Body)
	}
	return value, brings
}

// A log record begins with its type, which is also the kind of the message that the process
// answers, or has received.

func promiseRecord(b uint64) []byte {
	return binary.AppendUvarint([]byte{byte(Prepare)}, b)
}

func acceptRecord(b uint64, value []byte) []byte {
	return append(binary.AppendUvarint([]byte{byte(Accept)}, b), value...)
}

func decisionRecord(value []byte) []byte {
	return append([]byte{byte(Decision)}, value...)
}

// Replay reads a record that the instance appended before a crash. Call it in the order of the log. It reports
// whether the record belongs to the instance. It does not notify the owner.
func (i *Instance) Replay(rec []byte) bool {
	if len(rec) == 0 {
		return false
	}
	what, rest := parley.Kind(rec[0]), rec[1:]
	if what == Decision {
		i.decided, i.decision = true, rest
		i.promised, i.accepted, i.value = 0, 0, nil
		return true
	}
	b, rest, err := parley.ReadUvarint(rest, maxBallot)
	switch {
	case err != nil:
		return false
	case what == Prepare:
		i.promised = b
	case what == Accept:
		i.promised, i.accepted, i.value = b, b, rest
	default:
		return false
	}
	return true
}

// State visits every variable.
func (i *Instance) State(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "promised", &i.promised)
		parley.Num(v, "accepted", &i.accepted)
		v.Bytes("value", &i.value)
		v.Bool("decided", &i.decided)
		v.Bytes("decision", &i.decision)
	})
	v.Bool("fixed", &i.fixed)
	v.Bytes("report", &i.report)
	parley.Num(v, "own", &i.own)
	parley.Num(v, "phase", &i.phase)
	v.Set("promisers", &i.promisers)
	parley.Slice(v, "promises", &i.promises, func(_ int, p *promise) {
		v.ID("from", &p.from)
		parley.Num(v, "accepted", &p.accepted)
		v.Bytes("value", &p.value)
		v.Bytes("report", &p.report)
	})
	v.Bytes("chosen", &i.chosen)
	v.Set("accepts", &i.accepts)
	parley.Num(v, "seen", &i.seen)
}

// ceiling returns the highest ballot that this process accepts from another.
func (i *Instance) ceiling() uint64 {
	return min(max(highest, i.promised, i.seen, i.own)+reach, maxBallot)
}

// misfit returns what is wrong with a message, in itself or from that member, or "".
func (i *Instance) misfit(from parley.ID, m parley.Msg) string {
	rank, n := i.members.rank(from), uint64(len(i.members))
	switch {
	case rank < 0:
		return "message of no member"
	case m.Kind == 0 || m.Kind > Last:
		return "message of no kind"
	case m.Kind == Decision && m.Seq != 0, m.Kind != Promise && m.Value != 0, m.Origin != 0,
		m.Kind != Promise && m.Kind != Accept && m.Kind != Decision && len(m.Body) > 0:
		return "fields that are not used"
	case i.strict && m.Kind == Refuse && m.Seq == 0:
	case m.Kind != Decision && (m.Seq < n || m.Seq > i.ceiling()), m.Value > m.Seq,
		m.Value != 0 && m.Value < n:
		return "no such ballot"
	case (m.Kind == Prepare || m.Kind == Accept) && m.Seq%n != uint64(rank):
		return "ballot of another process"
	}
	return ""
}
