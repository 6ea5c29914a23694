package byzantine

import (
	"bytes"
	"encoding/binary"

	"parley"
)

// rest is how long, in maximum slot durations, members do not vote for a process that was just admitted.
// Without it, a process that asks without end could end eras without end.
const rest = 10

// slower bounds how often the time until a process that is out asks again is doubled.
const slower = 3

// joining is what a process knows about processes that are out, others and itself.
type joining struct {
	ready []uint64   // by process: the last era that it is ready for
	outs  parley.Set // others that have reported in this era that they are out
	early []early    // by process: the first frame of an era of a reset

	asks     []ask      // by process: its last request
	wishes   bool       // some of these may need a wish
	granting bool       // the timer for wishes that must wait is set
	votes    [][]uint64 // by process: the incarnation that each process wished for, in this era
	let      []uint64   // by process: the incarnation that it joined this era in
	begun    []byte     // what was delivered before this era, for the processes it admits
	from     uint64     // the mark of begun

	out     bool     // this process delivers nothing
	tries   int      // how often it has asked without success
	woken   int      // how often since it gave up, because others asked
	hurried bool     // the timer is set to ask at once
	asked   bool     // it has asked to join, or takes part in a reset
	era     uint64   // to join after this era
	life    uint64   // its incarnation: the number of its request
	states  [][]byte // by process: what was delivered before the next era
}

// ask is one process's request to join.
type ask struct {
	era, life uint64      // 0: none
	wished    uint64      // the incarnation that this process has wished for, in this era
	times     int         // how often it has asked in this era, at most 2
	was       bool        // it was admitted before
	at        parley.Tick // when it was last admitted
}

func newJoining(n int) joining {
	return joining{
		ready: make([]uint64, n), asks: make([]ask, n), votes: make([][]uint64, n), let: make([]uint64, n),
		states: make([][]byte, n), early: make([]early, n),
	}
}

// A process that takes part.

// due reports whether there is a process to wish for now, and sets the timer for those that must wait.
func (p *process) due(s *parley.Step) bool {
	p.wishes = false
	now, first := false, parley.Tick(-1)
	for i := range p.asks {
		a := &p.asks[i]
		if a.life == 0 || a.era != p.cur.number || a.wished == a.life {
			p.wishes = p.wishes || a.era > p.cur.number
			continue
		}
		p.wishes = true
		if left := p.left(s, a); left == 0 {
			now = true
		} else if first < 0 || left < first {
			first = left
		}
	}
	if first > 0 && !p.granting {
		p.granting = true
		s.SetTimer(grant, first)
	}
	return now
}

// left returns how long a process must wait until this one wishes for it.
func (p *process) left(s *parley.Step, a *ask) parley.Tick {
	if !a.was {
		return 0
	}
	return max(0, a.at+rest*p.cur.line.Age()-s.Now)
}

// wish returns the due wishes, at most most. It returns each only once in an era.
func (p *process) wish(s *parley.Step, most int) (list []wish) {
	for i := range p.asks {
		a := &p.asks[i]
		if len(list) < most && a.life != 0 && a.era == p.cur.number && a.wished != a.life && p.left(s, a) == 0 {
			a.wished = a.life
			list = append(list, wish{parley.ID(i), a.life})
		}
	}
	return list
}

// vote counts a delivered wish: the last one of each sender for each process.
func (p *process) vote(sender parley.ID, w wish) {
	if int(w.whom) >= p.c.N {
		return
	}
	if len(p.votes[w.whom]) == 0 {
		p.votes[w.whom] = make([]uint64, p.c.N)
	}
	p.votes[w.whom][sender] = w.life
}

// elect reports whether m+1 processes wish for one, and records which.
func (p *process) elect() (any bool) {
	let := make([]uint64, p.c.N)
	for i, lives := range p.votes {
		for _, life := range lives {
			same := 0
			for _, other := range lives {
				if life != 0 && other == life {
					same++
				}
			}
			if same > p.c.M {
				let[i], any = life, true
			}
		}
	}
	if any {
		p.let = let
	}
	return any
}

