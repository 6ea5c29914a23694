package cluster

import (
	"slices"
	"strconv"

	"parley"
	"parley/agreement/ballot"
	"parley/broadcast/problem"
	commit "parley/commit/problem"
	"parley/commit/twophase"
)

// What transactions hear of other nodes, and how they end.

// Receive is from a link.
func (m *transactions) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	path := s.Path
	switch {
	case q.Kind >= parley.Local:
		return
	case int(coordinatorOf(path)) >= m.c.n:
		s.Refuse(from, "transaction of nobody")
	case q.Kind == txDone:
		m.done(s, from, q)
	case q.Kind == txOpen:
		m.opened(s, from, q)
	case q.Kind == txBegin:
		m.begun(s, from, path, q)
	default:
		m.hear(s, from, path, q)
	}
	m.compact(s)
}

// begun: somebody says what a transaction is. The coordinator asks for a vote; others ask
// what became of it, and who has not heard of it then has not said yes, and says no.
func (m *transactions) begun(s *parley.Step, from parley.ID, path parley.Path, q parley.Msg) {
	of, ok := readSheet(q.Body, m.c.n)
	id, asks := coordinatorOf(path), q.Seq == 1
	switch {
	case !ok || q.Seq > 1 || q.Origin != 0 || of.members[0] != id || !of.has(m.self) || !of.has(from) ||
		asks && from != id || !asks && len(of.parts) > 0 || len(of.parts) > 1 ||
		len(of.parts) == 1 && of.parts[0].id != m.self || q.Value > numberOf(path):
		s.Refuse(from, "what is no transaction")
		return
	case id == m.self || m.live[path] != nil || m.past.at[path] != nil:
		return // it is known, or not any more
	}
	c := &m.of[id]
	switch {
	case c.over(numberOf(path)), !asks && m.blank > 0: // it may have said yes, and lost that
		return
	case len(c.list) >= 4*m.c.open:
		s.Refuse(from, "too many transactions")
		return
	}
	why := ending{by: m.self}
	switch taken := m.taking(of); {
	case !asks:
		why.text = "has not been asked"
	case taken != free:
		why.text, why.taken, of.parts = "a transaction has had this name already", taken, nil
	case c.bytes+of.size() > mostParts:
		why.text, of.parts = "too much is under way", nil
	}
	t := &transaction{path: path, sheet: of, inner: m.machine(of)}
	m.add(t)
	m.within(s, t, func(inner parley.Machine) { inner.Start(s) })
	if why.text != "" {
		m.voted(s, t, false, why)
	} else {
		m.ask(s, t)
	}
	if asks && q.Value > c.low {
		c.low = q.Value
		m.drop(id, func(t *transaction) bool { return t.told && numberOf(t.path) < c.low })
	}
}

// over tells whether a transaction of the coordinator is, as it has said.
func (c *coordinated) over(number uint64) bool {
	if number < c.low {
		return true
	}
	_, open := slices.BinarySearch(c.open, number)
	return number < c.below && !open
}

// hear is a message of a machine inside, or about a vote.
func (m *transactions) hear(s *parley.Step, from parley.ID, path parley.Path, q parley.Msg) {
	t := m.live[path]
	if t == nil {
		m.unknown(s, from, path, q)
		return
	}
	place := t.sheet.place(from)
	switch {
	case int(place) >= len(t.sheet.members):
		s.Refuse(from, "word of one that takes no part")
	case q.Kind == txWhy:
		if coordinatorOf(path) != m.self || t.why.text != "" || len(q.Body) > maxWhy || q.Value > 1 ||
			q.Seq > uint64(takenByAbort) {
			s.Refuse(from, "reason that nobody asked for")
			return
		}
		t.why = ending{by: from, text: string(q.Body)}
		if q.Value == 1 {
			t.why.taken = max(taking(q.Seq), takenPerhaps)
		}
	case q.Kind >= txBegin:
		s.Refuse(from, "no message of a transaction")
	// The machine inside would forget what is logged everywhere: here it has to be carried out.
	case m.c.protocol == TwoPhase && q.Kind == twophase.Ack:
	default:
		t.heard.Add(from)
		m.within(s, t, func(inner parley.Machine) { inner.Receive(s, place, q) })
		if m.c.protocol == TwoPhase && q.Kind == twophase.VoteRequest && from == coordinatorOf(path) {
			t.asked = true
			m.give(s, t, false)
		}
	}
}

