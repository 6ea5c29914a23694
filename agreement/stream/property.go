package stream

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/agreement/problem"
)

// Rejoining is the property that a stream has in addition to the properties of package problem.
const Rejoining = "rejoining"

// streamJudge is a stream whose runs are judged. delay is the longest delay of a message, and
// age the longest duration of a slot.
type streamJudge struct {
	Config
	delay, age parley.Tick
}

// requestRecord is a request, with the answers of its process. When a process restarts, its earlier
// requests are void.
type requestRecord struct {
	parley.ExternalEvent
	name      string // of its vector
	value     []byte
	void      bool
	withdrawn bool                   // it was withdrawn
	answers   []parley.ExternalEvent // Decide, Undecided, Nothing or Unanswered
}

func (q *requestRecord) decided() *parley.ExternalEvent {
	for i := range q.answers {
		if q.answers[i].Msg.Kind == parley.Decide {
			return &q.answers[i]
		}
	}
	return nil
}

// refused reports whether the request came into no slot.
func (q *requestRecord) refused() bool {
	return slices.ContainsFunc(q.answers, func(a parley.ExternalEvent) bool {
		return a.Msg.Kind == Unanswered && a.Msg.Seq == 0
	})
}

// lastRestart returns the last restart of a process in a run, by order and by time.
func lastRestart(h *parley.History, id parley.ID) (order uint64, when parley.Tick, again bool) {
	for _, r := range h.Restarts {
		if r.At == id {
			order, when, again = r.Order, r.When, true
		}
	}
	return order, when, again
}

// requests returns the requests to correct processes, with their answers, and the
// decisions of correct processes. It returns an error for a decision at a source that answers no request.
func (j streamJudge) requests(h *parley.History) (list []requestRecord, decisions []parley.ExternalEvent, err error) {
	for _, q := range h.Requests {
		if q.Msg.Kind == Withdrawn {
			for i := range list {
				list[i].withdrawn = list[i].withdrawn || list[i].At == q.At && list[i].Msg.Value == q.Msg.Value
			}
		}
		if q.Msg.Kind != parley.Propose || !h.Correct(q.At) || !j.All() && q.At != j.Source {
			continue
		}
		one := requestRecord{ExternalEvent: q, value: q.Msg.Body}
		if j.All() {
			one.name, one.value = RequestedValue(q.Msg)
		}
		order, _, _ := lastRestart(h, q.At)
		one.void = q.Order < order
		list = append(list, one)
	}
	told := slices.Concat(h.Deliveries, h.Indications)
	slices.SortStableFunc(told, func(a, b parley.ExternalEvent) int { return cmp.Compare(a.Order, b.Order) })
	for _, d := range told {
		switch {
		case !h.Correct(d.At):
		case d.Msg.Kind == Undecided || d.Msg.Kind == Unanswered || d.Msg.Kind == Nothing:
			answers(h, list, d)
		case d.Msg.Kind == parley.Decide:
			decisions = append(decisions, d)
			if (j.All() || d.At == j.Source) && !answers(h, list, d) && err == nil {
				err = fmt.Errorf("%s decides in slot %d without a request", h.Name(d.At), d.Msg.Seq)
			}
		}
	}
	return list, decisions, err
}

// answers adds an answer to its request, in the same incarnation of the process: the first one of that
// number without an answer, otherwise the last; a refusal comes in the step of its request, so that it
// belongs to the last one. It reports whether there is such a request.
func answers(h *parley.History, list []requestRecord, a parley.ExternalEvent) bool {
	at := -1
	for i := range list {
		q := &list[i]
		between := func(r parley.ExternalEvent) bool { return r.At == a.At && q.Order < r.Order && r.Order < a.Order }
		if q.At != a.At || q.Msg.Value != a.Msg.Value || q.Order > a.Order || slices.ContainsFunc(h.Restarts, between) {
			continue
		}
		if at = i; len(q.answers) == 0 && a.Msg.Seq > 0 {
			break
		}
	}
	if at >= 0 {
		list[at].answers = append(list[at].answers, a)
	}
	return at >= 0
}