// end ends the era here. It proposes own undelivered requests again.
func (p *process) end(s *parley.Step) {
	if p.next == nil {
		p.next = p.newEra(successor(p.cur.number))
	}
	p.cur.line = nil
	p.enter()
	p.begun = encodeState(p.total, p.numbers)
	p.from = beginning(digest(p.begun))
	p.say(s, p.cur.number)
	for i, life := range p.let {
		if life != 0 {
			p.asks[i].was, p.asks[i].at = true, s.Now
			p.tell(s, parley.ID(i))
		}
	}
}

// enter moves to the next era.
func (p *process) enter() {
	p.old, p.cur, p.next = p.cur, p.next, nil
	clear(p.votes)
	for i := range p.asks {
		p.asks[i].wished, p.asks[i].times = 0, 0
	}
	p.wishes, p.outs = true, parley.Set{}
	p.afresh()
	p.flight, p.under = nil, 0
	p.pace = newPace(parley.Tick(p.slot.Last+1)*In(p.cur.number, p.when).Delta, p.c.Batch)
}

// tell sends an admitted process what was delivered before.
func (p *process) tell(s *parley.Step, to parley.ID) {
	if to != p.self {
		s.Send(to, parley.Msg{Kind: State, Value: p.cur.number, Seq: p.let[to], Body: p.begun})
	}
}

// open returns the era of frames with a number, if it is the current or the next one.
func (p *process) open(s *parley.Step, number uint64) *era {
	switch {
	case number == p.cur.number:
		return p.cur
	case p.next != nil && number == p.next.number:
		return p.next
	case !p.out && number == successor(p.cur.number):
		p.next = p.newEra(number)
		p.begin(s) // others may have been ready for it before
		return p.next
	}
	return nil
}

// word returns the Seq of a Ready.
func (p *process) word() uint64 {
	if p.out {
		return 1
	}
	return 0
}

// say reports that this process is ready for an era, and takes part in a reset.
func (p *process) say(s *parley.Step, number uint64) {
	p.ready[p.self] = number
	s.SendAll(parley.Msg{Kind: Ready, Value: number, Seq: p.word()})
	p.follow(s)
	p.begin(s)
}

// follow takes part in the era that this process is ready for if that is a reset, unless it began so long ago
// that others have entered it.
func (p *process) follow(s *parley.Step) {
	number := p.ready[p.self]
	known := !fresh(number) || number <= p.cur.number || p.next != nil && p.next.number == number
	if p.out && !known && !p.settled(number) {
		p.attend(s, number)
	}
}

// begin starts the eras that 2m+1 processes are ready for. One correct process is ready for what m+1 others
// are ready for; so this one becomes ready too, and it is out if that era does not follow from its own.
func (p *process) begin(s *parley.Step) {
	known := p.known()
	if known > p.ready[p.self] {
		p.say(s, known)
		return
	}
	for _, e := range [...]*era{p.cur, p.next} {
		if e != nil && e.line.Paused() && p.enough(e.number) {
			p.release(s, e)
		}
	}
	if !p.out && known > p.cur.number && known != successor(p.cur.number) {
		p.cur.lost = true
	}
}

// release starts an era. A reset has failed if it takes longer than its first slot may.
func (p *process) release(s *parley.Step, e *era) {
	mark := s.Mark()
	e.line.Resume(s)
	if e == p.next && p.out && fresh(e.number) {
		e.line.OpenSlot(s, 1)
		s.SetTimer(seek, 2*e.line.Age())
	}
	e.tag(s, mark)
}

// known returns the last era that m+1 others are ready for, within one branch: where a branch ends, a correct
// process is ahead of others by more than one era, and a liar could name any era in between.
func (p *process) known() uint64 {
	known, any := uint64(0), false
	for _, number := range p.ready {
		count := 0
		for i, other := range p.ready {
			if parley.ID(i) != p.self && other >= number && other/branch == number/branch {
				count++
			}
		}
		if count > p.c.M {
			known, any = max(known, number), true
		}
	}
	if !any {
		return p.ready[p.self]
	}
	return known
}