// unknown is a message of a transaction that is over here, or never was. Who remembers the
// outcome tells it to who asks; a coordinator presumes an abort of what it does not.
func (m *transactions) unknown(s *parley.Step, from parley.ID, path parley.Path, q parley.Msg) {
	outcome := commit.Undecided
	if e := m.past.at[path]; e != nil {
		outcome = e.outcome
	}
	own := coordinatorOf(path) == m.self
	switch number := numberOf(path); {
	case own && number >= m.next:
		s.Refuse(from, "word of a transaction that is not there")
		return
	case own && outcome == commit.Undecided && number >= m.blank:
		outcome = commit.Abort
	}
	switch {
	case outcome != commit.Undecided:
	// What it is was lost on the way, or with a crash.
	case m.c.protocol == TwoPhase && q.Kind == twophase.VoteRequest && from == coordinatorOf(path):
		m.send(s, from, path, parley.Msg{Kind: twophase.Vote})
		return
	default:
		s.Refuse(from, "word of a transaction that is over, or not known")
		return
	}
	value := uint64(0)
	if outcome == commit.Commit {
		value = 1
	}
	switch majority := m.c.protocol == Majority; {
	case majority && (q.Kind == ballot.Prepare || q.Kind == ballot.Accept):
		m.send(s, from, path, parley.Msg{Kind: ballot.Decision, Body: []byte(outcome.String())})
	case !majority && own && (q.Kind == twophase.Ask || q.Kind == twophase.Vote && q.Value == 1):
		m.send(s, from, path, parley.Msg{Kind: twophase.Decision, Value: value})
	case !majority && !own && q.Kind == twophase.Ask:
		m.send(s, from, path, parley.Msg{Kind: twophase.Answer, Value: uint64(outcome.Reached())})
	}
}

// Timeout is of a machine inside, or of this one.
func (m *transactions) Timeout(s *parley.Step, timer parley.Timer) {
	if s.Path == 0 && timer == openTimer {
		m.pulse = false
		if m.remind(s) {
			m.beat(s)
		}
		return
	}
	if t := m.live[s.Path]; t != nil && timer == voteTimer {
		if !t.ready {
			m.voted(s, t, false, ending{by: m.self, text: "was not ready in time"})
		}
		m.give(s, t, true)
	} else if t != nil {
		m.within(s, t, func(inner parley.Machine) { inner.Timeout(s, timer) })
	}
	m.compact(s)
}

// decided: the machine inside has an outcome, which is durable before anybody is told.
func (m *transactions) decided(s *parley.Step, t *transaction, outcome commit.Outcome) {
	if t.outcome != commit.Undecided {
		return
	}
	if outcome == commit.Commit {
		t.why = ending{}
	}
	t.outcome, t.blocked = outcome, false
	why, q := t.why, m.ended(t.path, t.sheet.name, outcome, t.why)
	if _, has := t.sheet.part(m.self); has && !t.told {
		q.Origin = 1
	}
	if !m.holds(t) { // who waits under the name waits for another one
		why.taken = max(why.taken, takenPerhaps)
		if q.Origin == 0 {
			q.Body = why.encode("")
		}
	}
	m.past.add(&ended{t.path, t.sheet.name, t.sheet.digest, outcome, why})
	s.Deliver(t.sheet.members[0], q)
	m.stopTimer(s, t.path)
	if q.Origin == 0 {
		m.applied(s, t)
	}
}

func (m *transactions) ended(path parley.Path, name string, outcome commit.Outcome, why ending) parley.Msg {
	return parley.Msg{Kind: txEnded, Value: uint64(path), Seq: uint64(outcome), Body: why.encode(name)}
}