// properties returns the promises to clients of a stream, agreement by agreement.
func (j streamJudge) properties() []parley.Property {
	what, check := "slot", j.values
	termination := "every request of a correct process is decided; if the source is correct, every process that never " +
		"restarts decides"
	if !j.Timed() {
		termination = "every request of a correct process is decided, or decided on nothing; if the source is correct, " +
			"every process that never restarts decides the last Window slots"
	}
	validity := "if a request of a correct source enters a slot, the slot decides the value of that request"
	if !j.Timed() {
		validity = "if a request of a correct source enters a slot, the slot decides the value of that request, or nothing"
	}
	if j.All() {
		what, check = "name", j.entries
		validity = "the vector of a name has for each correct process the value that it asked with, if it was in time"
	}
	return []parley.Property{{
		Name: problem.Agreement, Mode: parley.Always,
		Says:    "all correct processes that decide on a " + what + " decide the same, before and after a restart",
		Check:   j.agreement,
		Vacuous: j.vacuous,
	}, {
		Name: problem.Validity, Mode: parley.Always, Says: validity,
		Check: check, Vacuous: j.vacuous,
	}, {
		Name: problem.Integrity, Mode: parley.Always,
		Says:  "no correct process decides twice on a slot, or answers a request twice",
		Check: j.integrity, Vacuous: j.vacuous,
	}, {
		Name: problem.Termination, Mode: parley.Eventually,
		Says:  termination,
		Check: j.termination,
	}, {
		Name: Rejoining, Mode: parley.Eventually,
		Says:    "a correct process that has been up again for three slots decides on each request",
		Check:   j.rejoining,
		Vacuous: j.stayed,
	}}
}

// vacuous returns why nothing is demanded of a run without decisions, or "".
func (j streamJudge) vacuous(h *parley.History) string {
	if _, decisions, _ := j.requests(h); len(decisions) == 0 {
		return "no correct process decides"
	}
	return ""
}

// agreement: decisions of the same slot, or vectors of the same name, are equal.
func (j streamJudge) agreement(h *parley.History) error {
	list, decisions, _ := j.requests(h)
	if !j.All() {
		first := make(map[uint64]parley.ExternalEvent)
		for _, d := range decisions {
			if f, known := first[d.Msg.Seq]; !known {
				first[d.Msg.Seq] = d
			} else if !bytes.Equal(f.Msg.Body, d.Msg.Body) {
				return fmt.Errorf("in slot %d %s decides %s and %s decides %s", d.Msg.Seq, h.Name(f.At),
					parley.Printable(f.Msg.Body), h.Name(d.At), parley.Printable(d.Msg.Body))
			}
		}
		for _, i := range h.Indications {
			if f, known := first[i.Msg.Seq]; known && i.Msg.Kind == Nothing && h.Correct(i.At) {
				return fmt.Errorf("in slot %d %s decides %s and %s decides nothing", i.Msg.Seq, h.Name(f.At),
					parley.Printable(f.Msg.Body), h.Name(i.At))
			}
		}
		return nil
	}
	first := make(map[string]*parley.ExternalEvent)
	for i := range list {
		d := list[i].decided()
		if d == nil {
			continue
		}
		name := list[i].name
		if f := first[name]; f == nil {
			first[name] = d
		} else if f.Msg.Seq != d.Msg.Seq || !bytes.Equal(f.Msg.Body, d.Msg.Body) {
			return fmt.Errorf("%s has the vector %s of %q from slot %d, and %s has %s from slot %d", h.Name(f.At),
				parley.Printable(f.Msg.Body), name, f.Msg.Seq, h.Name(d.At), parley.Printable(d.Msg.Body), d.Msg.Seq)
		}
	}
	return nil
}