// hear handles messages outside eras.
func (p *process) hear(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Value >= 1<<32-1 || p.c.Final || m.Kind == Ready && m.Seq > 1:
		s.Refuse(from, "malformed message")
	case m.Kind == Where:
		if p.ready[from] < m.Value || p.ready[from]/branch != m.Value/branch {
			p.ready[from] = m.Value // a restarted process has forgotten what it was ready for
		}
		p.away(s, from, m.Value)
		s.Send(from, parley.Msg{Kind: Ready, Value: p.ready[p.self], Seq: p.word()})
		p.begin(s)
	case m.Kind == Ready:
		before := p.known()
		p.ready[from] = max(p.ready[from], m.Value)
		if m.Seq == 1 {
			p.away(s, from, m.Value)
		} else {
			p.outs.Remove(from)
			p.asks[from].times = 0
		}
		if p.out && p.asked && before <= p.era && p.known() > p.era { // perhaps for another era
			p.hurry(s, p.next.line.Age())
		}
		p.begin(s)
	case m.Kind == State:
		p.restore(s, from, m)
	default:
		p.wished(s, from, m)
	}
}

// wished handles a Join. If m+1 others ask again, there are too few members to admit them.
func (p *process) wished(s *parley.Step, from parley.ID, m parley.Msg) {
	a := &p.asks[from]
	a.times = min(a.times+1, 2)
	switch vain := 0; {
	case p.out:
		if p.tries > p.c.Tries && p.woken < p.c.Tries {
			p.woken++
			p.hurry(s, p.when.Delta)
		}
	case m.Seq == 0 || m.Seq > 1<<63:
		s.Refuse(from, "malformed message")
	default:
		for i := range p.asks {
			if p.asks[i].times == 2 {
				vain++
			}
		}
		if vain > p.c.M {
			p.tries = max(p.tries, 1)
			p.cur.lost = true
		}
		switch {
		case successor(m.Value) == p.cur.number && p.let[from] == m.Seq:
			p.tell(s, from)
		case successor(m.Value) < p.cur.number:
			s.Refuse(from, "asks to join an era that is over")
		default:
			a.era, a.life, p.wishes = m.Value, m.Seq, true
		}
	}
}

// A process that is out.

// leave: this process delivers nothing more, and looks for the running era. It still sends in the slots that
// it knows, so that they complete sooner.
func (p *process) leave(s *parley.Step) {
	p.out, p.asked, p.next = true, false, nil
	if p.c.Final {
		p.cur.line.Deactivate()
		return
	}
	if p.tries <= p.c.Tries {
		s.SendAll(parley.Msg{Kind: Where, Value: p.ready[p.self]})
		s.SetTimer(seek, p.when.Delta)
	}
	p.follow(s)
	p.begin(s)
}

// seek asks to join, after the others have reported their eras, and asks again if that failed; if enough
// processes are out it resets the order. A process that takes part repeats its Ready, because a message that
// it sent while it was out may arrive last.
func (p *process) seek(s *parley.Step) {
	if !p.out {
		s.SendAll(parley.Msg{Kind: Ready, Value: p.ready[p.self]})
		return
	}
	switch known := p.known(); {
	case p.tries > 0 && p.several() && anew(p.entered()) < 1<<32-1:
		p.reform(s)
	case !p.asked || p.next.bad() || known > p.era && (!fresh(p.next.number) || known != p.next.number) ||
		fresh(p.next.number) && (!p.next.line.Paused() || known < p.next.number || p.settled(known)):
		p.asked, p.era, p.ready[p.self] = true, known, known
		p.next = p.newEra(successor(known))
		clear(p.states)
		p.life = max(p.life+1, uint64(max(s.Now, 0)))
		p.begin(s)
	}
	s.SendAll(parley.Msg{Kind: Where, Value: p.ready[p.self]})
	s.SendAll(parley.Msg{Kind: Join, Value: p.era, Seq: max(p.life, 1)})
	if p.tries++; p.tries <= p.c.Tries {
		s.SetTimer(seek, 3*p.next.line.Age()<<min(p.tries-1, slower))
	}
}