func (m *transactions) tellBlocked(s *parley.Step, t *transaction) {
	s.Indicate(parley.Msg{Kind: txBlocked, Value: uint64(t.path),
		Body: append(problem.AppendSet(nil, m.waits(t)), t.sheet.name...)})
}

// readWaits reads what tellBlocked wrote.
func readWaits(b []byte, n int) (waits parley.Set, name string) {
	waits, rest, err := problem.ReadSet(b, n)
	if err != nil {
		panic("cluster: a set cannot be read that this node wrote")
	}
	return waits, string(rest)
}

// waits are the members that may know the outcome, or without whom nobody does.
func (m *transactions) waits(t *transaction) parley.Set {
	return parley.SetOf(t.sheet.members...).Minus(parley.SetOf(m.self)).Minus(t.heard)
}

// applied: the participant has carried out what was decided, or there was nothing to do.
func (m *transactions) applied(s *parley.Step, t *transaction) {
	if t.outcome == commit.Undecided {
		return
	}
	if !t.told {
		t.told = true
		if t.logged {
			m.append(s, t.path, []byte{appliedRecord})
		}
	}
	if id := coordinatorOf(t.path); id != m.self {
		m.send(s, id, 0, parley.Msg{Kind: txDone, Body: encodeNumbers([]uint64{numberOf(t.path)})})
		m.beat(s)
		if m.of[id].over(numberOf(t.path)) {
			m.drop(id, func(x *transaction) bool { return x == t })
		}
		return
	}
	m.close(t)
	m.beat(s)
}

// done: others have carried out what this node coordinates.
func (m *transactions) done(s *parley.Step, from parley.ID, q parley.Msg) {
	list, ok := readNumbers(q.Body, 4*m.c.open)
	if !ok || len(list) == 0 {
		s.Refuse(from, "numbers that cannot be read")
		return
	}
	for _, number := range list {
		t := m.live[txPath(m.self, number)]
		switch {
		case t == nil:
			m.news = true // to who has it still
		case t.sheet.has(from):
			t.acked.Add(from)
			m.close(t)
		}
	}
	m.beat(s)
}

// close forgets a transaction of this node's that is over: it is aborted, or all have
// carried it out.
func (m *transactions) close(t *transaction) {
	if t.told && (t.outcome == commit.Abort || missing(t) == (parley.Set{})) {
		m.news = true
		m.drop(m.self, func(x *transaction) bool { return x == t })
	}
}

// missing are the other members that have not carried it out, as far as the coordinator knows.
func missing(t *transaction) parley.Set { return parley.SetOf(t.sheet.members[1:]...).Minus(t.acked) }

// sendOpen tells others what is not over: all else is.
func (m *transactions) sendOpen(s *parley.Step) {
	m.news = false
	of := make([][]uint64, m.c.n)
	for _, t := range m.of[m.self].list {
		for _, id := range t.sheet.members[1:] {
			of[id] = append(of[id], numberOf(t.path))
		}
	}
	for id := range parley.ID(m.c.n) {
		if id != m.self {
			m.send(s, id, 0, parley.Msg{Kind: txOpen, Seq: m.next, Body: encodeNumbers(of[id])})
		}
	}
}

// beat sets the timer to say again what others may have missed.
func (m *transactions) beat(s *parley.Step) {
	if !m.pulse {
		m.pulse = true
		s.SetTimer(openTimer, 4*m.c.delta)
	}
}

// remind tells others what is over, and coordinators what is carried out and not over. It
// tells whether there will be more to say.
func (m *transactions) remind(s *parley.Step) (more bool) {
	for _, t := range m.of[m.self].list {
		if t.outcome != commit.Commit {
			continue
		}
		more = true
		if m.c.protocol == Majority { // in two phases the machine inside does so
			for id := range missing(t).All() {
				m.send(s, id, t.path, parley.Msg{Kind: ballot.Decision, Body: []byte(t.outcome.String())})
			}
		}
	}
	if m.news || more {
		m.sendOpen(s)
	}
	for id := range m.of {
		var list []uint64
		for _, t := range m.of[id].list {
			if parley.ID(id) != m.self && t.told {
				if t.reminded {
					list = append(list, numberOf(t.path))
				}
				t.reminded, more = true, true
			}
		}
		if len(list) > 0 {
			m.send(s, parley.ID(id), 0, parley.Msg{Kind: txDone, Body: encodeNumbers(list)})
		}
	}
	return more
}