// values: a decision in a stream of one source was requested, and in the slot in
// which it is decided.
func (j streamJudge) values(h *parley.History) error {
	if !h.Correct(j.Source) {
		return nil
	}
	list, decisions, err := j.requests(h)
	if err != nil {
		return err
	}
	for _, d := range decisions {
		var in, any *requestRecord
		for i := range list {
			q := &list[i]
			if slices.ContainsFunc(q.answers, func(a parley.ExternalEvent) bool { return a.Msg.Seq == d.Msg.Seq }) {
				in = q
			}
			if q.Order < d.Order && !q.refused() && bytes.Equal(q.value, d.Msg.Body) {
				any = q
			}
		}
		switch said := parley.Printable(d.Msg.Body); {
		case any == nil:
			return fmt.Errorf("%s decides %s in slot %d, which no process requested", h.Name(d.At), said, d.Msg.Seq)
		case in == nil:
		case !bytes.Equal(in.value, d.Msg.Body):
			return fmt.Errorf("%s decides %s in slot %d, but the correct source sent %s", h.Name(d.At), said, d.Msg.Seq,
				parley.Printable(in.value))
		case in.answers[0].Msg.Kind == Undecided:
			return fmt.Errorf("%s decides %s in slot %d, but the source is notified that no process does",
				h.Name(d.At), said, d.Msg.Seq)
		}
	}
	return nil
}

// entries: vectors have the values of correct processes' requests, and omit no process that was in time.
func (j streamJudge) entries(h *parley.History) error {
	list, _, err := j.requests(h)
	if err != nil {
		return err
	}
	for i := range list {
		d := list[i].decided()
		if d == nil {
			continue
		}
		vector, ok := AgreedVector(d.Msg, h.N)
		if !ok {
			return fmt.Errorf("%s decides a value that is not a vector", h.Name(d.At))
		}
		for id, v := range vector {
			if err := j.entry(h, list, list[i].name, parley.ID(id), v); err != nil {
				return fmt.Errorf("%s has a vector of %q in which %w", h.Name(d.At), list[i].name, err)
			}
		}
	}
	return nil
}

// entry: one process's value in the vector of a name is a value that it requested, and is there if
// the process requested it in time and all its requests together fit into one slot.
func (j streamJudge) entry(h *parley.History, list []requestRecord, name string, id parley.ID, v []byte) error {
	if !h.Correct(id) {
		return nil
	}
	var ripe, first parley.Tick = -1, -1
	asks, excused, size := false, false, 0
	for i := range list {
		q := &list[i]
		if when := q.When + parley.Tick(q.Msg.Seq); q.name == name && (ripe < 0 || when < ripe) {
			ripe = when
		}
		if q.At != id {
			continue
		}
		if size += len(item{q.name, q.value}.append(nil)) + 1; q.name == name {
			asks, excused = asks || bytes.Equal(q.value, v), excused || q.withdrawn
			if first < 0 {
				first = q.When
			}
		}
	}
	_, _, again := lastRestart(h, id)
	excused = excused || again || size > j.Limit()
	switch {
	case v != nil && !asks:
		return fmt.Errorf("%s has the value %s, but did not propose it", h.Name(id), parley.Printable(v))
	case v == nil && first >= 0 && first+j.delay < ripe && !excused:
		return fmt.Errorf("%s has no value, but proposed one in time", h.Name(id))
	}
	return nil
}

func (j streamJudge) integrity(h *parley.History) error {
	list, decisions, _ := j.requests(h)
	type place struct {
		at   parley.ID
		slot uint64
	}
	once := make(map[place]bool)
	for _, d := range decisions {
		here := place{d.At, d.Msg.Seq}
		if !j.All() && once[here] {
			return fmt.Errorf("%s decides twice in slot %d", h.Name(d.At), d.Msg.Seq)
		}
		once[here] = true
	}
	for _, q := range list {
		if len(q.answers) > 1 {
			return fmt.Errorf("%s answers a request for %s twice", h.Name(q.At), parley.Printable(q.value))
		}
	}
	return nil
}