// restore: what m+1 processes report about the beginning of an era, in answer to this request, a correct
// process reports. That process had received this request, and since then this process has kept what it
// receives of the era. So the era began later, and this process has missed nothing of it.
func (p *process) restore(s *parley.Step, from parley.ID, m parley.Msg) {
	if !p.out || !p.asked || m.Value != p.next.number || fresh(m.Value) || m.Seq != p.life || p.states[from] != nil {
		s.Refuse(from, "state that is not asked for")
		return
	}
	p.states[from] = m.Body
	same := 0
	for _, other := range p.states {
		if other != nil && bytes.Equal(other, m.Body) {
			same++
		}
	}
	total, numbers, ok := decodeState(m.Body, p.c.N)
	if same <= p.c.M || !ok || p.next.bad() {
		return
	}
	p.renew(numbers[p.self])
	p.total, p.numbers = total, numbers
	p.join(s)
}

// join continues in the next era.
func (p *process) join(s *parley.Step) {
	p.out = false
	clear(p.let)
	p.enter()
	p.old, p.from = nil, beginning(digest(encodeState(p.total, p.numbers)))
	s.Indicate(parley.Msg{Kind: Restored, Value: p.total, Seq: uint64(len(p.queue))})
	s.SetTimer(seek, p.cur.line.Age())
	p.say(s, p.cur.number)
}

// encodeState encodes how many requests were delivered, and the number of the last one of each sender.
func encodeState(total uint64, numbers []uint64) []byte {
	b := binary.AppendUvarint(nil, total)
	for _, number := range numbers {
		b = binary.AppendUvarint(b, number)
	}
	return b
}

func decodeState(b []byte, n int) (total uint64, numbers []uint64, ok bool) {
	r := parley.Reader{Rest: b}
	total, numbers = r.Number(1<<62), make([]uint64, n)
	for i := range numbers {
		numbers[i] = r.Number(1 << 63)
	}
	return total, numbers, r.Done()
}

func (j *joining) State(v *parley.Vars) {
	number := func(name string) func(parley.ID, *uint64) {
		return func(_ parley.ID, x *uint64) { parley.Num(v, name, x) }
	}
	parley.PerProcess(v, "ready", j.ready, number("era"))
	v.Set("others out", &j.outs)
	parley.PerProcess(v, "early", j.early, func(_ parley.ID, f *early) {
		parley.Num(v, "era", &f.number)
		v.Bytes("frame", &f.body)
	})
	parley.PerProcess(v, "asks", j.asks, func(_ parley.ID, a *ask) {
		parley.Num(v, "times", &a.times)
		parley.Num(v, "era", &a.era)
		parley.Num(v, "life", &a.life)
		parley.Num(v, "wished", &a.wished)
		v.Bool("was let in", &a.was)
		if a.was {
			v.Time("at", &a.at)
		}
	})
	v.Bool("wishes", &j.wishes)
	v.Bool("granting", &j.granting)
	parley.PerProcess(v, "votes", j.votes, func(_ parley.ID, lives *[]uint64) {
		parley.Slice(v, "lives", lives, func(_ int, x *uint64) { parley.Num(v, "life", x) })
	})
	parley.PerProcess(v, "let in", j.let, number("life"))
	v.Bytes("begun", &j.begun)
	parley.Num(v, "from", &j.from)
	v.Bool("out", &j.out)
	parley.Num(v, "tries", &j.tries)
	parley.Num(v, "woken", &j.woken)
	v.Bool("hurried", &j.hurried)
	v.Bool("asked", &j.asked)
	parley.Num(v, "asked for", &j.era)
	parley.Num(v, "life", &j.life)
	parley.PerProcess(v, "states", j.states, func(_ parley.ID, b *[]byte) { v.Bytes("state", b) })
}