// opened: a coordinator says what is over. What it waits for, and is carried out here or
// not known any more, it is told again.
func (m *transactions) opened(s *parley.Step, from parley.ID, q parley.Msg) {
	list, ok := readNumbers(q.Body, 4*m.c.open)
	if !ok || q.Seq >= 1<<56 || len(list) > 0 && list[len(list)-1] >= q.Seq {
		s.Refuse(from, "numbers that cannot be read")
		return
	}
	c := &m.of[from]
	if q.Seq < c.below {
		return
	}
	c.below, c.open = q.Seq, list
	m.drop(from, func(t *transaction) bool { return t.told && c.over(numberOf(t.path)) })
	var again []uint64
	for _, number := range list {
		if t := m.live[txPath(from, number)]; t == nil || t.told {
			again = append(again, number)
		}
	}
	if len(again) > 0 {
		m.send(s, from, 0, parley.Msg{Kind: txDone, Body: encodeNumbers(again)})
	}
}

// compact lets the state replace the records when they are many.
func (m *transactions) compact(s *parley.Step) {
	if m.records >= compactEvery && m.records >= 2*len(m.live) {
		m.records = 0
		s.Compact()
	}
}

// State visits every variable. What is over is durable with what is not: who asks for a
// transaction again under its name is told the outcome.
func (m *transactions) State(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "next", &m.next)
		parley.Num(v, "blank", &m.blank)
		m.past.state(v)
		m.liveState(v)
	})
	for id := range m.of {
		for _, t := range m.of[id].list {
			t.state(v)
		}
	}
	for id := range m.of {
		c := &m.of[id]
		parley.Num(v, "low", &c.low)
		parley.Num(v, "below", &c.below)
		parley.Slice(v, "open", &c.open, func(_ int, x *uint64) { parley.Num(v, "number", x) })
	}
	parley.Num(v, "records", &m.records)
	v.Bool("news", &m.news)
	v.Bool("pulse", &m.pulse)
}

func (m *transactions) liveState(v *parley.Vars) {
	var list []*transaction
	for id := range m.of {
		list = append(list, m.of[id].list...)
	}
	if v.Loading() {
		list = nil
	}
	parley.Slice(v, "live", &list, func(_ int, x **transaction) {
		if *x == nil {
			*x = new(transaction)
		}
		t := *x
		parley.Num(v, "path", &t.path)
		b := t.sheet.encode()
		v.Bytes("sheet", &b)
		if v.Loading() {
			var ok bool
			if t.sheet, ok = readSheet(b, m.c.n); !ok || !t.sheet.has(m.self) || int(coordinatorOf(t.path)) >= m.c.n {
				v.Fail()
				t.sheet = sheet{name: " ", members: []parley.ID{m.self}}
			}
		}
		v.Bool("told", &t.told)
		v.Bool("yes", &t.yes)
	})
	if v.Loading() {
		m.live, m.names = make(map[parley.Path]*transaction), make(map[string]*transaction)
		for id := range m.of {
			m.of[id].list, m.of[id].bytes = nil, 0
		}
		for _, t := range list {
			t.logged, t.inner = true, m.machine(t.sheet)
			m.add(t)
		}
	}
}

func (t *transaction) state(v *parley.Vars) {
	v.Inner("#"+strconv.FormatUint(uint64(t.path), 10), t.inner, nil)
	t.why.state(v)
	parley.Num(v, "taken", &t.why.taken)
	v.Bool("logged", &t.logged)
	parley.Num(v, "outcome", &t.outcome)
	v.Set("acked", &t.acked)
	v.Bool("asked", &t.asked)
	v.Bool("ready", &t.ready)
	v.Bool("given", &t.given)
	v.Bool("begun", &t.begun)
	v.Set("heard", &t.heard)
	v.Bool("blocked", &t.blocked)
	v.Bool("reminded", &t.reminded)
}