func (j streamJudge) termination(h *parley.History) error {
	if !h.Over {
		return nil
	}
	list, decisions, _ := j.requests(h)
	for i := range list {
		q := &list[i]
		_, _, again := lastRestart(h, q.At)
		switch {
		case q.void || q.withdrawn || j.All() && len(j.askers(list, q.name)) <= j.M:
		case len(q.answers) == 0:
			return fmt.Errorf("%s has no answer to its request for %s", h.Name(q.At), parley.Printable(q.value))
		case q.decided() != nil, j.All() && again, !j.All() && q.refused() && len(list) > j.Window:
		case q.answers[0].Msg.Kind == Nothing:
		default:
			return fmt.Errorf("%s requested %s, but nothing is decided", h.Name(q.At), parley.Printable(q.value))
		}
	}
	last := uint64(0)
	for _, d := range decisions {
		last = max(last, d.Msg.Seq)
	}
	for _, d := range decisions {
		// Processes keep only the last Window slots, and a faulty source may leave out any number of slots.
		if !j.Timed() && (!h.Correct(j.Source) || d.Msg.Seq+uint64(j.Window) <= last) {
			continue
		}
		for id := range parley.Everyone(h.N).Minus(h.Faulty).All() {
			if _, _, again := lastRestart(h, id); !j.All() && !again && !decidedIn(decisions, id, d.Msg.Seq) {
				return fmt.Errorf("%s decides in slot %d, but %s does not", h.Name(d.At), d.Msg.Seq, h.Name(id))
			}
		}
	}
	return nil
}

// askers returns the correct processes that requested a name, and have neither withdrawn that nor
// restarted since.
func (j streamJudge) askers(list []requestRecord, name string) map[parley.ID]bool {
	all := make(map[parley.ID]bool)
	for i := range list {
		if q := &list[i]; q.name == name && !q.void && !q.withdrawn {
			all[q.At] = true
		}
	}
	return all
}

func decidedIn(decisions []parley.ExternalEvent, id parley.ID, slot uint64) bool {
	return slices.ContainsFunc(decisions, func(d parley.ExternalEvent) bool { return d.At == id && d.Msg.Seq == slot })
}

// rejoining: a process that restarted decides on requests that come long enough after that.
func (j streamJudge) rejoining(h *parley.History) error {
	list, decisions, _ := j.requests(h)
	for id, q := range j.late(h, list) {
		switch d := q.decided(); {
		case j.All() && q.At == id && d == nil:
			return fmt.Errorf("%s has rejoined, but does not decide on %q", h.Name(id), q.name)
		case !j.All() && d != nil && !decidedIn(decisions, id, d.Msg.Seq):
			return fmt.Errorf("%s has rejoined, but does not decide in slot %d", h.Name(id), d.Msg.Seq)
		}
	}
	return nil
}

// late iterates over all pairs of a correct process that restarted and a request that it must
// decide, if any process does, in a run that is over.
func (j streamJudge) late(h *parley.History, list []requestRecord) iter.Seq2[parley.ID, *requestRecord] {
	return func(yield func(parley.ID, *requestRecord) bool) {
		for id := range parley.Everyone(h.N).Minus(h.Faulty).All() {
			_, when, again := lastRestart(h, id)
			if !again || !h.Over {
				continue
			}
			for i := range list {
				q := &list[i]
				known := func(other requestRecord) bool { return other.name == q.name && other.When < when+3*j.age }
				void := j.All() && (len(j.askers(list, q.name)) <= j.M || q.withdrawn || slices.ContainsFunc(list, known))
				if q.When >= when+3*j.age && !void && !yield(id, q) {
					return
				}
			}
		}
	}
}

// stayed returns why nothing is demanded of processes that restart, or "".
func (j streamJudge) stayed(h *parley.History) string {
	list, _, _ := j.requests(h)
	for range j.late(h, list) {
		return ""
	}
	return "no process restarts, or nothing is requested after a restart"
}
